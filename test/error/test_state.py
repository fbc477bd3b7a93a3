"""State dicts that do not fit, and state files that are missing or damaged."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from error_support import Case, check, named

from picograd import Tensor, nn
from picograd.errors import DataError, DTypeError, MissingFileError, StateError

TRUTH = {"weight": Tensor([[1.0, 2.0]]), "bias": Tensor([3.0])}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run every program in an empty folder, so that paths in messages are short."""
    monkeypatch.chdir(tmp_path)
    yield


def load_state(**changes: object) -> None:
    """Load a state with changed entries into Linear(2, 1); nothing of the model may change."""
    model = nn.Linear(2, 1)
    before = model.weight.tolist()
    try:
        model.load_state_dict({**TRUTH, **changes})
    finally:
        assert model.weight.tolist() == before


def load_damaged(
    first: int = 0, last: int | None = None, old: bytes = b"", new: bytes = b""
) -> None:
    """Save a file, damage it, load it."""
    nn.save(TRUTH, "model.safetensors")
    path = Path("model.safetensors")
    path.write_bytes(path.read_bytes()[first:last].replace(old, new, 1))
    nn.load(path)


def load_text() -> None:
    Path("notes.txt").write_text("these are no weights at all")
    nn.load("notes.txt")


def load_empty() -> None:
    Path("empty.safetensors").touch()
    nn.load("empty.safetensors")


def save_keeps_the_old_file() -> None:
    nn.save(TRUTH, "model.safetensors")
    try:
        nn.save({"weight": 3}, "model.safetensors")
    finally:
        assert nn.load("model.safetensors")["bias"].tolist() == [3.0]


CASES = [
    Case(
        "missing names", lambda: nn.Linear(2, 1).load_state_dict({}), StateError,
        "load_state_dict: missing weight, bias. Fix: load a state made by the same "
        "model, or pass strict=False.",
    ),
    Case(
        "unexpected name", lambda: load_state(extra=Tensor(1.0)), StateError,
        "load_state_dict: unexpected extra. Fix: load a state made by the same model, or "
        "pass strict=False.",
    ),
    Case(
        "names of a wrapper",
        lambda: nn.Linear(1, 1, bias=False).load_state_dict({"module.weight": Tensor.ones(1, 1)}),
        StateError, "load_state_dict: missing weight; unexpected module.weight. Fix: take the name "
        "of a wrapper off its names: name.removeprefix('module.').",
    ),
    Case(
        "wrong shape", lambda: load_state(weight=Tensor.ones(3, 3)), StateError,
        "load_state_dict: weight has shape (3, 3), the model wants (1, 2). Fix: build "
        "the model with the sizes it was saved with.",
    ),
    Case(
        "no tensor", lambda: load_state(weight="abc"), StateError,
        "load_state_dict: weight is a str, not a tensor (Tensor: cannot make a tensor of "
        "elements like 'a'. Fix: pass numbers, nested lists or arrays.). Fix: pass "
        "tensors or arrays.",
    ),
    Case(
        "no state", lambda: nn.Linear(2, 1).load_state_dict(3), DTypeError,
        "load_state_dict: the state is an int. Fix: pass the dict that nn.load returns.",
    ),
    Case(
        "missing file", lambda: nn.load("missing.safetensors"), MissingFileError,
        "load: cannot read missing.safetensors: No such file or directory. Fix: check "
        "the path.",
    ),
    Case(
        "a folder", lambda: nn.load("."), DataError,
        "load: cannot read .: Is a directory. Fix: check the path.",
    ),
    Case(
        "no path", lambda: nn.load(3), DTypeError,
        "load: the path is an int. Fix: pass a file name.",
    ),
    Case(
        "empty file", load_empty, StateError,
        "load: empty.safetensors is damaged or no safetensors file: 0 bytes are too few "
        "for a header. Fix: save it again, or restore it from a copy.",
    ),
    Case(
        "another file", load_text, StateError,
        "load: notes.txt is damaged or no safetensors file: the header should have "
        "8241904413164529780 bytes, 19 are there. Fix: save it again, or restore it from "
        "a copy.",
    ),
    Case(
        "truncated data", lambda: load_damaged(0, -5), StateError,
        "load: model.safetensors is damaged or no safetensors file: the data should have "
        "12 bytes, 7 are there. Fix: save it again, or restore it from a copy.",
    ),
    Case(
        "truncated header", lambda: load_damaged(0, 30), StateError,
        "load: model.safetensors is damaged or no safetensors file: the header should "
        "have 160 bytes, 22 are there. Fix: save it again, or restore it from a copy.",
    ),
    Case(
        "damaged header", lambda: load_damaged(old=b"dtype", new=b"dtyqe"), StateError,
        "load: model.safetensors is damaged or no safetensors file: the header is not "
        "readable. Fix: save it again, or restore it from a copy.",
    ),
    Case(
        "unknown dtype", lambda: load_damaged(old=b'"F32"', new=b'"F31"'), StateError,
        "load: model.safetensors is damaged or no safetensors file: no picograd dtype "
        "for F31. Fix: save it again, or restore it from a copy.",
    ),
    Case(
        "no bytes before the header", lambda: load_damaged(8), StateError,
        "load: model.safetensors is damaged or no safetensors file: the header should "
        "have 7022349239403356795 bytes, 164 are there. Fix: save it again, or restore "
        "it from a copy.",
    ),
    Case(
        "save a number", lambda: nn.save({"weight": 3}, "model.safetensors"), DTypeError,
        "save: weight is an int. Fix: a state dict holds tensors only.",
    ),
    Case(
        "save keeps the old file", save_keeps_the_old_file, DTypeError,
        "save: weight is an int. Fix: a state dict holds tensors only.",
    ),
    Case(
        "save a name that is no string",
        lambda: nn.save({1: Tensor(1.0)}, "model.safetensors"),
        DTypeError,
        "save: the name 1 is an int. Fix: names of a state dict are strings.",
    ),
    Case(
        "save no state", lambda: nn.save(3, "model.safetensors"), DTypeError,
        "save: the state is an int. Fix: pass model.state_dict().",
    ),
    Case(
        "save into a missing folder",
        lambda: nn.save(TRUTH, "nowhere/model.safetensors"),
        DataError,
        "save: cannot write nowhere/model.safetensors: No such file or directory. Fix: "
        "check the folder, its permissions and the free space.",
    ),
    Case(
        "save into a number", lambda: nn.save(TRUTH, 3), DTypeError,
        "save: the path is an int. Fix: pass a file name.",
    ),
    Case(
        "shape that contradicts the data",
        lambda: load_damaged(old=b"[1,2]", new=b"[2,2]"),
        StateError,
        "load: model.safetensors is damaged or no safetensors file: the shapes "
        "contradict the data. Fix: save it again, or restore it from a copy.",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
