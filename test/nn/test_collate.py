from collections import UserDict, deque, namedtuple

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import DTypeError, ShapeError
from picograd.nn.collate import (
    default_collate,
    default_collate_fn_map,
    default_convert,
    holds_tensor,
    stack,
    to_tensors,
)

torch = pytest.importorskip("torch")
torch_data = pytest.importorskip("torch.utils.data")
Point = namedtuple("Point", "x y")
SAMPLES = {
    "ints": [1, 2, 3],
    "floats": [1.5, 2.5, 3.5],
    "bools": [True, False, True],
    "arrays": [np.array([1, 2], np.uint8)] * 3,
    "scalars": [np.float32(1), np.float32(2), np.float32(3)],
    "strings": ["a", "b", "c"],
    "pairs": [(1, 2.0), (3, 4.0), (5, 6.0)],
    "named": [Point(1, "a"), Point(2, "b"), Point(3, "c")],
    "dicts": [{"x": np.zeros(2, np.float32), "y": [n]} for n in range(3)],
    "nested": [[(n, [n, "s"])] for n in range(3)],
}


def check_equal(ours, theirs):
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, Tensor)
        assert ours.dtype.name.rstrip("_") == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            check_equal(ours[key], theirs[key])
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs) and type(ours) is type(theirs)
        for pair in zip(ours, theirs):
            check_equal(*pair)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", SAMPLES)
def test_batches_are_pytorchs(name):
    ours, theirs = default_collate(SAMPLES[name]), torch_data.default_collate(SAMPLES[name])
    check_equal(ours, theirs)


def test_tensors_are_stacked(device):
    rows = [Tensor([1.0, 2.0], device=device), Tensor([3.0, 4.0], device=device)]
    batch = default_collate(rows)
    assert batch.tolist() == [[1.0, 2.0], [3.0, 4.0]] and batch.device == rows[0].device


def test_host_step_makes_no_tensors():
    assert not holds_tensor(stack([(1, {"x": np.ones(2)})]))
    assert holds_tensor({"x": [1, (Tensor([1.0]),)]})
    moved = to_tensors([np.ones(2), {"y": (Point(np.ones(1), "s"),)}], "cpu")
    assert moved[0].device == moved[1]["y"][0].x.device == "cpu"


def test_what_does_not_fit_is_named():
    with pytest.raises(ShapeError, match=r"sample 1 has shape \(3,\) and sample 0 has \(2,\)"):
        default_collate([np.ones(2), np.ones(3)])
    with pytest.raises(ShapeError, match=r"sample 1 has shape \(1,\)"):
        default_collate([Tensor([1.0, 2.0]), Tensor([1.0])])
    with pytest.raises(ShapeError, match="samples have 1 to 2 elements"):
        default_collate([(1, 2), (1,)])
    with pytest.raises(DTypeError, match="samples contain object"):
        default_collate([(object(),)])
    with pytest.raises(DTypeError, match="samples contain ndarray"):
        default_collate([np.array(["a"])])


def test_numbers_of_numpy_are_converted_and_texts_stay() -> None:
    found = default_convert([np.int64(3), np.complex64(1j), np.array(["a"]), 1.5])
    assert [each.tolist() for each in found[:3]] == [3, 1j, ["a"]] and found[3] == 1.5
    assert isinstance(found[0], Tensor) and isinstance(found[2], np.ndarray)
    assert default_collate([np.array([1j]), np.array([2.0 + 0j])]).tolist() == [[1j], [2.0 + 0j]]


class Encoded(UserDict):
    """This class is a sample with a method of its own, and an attribute."""

    def names(self):
        return sorted(self)


def test_batches_are_of_the_class_of_samples():
    samples = [Encoded(x=1, y=(2.0, "a")), Encoded(x=3, y=(4.0, "b"))]
    samples[0].kind = "text"
    batch = default_collate(samples)
    assert type(batch) is Encoded and batch.names() == ["x", "y"] and batch.kind == "text"
    assert batch["x"].tolist() == [1, 3] and samples[0]["x"] == 1
    rows = default_collate([deque([1, 2]), deque([3, 4])])
    assert type(rows) is deque and [each.tolist() for each in rows] == [[1, 3], [2, 4]]
    plain = default_collate([range(2), range(2)])
    assert type(plain) is list and [each.tolist() for each in plain] == [[0, 0], [1, 1]]
    assert default_convert(range(2)) == [0, 1] and default_convert("ab") == "ab"
    for workers in (0, 1):
        (again,) = nn.DataLoader(samples, batch_size=2, num_workers=workers)
        assert type(again) is Encoded and again["x"].tolist() == [1, 3]


def test_samples_of_a_class_of_the_program_have_their_function(monkeypatch) -> None:
    def join(batch, collate_fn_map):
        return stack([each.x for each in batch]) * 2

    monkeypatch.setitem(default_collate_fn_map, Point, join)
    joined = default_collate([{"p": Point(1, 2)}, {"p": Point(3, 4)}])
    assert joined["p"].tolist() == [2, 6]


def test_without_batches_tuples_are_lists():
    pair = namedtuple("pair", "x y")
    assert default_convert((1, (2, "a"), pair(3, 4))) == [1, [2, "a"], pair(3, 4)]
    assert type(default_convert({"a": (1,)})["a"]) is list
    data = nn.TensorDataset(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
    found = list(nn.DataLoader(data, batch_size=None))
    assert type(found[0]) is list and [each.item() for each in found[1]] == [2.0, 4.0]
