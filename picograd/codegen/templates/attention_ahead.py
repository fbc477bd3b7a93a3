"""What blocks of an attention kernel find together before they stream.

Ranges of masks: warps reduce a row each, or the whole block does where rows are few. And rows that
the stream reads, as queries and keys that are normed and rotated: threads have several of them, so
that their loads are under way together.
"""

from picograd.codegen.linearize_cuda_roles import power_below
from picograd.codegen.templates.grid import cut, cut_flat, merge_part
from picograd.codegen.templates.map import in_steps, map_steps, vector_lanes, widest_axes
from picograd.codegen.templates.rows import Rows
from picograd.codegen.templates.threads import Threads, threads_along
from picograd.codegen.tile import TilePart
from picograd.helpers import ceil_div, product
from picograd.schedule.loop import Kernel, Part
from picograd.target import Target

WARP = 32
ROUNDS = 4  # vectors of a thread


def build(kernel: Kernel, part: Part, target: Target, threads: int) -> TilePart:
    """Write a part that blocks of so many threads run together."""
    count = power_below(threads)
    if not any(compute.reduce for compute in part.computes):
        return build_map(kernel, merge_part(part), count)
    if any(compute.store and compute.dtype.is_float for compute in part.computes):
        return build_rows(kernel, part, count)
    total = product(axis.size for axis in part.rows)
    warps = count // WARP
    is_many = total >= warps * target.multiprocessors
    at_once = warps if is_many else 1
    *outer, last = part.rows
    space = cut((last,), at_once).with_grid(outer)
    dims = space.dims
    sizes = tuple(axis.size for axis in dims)
    ones = (1,) * len(sizes)
    own = (at_once,) * len(sizes)
    over = next(each.reduce for each in part.computes if each.reduce)
    lanes = vector_lanes(kernel, part, over[-1])
    inner = count // at_once
    shared = Threads(sizes, own, ones, inner, lanes)
    rows = Rows(part, dims, space.axes, space.conditions, shared, False)
    steps = tuple(rows.whole())  # adds tiles
    return TilePart(space.grid, tuple(rows.tiles), steps)


def build_map(kernel: Kernel, part: Part, count: int) -> TilePart:
    """Write elementwise work: threads have several vectors each."""
    axes = widest_axes(part)
    lanes = vector_lanes(kernel, part, axes[-1], axes) if axes else 1
    space = cut_flat(axes, count * ROUNDS, lanes)
    layout = in_steps(space, lanes, count)
    tiles, steps = map_steps(part, space, layout)
    return TilePart(space.grid, tuple(tiles), tuple(steps))


def build_rows(kernel: Kernel, part: Part, count: int) -> TilePart:
    """Write work on rows: neighbours share one, and have several each."""
    over = next(each.reduce for each in part.computes if each.reduce)
    lanes = vector_lanes(kernel, part, over[-1])
    inner = min(threads_along(over[-1].size, lanes), WARP)
    lines = count // inner
    *outer, last = part.rows
    sums = sum(bool(each.reduce) for each in part.computes)
    own = sums * ceil_div(over[-1].size, inner)  # elements of rows that a thread works on at once
    space = cut((last,), lines * max(ROUNDS * lanes // own, 1)).with_grid(outer)
    sizes = tuple(axis.size for axis in space.dims)
    shared = Threads(sizes, (lines,), (1,), inner, lanes)
    rows = Rows(part, space.dims, space.axes, space.conditions, shared, False)
    steps = tuple(rows.whole())  # adds tiles
    return TilePart(space.grid, tuple(rows.tiles), steps)
