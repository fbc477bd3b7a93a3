"""What blocks of an attention kernel find together before they stream: the ranges of their masks.

Warps reduce a row each, or the whole block does where rows are few.
"""

from picograd.codegen.linearize_cuda_roles import power_below
from picograd.codegen.templates.grid import cut
from picograd.codegen.templates.map import vector_lanes
from picograd.codegen.templates.rows import Rows
from picograd.codegen.templates.threads import Threads
from picograd.codegen.tile import TilePart
from picograd.helpers import product
from picograd.schedule.loop import Kernel, Part
from picograd.target import Target

WARP = 32


def build(kernel: Kernel, part: Part, target: Target, threads: int) -> TilePart:
    """Write a part that blocks of so many threads run together."""
    count = power_below(threads)
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
