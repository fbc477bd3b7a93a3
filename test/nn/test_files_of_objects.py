"""`picograd.save` writes what PyTorch reads, and `picograd.load` what PyTorch wrote."""

import contextlib
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from object_support import objects

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, MissingFileError, StateError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("weights_only", [None, False])
def test_it_reads_both(weights_only: bool | None) -> None:
    ours, theirs = io.BytesIO(), io.BytesIO()
    picograd.save(objects(), ours)
    layer = torch.nn.Linear(2, 3)
    torch.save([layer.state_dict(), torch.ones(2).half()], theirs)
    for file in (ours, theirs):
        file.seek(0)
    found = picograd.load(ours, weights_only=weights_only)
    assert found["shapes"][0].tolist() == [[0, 3], [1, 4], [2, 5]] and found["device"].type == "cpu"
    assert isinstance(found["parameter"], nn.Parameter) and found["parameter"].requires_grad
    assert found["others"] == dict(epoch=3, name="a", none=None, rate=0.5, flag=True)
    state, half = picograd.load(theirs, "cpu", weights_only=weights_only)
    assert half.dtype is picograd.float16
    np.testing.assert_array_equal(state["weight"].numpy(), layer.weight.detach().numpy())


def test_map_location(tmp_path: Path) -> None:
    picograd.save(Tensor([1.0]), tmp_path / "a.pt")
    places = ["cpu", picograd.device("cpu"), {"cuda:0": "cpu"}, lambda storage, name: storage]
    for place in [*places, lambda storage, name: storage.cpu()]:
        assert picograd.load(tmp_path / "a.pt", map_location=place).device == "cpu"
    with picograd.device("cpu"):
        moved = picograd.load(tmp_path / "a.pt", map_location=lambda storage, name: "null")
    assert moved.device == "null"


def test_modules_and_training(tmp_path: Path) -> None:
    """A whole module comes back where the file is trusted; a run continues from a checkpoint."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    picograd.save(model, tmp_path / "model.pt")
    with pytest.raises(StateError, match=r"Sequential is refused.*weights_only=False"):
        picograd.load(tmp_path / "model.pt")
    again = picograd.load(tmp_path / "model.pt", weights_only=False)
    x = picograd.randn(4, 2)
    assert again(x).tolist() == model(x).tolist() and len(list(again.parameters())) == 4

    optimizer = picograd.optim.Adam(model.parameters(), lr=0.1)
    schedule = picograd.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2])
    model(x).square().sum().backward()
    optimizer.step()
    schedule.step()
    state = {"m": model.state_dict(), "o": optimizer.state_dict(), "s": schedule.state_dict()}
    picograd.save(state, tmp_path / "run.pth")
    found = picograd.load(tmp_path / "run.pth")
    other = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    other.load_state_dict(found["m"])
    resumed = picograd.optim.Adam(other.parameters(), lr=0.1)
    resumed.load_state_dict(found["o"])
    following = picograd.optim.lr_scheduler.MultiStepLR(resumed, [1, 2])
    following.load_state_dict(found["s"])
    for net, opt, each in ((model, optimizer, schedule), (other, resumed, following)):
        opt.zero_grad()
        net(x).square().sum().backward()
        opt.step()
        each.step()
    assert other[0].weight.tolist() == model[0].weight.tolist() and resumed.lr == optimizer.lr


def test_by_extension_and_errors(tmp_path: Path) -> None:
    picograd.save({"a": Tensor([1.0])}, tmp_path / "a.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes()[8:9] == b"{"
    assert picograd.load(tmp_path / "a.safetensors")["a"].tolist() == [1.0]
    with pytest.raises(DTypeError, match="the state is a list"):
        picograd.save([1], tmp_path / "b.safetensors")
    with pytest.raises(MissingFileError):
        picograd.load(tmp_path / "none.pt")
    for wrong in (lambda: picograd.save(1, 2), lambda: picograd.load(3)):
        with pytest.raises(DTypeError, match="the file is an int"):
            wrong()
    with pytest.raises(DTypeError, match="map_location is a float"):
        picograd.load(tmp_path / "a.safetensors", map_location=1.5)
    damaged = io.BytesIO(b"PK\x03\x04 and no more")
    for trusted in (None, False):
        damaged.seek(0)
        with pytest.raises(StateError, match="damaged"):
            picograd.load(damaged, weights_only=trusted)


def round_trip(value: object) -> tuple[list[Tensor], int]:
    """Save and load; give what came back, and how long the file is."""
    file = io.BytesIO()
    picograd.save(value, file)
    size = file.tell()
    file.seek(0)
    return picograd.load(file), size


def test_views_share_memory() -> None:
    whole = picograd.arange(12.0).reshape(3, 4).contiguous()
    views = [whole[1], whole, whole.T, whole[:, ::2], whole.expand(2, 3, 4), whole[1:].reshape(8)]
    (row, base, turned, stepped, spread, flat), _ = round_trip(views)
    assert turned.stride() == (1, 4) and stepped.stride() == (4, 2) and spread.stride() == (0, 4, 1)
    assert row.storage_offset() == 4 and flat.storage_offset() == 4
    row.zero_()
    turned[0, 0] = 7.0
    assert base.tolist() == [[7, 1, 2, 3], [0, 0, 0, 0], [8, 9, 10, 11]] == spread[1].tolist()
    assert stepped.tolist() == [[7, 2], [0, 0], [8, 10]] and flat.tolist()[:5] == [0, 0, 0, 0, 8]
    theirs = torch.arange(12.0).reshape(3, 4)
    file = io.BytesIO()
    torch.save([theirs.T, theirs[2]], file)
    file.seek(0)
    turned, row = picograd.load(file)
    row.zero_()
    assert turned.tolist() == [[0, 4, 0], [1, 5, 0], [2, 6, 0], [3, 7, 0]]


def test_tied_weights_are_written_once() -> None:
    model = nn.Sequential(nn.Linear(100, 100, bias=False), nn.Linear(100, 100, bias=False))
    _, apart = round_trip(model.state_dict())
    model[1].weight = model[0].weight
    found, tied = round_trip(model.state_dict())
    assert tied < 0.6 * apart
    first, second = found["0.weight"], found["1.weight"]
    first.zero_()
    assert first is not second and not second.any()


@pytest.mark.parametrize("compressing", [gzip, lzma])
def test_files_that_compress_are_written_from_front_to_back(compressing: Any) -> None:
    """They cannot go back: it was an OSError."""
    held = io.BytesIO()
    with compressing.open(held, "wb") as file:
        picograd.save({"x": Tensor([1.0, 2.0])}, file)
    content = io.BytesIO(compressing.decompress(held.getvalue()))
    assert picograd.load(content)["x"].tolist() == [1.0, 2.0]
    content.seek(0)
    assert torch.load(content)["x"].tolist() == [1.0, 2.0]


def refuse() -> None:
    raise EOFError("the user's own")


class Refusing:
    def __reduce__(self) -> Any:
        return refuse, ()


@pytest.mark.parametrize("weights_only", [None, False])
def test_damaged_files_say_so(weights_only: bool | None, tmp_path: Path) -> None:
    path, random = tmp_path / "a.pt", np.random.default_rng(0)
    picograd.save({"weight": Tensor.ones(40), "name": "text"}, path)
    content = path.read_bytes()
    for number in range(200):
        damaged = bytearray(content)
        at = int(random.integers(len(damaged)))
        if number % 3 == 0:
            del damaged[at:]
        elif number % 3 == 1:
            damaged[at] = int(random.integers(256))
        else:
            damaged[at : at + 4] = b"\xff\xff\xff\x7f"
        path.write_bytes(damaged)
        with contextlib.suppress(StateError):
            picograd.load(path, weights_only=weights_only)


def test_errors_of_objects_in_a_file_pass(tmp_path: Path) -> None:
    picograd.save(Refusing(), tmp_path / "a.pt")
    with pytest.raises(EOFError, match="the user's own"):
        picograd.load(tmp_path / "a.pt", weights_only=False)
