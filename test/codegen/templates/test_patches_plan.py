"""Convolutions by transformed patches on a CPU: which are, and what a task keeps."""

import math
from typing import Any

import pytest
from contractions import Case, conv

from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract, patches_plan
from picograd.codegen.tile import TileKernel
from picograd.target import Target

ONE, MANY = (Target("llvm", "generic", 64, threads=n, registers=32) for n in (1, 16))


def has_patches(case: Case, target: Target = ONE) -> bool:
    """Tell whether a case is planned so."""
    return patches_plan.choose(analyse(case.kernel), target) is not None


def built(case: Case, target: Target = ONE) -> TileKernel:
    return contract.build(case.kernel, target)


@pytest.mark.parametrize("options", [
    {"kernel": 3, "stride": 2, "padding": 1},
    {"kernel": 3, "padding": 2, "dilation": 2},
    {"kernel": 5, "padding": 2},
    {"kernel": 1},
])  # fmt: skip
def test_other_windows_have_none(options: dict[str, Any]) -> None:
    assert not has_patches(conv((4, 28, 28, 32), 32, **options))
    assert has_patches(conv((4, 28, 28, 32), 32, 3, padding=1))


def test_few_places_of_many_weights_are_summed() -> None:
    """Transforming taps takes longer than multiplying them at few places."""
    few, many = ((images, 7, 7, 128) for images in (1, 8))
    assert not has_patches(conv(few, 128, 3, padding=1, channels_last=False))
    assert has_patches(conv(many, 128, 3, padding=1, channels_last=False))
    assert not has_patches(conv((8, 28, 28, 24), 32, 3, padding=1))  # channels fill no vectors


def test_weights_are_transformed_once_where_they_fit() -> None:
    """A task walks several blocks of places, of which each needs all weights."""
    kept = built(conv((8, 28, 28, 64), 64, 3, padding=1)).parts[0]
    again = built(conv((8, 28, 28, 256), 256, 3, padding=1)).parts[0]
    assert str(kept.steps).index("taps") < str(kept.steps).index("turned")
    assert str(again.steps).index("turned") < str(again.steps).index("taps")


def test_threads_share_places_and_then_outputs() -> None:
    for case in (conv((8, 28, 28, 64), 64, 3, padding=1), conv((8, 7, 7, 256), 256, 3, padding=1)):
        one, many = (
            {axis.name: axis.size for axis in built(case, target).parts[0].grid}
            for target in (ONE, MANY)
        )
        assert one.get("outputs", 1) == 1 < many["outputs"]
        assert math.prod(one.values()) < 8 <= math.prod(many.values())
