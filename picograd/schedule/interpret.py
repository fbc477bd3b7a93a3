"""interpret: the meaning of a Loop IR kernel, in NumPy: the oracle for code generation.

Every expression is computed for all points of its compute at once: axis number p of the compute is
dimension p of a broadcast array. Loads are not computed where a guard is false.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from picograd.conversion import convert
from picograd.errors import check
from picograd.graph.binning import binned
from picograd.graph.elimination import eliminated
from picograd.graph.indexing import places_of_runs
from picograd.graph.random import HALVES, halves
from picograd.graph.row import OPS
from picograd.graph.sorting import starts_of
from picograd.helpers import lying_along
from picograd.schedule import loop
from picograd.schedule.index import Axis, Index, axes_of, evaluate
from picograd.schedule.monoid import identity

Array = Any
FOLDS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
SCANS: dict[str, Any] = FOLDS | {"logaddexp": np.logaddexp}


def interpret(kernel: loop.Kernel, slots: Sequence[Array], scalars: Sequence[Any] = ()) -> None:
    """Run a kernel on flat arrays (one per slot, of `slot.dtype.numpy`), writing its outputs."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in kernel.parts:
            PartInterpreter(kernel, part, slots, scalars).run()


def rank_in_group(group: Array) -> Array:
    """Count, along the last axis, the elements before each one that are in its group."""
    order = np.argsort(group, axis=-1, kind="stable")
    ordered = np.take_along_axis(group, order, -1)
    place = np.broadcast_to(np.arange(group.shape[-1]), group.shape)
    is_first = np.ones(group.shape, bool)
    is_first[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    begin = np.maximum.accumulate(np.where(is_first, place, 0), axis=-1)
    rank = np.empty(group.shape, np.int64)
    np.put_along_axis(rank, order, place - begin, -1)
    return rank


class PartInterpreter:
    """This class runs one part; `values` holds each compute's value over its own axes."""

    def __init__(
        self, kernel: loop.Kernel, part: loop.Part, slots: Sequence[Array], scalars: Sequence[Any]
    ) -> None:
        self.kernel: loop.Kernel = kernel
        self.part: loop.Part = part
        self.slots: Sequence[Array] = slots
        self.scalars: Sequence[Any] = scalars
        self.values: list[Array] = []
        self.outer: dict[Axis, int] = {}  # where we are along axes around those of a compute
        self.spaces: dict[tuple[Axis, ...], dict[Axis, Array]] = {}
        self.orders: dict[int, tuple[loop.Expr, list[loop.Expr]]] = {}

    def run(self) -> None:
        """Run every compute in order, then the scatter, scan or sort."""
        for compute in self.part.computes:
            value = self.compute(compute)
            self.values.append(value)
            if compute.store:
                slot, index = compute.store
                places, _ = self.places(compute.axes)
                at = evaluate(index, places, lambda expr: self.scalars[expr.arg])
                at, seen = np.broadcast_to(at, value.shape), self.seen(compute.axes, compute.seen)
                self.slots[slot][at[seen]] = value[seen]
        if self.part.scatter:
            self.scatter(self.part.scatter)
        if isinstance(self.part.along, loop.Scan):
            self.scan(self.part.along)
        elif isinstance(self.part.along, loop.Sort):
            self.sort(self.part.along)
        elif isinstance(self.part.along, loop.Radix):
            self.radix(self.part.along)
        elif isinstance(self.part.along, loop.Elimination):
            self.eliminate(self.part.along)
        elif isinstance(self.part.along, loop.Bins):
            self.bins(self.part.along)
        elif self.part.along:
            self.runs(self.part.along)

    def seen(self, axes: Sequence[Axis], conditions: Sequence[loop.Condition] = ()) -> Array:
        """Tell at which points of a space no end fails, and none of more conditions: elsewhere
        nothing is stored."""
        places, shape = self.places(axes)
        tests = (*self.part.ends, *conditions)
        known = [test for test in tests if axes_of(test[0]) <= places.keys()]
        return np.ones(shape, bool) & holding(
            known, lambda index: evaluate(index, places, lambda expr: self.scalars[expr.arg])
        )

    def places(self, axes: Sequence[Axis]) -> tuple[dict[Axis, Array], tuple[int, ...]]:
        """Each axis as an array along its own dimension, and the shape of the space."""
        axes = tuple(axes)
        shape = tuple([axis.size for axis in axes])
        found = self.spaces.get(axes)
        if found is None:
            found = self.spaces[axes] = {}
            for position, axis in enumerate(axes):
                found[axis] = np.arange(axis.size).reshape(lying_along(position, len(axes)))
        return {**self.outer, **found}, shape

    def order(self, root: loop.Expr) -> list[loop.Expr]:
        """List the nodes of an expression, arguments first."""
        found = self.orders.get(id(root))
        if found is None:
            found = self.orders[id(root)] = root, loop.walk(root)  # alive as long as its number
        return found[1]

    def compute(self, compute: loop.Compute) -> Array:
        """Compute the value of one compute, over its parallel axes."""
        axes = (*compute.axes, *compute.reduce)
        value = self.over(compute.body, axes)
        if compute.reduce:
            over = tuple(range(len(compute.axes), len(axes)))
            value = self.fold(value, compute, over)
        return convert(value, compute.dtype)

    def fold(self, value: Array, compute: loop.Compute, over: tuple[int, ...]) -> Array:
        """Reduce; floats are summed in float64, so that the oracle's own error is small."""
        monoid = str(compute.monoid)
        start = identity(monoid, compute.dtype)
        wide = np.float64 if value.dtype.kind == "f" else value.dtype
        return FOLDS[monoid].reduce(value.astype(wide), axis=over, initial=start)

    def body(
        self, root: loop.Expr, places: dict[Axis, Array], axes: Sequence[Axis], mask: Array = None
    ) -> Array:
        """Compute an expression at every point of the space of `places`, or where a mask holds."""
        masks = guard_masks(root, places, self, axes, mask)
        done: dict[int, Array] = {}
        for expr in self.order(root):
            done[id(expr)] = self.node(expr, places, axes, done, masks.get(id(expr)))
        return done[id(root)]

    def node(
        self,
        expr: loop.Expr,
        places: dict[Axis, Array],
        axes: Sequence[Axis],
        done: dict[int, Array],
        mask: Array,
    ) -> Array:
        """Compute one expression node from the values of its arguments."""
        args = [done[id(a)] for a in expr.args]

        def at(index: Index) -> Array:
            return evaluate(index, places, lambda inner: np.asarray(done[id(inner)], np.int64))

        if expr.op == "const":
            return np.asarray(expr.arg).astype(expr.dtype.numpy)
        if expr.op == "load":
            return self.load(expr, at(expr.arg[1]), mask)
        if expr.op == "index":
            return np.asarray(at(expr.arg)).astype(expr.dtype.numpy)
        if expr.op == "ref":
            return self.ref(expr.arg, axes)
        if expr.op == "element":
            number, places_in = expr.arg
            return self.element(number, {axis: at(index) for axis, index in places_in}, places)
        if expr.op == "scalar":
            return np.asarray(self.scalars[expr.arg]).astype(expr.dtype.numpy)
        if expr.op == loop.DRAWN and expr.arg is not None:
            seed, first = args
            return halves(seed, first * np.uint64(HALVES) + at(expr.arg).astype(np.uint64))
        if expr.op == "guard":
            return np.where(holding(expr.arg, at), args[0], args[1])
        return elementwise(expr, args)

    def load(self, expr: loop.Expr, at: Array, mask: Array) -> Array:
        """Load elements; where the guard is false nothing is read."""
        slot = self.slots[expr.arg[0]]
        if mask is not None:
            at = np.where(mask, at, 0)
            if not slot.size:
                return np.zeros(np.shape(at), slot.dtype)
        at = np.asarray(at)
        is_inside = not at.size or (at.min() >= 0 and at.max() < slot.size)
        check(is_inside, f"load outside s{expr.arg[0]}", self.kernel)
        return slot[at]

    def ref(self, number: int, axes: Sequence[Axis]) -> Array:
        """Broadcast an earlier compute's value to the space of `axes`."""
        own = self.part.computes[number].axes
        order = sorted(range(len(own)), key=lambda p: axes.index(own[p]))
        value = np.transpose(self.values[number], order)
        return value.reshape([a.size if a in own else 1 for a in axes])

    def element(self, number: int, placed: dict[Axis, Array], places: dict[Axis, Array]) -> Array:
        """Look up an earlier compute's value, where some of its axes are at given places."""
        at = []
        for axis in self.part.computes[number].axes:
            place = placed.get(axis, places.get(axis))
            at.append(np.clip(place, 0, axis.size - 1))  # beyond only where a guard is false
        return self.values[number][tuple(at)]

    def scatter(self, scatter: loop.Scatter) -> None:
        """Apply the updates one after another, in row-major order."""
        axes = (*scatter.serial, *scatter.inner)
        body = self.over(scatter.body, axes).ravel()
        target = self.over(scatter.target, axes).ravel()
        slot = self.slots[scatter.slot]
        held = holding(scatter.conditions, lambda index: self.over(index, axes))
        for position in np.flatnonzero(np.broadcast_to(held.ravel(), body.shape)):
            place, value = target[position], body[position]
            if scatter.monoid in FOLDS:
                value = FOLDS[scatter.monoid](slot[place], value)
            slot[place] = convert(value, self.kernel.slots[scatter.slot].dtype)

    def scan(self, scan: loop.Scan) -> None:
        """Combine along the axis; floats in float64, so that the oracle's own error is small."""
        axes = (*scan.outer, *scan.inner, scan.axis)
        held = self.seen(axes) & holding(scan.conditions, lambda index: self.over(index, axes))
        expr = scan.body
        if scan.conditions:
            fill = loop.Expr("const", (), identity(scan.monoid, scan.body.dtype), expr.dtype)
            expr = loop.Expr("guard", (expr, fill), scan.conditions, expr.dtype)
        value = self.over(expr, axes)
        wide = np.float64 if value.dtype.kind == "f" else value.dtype
        value = value.astype(wide)
        if scan.start is not None:
            start = self.over(scan.start, axes).astype(wide)
            value[..., 0] = SCANS[scan.monoid](start[..., 0], value[..., 0])
        value = SCANS[scan.monoid].accumulate(value, axis=-1, dtype=wide)
        target = self.over(scan.target, axes)
        slot = self.slots[scan.slot]
        slot[target[held]] = convert(value[held], self.kernel.slots[scan.slot].dtype)

    def sort(self, sort: loop.Sort) -> None:
        """Sort every run of every row, stably."""
        axes = (*sort.rows, sort.axis)
        value, target = self.over(sort.body, axes), self.over(sort.target, axes)
        for first in range(0, sort.axis.size, sort.run):
            run = slice(first, first + sort.run)
            order = np.argsort(value[..., run], axis=-1, kind="stable") + first
            held = self.seen(axes)[..., run]
            self.slots[sort.slot][target[..., run][held]] = order[held]

    def radix(self, radix: loop.Radix) -> None:
        """Count the digits of every tile, or move every element to its place."""
        axes = (*radix.rows, radix.axis)
        body = self.over(radix.body, axes)
        shape = body.shape
        digit = (body.astype(np.uint64) >> np.uint64(radix.shift)).astype(np.int64) % loop.DIGITS
        number = np.broadcast_to(np.arange(shape[-1]) // radix.run, shape)
        cells = (*radix.rows, radix.digit, radix.tile)
        *rows, _ = np.indices(shape, sparse=True)
        cell = (*rows, digit, number)
        target = self.over(radix.target, cells if radix.counted is None else axes)
        counts: Array = np.zeros((*shape[:-1], radix.digit.size, radix.tile.size), np.int64)
        np.add.at(counts, cell, 1)
        if radix.counted is None:
            self.slots[radix.slot][target] = counts
            return
        rank = rank_in_group(number * loop.DIGITS + digit)
        place = starts_of(self.over(radix.counted, cells), counts)[cell] + rank
        self.slots[radix.slot][np.take_along_axis(target, place, -1)] = body

    def bins(self, step: loop.Bins) -> None:
        """Add up the values of each number; floats in float64."""
        axes = (*step.rows, step.axis)
        body, key = self.over(step.body, axes), self.over(step.key, axes)
        tiles = (step.tile,) if step.is_apart else ()
        target = self.over(step.target, (*step.rows, *tiles, step.place))
        wide = np.float64 if body.dtype.kind == "f" else body.dtype
        flat = body.reshape(-1, step.axis.size).astype(wide)
        parts = step.tile.size if tiles else 1
        found = binned(step.place.size, parts, flat, key.reshape(flat.shape))
        value = found.reshape(target.shape)
        self.slots[step.slot][target] = convert(value, self.kernel.slots[step.slot].dtype)

    def eliminate(self, step: loop.Elimination) -> None:
        """Eliminate columns of every matrix, in float64."""
        matrices = self.over(step.body, (*step.rows, step.axis, step.column))
        flat = matrices.reshape(-1, *matrices.shape[-2:]).astype(np.float64)
        target = self.over(step.target, (*step.rows, step.place))
        value = eliminated((step.kind, step.count), flat).reshape(target.shape)
        self.slots[step.slot][target] = convert(value, self.kernel.slots[step.slot].dtype)

    def runs(self, runs: loop.Runs) -> None:
        """Combine the bodies of every run with what their slice holds, in order."""
        body = self.over(runs.body, (*runs.rows, runs.axis))
        target = self.over(runs.target, (*runs.rows, runs.number))
        if runs.stop:
            bounds = (self.over(each, (runs.number,)) for each in (runs.first, runs.stop))
            number, place = places_of_runs(*bounds)
            body, target = body[..., place], target[..., number]
        slot, dtype = self.slots[runs.slot], self.kernel.slots[runs.slot].dtype
        wide = np.float64 if body.dtype.kind == "f" else body.dtype
        held = {place: slot[place].astype(wide) for place in target.ravel()}
        for place, value in zip(target.ravel(), body.ravel().astype(wide), strict=True):
            held[place] = FOLDS[runs.monoid](held[place], value) if runs.monoid else value
        slot[list(held)] = convert(np.array(list(held.values()), wide), dtype)

    def at(
        self, index: Index, places: dict[Axis, Array], axes: Sequence[Axis], mask: Array = None
    ) -> Array:
        """Compute an index with its run-time atoms, which read nothing where a mask is false."""
        return evaluate(
            index, places, lambda e: np.asarray(self.body(e, places, axes, mask), np.int64)
        )

    def over(self, source: loop.Expr | Index, axes: Sequence[Axis]) -> Array:
        """Compute an expression or an index at every point of a space."""
        places, shape = self.places(axes)
        compute: Any = self.at if isinstance(source, Index) else self.body
        return np.broadcast_to(compute(source, places, axes), shape)


def holding(conditions: Sequence[loop.Condition], at: Callable[[Index], Array]) -> Array:
    """Tell where all interval tests hold."""
    held: Array = np.asarray(True)
    for index, lo, hi in conditions:
        value = at(index)
        held = held & (value >= lo) & (value <= hi)
    return held


def guard_masks(
    root: loop.Expr,
    places: dict[Axis, Array],
    part: PartInterpreter,
    axes: Sequence[Axis],
    mask: Array,
) -> dict[int, Array]:
    """Where each node is needed, the root where `mask` is: the union over the guards it is read
    through. What the tests of a guard read is needed where the guard is."""
    order = part.order(root)
    if mask is None and all(expr.op != "guard" for expr in order):
        return {}
    masks: dict[int, Array] = {id(root): mask}  # None: everywhere
    for expr in reversed(order):
        own = masks[id(expr)]
        held = own
        if expr.op == "guard":
            test = holding(expr.arg, partial(part.at, places=places, axes=axes, mask=own))
            held = test if own is None else own & test
        for position, child in enumerate(expr.args):
            join_mask(masks, child, held if position == 0 else own)
        for child in loop.dynamic_children(expr):
            join_mask(masks, child, own)
    return masks


def join_mask(masks: dict[int, Array], child: loop.Expr, mask: Array) -> None:
    """A node is needed wherever one of its readers needs it."""
    if id(child) in masks:
        old = masks[id(child)]
        mask = None if old is None or mask is None else old | mask
    masks[id(child)] = mask


def elementwise(expr: loop.Expr, args: list[Array]) -> Array:
    """Apply one row of the op table, in the precision of its dtype."""
    row = OPS[expr.op]
    if row.reinterpret is not None:
        return row.reinterpret(args[0], expr.args[0].dtype, expr.dtype)
    check(row.numpy is not None, f"no meaning for {expr.op}")
    return convert(row.numpy(*args), expr.dtype)  # type: ignore[misc]
