"""Vectors: parts of formulas that have one value a row, or one a place of the stream, on Hopper.

What has one value a row is in registers while the row is worked on. What has one a place is
computed by a warp of its own as a stage of a ring, 0 behind the end, and arrives with the boxes.
"""

from picograd.codegen.operands import bind_roles, expr_axes, guarded
from picograd.codegen.stream_masks import bared
from picograd.codegen.stream_powers import outermost
from picograd.codegen.streams import read
from picograd.codegen.templates.attention_frame import Frame
from picograd.codegen.tile import Assign, Step, Tile
from picograd.schedule.index import Axis
from picograd.schedule.loop import Expr, walk

SCORE = Axis("score", 1)  # of what has a value for each row and place
LEAST_BITS = 32  # of a value: narrower ones are read where they are used


class Vectors:
    """This class collects the vectors of a frame, by their expressions."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.of_rows: dict[Expr, str] = {}
        self.of_places: dict[Expr, str] = {}

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
            if not is_loaded[key] or expr.dtype.bits < LEAST_BITS:
                return None
            if axes[key] <= rows:
                return self.vector(expr, self.of_rows, "row", 0)
            if axes[key] <= over:
                return self.vector(expr, self.of_places, "place", 1)
            return None

        return outermost(body, find)

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


def own_axes(expr: Expr) -> set[Axis]:
    """Find the axes of an expression itself, without what it is made of."""
    alone = Expr(expr.op, (), expr.arg, expr.dtype)
    return expr_axes(alone)
