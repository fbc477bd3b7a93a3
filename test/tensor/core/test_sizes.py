"""Shapes are tuples that count elements."""

import copy
import pickle

import pytest

import picograd
from picograd.tensor.core.sizes import Size


def test_parts_and_sums_of_shapes_count_too() -> None:
    shape = picograd.zeros(2, 3, 4).shape
    assert type(shape) is Size and shape == (2, 3, 4) and hash(shape) == hash((2, 3, 4))
    assert shape[1:].numel() == 12 and (shape[:1] + [5]).numel() == 10 and shape[-1] == 4
    assert picograd.zeros(2, 0).shape.numel() == 0 and picograd.tensor(1.0).shape.numel() == 1
    assert picograd.zeros(2, 3).size().numel() == 6 and repr(shape) == "(2, 3, 4)"


def test_a_list_that_a_shape_is_added_to_stays_a_list() -> None:
    listed = [1]
    listed += picograd.zeros(2, 3).shape
    assert type(listed) is list and listed == [1, 2, 3]
    assert type((1,) + picograd.zeros(2).shape) is Size
    with pytest.raises(TypeError):
        [1] + picograd.zeros(2).shape  # type: ignore[operator]


def test_copies_and_files_have_plain_tuples() -> None:
    shape = picograd.zeros(2, 3).shape
    assert type(pickle.loads(pickle.dumps(shape))) is tuple
    assert copy.deepcopy({"shape": shape}) == {"shape": (2, 3)}


def test_what_is_traced_by_size_still_follows_it() -> None:
    double = picograd.jit(lambda x: x.reshape(x.shape[:1].numel(), -1) * x.shape.numel())
    for rows in (2, 3, 5, 7):
        assert (double(picograd.ones(rows, 4)).numpy() == rows * 4).all()
