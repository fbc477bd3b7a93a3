"""Patches: how a map with windows is cut on a GPU, so that neighbours share what they read.

grid: chunks of the row-major space of patches    dims: (thread, elements of a patch, lanes)

The first axis of taps is a loop, whose step reads one row of the patch. Few taps of windows that
are apart, or of 32 bits, are read at once, for two rows of elements.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from picograd.codegen.layout import Blocked, Layout
from picograd.codegen.templates.grid import Cut, balanced, cut_flat
from picograd.codegen.templates.sliding import Slide, is_plain, slid, slides_of
from picograd.codegen.tile import Accumulate, Assign, For, Step, Tile, TilePart
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Part, const
from picograd.schedule.monoid import identity

THREADS = 256  # of a block
# Elements of a patch along the last axis that windows slide along, for vectors of so many elements:
# more take registers that other threads would have (docs/records/0014-convolutions).
NEAR = {8: 7, 4: 4}
# Blocks that a processor is to have registers for, of sums of products of such vectors alone.
TOGETHER = {8: 2, 4: 3}
SMALL = 2  # along both axes, where few taps are read at once, or windows share little
FEW_TAPS = 9

Made = tuple[list[Tile], list[Step]]


@dataclass(frozen=True, slots=True)
class Patches:
    """Elements of a patch along axes, and the axis of taps that is a loop."""

    sizes: dict[Axis, int]
    serial: Axis | None = None

    def size(self, axis: Axis) -> int:
        """Count the elements along an axis."""
        return self.sizes.get(axis, 1)


def build_patches(
    part: Part, axes: Sequence[Axis], lanes: int, make: Callable[[Cut], Made]
) -> TilePart | None:
    """Write a part with windows in patches that share what they read; None if they share none.

    `make` writes the steps of a map in a cut space.
    """
    patches = patches_of(part, axes, lanes)
    if patches is None or part.ends:
        return None
    space = cut_patches(axes, patches, THREADS, lanes)
    tiles, steps = make(space)
    found: list[Step] = []
    for step in steps:
        if not isinstance(step, Accumulate):
            found.append(step)
            continue
        made = slid_by_rows(step, tiles, patches.serial, space)
        if made is None:
            return None
        found += made
    is_product = any(compute.reduce and compute.body.op == "mul" for compute in part.computes)
    together = TOGETHER.get(lanes, 0) if is_product and is_plain(part.computes) else 0
    return TilePart(space.grid, tuple(tiles), tuple(found), together=together)


def patches_of(part: Part, axes: Sequence[Axis], lanes: int) -> Patches | None:
    """Choose how many neighbours along which axes a thread computes, and which taps are a loop."""
    windows = [compute for compute in part.computes if compute.reduce]
    if len(windows) != 1:
        return None
    (window,) = windows
    slides = slides_of(window.body, axes[:-1], window.reduce)
    if not slides:
        return None
    *outer, last = slides
    taps = product(slide.tap.size for slide in slides)
    is_apart = last.step > 1
    is_whole = taps <= FEW_TAPS and (is_apart or lanes < max(NEAR))
    most = SMALL if is_whole or is_apart else NEAR.get(lanes, SMALL)
    sizes = {last.element: patch_size(last, most)}
    if not outer:
        return Patches(sizes)
    far = outer[-1]
    if not is_whole:
        return Patches(sizes, far.tap)
    return Patches({far.element: patch_size(far, SMALL), **sizes})


def patch_size(slide: Slide, most: int) -> int:
    """Choose the size of a patch: even parts of the axis, whole ones if there are."""
    size = slide.element.size
    return balanced(size, min(most, size))


def cut_patches(axes: Sequence[Axis], patches: Patches, chunk: int, lanes: int) -> Cut:
    """Cut a space by the row-major position of its patches."""
    counts = [ceil_div(axis.size, patches.size(axis)) for axis in axes]
    groups = [Axis(f"{axis.name}_group", n) for axis, n in zip(axes, counts, strict=True)]
    space = cut_flat(groups, chunk, lanes)
    step, *lane = space.dims
    near = []
    values = {}
    conditions = list(space.conditions)
    for axis, group in zip(axes, groups, strict=True):
        size = patches.size(axis)
        values[axis] = space.axes[group] * size
        if axis in patches.sizes:
            near.append(Axis(f"{axis.name}_near", size))
            values[axis] += axis_index(near[-1])
        if axis.size % size:
            conditions.append((values[axis], 0, axis.size - 1))
    return Cut(space.grid, (step, *near, *lane), values, tuple(conditions))


def slid_by_rows(
    step: Accumulate, tiles: list[Tile], serial: Axis | None, space: Cut
) -> list[Step] | None:
    """Let a reduction over windows read what they share from registers, or a row at a time."""
    if space.conditions:
        step = replace(step, expr=step.expr.args[0])  # what the guard leaves out nobody sees
    if serial is None:
        return slid(step, tiles, space.conditions)
    (tile,) = (tile for tile in tiles if tile.name == step.tile)
    over = tuple(axis for axis in step.over if axis is not serial)
    wide = over_layout(tile.layout, over)
    row = replace(step, over=over, is_first=False, layout=wide)
    made = slid(row, tiles, space.conditions)
    if made is None:
        return None
    first = const(identity(step.monoid, tile.dtype), tile.dtype)
    return [Assign(step.tile, step.dims, first), For(serial, tuple(made))]


def over_layout(layout: Layout | None, over: Sequence[Axis]) -> Layout | None:
    """Extend a layout by axes that each thread walks alone."""
    if not isinstance(layout, Blocked):
        return layout
    return layout.with_alone(tuple(axis.size for axis in over))
