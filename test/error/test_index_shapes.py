"""Index operations against PyTorch: wrong shapes and values raise what it raises, and never write
outside a tensor."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.nn import functional as F

torch = pytest.importorskip("torch")

X = np.arange(12, dtype=np.float32).reshape(3, 4)
INDICES: dict[str, Any] = {
    "fits": [[0, 1, 2, 0]],
    "too high": [[0, 1, 9, 0]],
    "negative": [[-1, 0, 0, 0]],
    "far": [[2**40, 0, 0, 0]],
    "far below": [[-(2**40), 0, 0, 0]],
    "wider than the tensor": [[0, 1, 2, 0, 1]],
    "taller than the tensor": [[0] * 4] * 7,
    "much larger": [[0] * 90] * 90,
    "empty": np.zeros((0, 4)),
    "empty with another rank": np.zeros((0,)),
    "too few axes": [0, 1],
    "too many axes": [[[0]]],
}
ALONG: dict[str, Callable[..., Any]] = {
    "gather": lambda x, axis, i, s: x.gather(axis, i),
    "scatter": lambda x, axis, i, s: x.scatter(axis, i, s),
    "scatter number": lambda x, axis, i, s: x.scatter(axis, i, 3.0),
    "scatter_add": lambda x, axis, i, s: x.scatter_add(axis, i, s),
    "scatter_reduce": lambda x, axis, i, s: x.scatter_reduce(axis, i, s, "amax"),
    "scatter_": lambda x, axis, i, s: x.clone().scatter_(axis, i, s),
    "scatter_add_": lambda x, axis, i, s: x.clone().scatter_add_(axis, i, s),
}
ROWS: dict[str, Any] = {
    "fits": [0, 2],
    "too high": [0, 3],
    "negative": [-1, 0],
    "far": [2**40],
    "far below": [-(2**40)],
    "empty": np.zeros(0),
    "zero-dim": 1,
    "zero-dim, too high": 5,
    "two axes": [[0, 1]],
    "long": [0] * 9,
}
SLICES: dict[str, Callable[..., Any]] = {
    "index_select": lambda x, i, s: x.index_select(0, i),
    "index_add": lambda x, i, s: x.index_add(0, i, s),
    "index_copy": lambda x, i, s: x.index_copy(0, i, s),
    "index_fill": lambda x, i, s: x.index_fill(0, i, 7.0),
    "index_reduce": lambda x, i, s: x.index_reduce(0, i, s, "amax"),
    "index_put": lambda x, i, s: x.index_put((i,), s[0] if len(s) else s.sum(0)),
    "take": lambda x, i, s: x.take(i),
    "put": lambda x, i, s: x.put(i, s[:, 0].reshape(i.shape)),
    "getitem": lambda x, i, s: x[i],
}


def result(function: Callable[..., Any], *arrays: Any) -> Any:
    """The value of a call as an array, or the exception it raises."""
    try:
        return np.asarray(function(*arrays))
    except Exception as error:
        return error


def compare(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, Exception):
        known = (IndexError, RuntimeError, TypeError, ValueError)
        wanted = next(each for each in known if isinstance(theirs, each))
        assert isinstance(ours, wanted), f"{ours!r} where PyTorch raises {theirs!r}"
        assert type(ours).__module__ == "picograd.errors"
    else:
        assert not isinstance(ours, Exception), ours
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("axis", [0, 1, -1, 2])
@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("kind", INDICES)
def test_along_an_axis(kind: str, name: str, axis: int) -> None:
    index = np.array(INDICES[kind]).astype(np.int64)
    source = np.ones(index.shape, np.float32)
    call = ALONG[name]
    theirs = result(call, torch.tensor(X), axis, torch.tensor(index), torch.tensor(source))
    compare(result(call, Tensor(X), axis, Tensor(index), Tensor(source)), theirs)


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("kind", ROWS)
def test_rows(kind: str, name: str) -> None:
    index = np.array(ROWS[kind]).astype(np.int64)
    source = np.ones((index.size, 4), np.float32)
    call = SLICES[name]
    theirs = result(call, torch.tensor(X), torch.tensor(index), torch.tensor(source))
    compare(result(call, Tensor(X), Tensor(index), Tensor(source)), theirs)


@pytest.mark.parametrize("place", [4, -1, 2**40, -(2**40)])
def test_places_of_unpooling(place: int) -> None:
    values, index = Tensor.ones(1, 1, 1, 2), Tensor([[[[0, place]]]])
    with pytest.raises(RuntimeError, match="out of range"):
        F.max_unpool2d(values, index, 2, output_size=(1, 4))
    with pytest.raises(RuntimeError, match="out of range"):
        F.max_unpool2d(values, index + Tensor([0]), 2, output_size=(1, 4)).tolist()
    unpool = picograd.jit(lambda i: F.max_unpool2d(values, i, 2, output_size=(1, 4)))
    with pytest.raises(RuntimeError, match="out of range"):
        unpool(index).tolist()


@pytest.mark.parametrize("label", [3, -1, 2**40])
def test_labels_and_rows_seen_through_views(label: int) -> None:
    scores, labels = Tensor.ones(1, 3), Tensor([[label]])
    with pytest.raises(RuntimeError):
        F.multi_margin_loss(scores, labels.reshape(1))
    with pytest.raises(RuntimeError):
        F.cross_entropy(scores, labels.reshape(1))
    with pytest.raises(RuntimeError):
        F.embedding_bag(labels.reshape(1), scores.reshape(3, 1), Tensor([0]))
