"""Products of shared tiles on CUDA cores: a thread multiplies a patch of rows and columns.

    for groups of 4 of the depth: load the factors of the patch, then multiply and add each pair

What runs along the depth in memory is loaded 4 at once, other operands as vectors of columns.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from picograd.codegen.block_cuda import Block, lane_of
from picograd.codegen.emit import compute_dtype
from picograd.codegen.layout import Blocked
from picograd.codegen.tile import Dot
from picograd.errors import internal
from picograd.schedule.index import Axis, Index, axis_index, constant

GROUP = 4  # of the depth


def simple_dot(block: Block, step: Dot) -> None:
    """Write acc += a @ b, where `acc` is in registers and `a` and `b` are shared tiles."""
    emitter, layout = block.emitter, block.tiles[step.acc].layout
    is_known = isinstance(layout, Blocked) and step.unit == "fma" and not step.a_is_km
    if not is_known or layout.vector[0] != 1 or step.depth % GROUP:  # type: ignore[union-attr]
        internal("a product of CUDA cores outside of a pipeline has rows along its depth", step)
    assert isinstance(layout, Blocked)
    dtype, acc = compute_dtype(block.tiles[step.acc].dtype), block.arrays[step.acc]
    rows, lanes = layout.steps[0], layout.vector[1]
    columns = layout.steps[1] * lanes
    patch = Axis("row", rows), Axis("column", columns), Axis("inner", GROUP)
    row, column, inner = map(axis_index, patch)
    if step.is_first:
        with emitter.axis_loop(patch[0], True), emitter.axis_loop(patch[1], True):
            zero = emitter.const(0.0, dtype)
            emitter.add("set", None, (acc, emitter.index(row * columns + column), zero))
    sides = [emitter.add("array", dtype, arg=count * GROUP) for count in (rows, columns)]
    group = Axis("group", step.depth // GROUP)
    thread = axis_index(block.thread)
    down = [thread // layout.threads[1] + n * layout.threads[0] for n in range(rows)]
    across = [
        (thread % layout.threads[1] + n * layout.threads[1]) * lanes for n in range(layout.steps[1])
    ]
    with emitter.axis_loop(group), ExitStack() as stack:
        first = axis_index(group) * GROUP
        fill_along(block, step.a, down, first, sides[0])
        if step.b_is_nk:
            every = [place + lane for place in across for lane in range(lanes)]
            fill_along(block, step.b, every, first, sides[1])
        else:
            fill_across(block, step.b, across, lanes, first, sides[1])
        for axis in (patch[2], *patch[:2]):
            stack.enter_context(emitter.axis_loop(axis, True))
        a = emitter.add("get", dtype, (sides[0], emitter.index(row * GROUP + inner)))
        b = emitter.add("get", dtype, (sides[1], emitter.index(column * GROUP + inner)))
        at = emitter.index(row * columns + column)
        old = emitter.add("get", dtype, (acc, at))
        emitter.add("set", None, (acc, at, emitter.add("fma", dtype, (a, b, old))))


def fill_along(block: Block, name: str, places: Sequence[Index], first: Index, side: int) -> None:
    """Load a group of the depth at each place of an operand that runs along it."""
    emitter, tile = block.emitter, block.tiles[name]
    for number, place in enumerate(places):
        at = emitter.index(block.place(tile, (place, first)))
        value = emitter.load(block.places[name], at, lanes=GROUP)
        for inner in range(GROUP):
            where = emitter.integer(number * GROUP + inner)
            emitter.add("set", None, (side, where, lane_of(emitter, value, inner)))


def fill_across(
    block: Block, name: str, places: Sequence[Index], lanes: int, first: Index, side: int
) -> None:
    """Load vectors of columns at each position of a group of the depth."""
    emitter, tile = block.emitter, block.tiles[name]
    for inner in range(GROUP):
        for number, place in enumerate(places):
            at = emitter.index(block.place(tile, (first + constant(inner), place)))
            value = emitter.load(block.places[name], at, lanes=lanes)
            for lane in range(lanes):
                where = emitter.integer((number * lanes + lane) * GROUP + inner)
                emitter.add("set", None, (side, where, lane_of(emitter, value, lane)))
