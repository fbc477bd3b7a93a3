"""Rings of stages on Hopper: barriers, and where a role is in them.

Ring    stages that are filled by one role and read by another
Place   the stage that a role is at, and the parity of its phase
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from picograd.codegen.block_cuda import Block
from picograd.codegen.products_cuda import add
from picograd.codegen.tile import Assign, Step, Tile
from picograd.codegen.tile_pipeline import CopyBox, Pipeline
from picograd.dtype import bool_, uint64
from picograd.errors import check
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, axis_index

GROUP = 128  # threads of a warpgroup
WARP, WARPS = 32, 4  # threads of a warp, warps of a warpgroup
Write = Callable[[Block, Sequence[Step]], None]


@dataclass(frozen=True, slots=True)
class Ring:
    """Stages that the first warpgroup fills, and the barriers that guard them.

    Boxes are copied, `values` are computed by a warp of its own.
    """

    boxes: tuple[CopyBox, ...]
    values: tuple[Assign, ...]
    stages: int
    bytes: int  # of the boxes of one stage
    full: int
    empty: int
    together: int = 1  # blocks that bring boxes to one another
    rank: int = -1  # the number of this one among them
    is_multiplied: bool = False  # by threads, which read boxes
    is_read: bool = False  # by threads, under work on elements

    @property
    def apart(self) -> bool:
        """Tell whether warps read stages, and not the tensor cores for all of a warpgroup."""
        return self.is_worked_on or self.is_multiplied

    @property
    def is_worked_on(self) -> bool:
        """Tell whether work on elements reads stages."""
        return bool(self.values) or self.is_read


@dataclass(frozen=True, slots=True)
class Place:
    """Variables of a role: the stage it is at, and the parity of its phase."""

    stage: int
    parity: int


def pointer(block: Block, count: int) -> int:
    """Reserve barriers."""
    return block.emitter.add("shared", uint64, arg=block.reserve(8 * count))


def make_ring(
    block: Block,
    steps: Sequence[Step],
    at_once: Container[str] = (),
    worked_on: Container[str] = (),
) -> Ring:
    """Reserve the barriers of what some steps fill; without steps there is no ring.

    Tiles that threads read, or multiply `at_once`, warps read apart.
    """
    boxes = tuple(each for each in steps if isinstance(each, CopyBox))
    values = tuple(each for each in steps if isinstance(each, Assign))
    check(len(boxes) + len(values) == len(steps), "a ring is filled with boxes and values", steps)
    tiles = [block.tiles[each.tile] for each in boxes]
    stages = tiles[0].stages if tiles else 0
    full, empty = (pointer(block, stages) if stages else -1 for _ in range(2))
    size = sum(bytes_of(*each) for each in zip(boxes, tiles, strict=True))
    together = max((each.together for each in boxes), default=1)
    is_multiplied = any(each.tile in at_once for each in boxes)
    ring = Ring(boxes, values, stages, size, full, empty, together, is_multiplied=is_multiplied)
    is_read = any(each.tile in worked_on for each in boxes)
    return replace(ring, is_read=is_read)


def fillers(ring: Ring) -> int:
    """Count who says that a stage is full: who copies boxes, and who computes values."""
    return 2 if ring.values else 1


def bytes_of(step: CopyBox, tile: Tile) -> int:
    """Count what boxes bring to a stage."""
    return product(step.tensor.box) * step.slab.size * tile.dtype.itemsize


def leave_unfilled(block: Block, ring: Ring) -> None:
    """Say which rows of stages no box fills."""
    for each in ring.boxes:
        tile = block.tiles[each.tile]
        itemsize = tile.dtype.itemsize
        count = product(tile.shape)
        filled = bytes_of(each, tile) // itemsize
        for stage in range(ring.stages if filled < count else 0):
            place = block.emitter.integer(stage * count + filled)
            left = (count - filled) * itemsize
            where = block.places[each.tile], place
            add(block, "unfilled", where, left)


def variable(block: Block, value: int) -> int:
    """Make a variable that starts with a value."""
    emitter = block.emitter
    found = emitter.add("array", emitter.index_dtype, arg=1)
    assign(block, found, value)
    return found


def assign(block: Block, variable: int, value: int) -> None:
    """Set a variable."""
    add(block, "set", (variable, block.emitter.integer(0), value))


def read(block: Block, variable: int) -> int:
    """Read a variable."""
    emitter = block.emitter
    return emitter.add("get", emitter.index_dtype, (variable, emitter.integer(0)))


def flip(block: Block, parity: int) -> None:
    """Change the parity in a variable."""
    emitter = block.emitter
    one = emitter.integer(1)
    assign(block, parity, emitter.raw("bitwise_xor", emitter.index_dtype, read(block, parity), one))


def advance(block: Block, ring: Ring, place: Place, stage: int) -> None:
    """Go on to the next stage; behind the last one the phase changes."""
    emitter = block.emitter
    following = emitter.arithmetic("add", stage, emitter.integer(1))
    is_last = emitter.raw("equal", bool_, following, emitter.integer(ring.stages))
    assign(block, place.stage, following)
    with emitter.when(is_last):
        assign(block, place.stage, emitter.integer(0))
        flip(block, place.parity)


def ends_of(block: Block, pipeline: Pipeline) -> tuple[int, int]:
    """Find the first stage of a point, and what it stops before."""
    emitter = block.emitter
    first, stop = emitter.integer(0), emitter.integer(pipeline.axis.size)
    if pipeline.first is not None:
        least = emitter.index(pipeline.first)
        first = emitter.raw("maximum", emitter.index_dtype, first, least)
    if pipeline.stop is not None:
        most = emitter.index(pipeline.stop)
        stop = emitter.raw("minimum", emitter.index_dtype, stop, most)
    return first, stop


@contextmanager
def stages_of(block: Block, pipeline: Pipeline) -> Iterator[None]:
    """Open the loop over the stages of a point: all, or those from its first to its last."""
    emitter = block.emitter
    first, stop = ends_of(block, pipeline)
    with emitter.loop(first, stop, 1, None) as variable:
        emitter.bind(pipeline.axis, variable)
        yield


@dataclass(frozen=True, slots=True)
class Consumer:
    """What the teams read: stages of a pipeline, what is held for a point, and whose turn it is.

    `late` are the stages that only the last products of a rotated pipeline read, `kept` those that
    are filled once, for every point.
    """

    ring: Ring
    late: Ring
    held: Ring
    kept: Ring
    turn: int
    write: Write


def empty_place(block: Block) -> Place:
    """Begin at the first stage, which nobody has to empty before."""
    return Place(
        variable(block, block.emitter.integer(0)), variable(block, block.emitter.integer(1))
    )


def arrived(block: Block, ring: Ring, place: Place) -> int:
    """Wait for a stage, and find its number."""
    stage, parity = read(block, place.stage), read(block, place.parity)
    add(block, "barrier_wait", (ring.full, stage, parity))
    enter_stage(block, ring, stage)
    return stage


def enter_stage(block: Block, ring: Ring, stage: int) -> None:
    """Let the tiles of a ring be those of a stage."""
    axis = Axis("stage", ring.stages)
    block.emitter.bind(axis, stage)
    names = [each.tile for each in ring.boxes] + [each.tile for each in ring.values]
    block.stages.update(dict.fromkeys(names, axis))


def release(block: Block, ring: Ring, stage: int) -> None:
    """Say that this warpgroup has read a stage; every warp does where warps read it apart.

    What threads read of a box, the copy engine must not overtake with the next one.
    """
    emitter = block.emitter
    size = WARP if ring.apart else GROUP
    if ring.is_multiplied or ring.is_read:
        add(block, "async_fence")
    if ring.apart:
        add(block, "warp_barrier")
    with emitter.when(emitter.conditions([(axis_index(block.thread) % size, 0, 0)])):
        if ring.together > 1:
            add(block, "barrier_arrive_all", (ring.empty, stage), ring.together)
        else:
            add(block, "barrier_arrive", (ring.empty, stage))
