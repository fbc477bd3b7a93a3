"""Convolutions by patches on a CPU (contract_patches.py): what is one, when, blocks and tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from picograd.codegen import cuts
from picograd.codegen.operands import (
    Contraction,
    by_stride,
    main_load,
    output_strides,
    size_of,
    step_of,
    strides,
    swap,
)
from picograd.codegen.templates.contract_patches import Block, Convolution
from picograd.codegen.templates.contract_plan import (
    WORK_PER_TASK,
    Columns,
    Patches,
    Plan,
    vector_lanes,
)
from picograd.codegen.templates.contract_shift import Tap, is_shared, tap_of
from picograd.codegen.templates.patches_steps import MATRICES, TAPS, Field
from picograd.codegen.templates.register_block import register_block
from picograd.dtype import float32
from picograd.graph.conv_winograd import STEP
from picograd.helpers import ceil_div, divisors, product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis
from picograd.target import Target

MOST_PATCHES, LEAST_PATCHES = 50, 16  # of a block
SEEN_BYTES = 5 << 19  # of transformed patches
MOST_CHANNELS = 64  # multiplied at once
KEPT_BYTES = 3 << 20  # of transformed weights that a task reads for all of its places
# In multiply-adds of a core meanwhile (docs/records/0014): to transform a patch of a channel, or
# of an output; the taps of a pair of both; and to pack these, where outputs lie last.
PATCH_WORK, TAPS_WORK, PACKED_WORK = 780, 500, 450


def choose(c: Contraction, target: Target) -> Plan | None:
    """Plan a convolution by patches; None if it is no such, or takes less time otherwise."""
    if c.dtype is not float32 or c.windows or c.ends or 0 in c.sizes:
        return None
    conv = find(c) or find(swap(c))
    if conv is None or not sums_places(conv):
        return None
    return planned(conv, target)


def sums_places(conv: Convolution) -> bool:
    """Tell whether what is reduced of the results, if anything, is reduced over all places."""
    places = set(conv.places)
    computes = conv.product.computes[1:]
    return all(set(each.reduce) == places for each in computes if each.reduce)


def find(c: Contraction) -> Convolution | None:
    """Find the convolution of a product whose columns are places of an image."""
    found = dict(spatial(c, c.columns, c.depth))
    taken = found.values()
    channels = [axis for axis in c.depth if axis.size > 1 and axis not in taken]
    if len(found) != 2 or len(channels) != 1:
        return None
    ordered = by_stride(c.columns, strides(c.b, c.columns))
    near = tuple(axis for axis in ordered if axis in found)
    places = (*(axis for axis in ordered if axis not in found), *near)
    is_last = 1 in output_strides(c, c.rows).values()
    own = swap(c) if is_last else c
    own = replace(own, rows=places) if is_last else replace(own, columns=places)
    taps = tuple(found[axis] for axis in near)
    return Convolution(own, is_last, c.b, c.a, places, c.rows, channels[0], taps)


def spatial(
    c: Contraction, places: Sequence[Axis], taps: Sequence[Axis]
) -> Iterator[tuple[Axis, Axis]]:
    """Match axes of places with taps: one tap is as far as one place."""
    index = main_load(c.b)
    if index is None:
        return
    for axis in taps:
        for place in places:
            tap = tap_of(axis, step_of(index, axis), step_of(index, place))
            if tap == Tap(axis, 1) and axis.size == TAPS and is_shared(c.b, place, tap):
                yield place, axis
                break


@dataclass(frozen=True, slots=True)
class Share:
    """What a task has of a convolution."""

    places: cuts.Cut
    walked: tuple[Axis, ...]  # blocks of places, one after the other
    task: Axis  # grid axis of the outputs
    panel: Axis  # panels of these
    is_kept: bool  # transformed weights are, for all its places


def planned(conv: Convolution, target: Target) -> Plan | None:
    """Choose blocks of places, and panels of outputs."""
    lanes = vector_lanes(float32, target)
    outputs = size_of(conv.outputs)
    if conv.channel.size % lanes or outputs < lanes:
        return None
    size = MATRICES * conv.channel.size * float32.itemsize  # of a transformed patch
    most = min(max(SEEN_BYTES // size, LEAST_PATCHES), MOST_PATCHES)
    steps = {conv.places[-2]: STEP}
    cut = cuts.nested_cut(conv.places, most * STEP**2, steps)
    dims = cut.pieces[0].dims
    if len(dims) < 2:  # of rows that are too long a block has parts
        return None
    down, across = (Axis(dim.name, ceil_div(dim.size, STEP)) for dim in dims[-2:])
    count = size_of((*dims[:-2], down, across))
    height, vectors = register_block(count, outputs, lanes, target.registers)
    width = lanes * vectors
    share = shared(conv, cut, count, width, target)
    if share is None:
        return None
    runs = conv.channel.size // lanes
    run = divisors(runs, MOST_CHANNELS // lanes)[-1]
    block = Block(
        conv,
        share.places,
        Field(conv.places, share.places.pieces[0], down, across, Axis("lane", lanes)),
        cuts.range_cut(conv.outputs, width, (share.task, share.panel)),
        share.panel,
        Axis("out", width),
        height,
        Axis("run", run),
        Axis("deep", runs // run),
        share.is_kept,
    )
    return with_block(block, share)


def shared(
    conv: Convolution, cut: cuts.Cut, count: int, width: int, target: Target
) -> Share | None:
    """Share a convolution among tasks; a block has `count` patches, and panels so many outputs."""
    batch, channels = conv.product.sizes[0], conv.channel.size
    outputs = size_of(conv.outputs)
    panels = ceil_div(outputs, width)
    tasks = 4 * target.threads if target.threads > 1 else 1
    work = product(conv.product.sizes)
    wanted = min(tasks, max(work // WORK_PER_TASK, 1))
    each = max(panels // ceil_div(wanted, batch * cut.count), 1)
    task = Axis("outputs", ceil_div(panels, each))
    places, walked = walk(cut, ceil_div(wanted, batch * task.size))
    size = MATRICES * channels * each * width * float32.itemsize
    is_kept = size_of(walked) > 1 and size <= KEPT_BYTES
    times = cut.count // (size_of(walked) if is_kept else 1)
    transformed = cut.count * count, channels * task.size, outputs * times
    if not is_faster(conv, transformed):
        return None
    return Share(places, walked, task, Axis("panel", each), is_kept)


def is_faster(conv: Convolution, transformed: tuple[int, int, int]) -> bool:
    """Estimate the work: of patches, channels for each, and outputs for each of the channels."""
    places, outputs, channels = (size_of(conv.places), size_of(conv.outputs), conv.channel.size)
    patches, seen, weights = transformed
    work = MATRICES * patches * channels * outputs
    work += PATCH_WORK * patches * (seen + outputs)
    work += TAPS_WORK * channels * weights
    direct = TAPS**2 * places + (PACKED_WORK if conv.is_last else 0)
    return work < direct * channels * outputs


def walk(cut: cuts.Cut, wanted: int) -> tuple[cuts.Cut, tuple[Axis, ...]]:
    """Share blocks of places among so many tasks or more; gives the axes that a task walks."""
    grid = 0
    while grid < len(cut.outer) and product(x.size for x in cut.outer[: grid + 1]) < wanted:
        grid += 1
    if grid or not cut.outer:
        return cut, cut.outer[grid + 1 :]
    size = cut.outer[0].size
    cut, part = cuts.split_outer(cut, next(n for n in divisors(size, size) if n >= wanted))
    return replace(cut, outer=(part, *cut.outer)), cut.outer


def with_block(block: Block, share: Share) -> Plan:
    """Write the plan of a block: places are rows where outputs are neighbours, else columns."""
    conv, places = block.conv, block.place_cut()
    c, width = conv.product, block.out.size
    outputs = cuts.range_cut(conv.outputs, block.panel.size * width, (share.task,))
    depth = cuts.nested_cut(c.depth, c.sizes[3])
    patches = Patches(block.tiles(), block.before(), block.steps(), share.walked)
    if conv.is_last:
        count = len(places.outer) - len(share.walked)
        grid = places.outer[:count]
        columns = Columns(outputs, block.panel, (), width, False)
        rows = places
    else:
        grid, rows = (share.task,), outputs
        lanes = block.lane.size
        panel = Axis("panel", block.results // lanes)
        columns = Columns(places, panel, (), lanes, False)
    one, part = Axis("row_block", 1), Axis("part", 1)
    return Plan(c, rows, columns, depth, 1, grid, one, part, False, False, patches=patches)
