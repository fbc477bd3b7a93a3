"""Vectors: parts of formulas that have one value a row, or one a place of the stream, on Hopper.

What has one value a row is in registers while the row is worked on. What has one a place is
computed by a warp of its own as a stage of a ring, 0 behind the end, and arrives with the boxes.
What is spread over both, as a bias or a mask of every place, comes in boxes, whose elements threads
read.
"""

from collections.abc import Iterable

from picograd.codegen.boxes import ROW_BYTES, View, view_of
from picograd.codegen.layout import Swizzled
from picograd.codegen.operands import bind_roles, expr_axes, guarded, size_of
from picograd.codegen.stream_masks import bared, outermost
from picograd.codegen.streams import Stream, read
from picograd.codegen.templates.attention_frame import ROWS, Frame
from picograd.codegen.tile import Assign, Step, Tile
from picograd.dtype import DType, bool_
from picograd.helpers import round_up
from picograd.schedule.draws import is_half_drawn
from picograd.schedule.index import Axis
from picograd.schedule.loop import Expr, walk

SCORE = Axis("score", 1)  # of what has a value for each row and place
DEAR = 24  # parts of an expression that is computed once for all that read it
READS = "ref", "tile", "load"
LEAST_BITS = 32  # of a value: narrower ones are read where they are used


class Vectors:
    """This class collects the vectors of a frame, by their expressions."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.of_rows: dict[Expr, str] = {}
        self.of_places: dict[Expr, str] = {}
        self.boxed: dict[Expr, str] = {}
        self.drawn: dict[Expr, Expr] = {}  # where it is
        self.is_boxed = not frame.schedule.is_plain and size_of(frame.stream.rows) > ROWS

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

    def keep_drawn(self, bodies: Iterable[Expr]) -> list[Step]:
        """Compute booleans that are dear and know places alone, as what is drawn, once for all.

        A thread has them as bits of a word, made while scores are multiplied; see `drawn`.
        """
        frame = self.frame
        steps: list[Step] = []
        for expr in () if frame.schedule.is_plain else drawn_in(bodies):
            name = frame.add_scores(f"drawn{len(self.drawn)}", bool_)
            self.drawn[expr] = read(name, frame.point, bool_)
            steps.append(Assign(name, frame.dims, bind_roles(expr, frame.rows, frame.over)))
        return steps

    def spread(self, load: Expr) -> Expr | None:
        """Read what has a value a row and a place from boxes; None if they cannot bring it.

        Those of the row, or of the place, are beside one another in memory.
        """
        frame = self.frame
        row, place = frame.point
        along = frame.first, frame.size, place
        down = frame.start, frame.height, row
        sides = (along, down), (down, along)
        views = views_of(load, frame.stream)
        for view, (near, far) in zip(views, sides, strict=True):
            if view is None:
                continue
            name = self.boxed.setdefault(load, f"spread{len(self.boxed)}")
            column, width, nearest = near
            top, height, farthest = far
            if name not in frame.tiles:
                layout = boxes_of(load.dtype, height, width)
                if not self.has_room(layout):
                    return None
                corner = column, top
                frame.add_boxes(name, load, view, layout, corner, frame.ring)
            at = farthest, nearest
            return read(name, at, load.dtype)
        return None

    def has_room(self, layout: Swizzled) -> bool:
        """Tell whether two stages have room for boxes beside the others."""
        frame = self.frame
        held = [each.tile for each in frame.held]
        ring = {each.tile for each in frame.ring}
        stage = frame.bytes_of(ring) + layout.size * layout.itemsize
        room = frame.memory - frame.bytes_of(held)
        is_crowded = 2 * stage > room
        frame.is_crowded |= is_crowded
        return not is_crowded

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
    is_half = load.dtype.is_float and load.dtype.bits == 16
    is_short = load.op == "load" and (is_half or load.dtype is bool_)
    is_moving = is_short and moving <= own_axes(load)
    return is_moving and any(each is not None for each in views_of(load, stream))


def drawn_in(bodies: Iterable[Expr]) -> list[Expr]:
    """List the largest booleans of many operations in bodies, of which none reads anything."""
    found: dict[Expr, None] = {}

    def find(expr: Expr) -> Expr | None:
        parts = walk(expr) if expr.dtype is bool_ else ()
        is_dear = len(parts) >= DEAR or any(map(is_half_drawn, parts))
        if not is_dear or any(each.op in READS for each in parts):
            return None
        found[expr] = None
        return expr

    for body in bodies:
        outermost(body, find)
    return list(found)


def views_of(load: Expr, stream: Stream) -> list[View | None]:
    """See an array as boxes do: places, then rows, beside one another in memory."""
    _, index = load.arg
    sides = stream.over, stream.rows
    itemsize = load.dtype.itemsize
    return [view_of(index, *each, stream.batch, itemsize) for each in (sides, sides[::-1])]


def boxes_of(dtype: DType, rows: int, columns: int) -> Swizzled:
    """Lay out boxes of so many rows and columns, or more, of what is spread."""
    shape = rows, round_up(columns, ROW_BYTES // dtype.itemsize)
    return Swizzled(shape, dtype.itemsize)


def own_axes(expr: Expr) -> set[Axis]:
    """Find the axes of an expression itself, without what it is made of."""
    alone = Expr(expr.op, (), expr.arg, expr.dtype)
    return expr_axes(alone)
