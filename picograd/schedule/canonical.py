"""canonical_key: equal for kernels that differ only in their name and in which axes they use.

N identical layers give N equal keys, so that code is generated once. Axes are numbered in order of
appearance; each distinct expression is one row, so the work is linear in the kernel. Which equal
expressions are one object does not count: comparing two makes them share their parts.
"""

from hashlib import blake2b
from typing import Any

from picograd.schedule import loop
from picograd.schedule.index import Axis, Div, Dynamic, Index

SCALAR = "scalar"  # a number of the launch: of Loop IR, not of the op table


class Numbering:
    """This class numbers axes and expressions of one kernel."""

    def __init__(self) -> None:
        self.axes: dict[Axis, int] = {}
        self.expressions: dict[int, int] = {}
        self.rows: dict[Any, int] = {}  # with the types of arguments: 1 is not True
        self.targets: list[loop.Expr] = []  # alive: their identities are keys

    def slot(self, number: int) -> int:
        """Name a slot."""
        return number

    def scalar(self, number: int) -> int:
        """Name a runtime scalar."""
        return number

    def axis(self, axis: Axis) -> tuple[int, int]:
        """Number and size of an axis."""
        return self.axes.setdefault(axis, len(self.axes)), axis.size

    def index(self, index: Index) -> tuple[Any, ...]:
        """An index as plain data."""
        terms: list[Any] = [index.const]
        for atom, c in index.terms:
            if isinstance(atom, Axis):
                terms.append((c, *self.axis(atom)))
            elif isinstance(atom, Dynamic):
                terms.append((c, "dynamic", self.expressions[id(atom.expr)], atom.bounds))
            else:
                kind = "div" if isinstance(atom, Div) else "mod"
                terms.append((c, kind, atom.n, self.index(atom.index)))
        return tuple(terms)

    def argument(self, expr: loop.Expr) -> Any:
        """The argument of an expression as plain data."""
        if expr.op == "const":
            return type(expr.arg).__name__, repr(expr.arg)
        if expr.op == "load":
            return self.slot(expr.arg[0]), self.index(expr.arg[1])
        if expr.op == SCALAR:
            return self.scalar(expr.arg)
        if expr.op == "index":
            return self.index(expr.arg)
        if expr.op == "guard":
            return tuple((self.index(test), lo, hi) for test, lo, hi in expr.arg)
        if expr.op == loop.DRAWN and expr.arg is not None:
            return self.index(expr.arg)
        if expr.op == "element":
            number, places = expr.arg
            return number, tuple((self.axis(axis), self.index(index)) for axis, index in places)
        return expr.arg

    def expression(self, root: loop.Expr) -> int:
        """Number of an expression, after adding its rows."""
        for expr in loop.walk(root):
            if id(expr) not in self.expressions:
                args = tuple([self.expressions[id(a)] for a in expr.args])
                row = expr.op, args, self.argument(expr), expr.dtype.name
                number = self.rows.setdefault((row, type(expr.arg)), len(self.rows))
                self.expressions[id(expr)] = number
        return self.expressions[id(root)]

    def compute(self, compute: loop.Compute) -> tuple[Any, ...]:
        """A compute as plain data."""
        axes = tuple([self.axis(axis) for axis in compute.axes])
        over = tuple([self.axis(axis) for axis in compute.reduce])
        store: tuple[Any, ...] | None = None
        if compute.store:
            slot, place = compute.store
            for atom in loop.dynamics_of(place):
                self.expression(atom.expr)
            store = self.slot(slot), self.index(place)
        body = self.expression(compute.body)
        seen = self.tests(compute.seen)
        return axes, over, compute.monoid, body, compute.dtype.name, store, seen

    def target(self, index: Index, expr: loop.Expr) -> int:
        """A place to store to, as the number of an expression."""
        self.targets.append(loop.Expr("index", (), index, expr.dtype))
        return self.expression(self.targets[-1])

    def tests(self, conditions: tuple[loop.Condition, ...]) -> tuple[Any, ...]:
        """Conditions as plain data, after adding the rows of values they look at."""
        for test, _, _ in conditions:
            for atom in loop.dynamics_of(test):
                self.expression(atom.expr)
        return tuple((self.index(test), lo, hi) for test, lo, hi in conditions)

    def along(self, step: loop.Along | None) -> Any:
        """A step along an axis as plain data."""
        if step is None:
            return None
        axis = self.axis(step.axis)
        if not isinstance(step, loop.Scan):
            head: Any = (tuple([self.axis(each) for each in step.rows]), axis, self.extra(step))
        else:
            outer = tuple([self.axis(each) for each in step.outer])
            inner = tuple([self.axis(each) for each in step.inner])
            start = -1 if step.start is None else self.expression(step.start)
            head = (outer, axis, inner, step.monoid, start, self.tests(step.conditions))
        body = self.expression(step.body)
        return head, body, step.slot, self.target(step.target, step.body)

    def extra(self, step: loop.Row) -> tuple[Any, ...]:
        """What a step along an axis of rows has of its own."""
        if isinstance(step, loop.Elimination):
            return self.axis(step.column), self.axis(step.place), step.kind, step.count
        if isinstance(step, loop.Bins):
            key = self.expression(step.key)
            form = step.lanes, step.is_beside
            return self.axis(step.tile), self.axis(step.place), step.run, *form, key
        if isinstance(step, loop.Sort):
            return (step.run,)
        if isinstance(step, loop.Radix):
            counted = -1 if step.counted is None else self.expression(step.counted)
            return self.axis(step.digit), self.axis(step.tile), step.run, step.shift, counted
        levels = tuple([(self.axis(axis), self.expression(each)) for axis, each in step.levels])
        key, first = self.expression(step.key), self.expression(step.first)
        return step.monoid, key, first, levels, step.fan


def canonical_data(kernel: loop.Kernel) -> tuple[Any, ...]:
    """Everything code generation depends on, as nested tuples of numbers and strings."""
    numbering = Numbering()
    parts: list[Any] = []
    for part in kernel.parts:
        rows = tuple([numbering.axis(axis) for axis in part.rows])
        computes = tuple([numbering.compute(compute) for compute in part.computes])
        scatter: Any = None
        if part.scatter:
            s = part.scatter
            serial = tuple([numbering.axis(axis) for axis in s.serial])
            inner = tuple([numbering.axis(axis) for axis in s.inner])
            body = numbering.expression(s.body)
            target = numbering.target(s.target, s.body)
            tests = numbering.tests(s.conditions)
            scatter = (serial, inner, s.monoid, body, s.slot, target, tests)
        along = numbering.along(part.along)
        ends = (numbering.tests(part.ends),) if part.ends else ()
        parts.append((rows, computes, scatter, along, *ends))
    slots = tuple([(slot.dtype.name, slot.size, slot.role) for slot in kernel.slots])
    scalars = tuple([dtype.name for dtype in kernel.scalars])
    return kernel.hero, slots, scalars, tuple(parts), tuple([row for row, _ in numbering.rows])


def canonical_key(kernel: loop.Kernel) -> str:
    """Digest of `canonical_data`: the same in every process."""
    return blake2b(repr(canonical_data(kernel)).encode(), digest_size=20).hexdigest()
