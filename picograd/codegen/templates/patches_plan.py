"""Convolutions by patches on a CPU (contract_patches.py): what is one, when, blocks and tasks."""

from collections.abc import Iterator
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
from picograd.codegen.templates.contract_patches import MATRICES, TAPS, Block, Convolution
from picograd.codegen.templates.contract_plan import (
    WORK_PER_TASK,
    Columns,
    Patches,
    Plan,
    register_block,
    vector_lanes,
)
from picograd.codegen.templates.contract_shift import is_shared, ratio
from picograd.dtype import float32
from picograd.graph.conv_winograd import STEP
from picograd.helpers import ceil_div, divisors, product
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
    sums = [compute for compute in conv.product.computes[1:] if compute.reduce]
    return all(set(compute.reduce) == set(conv.places) for compute in sums)


def find(c: Contraction) -> Convolution | None:
    """Find the convolution of a product whose columns are places of an image."""
    found = dict(spatial(c))
    channels = [axis for axis in c.depth if axis.size > 1 and axis not in dict(found.values())]
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


def spatial(c: Contraction) -> Iterator[tuple[Axis, tuple[Axis, int]]]:
    """Match axes of places with taps: one tap is as far as one place, in either direction."""
    index = main_load(c.b)
    if index is None:
        return
    for tap in c.depth:
        for column in c.columns:
            step = ratio(step_of(index, tap), step_of(index, column))
            is_next = abs(step) == 1 and tap.size == TAPS
            if is_next and is_shared(c.b, column, tap, step):
                yield column, (tap, step)
                break


def planned(conv: Convolution, target: Target) -> Plan | None:
    """Choose blocks, panels and tasks."""
    c, lanes, item = conv.product, vector_lanes(float32, target), float32.itemsize
    batch, outputs = c.sizes[0], size_of(conv.outputs)
    channels = conv.channel.size
    if channels % lanes or outputs < lanes:
        return None
    most = min(max(SEEN_BYTES // (MATRICES * channels * item), LEAST_PATCHES), MOST_PATCHES)
    cut = cuts.nested_cut(conv.places, most * STEP**2, {conv.places[-2]: STEP})
    dims = cut.pieces[0].dims
    if len(dims) < 2 or dims[-1] is not conv.places[-1]:
        return None
    down, across = (Axis(dim.name, ceil_div(dim.size, STEP)) for dim in dims[-2:])
    count = size_of((*dims[:-2], down, across))
    height, vectors = register_block(count, outputs, lanes, target.registers)
    width = lanes * vectors
    panels, runs = ceil_div(outputs, width), channels // lanes
    tasks = 4 * target.threads if target.threads > 1 else 1
    wanted = min(tasks, max(product(c.sizes) // WORK_PER_TASK, 1))
    each = max(panels // ceil_div(wanted, batch * cut.count), 1)
    task, panel = Axis("outputs", ceil_div(panels, each)), Axis("panel", each)
    run = divisors(runs, MOST_CHANNELS // lanes)[-1]
    blocks = cut.count
    cut, walked = walk(cut, ceil_div(wanted, batch * task.size))
    size = MATRICES * channels * each * width * item
    is_kept = size_of(walked) > 1 and size <= KEPT_BYTES
    times = blocks // size_of(walked) if is_kept else blocks
    if not is_faster(conv, (blocks * count, channels * task.size, outputs * times)):
        return None
    block = Block(
        conv,
        cut,
        down,
        across,
        cuts.range_cut(conv.outputs, width, (task, panel)),
        panel,
        Axis("out", width),
        height,
        Axis("lane", lanes),
        Axis("run", run),
        Axis("deep", runs // run),
        is_kept,
    )
    return with_block(block, task, walked)


def is_faster(conv: Convolution, transformed: tuple[int, int, int]) -> bool:
    """Estimate the work: of patches, channels for each, and outputs for each of the channels."""
    places, outputs, channels = (size_of(conv.places), size_of(conv.outputs), conv.channel.size)
    patches, seen, weights = transformed
    work = MATRICES * patches * channels * outputs
    work += PATCH_WORK * patches * (seen + outputs) + TAPS_WORK * channels * weights
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


def with_block(block: Block, task: Axis, walked: tuple[Axis, ...]) -> Plan:
    """Write the plan of a block: places are rows where outputs are neighbours, else columns."""
    conv, places = block.conv, block.place_cut()
    outputs = cuts.range_cut(conv.outputs, block.panel.size * block.out.size, (task,))
    depth, one = cuts.nested_cut(conv.product.depth, conv.product.sizes[3]), Axis("row_block", 1)
    patches = Patches(block.tiles(), block.before(), block.steps(), walked)
    if conv.is_last:
        grid = places.outer[: len(places.outer) - len(walked)]
        columns = Columns(outputs, block.panel, (), block.out.size, False)
        rows = places
    else:
        grid, rows = (task,), outputs
        panel = Axis("panel", block.results // block.lane.size)
        columns = Columns(places, panel, (), block.lane.size, False)
    product, part = conv.product, Axis("part", 1)
    return Plan(product, rows, columns, depth, 1, grid, one, part, False, False, patches=patches)
