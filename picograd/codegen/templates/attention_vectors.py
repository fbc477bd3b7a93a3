"""Vectors: parts of formulas that have one value a row, or one a place of the stream, on Hopper.

What has one value a row is in registers while the row is worked on. What has one a place is
computed by a warp of its own as a stage of a ring, 0 behind the end, and arrives with the boxes.
What is spread over both, as a bias of every place, comes in boxes, whose elements threads read.
"""

from picograd.code import TensorMap
from picograd.codegen.boxes import View, place_of, view_of
from picograd.codegen.layout import Swizzled
from picograd.codegen.operands import bind_roles, expr_axes, guarded, size_of
from picograd.codegen.stream_masks import bared, outermost
from picograd.codegen.streams import Stream, read
from picograd.codegen.templates.attention_frame import MEMORY, ROWS, SPAN, Frame
from picograd.codegen.tile import Assign, Step, Tile
from picograd.codegen.tile_pipeline import CopyBox
from picograd.helpers import round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Expr, walk

SCORE = Axis("score", 1)  # of what has a value for each row and place
LEAST_BITS = 32  # of a value: narrower ones are read where they are used


@dataclass(frozen=True, slots=True)
class Side:
    """Rows or places of a block: their axes, which is the first, and how many there are."""

    axes: tuple[Axis, ...]
    first: Index
    size: int


class Vectors:
    """This class collects the vectors of a frame, by their expressions."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.of_rows: dict[Expr, str] = {}
        self.of_places: dict[Expr, str] = {}
        self.boxed: dict[Expr, str] = {}
        is_exact = frame.schedule.is_plain or frame.schedule.splits > 1
        self.is_boxed = not is_exact and size_of(frame.stream.rows) > ROWS

    def read(self, body: Expr) -> Expr:
        """Replace the largest parts that are read from memory, for a row or a place, by reads."""
        body, stream = bared(body), self.frame.stream
        axes: dict[int, set[Axis]] = {}
        is_loaded: dict[int, bool] = {}
        rows = {*stream.rows, *stream.batch}
        over = {*stream.over, *stream.batch}
        for expr in walk(body):
            key = id(expr)
            below = list(map(id, expr.args))
            inner = [axes[each] for each in below]
            loaded = [is_loaded[each] for each in below]
            is_score = expr.op in ("ref", "tile")
            axes[key] = {SCORE} if is_score else own_axes(expr).union(*inner)
            is_loaded[key] = expr.op == "load" or any(loaded)

        def find(expr: Expr) -> Expr | None:
            key = id(expr)
            if self.is_boxed and is_spread(expr, stream):
                return self.spread(expr)
            if not is_loaded[key] or expr.dtype.bits < LEAST_BITS:
                return None
            if axes[key] <= rows:
                return self.vector(expr, self.of_rows, "row", 0)
            if axes[key] <= over:
                return self.vector(expr, self.of_places, "place", 1)
            return None

        return outermost(body, find)

    def spread(self, load: Expr) -> Expr | None:
        """Read what has a value a row and a place from boxes; None if they cannot bring it.

        Those of the row, or of the place, are beside one another in memory.
        """
        frame = self.frame
        stream = frame.stream
        row, place = frame.point
        places = Side(stream.over, frame.first, frame.size)
        rows = Side(stream.rows, frame.start, frame.height)
        _, index = load.arg
        itemsize = load.dtype.itemsize
        for near, far, at in ((places, rows, (row, place)), (rows, places, (place, row))):
            view = view_of(index, near.axes, far.axes, stream.batch, itemsize)
            if view is None:
                continue
            name = self.boxed.setdefault(load, f"spread{len(self.boxed)}")
            if name not in frame.tiles and not self.bring(name, load, view, near, far):
                return None
            return read(name, at, load.dtype)
        return None

    def bring(self, name: str, load: Expr, view: View, near: "Side", far: "Side") -> bool:
        """Bring boxes of what is spread over rows and places, if two stages have room for them."""
        frame = self.frame
        dtype = load.dtype
        shape = far.size, round_up(near.size, SPAN)
        layout = Swizzled(shape, dtype.itemsize)
        held = [each.tile for each in frame.held]
        ring = [each.tile for each in frame.ring]
        own = layout.size * dtype.itemsize
        stage = frame.bytes_of(ring) + own
        memory = MEMORY // frame.schedule.blocks
        room = memory - frame.bytes_of(held)
        if 2 * stage > room:
            frame.is_crowded = True
            return False
        box = (layout.span, far.size, *(1 for _ in view.wide))
        slot, _ = load.arg
        tensor = TensorMap(slot, dtype, view.offset, view.sizes, view.strides, box)
        slab = Axis("slab", layout.slabs)
        column = axis_index(slab) * layout.span + near.first
        rest = [place_of(view, axis, frame.batch.values[axis]) for axis in view.wide]
        at = column, far.first, *rest
        tile = Tile(name, layout.shape, dtype, "shared", swizzle=layout)
        frame.tiles[name] = tile
        copy = CopyBox(name, tensor, at, slab)
        frame.ring.append(copy)
        return True

    def vector(self, expr: Expr, known: dict[Expr, str], kind: str, dim: int) -> Expr:
        """Read what has one value a row, or a place; it is added where it is new."""
        number = len(known)
        name = known.setdefault(expr, f"{kind}{number}")
        position = self.frame.point[dim]
        return read(name, (position,), expr.dtype)

    def hold_rows(self) -> list[Step]:
        """Load what has one value a row."""
        frame = self.frame
        steps: list[Step] = []
        for expr, name in self.of_rows.items():
            frame.add_rows(name, expr.dtype)
            bound = bind_roles(expr, frame.rows)
            value = guarded(bound, frame.rows.conditions)
            steps.append(Assign(name, (frame.row,), value))
        return steps

    def fill_places(self) -> list[Assign]:
        """Compute what has one value a place of the stream, as a stage of a ring."""
        frame = self.frame
        steps: list[Assign] = []
        for expr, name in self.of_places.items():
            frame.tiles[name] = Tile(name, (frame.size,), expr.dtype, "shared")
            bound = bind_roles(expr, frame.over)
            value = guarded(bound, frame.over.conditions)
            steps.append(Assign(name, (frame.place,), value))
        return steps


def is_spread(load: Expr, stream: Stream) -> bool:
    """Tell whether boxes bring what has a value a row and a place."""
    moving = {*stream.rows, *stream.over}
    is_half = load.op == "load" and load.dtype.is_float and load.dtype.bits == 16
    if not is_half or not moving <= own_axes(load):
        return False
    _, index = load.arg
    itemsize = load.dtype.itemsize
    sides = stream.over, stream.rows
    views = [view_of(index, *each, stream.batch, itemsize) for each in (sides, sides[::-1])]
    return any(each is not None for each in views)


def own_axes(expr: Expr) -> set[Axis]:
    """Find the axes of an expression itself, without what it is made of."""
    alone = Expr(expr.op, (), expr.arg, expr.dtype)
    return expr_axes(alone)
