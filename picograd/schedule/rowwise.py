"""Lowering of the ops that work along one axis in order: scan, sort and merge."""

from picograd.dtype import accumulate_dtype
from picograd.errors import check
from picograd.schedule.group import Facts
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import (
    Condition,
    Expr,
    Merge,
    Part,
    Scan,
    Sort,
)
from picograd.schedule.lower import Indices, PartBuilder, apply, flat_index


def output_slot(member: Facts, part: PartBuilder) -> int:
    """Number the slot a member is stored in."""
    check(
        not part.computes,
        "a window below a scan or sort must be stored",
        member.node,
    )
    slot = part.kernel.slot(
        part.kernel.locations[member.number].slot, member.node.dtype
    )
    part.kernel.stored.add(slot)
    return slot


def lower_scan(member: Facts, part: PartBuilder) -> Part | None:
    """Lower a scan by chunks: the chunks of the axis are one more outer axis."""
    node = member.node
    monoid, position, chunk = node.arg
    if node.size == 0:
        return None
    axes = [Axis(f"r{d}", n) for d, n in enumerate(node.shape)]
    size = node.shape[position]
    chunks, axis = Axis("c", -(-size // chunk)), Axis("k", chunk)
    along = axis_index(chunks) * chunk + axis_index(axis)
    at = [axis_index(a) for a in axes]
    test: Condition = (along, 0, size - 1)
    tests = (test,) if size % chunk else ()
    outer = tuple(a for a in (*axes[:position], chunks) if a.size != 1)
    inner = tuple(a for a in axes[position + 1 :] if a.size != 1)
    part.bound = (*outer, axis, *inner)
    at[position], part.conditions = along, tests
    body = wide_value(member, part, 0, tuple(at))
    start, part.conditions = None, ()
    if len(member.inputs) > 1:
        chunk_at = (*at[:position], axis_index(chunks), *at[position + 1 :])
        start = wide_value(member, part, 1, chunk_at)
    slot = output_slot(member, part)
    strides = part.kernel.locations[member.number].strides
    target = flat_index(tuple(at), strides)
    scan = Scan(outer, axis, inner, monoid, body, start, slot, target, tests)
    return Part((), (), None, scan)


def wide_value(
    member: Facts, part: PartBuilder, number: int, at: Indices
) -> Expr:
    """Give an input's value in the dtype scans accumulate in."""
    wide = accumulate_dtype(member.node.dtype)
    return apply("cast", (part.value(member.inputs[number], at),), wide)


def lower_sort(member: Facts, part: PartBuilder) -> Part | None:
    """Lower a sort of the keys along one axis."""
    node = member.node
    position, run = node.arg
    if node.size == 0:
        return None
    axes = [Axis(f"r{d}", n) for d, n in enumerate(node.shape)]
    at = tuple(axis_index(axis) for axis in axes)
    rows = tuple(
        a for d, a in enumerate(axes) if d != position and a.size != 1
    )
    part.bound = tuple(axes)
    body = part.value(member.inputs[0], at)
    slot = output_slot(member, part)
    target = flat_index(
        at, part.kernel.locations[member.number].strides
    )
    return Part(
        (),
        (),
        None,
        Sort(rows, axes[position], run, body, slot, target),
    )


def lower_merge(member: Facts, part: PartBuilder) -> Part | None:
    """Lower a merge of sorted runs: the keys and what is moved with them are in memory."""
    node = member.node
    position, run = node.arg
    if node.size == 0:
        return None
    axes = [Axis(f"r{d}", n) for d, n in enumerate(node.shape)]
    at = tuple(axis_index(axis) for axis in axes)
    rows = tuple(
        a for d, a in enumerate(axes) if d != position and a.size != 1
    )
    part.bound = tuple(axes)
    key, body = (part.value(source, at) for source in member.inputs)
    slot = output_slot(member, part)
    target = flat_index(
        at, part.kernel.locations[member.number].strides
    )
    return Part(
        (),
        (),
        None,
        Merge(rows, axes[position], run, key, body, slot, target),
    )
