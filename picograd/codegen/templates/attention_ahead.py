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
from picograd.late_methods import dataclass
from picograd.schedule.index import Axes
from picograd.schedule.loop import Kernel, Part
from picograd.target import Target

WARP = 32
ROUNDS = 4  # vectors of a thread


def build(kernel: Kernel, part: Part, target: Target, threads: int) -> TilePart:
    """Write a part that blocks of so many threads run together."""
    count = power_below(threads)
    sums = [compute for compute in part.computes if compute.reduce]
    if not sums:
        merged = merge_part(part)
        return build_map(kernel, merged, count)
    over = sums[0].reduce
    lanes = vector_lanes(kernel, part, over[-1])
    is_range = all(compute.dtype.is_integer for compute in part.computes if compute.store)
    if is_range:
        total = product(axis.size for axis in part.rows)
        warps = count // WARP
        is_many = total >= warps * target.multiprocessors
        at_once = warps if is_many else 1
        inner = count // at_once
        return build_rows(part, at_once, Sharing(at_once, inner, lanes))
    columns = over[-1].size
    inner = min(threads_along(columns, lanes), WARP)
    elements = len(sums) * ceil_div(columns, inner)  # of a row that a thread works on at once
    rounds = max(ROUNDS * lanes // elements, 1)
    lines = count // inner
    return build_rows(part, lines * rounds, Sharing(lines, inner, lanes))


@dataclass(frozen=True, slots=True)
class Sharing:
    """How threads share rows: so many at once, of `inner` threads with vectors of `lanes`."""

    lines: int
    inner: int
    lanes: int


def build_rows(part: Part, count: int, sharing: Sharing) -> TilePart:
    """Write work on rows, so many of them at a point."""
    *outer, last = part.rows
    space = cut((last,), count).with_grid(outer)
    dims = space.dims
    sizes = tuple(axis.size for axis in dims)
    lines = (sharing.lines,) * len(sizes)
    ones = (1,) * len(sizes)
    shared = Threads(sizes, lines, ones, sharing.inner, sharing.lanes)
    rows = Rows(part, dims, space.axes, space.conditions, shared, False)
    steps = tuple(rows.whole())  # adds tiles
    return TilePart(space.grid, tuple(rows.tiles), steps)


def build_map(kernel: Kernel, part: Part, count: int) -> TilePart:
    """Write elementwise work: threads have several vectors each."""
    axes: Axes = widest_axes(part)
    lanes = vector_lanes(kernel, part, axes[-1], axes)
    space = cut_flat(axes, count * ROUNDS, lanes)
    layout = in_steps(space, lanes, count)
    tiles, steps = map_steps(part, space, layout)
    return TilePart(space.grid, tuple(tiles), tuple(steps))
