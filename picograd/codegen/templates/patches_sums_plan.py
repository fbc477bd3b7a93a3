"""Gradients of weights by patches on a CPU (contract_patches_sums.py): which, blocks and tasks."""

from dataclasses import replace

from picograd.codegen import cuts
from picograd.codegen.operands import Contraction, by_stride, output_strides, size_of, strides, swap
from picograd.codegen.templates.contract_patches import Convolution
from picograd.codegen.templates.contract_patches_sums import Block
from picograd.codegen.templates.contract_plan import (
    WORK_PER_TASK,
    Columns,
    Patches,
    Plan,
    vector_lanes,
)
from picograd.codegen.templates.patches_plan import PATCH_WORK, spatial
from picograd.codegen.templates.patches_steps import MATRICES, TAPS, Field
from picograd.codegen.templates.register_block import register_block
from picograd.dtype import float32
from picograd.graph.conv_winograd import STEP
from picograd.helpers import ceil_div, divisors, product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, constant
from picograd.target import Target

WHOLE_PATCHES, WHOLE_BYTES = 64, 5 << 20  # that stay, transformed, for all outputs
MOST_PATCHES, LEAST_PATCHES = 32, 16  # of a block of places that are walked
SEEN_BYTES = 3 << 19  # of these, transformed
MOST_CHANNELS, MOST_OUTPUTS = 128, 128  # of a task that keeps products
# In multiply-adds of a core meanwhile (docs/records/0014), of a pair of channel and output: to
# transform it back, and to store what is summed place by place, which takes longer than a product.
BACK_WORK, STORED_WORK, SUMMED = 700, 450, 1.4


def choose(c: Contraction, target: Target) -> Plan | None:
    """Plan a gradient by patches; None if it is no such, or takes less time otherwise."""
    if c.dtype is not float32 or c.windows or c.ends or 0 in c.sizes:
        return None
    if any(compute.reduce for compute in c.computes[1:]):
        return None
    conv = find(c) or find(swap(c))
    return None if conv is None else planned(conv, target)


def find(c: Contraction) -> Convolution | None:
    """Find the convolution whose weight has the rows and columns of a product."""
    found = dict(spatial(c, c.depth, c.columns))
    outputs = [axis for axis in c.rows if axis.size > 1]
    others = [axis for axis in c.columns if axis not in found.values()]
    channels = [axis for axis in others if axis.size > 1]
    if len(found) != 2 or len(channels) != 1 or len(outputs) != 1:
        return None
    steps = strides(c.b, c.depth)
    ordered = by_stride(c.depth, steps)
    near = tuple(axis for axis in ordered if axis in found)
    images = [axis for axis in ordered if axis not in found]
    places = (*images, *near)
    taps = tuple(found[axis] for axis in near)
    single = [axis for axis in others if axis.size == 1]
    columns = (*single, *channels, *taps)
    is_last = output_strides(c, outputs)[outputs[0]] == 1
    own = replace(c, columns=columns)
    own = swap(own) if is_last else own
    return Convolution(own, is_last, c.b, c.a, places, tuple(outputs), channels[0], taps)


@dataclass(frozen=True, slots=True)
class Share:
    """What a task has of a gradient."""

    places: cuts.Cut
    walked: tuple[Axis, ...]  # blocks of places, one after the other
    part: Axis  # grid axis of the places
    outputs: cuts.Cut
    task: Axis  # grid axis of the outputs
    panel: Axis  # panels of these
    weights: cuts.Cut  # channels and taps


def planned(conv: Convolution, target: Target) -> Plan | None:
    """Choose blocks of places, channels and outputs."""
    lanes = vector_lanes(float32, target)
    channels, outputs = conv.channel.size, size_of(conv.outputs)
    if channels % lanes or outputs < lanes:
        return None
    runs = divisors(channels // lanes, MOST_CHANNELS // lanes)
    some = lanes * runs[-1]
    cut = place_cut(conv, some)
    dims = cut.pieces[0].dims
    if len(dims) < 2:  # of rows that are too long a block has parts
        return None
    down, across = (Axis(dim.name, ceil_div(dim.size, STEP)) for dim in dims[-2:])
    height, vectors = register_block(some, outputs, lanes, target.registers)
    width = lanes * vectors
    share = shared(conv, cut, some, width, target)
    lane = Axis("lane", lanes)
    field = Field(conv.places, share.places.pieces[0], down, across, lane)
    if not is_faster(conv, field, share):
        return None
    weights = share.weights.pieces[0]
    own = weights.dims[-3]  # before the taps
    block = Block(
        conv,
        field,
        share.places,
        share.walked,
        cuts.first_of(weights, conv.channel, own),
        Axis("run", own.size // lanes),
        Axis("chunk", own.size // some),
        share.outputs.first or constant(0),
        share.panel,
        Axis("out", width),
        height,
        cut.count == 1,
    )
    return with_block(block, share)


def place_cut(conv: Convolution, channels: int) -> cuts.Cut:
    """Cut places in blocks: a single one, if its patches are few, else for so many channels."""
    *images, high, wide = conv.places
    rows = ceil_div(high.size, STEP)
    columns = ceil_div(wide.size, STEP)
    count = size_of(images) * rows * columns
    size = MATRICES * float32.itemsize  # of a transformed patch, of one channel
    whole = min(WHOLE_BYTES // (size * conv.channel.size), WHOLE_PATCHES)
    some = min(SEEN_BYTES // (size * channels), MOST_PATCHES)
    most = count if count <= whole else max(some, LEAST_PATCHES)
    return cuts.nested_cut(conv.places, most * STEP**2, {high: STEP})


def shared(conv: Convolution, cut: cuts.Cut, channels: int, width: int, target: Target) -> Share:
    """Share a gradient among tasks: their channels at once, and outputs of a panel."""
    c = conv.product
    batch, *_ = c.sizes
    columns = c.rows if conv.is_last else c.columns
    panels = ceil_div(size_of(conv.outputs), width)
    tasks = 4 * target.threads if target.threads > 1 else 1
    work = product(c.sizes)
    wanted = min(tasks, max(work // WORK_PER_TASK, 1))
    if cut.count == 1:
        weights = cuts.nested_cut(columns, size_of(columns))
        each = max(panels // ceil_div(wanted, batch), 1)
        panel = Axis("panel", each)
        task = Axis("outputs", ceil_div(panels, each))
        outputs = cuts.range_cut(conv.outputs, width, (task, panel))
        return Share(cut, (), Axis("part", 1), outputs, task, panel, weights)
    weights = cuts.nested_cut(columns, channels * TAPS**2)
    most = max(MOST_OUTPUTS // width, 1)
    task = Axis("outputs", ceil_div(panels, most))
    panel = Axis("panel", ceil_div(panels, task.size))
    outputs = cuts.range_cut(conv.outputs, panel.size * width, (task,))
    cells = batch * task.size * weights.count
    most = cut.outer[0].size
    parts = min(ceil_div(wanted, cells), most)
    if parts == 1:
        return Share(cut, cut.outer, Axis("part", 1), outputs, task, panel, weights)
    cut, part = cuts.split_outer(cut, parts)
    return Share(cut, cut.outer, part, outputs, task, panel, weights)


def is_faster(conv: Convolution, field: Field, share: Share) -> bool:
    """Estimate the work: of patches, and of pairs of channel and output."""
    channels, outputs = conv.channel.size, size_of(conv.outputs)
    parts = share.part.size
    patches = field.count * share.places.count * parts
    again = channels * share.task.size + outputs * share.weights.count
    seen = PATCH_WORK * patches * again
    pair = MATRICES * patches + BACK_WORK * parts
    places = size_of(conv.places)
    summed = SUMMED * TAPS**2 * places + STORED_WORK
    pairs = channels * outputs
    return seen + pair * pairs < summed * pairs


def with_block(block: Block, share: Share) -> Plan:
    """Write the plan of a block: outputs are rows where they lie first, else columns."""
    conv, lanes, width = block.conv, block.field.lane.size, block.out.size
    c, outputs, weights = conv.product, share.outputs, share.weights
    walked = (share.panel,) if block.is_whole else ()
    patches = Patches(block.tiles(), block.before(), block.steps(), walked)
    if conv.is_last:
        panel = Axis("panel", outputs.size // width)
        columns = Columns(outputs, panel, (), width, False)
        grid, rows = weights.outer, weights
    else:
        panel = Axis("panel", weights.size // lanes)
        columns = Columns(weights, panel, (), lanes, False)
        grid, rows = (share.task,), outputs
    depth, one = cuts.nested_cut(c.depth, c.sizes[3]), Axis("row_block", 1)
    return Plan(c, rows, columns, depth, 1, grid, one, share.part, False, False, patches=patches)
