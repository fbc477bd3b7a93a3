"""Files of torch.save: every dtype and layout arrives; nothing in a file runs; damage is named."""

import os
import pickle
import zipfile

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import DataError, DTypeError, StateError
from picograd.nn.torch_file import load_torch

torch = pytest.importorskip("torch")
NAMES = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64"
NAMES += " complex64 complex128"
LAYOUTS = [dict(pickle_protocol=2), dict(pickle_protocol=5)]
LAYOUTS += [layout | dict(_use_new_zipfile_serialization=False) for layout in LAYOUTS]


def saved(value, path, **options):
    torch.save(value, path, **options)
    return load_torch(path)


def rezipped(path, change, compression=zipfile.ZIP_STORED):
    """Write a file of torch.save again with changed records."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in records.items():
            content = change(name.partition("/")[2], content)
            if content is not None:
                archive.writestr(name, content)


@pytest.mark.parametrize("name", NAMES.split())
def test_every_dtype(name, tmp_path):
    value = torch.tensor([0, 1, 3, 100]).to(getattr(torch, name))
    found = saved({"a": value}, tmp_path / "a.pt")["a"]
    assert found.dtype.name == name
    assert found.tolist() == value.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_and_containers(layout, tmp_path):
    base = torch.arange(24.0).reshape(4, 6)
    value = dict(transposed=base.T, part=base[1:, ::2], row=base[2], scalar=base[3, 3])
    value |= dict(expanded=torch.ones(1, 2).expand(3, 2), empty=torch.zeros(0, 3))
    value["parameter"] = torch.nn.Parameter(base + 1)
    plain = dict(numbers=[1, 2.5, None, True, 2**70], text="é", size=torch.Size([2, 3]))
    plain |= dict(nested={"a": (1, [2])}, unique={1, 2}, raw=b"\xff\x00")
    found = saved({**value, **plain, "dtype": torch.bfloat16}, tmp_path / "a.pt", **layout)
    for name, wanted in value.items():
        np.testing.assert_array_equal(found[name].numpy(), wanted.detach().numpy())
    assert {name: found[name] for name in plain} == plain
    assert found["parameter"].requires_grad and found["dtype"].name == "bfloat16"


def test_a_tensor_saved_twice_stays_one(tmp_path):
    shared = torch.ones(3)
    found = saved([shared, shared, shared[1:]], tmp_path / "a.pt")
    assert found[0] is found[1] and found[2].shape == (2,)


def test_optimizer_state_and_the_front_door(tmp_path):
    model = torch.nn.Linear(2, 3)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    content = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 4}
    torch.save(content, tmp_path / "checkpoint.pt")
    found = nn.load(tmp_path / "checkpoint.pt")
    assert found["epoch"] == 4 and found["optimizer"]["param_groups"][0]["lr"] == 1e-3
    ours = nn.Linear(2, 3)
    ours.load_state_dict(found["model"])
    np.testing.assert_array_equal(ours.weight.numpy(), model.weight.detach().numpy())


class Trap:
    """Unpickled by pickle, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_code_in_a_file_does_not_run(layout, tmp_path):
    torch.save({"a": torch.ones(2), "b": Trap(tmp_path / "trap")}, tmp_path / "a.pt", **layout)
    with pytest.raises(StateError, match=r"the global posix.mkdir is refused: it may run code"):
        nn.load(tmp_path / "a.pt")
    assert not (tmp_path / "trap").exists()
    pickle.loads(pickle.dumps(Trap(tmp_path / "trap")))  # the trap works
    assert (tmp_path / "trap").exists()


def test_a_whole_model_is_refused_by_its_class(tmp_path):
    torch.save(torch.nn.Linear(2, 3), tmp_path / "a.pt")
    with pytest.raises(StateError, match=r"the global torch\.nn\.modules\.linear\.Linear is ref"):
        load_torch(tmp_path / "a.pt")


def test_dtypes_picograd_does_not_have(tmp_path):
    missing = torch.zeros(4, dtype=torch.uint8).view(torch.float8_e8m0fnu)
    torch.save(missing, tmp_path / "a.pt")
    with pytest.raises(StateError, match=r"picograd has no dtype for torch\.float8_e8m0fnu"):
        load_torch(tmp_path / "a.pt")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_truncated_file_is_one_clear_error(layout, tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.ones(100)}, path, **layout)
    content = path.read_bytes()
    for length in range(20, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:length])
        with pytest.raises(StateError, match="load: "):
            load_torch(path)


def test_damaged_bytes_never_crash(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.ones(3), "b": [1, 2]}, path, _use_new_zipfile_serialization=False)
    content = bytearray(path.read_bytes())
    for place in range(len(content)):
        damaged = content.copy()
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        try:
            load_torch(path)
        except StateError:
            pass


def test_zip_bombs_are_refused(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.zeros(100_000)}, path)
    rezipped(path, lambda name, content: content, zipfile.ZIP_DEFLATED)
    with pytest.raises(StateError, match="holds compressed records, torch.save writes none"):
        load_torch(path)


@pytest.mark.parametrize(
    "record, content, message",
    [
        ("byteorder", b"big", "was written by a big-endian machine"),
        ("data/0", None, r"the record a/data/0 is missing"),
        ("data/0", b"1234", r"storage 0 has 4 bytes, 400 wanted"),
        ("data.pkl", None, "is a zip archive without a data.pkl"),
        ("data.pkl", b"\x80\x02", "the pickle in it is damaged"),
    ],
)
def test_records_that_are_wrong(record, content, message, tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.ones(100)}, path)
    rezipped(path, lambda name, old: content if name == record else old)
    with pytest.raises(StateError, match=message):
        load_torch(path)


def test_a_checksum_is_looked_at(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.full((100,), 7.5)}, path)
    content = path.read_bytes()
    wanted = np.full(100, 7.5, np.float32).tobytes()
    path.write_bytes(content.replace(wanted, wanted[:-1] + b"\x00"))
    with pytest.raises(StateError, match="is damaged: Bad CRC-32"):
        load_torch(path)


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataError, match="cannot read .*nothing: No such file"):
        load_torch(tmp_path / "nothing")
    with pytest.raises(DTypeError, match="the path is an int"):
        load_torch(3)
    (tmp_path / "b").write_bytes(b"no zip")
    with pytest.raises(StateError, match="is no file of torch.save"):
        load_torch(tmp_path / "b")
    nn.save({"a": Tensor([1.0])}, tmp_path / "c")
    assert nn.load(tmp_path / "c")["a"].tolist() == [1.0]
