"""What a stream that is not split leaves on Hopper: values of rows, then products.

    value[row, column] = product[row, column] * (1 / total[row])
    store value;  store gate(value, loads)              in boxes, where boxes can have them

What is read beside a product, as a gate, arrives in boxes while the stream lasts: else all warps
would wait for it at the end of every tile of rows.
"""

from dataclasses import replace

from picograd.codegen.boxes import view_of
from picograd.codegen.layout import Layout, RowsOf, Swizzled
from picograd.codegen.operands import role, size_of
from picograd.codegen.stream_masks import scaled
from picograd.codegen.streams import Product, is_tile, left, read, replaced
from picograd.codegen.templates.attention_frame import ROWS, SPAN, Frame
from picograd.codegen.tile import Assign, Step, Store
from picograd.graph.ops import OPS
from picograd.helpers import round_up
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Compute, Expr, binary, const


class Leaving:
    """This class writes the steps behind a stream."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.stream = frame.stream
        self.steps: list[Step] = []
        is_large = frame.split.size == 1 and size_of(self.stream.rows) > ROWS
        self.is_boxed = is_large and frame.unit == "wgmma" and not frame.schedule.is_plain
        self.columns: dict[int, Axis] = {}  # of products
        self.brought: dict[Expr, str] = {}

    def bring(self) -> None:
        """Let boxes bring what is read beside a product, as a gate, while the stream lasts."""
        computes = [self.with_boxes(compute) for compute in self.stream.computes]
        self.stream = replace(self.stream, computes=tuple(computes))

    def with_boxes(self, compute: Compute) -> Compute:
        """Let a compute that is made of a product read boxes."""
        each = self.stream.product_like(compute)
        if compute.reduce or each is None or not self.is_boxed:
            return compute

        def find(load: Expr) -> Expr | None:
            return self.boxed(load, each) if load.op == "load" else None

        return replace(compute, body=replaced(compute.body, find))

    def boxed(self, load: Expr, each: Product) -> Expr | None:
        """Read an element beside one of a product from boxes, if these can bring it."""
        frame = self.frame
        stream = frame.stream
        _, index = load.arg
        itemsize = frame.half.itemsize
        columns = each.columns
        view = view_of(index, columns, stream.rows, stream.batch, itemsize)
        if view is None or load.dtype is not frame.half:
            return None
        column = self.column_of(each)
        layout = Swizzled((frame.height, round_up(column.size, SPAN)), itemsize)
        name = self.brought.setdefault(load, f"beside{len(self.brought)}")
        if name not in frame.tiles:
            if not self.has_room(layout):
                return None
            corner = constant(0), frame.start
            frame.add_boxes(name, load, view, layout, corner, frame.behind)
        at = axis_index(frame.row), axis_index(column)
        return read(name, at, load.dtype)

    def has_room(self, layout: Swizzled) -> bool:
        """Tell whether two stages of the rings have room beside more boxes."""
        frame = self.frame
        held, ring = ({each.tile for each in boxes} for boxes in (frame.held, frame.ring))
        size = layout.size * layout.itemsize + frame.bytes_of(held)
        return size + 2 * frame.bytes_of(ring) <= frame.memory

    def leave(self) -> list[Step]:
        """Store rows, then products, with whatever is computed of them."""
        for number, compute in enumerate(self.stream.computes):
            if compute.store is not None and number not in self.stream.kept:
                self.store(number, compute)
        return self.steps

    def store(self, number: int, compute: Compute) -> None:
        """Store one result: values of rows, or a product."""
        frame = self.frame
        each = self.stream.product_like(compute)
        layout: Layout
        if each is None:
            axes: tuple[Axis, ...] = ()
            column = Axis("column", 1)
            dims: tuple[Axis, ...] = (frame.row,)
            layout = RowsOf(frame.scored)
        else:
            axes = each.columns
            column = self.column_of(each)
            dims = (frame.row, column)
            layout = frame.fragment(column.size)
        index = tuple(map(axis_index, dims))

        def held(number: int, ref: Expr) -> Expr:
            of_rows = (*self.stream.reductions, *self.stream.early)
            place = index[:1] if number in of_rows else index
            value = read(f"value{number}", place, ref.dtype)
            factor = frame.factors.get(number, 1.0)
            return value if factor == 1 else scaled(value, factor)

        beside = role(axes, axis_index(column))
        roles = frame.rows, beside
        slot, target, value = left(self.stream, number, roles, held)
        value = self.undivided(value)
        conditions = (*frame.rows.conditions, *beside.conditions)
        box = None if each is None else frame.box_of(compute, each.columns, constant(0))
        store = Store(slot, target, dims, value, conditions, layout, box)
        self.steps.append(store)

    def column_of(self, each: Product) -> Axis:
        """Find or add the axis of the columns of a product."""
        new = Axis("column", self.frame.width(each))
        return self.columns.setdefault(each.number, new)

    def undivided(self, value: Expr) -> Expr:
        """Multiply by the inverse of what has one value a row, which is divided by once a row."""
        frame = self.frame
        here = (axis_index(frame.row),)

        def find(expr: Expr) -> Expr | None:
            if not is_quotient(expr):
                return None
            above, over = expr.args
            if not is_tile(over) or over.arg[1] != here:
                return None
            name = f"inverse_{over.arg[0]}"
            if name not in frame.tiles:
                frame.add_rows(name, over.dtype)
                one = const(1.0, over.dtype)
                inverse = Expr(expr.op, (one, over), None, over.dtype)
                self.steps.append(Assign(name, (frame.row,), inverse))
            factor = read(name, here, over.dtype)
            return binary("mul", above, factor)

        return replaced(value, find)


def is_quotient(expr: Expr) -> bool:
    """Tell whether an expression divides: of two arguments it is linear in the first alone."""
    if expr.op not in OPS or len(expr.args) != 2:
        return False
    return OPS[expr.op].linear == (0,)
