import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import DataError, DTypeError, StateError

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_survives(dtype, tmp_path):
    values = (np.random.rand(3, 4) * 100 - 20).astype(dtype)
    nn.save({"a": Tensor(values)}, tmp_path / "file")
    loaded = nn.load(tmp_path / "file")["a"]
    assert loaded.dtype.name == dtype
    np.testing.assert_array_equal(loaded.numpy(), values)


def test_bfloat16_survives(tmp_path):
    tensor = Tensor([1.0, -2.5, 3.140625, float("inf")]).cast("bfloat16")
    nn.save({"a": tensor}, tmp_path / "file")
    loaded = nn.load(tmp_path / "file")["a"]
    assert loaded.dtype.name == "bfloat16" and loaded.tolist() == tensor.tolist()


def test_scalars_and_empty_tensors_survive(tmp_path):
    nn.save({"scalar": Tensor(3.0), "empty": Tensor.zeros(0, 3)}, tmp_path / "file")
    loaded = nn.load(tmp_path / "file")
    assert loaded["scalar"].item() == 3.0 and loaded["empty"].shape == (0, 3)


def test_model_round_trip(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model(Tensor.ones(5, 3))
    nn.save(model.state_dict(), tmp_path / "model.safetensors")
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    other.load_state_dict(nn.load(tmp_path / "model.safetensors"))
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name].numpy(), value.numpy())


def test_files_are_read_by_safetensors(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    nn.save({"a": Tensor([1.0, 2.0])}, tmp_path / "file")
    np.testing.assert_array_equal(numpy.load_file(tmp_path / "file")["a"], [1.0, 2.0])


@pytest.mark.parametrize("damage", ["truncated", "empty", "garbage", "header"])
def test_damaged_file_is_one_clear_error(damage, tmp_path):
    path = tmp_path / "file"
    nn.save({"a": Tensor.ones(100)}, path)
    content = path.read_bytes()
    damaged = {
        "truncated": content[:-50],
        "empty": b"",
        "garbage": b"not a state file at all" * 10,
        "header": content[:8] + b"x" * 20 + content[28:],
    }
    path.write_bytes(damaged[damage])
    with pytest.raises(StateError, match="load: .*file is damaged or no safetensors file"):
        nn.load(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"hello world, no weights"])
def test_damaged_files_of_torch_are_named_so(content, tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(StateError, match="load: .*model.pt is damaged: it does not begin as torch"):
        nn.load(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="load: cannot read .*nothing: No such file"):
        nn.load(tmp_path / "nothing")


def test_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "file"
    nn.save({"a": Tensor([1.0])}, path)
    with pytest.raises(DTypeError, match="save: b is an int"):
        nn.save({"a": Tensor([2.0]), "b": 3}, path)
    assert nn.load(path)["a"].tolist() == [1.0]
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_unwritable_folder_is_named(tmp_path):
    with pytest.raises(DataError, match="save: cannot write .*no.folder.*file"):
        nn.save({"a": Tensor([1.0])}, tmp_path / "no_folder" / "file")


@pytest.fixture
def umask(request) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002], indirect=True)
def test_a_file_has_the_permissions_of_open(umask, tmp_path):
    nn.save({"a": Tensor([1.0])}, tmp_path / "new")
    assert mode_of(tmp_path / "new") == 0o666 & ~umask
    (tmp_path / "old").touch(0o640)
    os.chmod(tmp_path / "old", 0o660)
    nn.save({"a": Tensor([1.0])}, tmp_path / "old")
    assert mode_of(tmp_path / "old") == 0o660


def test_a_link_still_leads_to_its_file(tmp_path):
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "latest", tmp_path / "folder" / "step1"
    link.symlink_to(target)  # nothing there yet
    for value in (1.0, 2.0):
        nn.save({"a": Tensor([value])}, link)
        assert link.is_symlink() and nn.load(target)["a"].tolist() == [value]


def test_a_pipe_is_written_to(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    nn.save({"a": Tensor([1.0])}, pipe)
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "file").write_bytes(received[0])
    assert nn.load(tmp_path / "file")["a"].tolist() == [1.0]


def test_nothing_is_left_of_a_save_that_fails(tmp_path, monkeypatch):
    def full(*paths) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DataError, match="No space left"):
        nn.save({"a": Tensor([1.0])}, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_kept(tmp_path):
    path = tmp_path / "file"
    nn.save({"a": Tensor([1.0])}, path)
    os.chmod(path, 0o444)
    with pytest.raises(DataError, match="Permission denied"):
        nn.save({"a": Tensor([2.0])}, path)
    assert nn.load(path)["a"].tolist() == [1.0]
