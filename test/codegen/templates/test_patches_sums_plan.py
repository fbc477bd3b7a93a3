"""Gradients of weights by transformed patches on a CPU: which are, and what tasks share."""

import math
from typing import Any

import pytest
from contractions import Case, conv_weight_gradient

from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract, patches_sums_plan
from picograd.codegen.templates.contract_plan import Plan
from picograd.target import Target

ONE, MANY = (Target("llvm", "generic", 64, threads=n, registers=32) for n in (1, 16))


def plan_of(case: Case, target: Target = ONE) -> Plan | None:
    """Plan a case."""
    return patches_sums_plan.choose(analyse(case.kernel), target)


def grid_of(case: Case, target: Target) -> dict[str, int]:
    """Name the axes of the tasks."""
    return {axis.name: axis.size for axis in contract.build(case.kernel, target).parts[0].grid}


@pytest.mark.parametrize("options", [
    {"kernel": 5},
    {"kernel": 1},
    {"kernel": 3, "x_shape": (4, 28, 28, 24)},  # channels fill no vectors
    {"kernel": 3, "channels": 8},
])  # fmt: skip
def test_others_have_none(options: dict[str, Any]) -> None:
    plain = {"x_shape": (4, 28, 28, 32), "channels": 32}
    assert plan_of(conv_weight_gradient(**(plain | options))) is None
    assert plan_of(conv_weight_gradient(**plain, kernel=3)) is not None


def test_few_places_of_many_weights_are_summed() -> None:
    """Transforming gradients back takes longer than multiplying at few places."""
    assert plan_of(conv_weight_gradient((1, 4, 4, 128), 128, 3)) is None
    assert plan_of(conv_weight_gradient((8, 4, 4, 128), 128, 3)) is not None


def test_patches_of_few_places_stay_for_all_outputs() -> None:
    few = plan_of(conv_weight_gradient((4, 8, 8, 64), 256, 3))
    many = plan_of(conv_weight_gradient((4, 40, 40, 64), 256, 3))
    assert few and few.patches and many and many.patches
    assert [axis.name for axis in few.patches.walked] == ["panel"]
    assert few.patches.before
    assert not many.patches.walked
    assert not many.patches.before


def test_threads_share_places_or_outputs() -> None:
    deep = conv_weight_gradient((4, 40, 40, 64), 64, 3)
    wide = conv_weight_gradient((4, 8, 8, 64), 256, 3)
    for case, axis in ((deep, "part"), (wide, "outputs")):
        one, many = (grid_of(case, target) for target in (ONE, MANY))
        assert one.get(axis, 1) == 1 < many[axis]
        assert math.prod(one.values()) < 4 <= math.prod(many.values())
