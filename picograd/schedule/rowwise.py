"""Lowering of the ops that work along an axis in order: scan, sort, radix, runs, ..."""

from collections.abc import Sequence

from picograd.dtype import DType, accumulate_dtype
from picograd.errors import check
from picograd.graph.bounded import ends_of
from picograd.graph.scanning import scan_dtype
from picograd.helpers import ceil_div, product
from picograd.schedule.group import Facts
from picograd.schedule.index import Axis, Dynamic, Index, Indices, atom_index, axis_index, unflatten
from picograd.schedule.loop import (
    DIGITS,
    Bins,
    Condition,
    Elimination,
    Expr,
    Part,
    Radix,
    Runs,
    Scan,
    Sort,
)
from picograd.schedule.lower import PartBuilder, apply, flat_index
from picograd.schedule.updates import place_of


def output_slot(member: Facts, part: PartBuilder) -> int:
    """Number the slot a member is stored in."""
    check(not part.computes, "a window below a scan or sort must be stored", member.node)
    slot = part.kernel.slot(part.kernel.locations[member.number].slot, member.node.dtype)
    part.kernel.stored.add(slot)
    return slot


def lower_scan(member: Facts, part: PartBuilder) -> Part:
    """Lower a scan by chunks: the chunks of the axis are one more outer axis."""
    node = member.node
    monoid, position, chunk = node.arg
    wide = scan_dtype(monoid, node.dtype)
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
    body = wide_value(member, part, member.inputs[0], tuple(at), wide)
    start, part.conditions = None, ()
    if len(member.inputs) > 1:
        chunk_at = (*at[:position], axis_index(chunks), *at[position + 1 :])
        start = wide_value(member, part, member.inputs[1], chunk_at, wide)
    slot = output_slot(member, part)
    strides = part.kernel.locations[member.number].strides
    target = flat_index(tuple(at), strides)
    scan = Scan(outer, axis, inner, monoid, body, start, slot, target, tests)
    return Part((), (), None, scan, own_ends(member, part, at))


def own_ends(member: Facts, part: PartBuilder, at: Sequence[Index]) -> tuple[Condition, ...]:
    """Say where the elements of a member end, which are at these indices."""
    return tuple([part.test_of(end, at[end.axis]) for end in ends_of(member.node)])


def wide_value(
    member: Facts, part: PartBuilder, source: Facts, at: Indices, wide: DType | None = None
) -> Expr:
    """Give an input's value in a wide dtype: the one sums accumulate in if none is given."""
    dtype = wide or accumulate_dtype(member.node.dtype)
    return apply("cast", (part.value(source, at),), dtype)


def lower_sort(member: Facts, part: PartBuilder) -> Part:
    """Lower a sort of the keys along one axis."""
    node = member.node
    position, run = node.arg
    axes = [Axis(f"r{d}", n) for d, n in enumerate(node.shape)]
    at = tuple(axis_index(axis) for axis in axes)
    rows = tuple(a for d, a in enumerate(axes) if d != position and a.size != 1)
    part.bound = tuple(axes)
    body = part.value(member.inputs[0], at)
    slot = output_slot(member, part)
    target = flat_index(at, part.kernel.locations[member.number].strides)
    sort = Sort(rows, axes[position], run, body, slot, target)
    return Part((), (), None, sort, own_ends(member, part, at))


def lower_radix(member: Facts, part: PartBuilder) -> Part:
    """Lower one step of a radix sort along the last axis: counting, or moving by the counts."""
    node = member.node
    tile_size, shift = node.arg
    shape = member.inputs[0].node.shape
    axes = [Axis(f"r{d}", n) for d, n in enumerate(shape)]
    digit, tile = (Axis("digit", DIGITS), Axis("tile", ceil_div(shape[-1], tile_size)))
    rows, axis = tuple(axes[:-1]), axes[-1]
    at = tuple(axis_index(a) for a in axes)
    cell = (*at[:-1], axis_index(digit) * tile.size + axis_index(tile))
    part.bound = (*axes, digit, tile)
    body = part.value(member.inputs[0], at)
    counted = part.value(member.inputs[1], cell) if len(member.inputs) > 1 else None
    slot = output_slot(member, part)
    strides = part.kernel.locations[member.number].strides
    target = flat_index(cell if counted is None else at, strides)
    rows = tuple(a for a in rows if a.size != 1)
    step = Radix(rows, axis, digit, tile, tile_size, shift, body, counted, slot, target)
    return Part((), (), None, step)


def lower_bins(member: Facts, part: PartBuilder) -> Part:
    """Lower sums of values by their numbers."""
    node = member.node
    bins, parts, lanes, form = node.arg
    values, numbers = member.inputs
    row, axis = (Axis(f"r{d}", n) for d, n in enumerate(values.node.shape))
    tile, place = Axis("tile", parts), Axis("place", bins)
    part.bound = (row, axis, tile, place)
    at = axis_index(row), axis_index(axis)
    body, key = part.value(values, at), part.value(numbers, at)
    slot = output_slot(member, part)
    strides = part.kernel.locations[member.number].strides
    forms = {"rows": (row, place), "parts": (row, tile, place)}
    order = forms.get(form, (place, row))
    target = flat_index(tuple(map(axis_index, order)), strides)
    rows = (row,) if row.size != 1 else ()
    run = ceil_div(axis.size, parts)
    is_beside = form == "beside"
    step = Bins(rows, axis, tile, place, run, lanes, key, body, slot, target, is_beside)
    return Part((), (), None, step)


def lower_elimination(member: Facts, part: PartBuilder) -> Part:
    """Lower the elimination of columns of a stack of matrices."""
    node = member.node
    kind, count = node.arg
    stack, axis, column = (Axis(f"r{d}", n) for d, n in enumerate(member.inputs[0].node.shape))
    place = Axis("place", node.shape[1])
    part.bound = (stack, axis, column, place)
    body = part.value(member.inputs[0], tuple(map(axis_index, (stack, axis, column))))
    slot = output_slot(member, part)
    strides = part.kernel.locations[member.number].strides
    target = flat_index((axis_index(stack), axis_index(place)), strides)
    rows = (stack,) if stack.size != 1 else ()
    step = Elimination(rows, axis, column, place, kind, count, body, slot, target)
    return Part((), (), None, step)


def lower_runs(member: Facts, part: PartBuilder) -> Part:
    """Lower a reduction of runs of equal keys into the slices that the keys name."""
    arg = member.node.arg.arg if member.is_update else member.node.arg
    values, keys, first, *levels = member.inputs if member.is_update else member.inputs[1:]
    axes, monoid, fan, *lanes = arg
    stop = levels.pop(0) if lanes else None
    axis, *inner = (Axis(f"u{d}", n) for d, n in enumerate(values.node.shape))
    sums = [Axis(f"level{n}", level.node.shape[0]) for n, level in enumerate(levels, 1)]
    number = Axis("run", keys.node.shape[0]) if stop else axis
    part.bound = (axis, *inner, *sums, number)
    rest, run = tuple(axis_index(a) for a in inner), (axis_index(number),)
    key, begin = part.value(keys, run), part.value(first, run)
    end = part.value(stop, run) if stop else None
    body = wide_value(member, part, values, (axis_index(axis), *rest))
    bodies = tuple(
        (each, wide_value(member, part, level, (axis_index(each), *rest)))
        for level, each in zip(levels, sums, strict=True)
    )
    slot = output_slot(member, part)
    part.kernel.loaded.add(slot)
    target = slice_target(member, part, axes, key, rest)
    rows = tuple(a for a in inner if a.size != 1)
    count = lanes[0] if lanes else 1
    step = Runs(rows, axis, monoid, key, begin, body, bodies, fan, slot, target, number, end, count)
    return Part((), (), None, step)


def slice_target(
    member: Facts, part: PartBuilder, indexed: tuple[int, ...], key: Expr, rest: Indices
) -> Index:
    """Place of an element of the slice that a key names: the key numbers the indexed axes."""
    node = member.node
    shape = node.arg.shape if member.is_update else node.shape
    sizes = tuple(shape[axis] for axis in indexed)
    number = atom_index(Dynamic(key, 0, max(product(sizes) - 1, 0)))
    named = dict(zip(indexed, unflatten(number, sizes), strict=True))
    spare = list(rest)
    at = tuple(named[d] if d in named else spare.pop(0) for d in range(len(shape)))
    strides = part.kernel.locations[member.number].strides
    return flat_index(place_of(member, at, part.position), strides)
