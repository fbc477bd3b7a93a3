"""Methods that order: their two spellings of the axis, named results, and counts of `unique`."""

import pytest

from picograd import Tensor
from picograd.errors import DTypeError
from picograd.tensor.reductions.cumulative import Ordered

X = Tensor([[3.0, 1.0, 2.0], [1.0, 1.0, 5.0]])
NAMES = ["cumsum", "cumprod", "argsort", "sort", "cummax", "cummin", "median"]


def listed(result):
    return [part.tolist() for part in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", NAMES)
def test_axis_and_dim_are_one(name) -> None:
    method = getattr(X, name)
    assert listed(method(axis=0)) == listed(method(dim=0)) == listed(method(0))
    with pytest.raises(DTypeError, match=f"{name}: both axis and dim were given"):
        method(axis=0, dim=0)


def test_results_have_names() -> None:
    for result in (X.sort(), X.topk(2), X.cummax(0), X.kthvalue(2), X.median(1)):
        assert isinstance(result, Ordered)
        values, indices = result
        assert values is result.values and indices is result.indices
        assert values.shape == indices.shape


def test_one_of_an_axis() -> None:
    value, index = X.kthvalue(2, dim=1)
    assert (value.tolist(), index.tolist()) == ([2.0, 1.0], [2, 1])
    assert X.median(0, keepdim=True).values.shape == (1, 3)
    assert X.median().item() == 1.0
    assert X.quantile(0.5, dim=1).tolist() == [2.0, 1.0]


def test_unique_gives_what_is_asked_for() -> None:
    values, inverse, counts = X.unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3, 5] and counts.tolist() == [3, 1, 1, 1]
    assert inverse.tolist() == [[2, 0, 1], [0, 0, 3]]
    assert X.unique(return_counts=True)[1].tolist() == counts.tolist()
    rows, places = Tensor([[1, 2], [0, 2], [1, 2]]).unique(return_inverse=True, dim=0)
    assert rows.tolist() == [[0, 2], [1, 2]] and places.tolist() == [1, 0, 1]


def test_search_and_counts() -> None:
    edges = Tensor([1.0, 3.0, 5.0])
    assert edges.searchsorted(3.0).item() == 1
    for option in ({"right": True}, {"side": "right"}):
        assert edges.searchsorted(3.0, **option).item() == 2
    assert Tensor([0, 2, 2]).bincount(minlength=5).tolist() == [1, 0, 2, 0, 0]
    assert X.msort().tolist() == [[1.0, 1.0, 2.0], [3.0, 1.0, 5.0]]
