"""Packing on a CPU: fill a panel from an operand with explicit vectors.

    for outer dims: if guards hold: for vectors of the last dim: panel[...] = expr
                    else:           for vectors of the last dim: panel[...] = 0

A guard is tested in the outermost loop where its axes are known, never per element; a guard on the
last dim itself becomes the bounds of the inner loop. Marked by a `Blocked` layout with a vector.
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.codegen.costs import is_zero
from picograd.codegen.emit import Emitter, is_unit
from picograd.codegen.linearize_cpu_turn import LEAST, Builder, flat_position, linearize_turn
from picograd.codegen.operands import narrow
from picograd.codegen.tile import Assign
from picograd.dtype import bool_
from picograd.schedule.index import Axis, Index
from picograd.schedule.loop import Condition, Expr, const, walk

LANES = {8: 8, 4: 16, 2: 32, 1: 32}  # elements of a 64-byte vector, by bytes of an element


def without_guards(expr: Expr) -> tuple[Expr, tuple[Condition, ...]]:
    """Take guards with fill 0 off an expression, through casts: 0 stays 0 there."""
    if expr.op == "guard" and is_zero(expr.args[1]):
        inner, conditions = without_guards(expr.args[0])
        return inner, (*expr.arg, *conditions)
    if expr.op == "cast":
        inner, conditions = without_guards(expr.args[0])
        return Expr("cast", (inner,), None, expr.dtype), conditions
    return expr, ()


def linearize_pack(builder: Builder, step: Assign) -> None:
    """Append the loops of one packing step."""
    expr, conditions = without_guards(step.expr)
    Pack(builder, step, expr).nest(step.dims, conditions, False)
    builder.emitter.forget()


class Pack:
    """One packing step being written."""

    def __init__(self, builder: Builder, step: Assign, expr: Expr) -> None:
        tile = builder.tiles[step.tile]
        self.builder: Builder = builder
        self.step: Assign = step
        self.emitter: Emitter = builder.emitter
        self.memory: int = builder.memory[step.tile]
        self.expr: Expr = expr
        self.zero: Expr = const(0, expr.dtype)
        self.target: Index = flat_position(tile, step.index or ())
        width = LANES[tile.dtype.itemsize]
        self.lanes: int = width if self.is_vector(step.dims) else 1

    def is_vector(self, dims: Sequence[Axis]) -> bool:
        """Tell whether the last dim is contiguous in the panel and regular in every load."""
        if not dims or not is_unit(self.target, dims[-1]):
            return False
        indices = [node.arg[1] for node in walk(self.expr) if node.op == "load"]
        used = [i for i in indices if dims[-1] in self.emitter.index_axes(i)]
        return all(is_unit(index, dims[-1]) for index in used)

    def is_crossed(self, dims: Sequence[Axis]) -> bool:
        """Tell whether rows of memory, as they are or widened, become columns of the panel."""
        inner = narrow(self.expr)
        if len(dims) != 2 or dims[0].size < LEAST or inner.op != "load":
            return False
        return is_unit(self.target, dims[0]) and is_unit(inner.arg[1], dims[1])

    def nest(self, dims: Sequence[Axis], conditions: Sequence[Condition], fills: bool) -> None:
        """Emit the loops over `dims`; `fills`: write zeros."""
        emitter = self.emitter
        ready = [c for c in conditions if emitter.index_axes(c[0]).isdisjoint(dims)]
        holds = emitter.conditions(ready)
        if holds is not None:
            later = [c for c in conditions if c not in ready]
            with emitter.when(holds):
                self.nest(dims, later, False)
            with emitter.when(emitter.raw("not", bool_, holds)):
                self.nest(dims, (), True)
        elif not conditions and not fills and self.is_crossed(dims):
            linearize_turn(self.builder, replace(self.step, dims=tuple(dims), expr=self.expr))
        elif len(dims) > 1:
            with emitter.axis_loop(dims[0], None):
                self.nest(dims[1:], [c for c in conditions if c not in ready], fills)
        elif not dims:
            self.point(fills)
        else:
            self.row(dims[0], [c for c in conditions if c not in ready], fills)

    def row(self, axis: Axis, conditions: Sequence[Condition], fills: bool) -> None:
        """Emit the innermost loop, or two where guards depend on it: zeros, then the valid part."""
        emitter = self.emitter
        zero, size = emitter.integer(0), emitter.integer(axis.size)
        if not conditions:
            self.span(axis, zero, size, fills)
            return
        bounds = bounds_of(axis, conditions)
        if bounds is None:
            with emitter.axis_loop(axis, None):
                holds = emitter.conditions(conditions)
                with emitter.when(holds):
                    self.point(False)
                if holds is not None:
                    with emitter.when(emitter.raw("not", bool_, holds)):
                        self.point(True)
            return
        self.span(axis, zero, size, True)
        start, stop = zero, size
        for low, high in bounds:
            start = emitter.raw("maximum", emitter.index_dtype, start, emitter.index(low))
            stop = emitter.raw("minimum", emitter.index_dtype, stop, emitter.index(high))
        self.span(axis, start, stop, False)

    def span(self, axis: Axis, start: int, stop: int, fills: bool) -> None:
        """Emit axis = start..stop-1: whole vectors, then what is left."""
        emitter = self.emitter
        first, last = emitter.instructions[start].arg, emitter.instructions[stop].arg
        is_fixed = isinstance(first, int) and isinstance(last, int)
        lanes = self.lanes
        if lanes == 1 or (is_fixed and last - first < 4):
            self.loop(axis, start, stop, 1, fills)
        elif not is_fixed:
            length = emitter.raw("sub", emitter.index_dtype, stop, start)
            whole = emitter.raw("maximum", emitter.index_dtype, length, emitter.integer(0))
            count = emitter.arithmetic("quotient", whole, emitter.integer(lanes))
            size = emitter.arithmetic("mul", count, emitter.integer(lanes))
            middle = emitter.arithmetic("add", start, size)
            self.loop(axis, start, middle, lanes, fills)
            self.loop(axis, middle, stop, 1, fills)
        else:
            while lanes > 1 and first < last:
                middle = first + (last - first) // lanes * lanes
                self.loop(axis, emitter.integer(first), emitter.integer(middle), lanes, fills)
                first, lanes = middle, lanes // 2
            self.loop(axis, emitter.integer(first), emitter.integer(last), 1, fills)

    def loop(self, axis: Axis, start: int, stop: int, lanes: int, fills: bool) -> None:
        """Emit one loop in steps of `lanes`; nothing if it is known to be empty."""
        emitter = self.emitter
        first, last = emitter.instructions[start], emitter.instructions[stop]
        if first.op == last.op == "const" and first.arg >= last.arg:
            return
        with emitter.loop(start, stop, lanes, None) as variable:
            vector = (axis, lanes) if lanes > 1 else None
            with emitter.scope({axis: variable}, vector):
                self.point(fills, lanes)

    def point(self, fills: bool, lanes: int = 1) -> None:
        """Emit one element, or one vector of elements."""
        emitter = self.emitter
        value = emitter.value(self.zero if fills else self.expr)
        value = emitter.splat(value, lanes) if lanes > 1 else value
        emitter.store(self.memory, emitter.index(self.target), value)


def bounds_of(axis: Axis, conditions: Sequence[Condition]) -> list[tuple[Index, Index]] | None:
    """Turn every lo <= axis + rest <= hi into (begin, end); None if one has another form."""
    found = []
    for index, lo, hi in conditions:
        if not is_unit(index, axis):
            return None
        rest = Index(tuple((a, c) for a, c in index.terms if a is not axis), index.const)
        found.append((rest * -1 + lo, rest * -1 + (hi + 1)))
    return found
