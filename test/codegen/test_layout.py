"""Layouts are bijections between (thread, register) and the coordinates of a tile."""

import pytest

from picograd.codegen.layout import Blocked, Layout, MmaAccumulator, WgmmaAccumulator, elements
from picograd.helpers import product

LAYOUTS = [
    Blocked((), (), ()),
    Blocked((64,), (16,), (4,)),
    Blocked((8, 64), (4, 16), (1, 2)),
    Blocked((8, 64), (4, 16), (1, 2), True),
    Blocked((6, 32, 8), (1, 8, 4), (2, 1, 2)),
    MmaAccumulator((64, 32), (2, 2)),
    WgmmaAccumulator(24, 2),
    WgmmaAccumulator(16, 2, 3),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: type(layout).__name__)
def test_is_a_bijection(layout: Layout) -> None:
    found = [coordinate for _, _, coordinate in elements(layout)]
    assert len(found) == len(set(found)) == product(layout.shape)
    for coordinate in found:
        assert all(0 <= c < size for c, size in zip(coordinate, layout.shape))


def test_ragged_layout_covers_its_shape() -> None:
    found = {coordinate for _, _, coordinate in elements(Blocked((10,), (4,), (2,)))}
    assert found >= {(n,) for n in range(10)}
