"""The safetensors format: headers that contradict the file; every damage is one kind of error."""

import json
import random

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import DTypeError, PicogradError, StateError

F4 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def write(path, header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.mark.parametrize(
    "header, size, message",
    [
        (b"[" * 200_000, 0, "the header is not readable"),
        (b'{"a":' * 100_000, 0, "the header is not readable"),
        (b"[]", 0, "the header is not readable"),
        (b"\xff\xfe", 0, "the header is not readable"),
        (b'{"a": 3}', 0, "the header is not readable"),
        ({"a": F4 | {"shape": [-1]}}, 4, "the header is not readable"),
        ({"a": F4 | {"shape": [True]}}, 4, "the header is not readable"),
        ({"a": F4 | {"shape": ["1"]}}, 4, "the header is not readable"),
        ({"a": F4 | {"shape": [1] * 65}}, 4, "the header is not readable"),
        ({"a": F4 | {"shape": [1 << 70]}}, 4, "the header is not readable"),
        ({"a": F4 | {"dtype": ["F32"]}}, 4, "the header is not readable"),
        ({"a": F4 | {"data_offsets": [0]}}, 4, "the header is not readable"),
        ({"a": F4 | {"data_offsets": [0, 4, 8]}}, 4, "the header is not readable"),
        ({"a": F4 | {"data_offsets": [0, 1 << 62]}}, 4, "the data should have 46116860184273"),
        ({"a": F4 | {"shape": [1 << 40, 1 << 40]}}, 4, "the shapes contradict the data"),
        ({"a": F4, "b": F4}, 4, "the data of b overlaps another's"),
        ({"a": F4 | {"data_offsets": [4, 8]}}, 8, "the data of a overlaps another's, or leaves"),
        ({"a": F4}, 8, "the data should have 4 bytes, 8 are there"),
        (b'{"a": 1, "a": 2}', 0, "the header is not readable"),
        ({"a": F4 | {"dtype": "F4"}}, 4, "no picograd dtype for F4"),
        ({"__metadata__": 3}, 0, "the metadata is no text"),
        ({"__metadata__": {"nested": 3}}, 0, "the metadata is no text"),
        ({"__metadata__": {"nested": "[" * 100_000}}, 0, "the nested state is not readable"),
        ({"__metadata__": {"nested": '["tensor", "a"]'}}, 0, "the nested state is not readable"),
        ({"__metadata__": {"nested": '["dict", [[[], 1]]]'}}, 0, "nested state is not readable"),
        ({"__metadata__": {"nested": "3"}}, 0, "the nested state is not readable"),
    ],
)
def test_headers_that_are_wrong(header, size, message, tmp_path):
    path = write(tmp_path / "file", header, bytes(size))
    with pytest.raises(StateError, match=f"file is damaged or no safetensors file: .*{message}"):
        nn.load(path)


def test_files_of_others_need_no_order_and_no_metadata(tmp_path):
    header = {
        "late": {"dtype": "I8", "shape": [2], "data_offsets": [4, 6]},
        "none": {"dtype": "F64", "shape": [0, 3], "data_offsets": [4, 4]},
        "early": F4,
    }
    path = write(tmp_path / "file", header, np.float32(7).tobytes() + b"\1\2")
    found = nn.load(path)
    assert list(found) == ["late", "none", "early"]
    assert found["late"].tolist() == [1, 2] and found["early"].tolist() == [7.0]
    assert found["none"].shape == (0, 3)


def test_truth_values_are_zero_or_one_whatever_is_in_the_file(tmp_path):
    header = {"a": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}}
    found = nn.load(write(tmp_path / "file", header, b"\x00\x02\xff"))["a"]
    assert found.tolist() == [False, True, True] and found.sum().item() == 2


def test_loaded_tensors_are_tensors_like_any(tmp_path):
    nn.save({"a": Tensor([1.0, 2.0]), "b": Tensor([1.0]).cast("bfloat16")}, tmp_path / "file")
    state = nn.load(tmp_path / "file")
    state["a"] += 1
    state["a"].requires_grad = True
    (state["a"] * state["a"]).sum().backward()
    assert state["a"].tolist() == [2.0, 3.0] and state["a"].grad.tolist() == [4.0, 6.0]
    assert (state["b"] + 1).tolist() == [2.0]
    assert nn.load(tmp_path / "file")["a"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["é", "名前", "", 'a"b\\c\n'])
def test_names_of_any_text(name, tmp_path):
    nn.save({name: Tensor([1.0])}, tmp_path / "file")
    assert nn.load(tmp_path / "file")[name].tolist() == [1.0]
    safe = pytest.importorskip("safetensors.numpy")
    assert safe.load_file(tmp_path / "file")[name].tolist() == [1.0]


@pytest.mark.parametrize("name", ["\ud800", "__metadata__"])
def test_names_a_file_cannot_hold(name, tmp_path):
    with pytest.raises(DTypeError, match="save: a name holds half|save: the name .* has a meaning"):
        nn.save({name: Tensor([1.0])}, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_state_that_holds_itself(tmp_path):
    state = {"a": {}}
    state["a"]["b"] = state
    with pytest.raises(DTypeError, match="nested too deeply, or holds itself"):
        nn.save(state, tmp_path / "file")


def mutated(content, rng):
    """Flip, change, cut, insert, or write a size."""
    for _ in range(rng.choice([1, 1, 1, 3])):
        place = rng.randrange(rng.choice([len(content), min(len(content), 400)]) or 1)
        kind = rng.randrange(5)
        if kind == 0:
            content = content[:place]
        elif kind == 1:
            content = content[:place] + content[place + rng.randrange(1, 30) :]
        elif kind == 2:
            content = content[:place] + rng.randbytes(rng.randrange(1, 20)) + content[place:]
        elif kind == 3:
            size = rng.choice([0, 1, 2**31, 2**63, 2**64 - 1, len(content)])
            content = content[:place] + size.to_bytes(8, "little") + content[place + 8 :]
        else:
            flipped = content[place : place + 1] or b"\0"
            flipped = bytes([flipped[0] ^ (1 << rng.randrange(8))])
            content = content[:place] + flipped + content[place + 1 :]
    return content


def all_read(value):
    if isinstance(value, Tensor):
        value.numpy()
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            all_read(each)


@pytest.mark.parametrize("layout", ["plain", "nested", "zip", "old"])
def test_damage_is_an_error_that_names_the_file_or_does_no_harm(layout, tmp_path):
    path = tmp_path / "state"
    tensors = {"a": Tensor.ones(3, 4).cast("bfloat16"), "b": Tensor.of([True, False])}
    if layout in ("plain", "nested"):
        nn.save(tensors if layout == "plain" else {"model": tensors, "epoch": 3}, path)
    else:
        torch = pytest.importorskip("torch")
        state = {"a": torch.ones(5, 6).T, "b": [1, torch.arange(7)], "c": torch.ones(2).bfloat16()}
        torch.save(state, path, _use_new_zipfile_serialization=layout == "zip")
    content, rng = path.read_bytes(), random.Random(layout)
    for _ in range(400):
        path.write_bytes(mutated(content, rng))
        try:
            all_read(nn.load(path))
        except PicogradError as error:
            assert "state" in str(error) and error.fix
