"""What a stream that is not split leaves on Hopper: values of rows, then products.

    value[row, column] = product[row, column] * (1 / total[row])
    store value;  store gate(value, loads)              in boxes, where boxes can have them

What reads arrays beside a product, as a gate does, is computed in shared memory from the rounded
product, 16 bytes a lane: these are then read in whole lines.
"""

from dataclasses import replace

from picograd.codegen.boxes import WHOLE, BoxStore
from picograd.codegen.layout import Layout, RowsOf
from picograd.codegen.operands import role, size_of
from picograd.codegen.stream_masks import scaled
from picograd.codegen.streams import Product, is_tile, left, read, replaced
from picograd.codegen.templates.attention_frame import SPAN, Frame
from picograd.codegen.tile import Assign, Step, Store
from picograd.graph.ops import OPS
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Compute, Expr, binary, const, walk


class Leaving:
    """This class writes the steps behind a stream."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.stream = frame.stream
        self.steps: list[Step] = []
        self.columns: dict[int, Axis] = {}  # of products
        self.finished: dict[Expr, Expr] = {}  # what tiles of products hold from now on

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
        value = replaced(value, self.finished.get)
        conditions = (*frame.rows.conditions, *beside.conditions)
        box = None
        if each is not None:
            box = frame.box_of(compute, each.columns, constant(0))
            if box is not None and reads_memory(value):
                value, box = self.rolled(each, value, box)
        store = Store(slot, target, dims, value, conditions, layout, box)
        self.steps.append(store)

    def column_of(self, each: Product) -> Axis:
        """Find or add the axis of the columns of a product."""
        new = Axis("column", self.frame.width(each))
        return self.columns.setdefault(each.number, new)

    def rolled(self, each: Product, value: Expr, box: BoxStore) -> tuple[Expr, BoxStore]:
        """Let what is computed of a rounded product be so in shared memory, if that holds it."""
        frame = self.frame
        column = self.column_of(each)
        slots = frame.tiles[box.tile].stages
        is_whole = size_of(each.columns) % WHOLE == 0 and column.size == slots * SPAN
        rounded = rounded_in(value)
        if rounded is None or not is_whole:
            return value, box
        (product,) = rounded.args
        name = f"value{each.number}"
        dims = frame.row, column
        index = tuple(map(axis_index, dims))
        own = read(name, index, frame.dtype)
        if product != own:
            self.steps.append(Assign(name, dims, product))
            self.finished[product] = own
        again = Expr(rounded.op, (own,), rounded.arg, rounded.dtype)
        found = {rounded: again}
        box = replace(box, is_rolled=True)
        return replaced(value, found.get), box

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


def reads_memory(value: Expr) -> bool:
    """Tell whether more than a product is read for a result, as a gate."""
    return any(part.op == "load" for part in walk(value))


def rounded_in(value: Expr) -> Expr | None:
    """Find the product that is rounded before anything is made of it."""
    every = [part for part in walk(value) if is_tile(part)]
    for part in walk(value):
        if not is_rounding(part) or reads_memory(part):
            continue
        inside = [each for each in walk(part) if is_tile(each)]
        if len(inside) == len(every):
            return part
    return None


def is_rounding(expr: Expr) -> bool:
    """Tell whether an expression has the value of its argument in 16 bits."""
    row = OPS.get(expr.op)
    if row is None or not row.keeps_value or len(expr.args) != 1:
        return False
    (value,) = expr.args
    return expr.dtype.bits == 16 < value.dtype.bits
