"""What the lanes of a vector read, along the axis that they lie on: from lane 0 on."""

from picograd.codegen.operands import expr_axes
from picograd.schedule.index import Axis, Index, axes_of
from picograd.schedule.loop import Condition, dynamics_of


def is_unit(index: Index, axis: Axis) -> bool:
    """Tell whether an index moves by exactly 1 along an axis and uses it nowhere else."""
    step, others = 0, []
    for atom, factor in index.terms:
        if atom is axis:
            step += factor
        else:
            others.append((atom, factor))
    rest = Index(tuple(others), 0)
    if step != 1 or axis in axes_of(rest):
        return False
    read = [dynamic.expr for dynamic in dynamics_of(rest)]
    return all(axis not in expr_axes(expr) for expr in read)


def steps_beside(index: Index, axis: Axis) -> list[int]:
    """List the steps of an index along all but an axis, and where it begins."""
    steps = [index.const]
    for atom, factor in index.terms:
        if atom is not axis:
            steps.append(factor)
    return steps


def is_uniform(condition: Condition, axis: Axis, lanes: int) -> bool:
    """Tell whether a condition holds for all lanes or none, when lane 0 has axis value 0."""
    index, lo, hi = condition
    if axis.size != lanes or not is_unit(index, axis):
        return False
    steps = steps_beside(index, axis)
    steps.append(hi + 1)
    if index.lo < lo:
        steps.append(lo)
    return all(step % lanes == 0 for step in steps)


def is_beside(index: Index, axis: Axis, lanes: int) -> bool:
    """Tell whether the lanes read a vector in memory, from a multiple of their number on."""
    steps = steps_beside(index, axis)
    is_even = all(step % lanes == 0 for step in steps)
    return is_even and is_unit(index, axis)
