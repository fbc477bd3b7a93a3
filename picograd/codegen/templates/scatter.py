"""Scatter template: updates in order, so that results are deterministic whatever the monoid.

Each grid point owns a chunk of the inner elements of a slice and walks all updates for it, one
after the other; no two grid points write the same element, because the destination's row depends
on the serial axes only. Many updates on CUDA are sorted by their destination before
(graph/indexing.py): there a thread owns an element of a run of updates with one destination.
"""

from dataclasses import replace

from picograd.codegen.templates import map as map_template
from picograd.codegen.templates.grid import cut, cut_flat, merge_part, rebind, substitute_along
from picograd.codegen.tile import RunStep, TileKernel, TilePart
from picograd.dtype import uint32
from picograd.errors import check, internal
from picograd.graph.updates_at_once import ONCE
from picograd.helpers import product, round_up
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, Kernel, Part, Runs, Scatter, rewrite
from picograd.target import Target

CPU_POINTS = 65536
CUDA_THREADS = 128  # inner elements a block owns
RUN_THREADS, WARP = 256, 32  # lanes that share a run are those of a whole warp
MINIMUM_COLUMNS = 16  # one vector of float32: a narrower task would waste lanes


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a scatter kernel for the target."""
    has_maps = any(part.scatter is None for part in kernel.parts)
    threads = map_template.CUDA_THREADS if has_maps else CUDA_THREADS
    parts = tuple([build_part(kernel, merge_part(part), target, threads) for part in kernel.parts])
    return TileKernel(kernel, parts, threads if target.has_blocks else 1)


def build_part(kernel: Kernel, part: Part, target: Target, threads: int) -> TilePart:
    """Write one part; a part without scatter is a map."""
    scatter = part.scatter
    if scatter is None:
        return map_template.build_part(kernel, part, target)
    is_together = target.has_blocks and is_free(kernel, scatter)
    if is_together:
        monoid = None if scatter.monoid == ONCE else scatter.monoid
        inner = scatter.serial + scatter.inner
        scatter = replace(scatter, serial=(), inner=inner, monoid=monoid)
    serial = product(axis.size for axis in scatter.serial)
    width = threads
    if not target.has_blocks:
        width = max(MINIMUM_COLUMNS, CPU_POINTS // max(1, serial))
    space = (cut_flat if is_together else cut)(scatter.inner, width)
    values: list[Expr] = []
    for compute in part.computes:
        check(not compute.reduce and not compute.store, "computes beside a scatter are maps")
        values.append(map_template.inline(compute.body, values, space))
    conditions = tuple((rebind(i, space.axes), lo, hi) for i, lo, hi in scatter.conditions)
    step = replace(
        scatter,
        inner=space.dims,
        body=map_template.inline(scatter.body, values, space),
        target=rebind(scatter.target, space.axes),
        conditions=(*conditions, *space.conditions),
    )
    return TilePart(space.grid, (), (step,))


def is_free(kernel: Kernel, scatter: Scatter) -> bool:
    """Tell whether updates need no order: one a place at most, or the greatest of whole numbers."""
    if scatter.monoid == "max":
        return kernel.slots[scatter.slot].dtype is uint32
    return scatter.monoid == ONCE


def build_runs(kernel: Kernel, target: Target) -> TileKernel:
    """Write a reduction of runs for CUDA: threads for elements of sorted updates, or of runs."""
    part = merge_part(kernel.parts[0])
    runs = part.along
    if not isinstance(runs, Runs) or not target.has_blocks:
        internal("a kernel of runs needs runs, and CUDA", part)
    lane = Axis("lane", runs.lanes)
    count = whole = runs.number.size
    if runs.lanes > 1:
        whole = round_up(count, RUN_THREADS // WARP)
    place = Axis("place", whole)
    space = cut_flat((place, lane, *runs.rows), RUN_THREADS)
    own = substitute_along(
        runs,
        lambda rows: (),
        lambda index: rebind(index, space.axes),
        lambda expr: rewrite(expr, space.axes),
    )
    here, within = (rebind(axis_index(axis), space.axes) for axis in (place, lane))
    conditions = space.conditions
    if whole > count:
        conditions = ((here, 0, count - 1),)
    step = RunStep(space.dims, here, own, within, conditions)
    return TileKernel(kernel, (TilePart(space.grid, (), (step,)),), RUN_THREADS)
