"""Boxes cover what two layouts have both, cut or whole, in any unit; the CUDA kernels copy them."""

import numpy as np
import pytest

from picograd.runtime.boxes import Along, common_box, in_units, pieces

LAYOUTS = [
    ((3, 37, 8), (3, 64, 8)),
    ((3, 64, 8), (3, 37, 8)),
    ((5,), (8,)),
    ((2, 3, 4), (2, 3, 4)),
    ((), ()),
    ((4, 1, 7), (8, 1, 7)),
    ((3, 5, 1), (4, 5, 2)),
    ((2, 3, 2, 3, 2, 3), (3, 2, 3, 2, 3, 4)),
    ((7, 5, 6), (8, 4, 6)),
    ((0, 3), (4, 3)),
]


def copied(to_shape, shape, parts, dtype=np.int32):
    """Copy by boxes; the array that was there, and what should be there now."""
    source = np.arange(1, 1 + np.prod(shape, dtype=int)).astype(dtype)
    made = np.zeros(np.prod(to_shape, dtype=int), dtype)
    for to, other, part in parts:
        places = [np.array([to]), np.array([other])]
        for axis in part:
            steps = np.arange(axis.count)
            places[0] = (places[0][:, None] + steps * axis.to).reshape(-1)
            places[1] = (places[1][:, None] + steps * axis.source).reshape(-1)
        made[places[0]] = source[places[1]]
    wanted = np.zeros(to_shape, dtype)
    both = tuple(slice(min(pair)) for pair in zip(to_shape, shape))
    wanted[both] = source.reshape(shape)[both]
    return made, wanted.reshape(-1)


@pytest.mark.parametrize(("to", "source"), LAYOUTS)
def test_a_box_is_what_both_have(to, source):
    box = common_box(to, source)
    for rank, most in ((9, 1 << 30), (2, 1 << 30), (1, 3), (3, 5)):
        parts = list(pieces(box, rank, most)) if box else []
        assert all(len(part) <= max(rank, 1) for _, _, part in parts)
        np.testing.assert_array_equal(*copied(to, source, parts))


def test_axes_that_are_whole_merge():
    assert common_box((3, 37, 2, 4), (3, 64, 2, 4)) == (Along(3, 296, 512), Along(296, 1, 1))
    assert common_box((16, 5, 4), (9, 5, 4)) == (Along(180, 1, 1),)


def test_units_divide_runs_steps_and_addresses():
    box = (Along(3, 37, 64), Along(37, 1, 1))
    assert in_units(box, 4, 512, 1024) == (4, box)
    assert in_units((Along(3, 8, 64), Along(8, 1, 1)), 4, 512, 1024)[0] == 16
    assert in_units((Along(3, 8, 64), Along(8, 1, 1)), 4, 512, 1032)[0] == 8
    assert in_units((Along(3, 7, 64), Along(7, 1, 1)), 1, 512, 1024)[0] == 1
