"""Functions of the array API that move elements, against NumPy."""

import math
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import array_api as xp
from picograd.errors import AxisError

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("arange", (5, 0), {}),
    ("linspace", (0, 1, 4), {"endpoint": False}),
    ("eye", (2, 3), {"k": 1}),
    ("clip", ("x",), {"min": 1, "max": 3}),
    ("take", ("x", "i"), {"axis": 1}),
    ("take_along_axis", ("x", "j"), {}),
    ("roll", ("x", 1), {"axis": (0, 1)}),
    ("repeat", ("x", 2), {"axis": 1}),
    ("max", ("x",), {"axis": (0, 1)}),
    ("prod", ("x",), {"axis": (0, 1), "keepdims": True}),
    ("std", ("x",), {"correction": 1, "axis": 0}),
    ("searchsorted", ("s", "x"), {"side": "right"}),
    ("tensordot", ("x", "x"), {"axes": ((1,), (1,))}),
    ("flip", ("x",), {}),
    ("moveaxis", ("x", 0, 1), {}),
    ("unstack", ("x",), {"axis": 1}),
    ("ceil", ("i",), {}),
]


def test_distinct_values() -> None:
    x = xp.asarray([[3, 1], [3, 2]])
    found = xp.unique_all(x)
    assert found.values.tolist() == [1, 2, 3] and found.indices.tolist() == [1, 3, 0]
    assert found.inverse_indices.tolist() == [[2, 0], [2, 1]] and found.counts.tolist() == [1, 1, 2]
    assert xp.unique_counts(xp.asarray([math.nan, math.nan])).counts.tolist() == [1, 1]
    assert xp.unique_inverse(x).values.tolist() == xp.unique_values(x).tolist()


@pytest.mark.parametrize("name, args, options", CASES, ids=[case[0] for case in CASES])
def test_like_numpy(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    x = np.arange(6.0).reshape(2, 3)
    held: dict[Any, Any] = {"x": x, "i": np.array([2, 0]), "j": np.array([[1], [0]])}
    held["s"] = np.array([0.5, 2.0, 4.0])
    wanted = getattr(np, name)(*(held.get(each, each) for each in args), **options)
    ours = {key: xp.asarray(value) for key, value in held.items()}
    found = getattr(xp, name)(*(ours.get(each, each) for each in args), **options)
    for each, other in zip(found, wanted) if isinstance(found, tuple) else [(found, wanted)]:
        np.testing.assert_allclose(each.numpy(), other)
        assert picograd.Tensor(np.asarray(other)).shape == each.shape


def test_refusals() -> None:
    with pytest.raises(ValueError):
        xp.squeeze(xp.ones((2, 1)), 0)
    with pytest.raises(ValueError):
        xp.nonzero(xp.asarray(1))
    with pytest.raises(TypeError):
        xp.add(1, 2)


def test_names_of_2025_12() -> None:
    x = xp.asarray([[1, 2, 3]])
    assert xp.isin(x, xp.asarray([2, 9])).tolist() == [[False, True, False]]
    assert xp.isin(x, 2, invert=True).tolist() == [[True, False, True]]
    assert xp.isin(3, x).item()
    assert xp.broadcast_shapes((2, 1), (3,)) == (2, 3) and xp.broadcast_shapes() == ()
    assert xp.expand_dims(x, axis=(0, -1)).shape == (1, 1, 3, 1)
    with pytest.raises(AxisError):
        xp.expand_dims(x, axis=(0, -5))
    assert type(xp.broadcast_arrays(x, x)) is type(xp.meshgrid(x[0], x[0])) is tuple
