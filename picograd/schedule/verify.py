"""verify: check the invariants of a Loop IR kernel (the grammar is in loop.py).

Bounds of loads are proven, not tested: the bounds of the index, narrowed by the interval tests of
the guards around it, must lie inside the slot. A test on the very same terms narrows exactly; a
test on one axis narrows that axis. Where these rules cannot decide, all points are looked at.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from picograd.dtype import DType
from picograd.errors import check, internal
from picograd.graph.updates_at_once import ONCE
from picograd.helpers import product
from picograd.schedule.index import Atom, Axis, Index, axes_of, evaluate
from picograd.schedule.loop import (
    MONOIDS,
    SCAN_MONOIDS,
    Along,
    Bins,
    Compute,
    Condition,
    Elimination,
    Expr,
    Kernel,
    Part,
    Radix,
    Row,
    Runs,
    Scan,
    Sort,
    dynamic_children,
    dynamics_of,
    indices_of,
)

HEROES = {"map", "reduce.row", "reduce.col", "reduce.all", "contract", "conv", "scatter", "copy"}
HEROES |= {"attention", "gather", "scan", "sort", "radix", "runs", "eliminate", "rotate", "bins"}
HEROES |= {"chain"}
POINT_LIMIT = 1 << 16  # points looked at: about a millisecond of NumPy
Ranges = dict[Atom, tuple[int, int]]


def verify(kernel: Kernel) -> Kernel:
    """Raise InternalError unless the kernel obeys the rules of loop.py; return it."""
    check(kernel.hero in HEROES, f"unknown hero {kernel.hero}", kernel)
    check(kernel.parts, "a kernel without parts", kernel)
    for part in kernel.parts:
        check(part.computes or part.scatter or part.along, "a part without computes", kernel)
        for number, compute in enumerate(part.computes):
            verify_compute(kernel, part, number, compute)
        verify_ends(kernel, part)
        if part.scatter:
            verify_scatter(kernel, part)
        if part.along:
            verify_along(kernel, part, part.along)
    return kernel


def verify_ends(kernel: Kernel, part: Part) -> None:
    """Check the ends of a part: they compare axes of it with runtime scalars that are integers."""
    known = set(part.rows).union(*((*c.axes, *c.reduce) for c in part.computes))
    if part.along:
        known |= axes_along(part.along)
    for index, _, _ in part.ends:
        check(axes_of(index) <= known, f"an end of axes unbound: {index}", kernel)
        for atom in dynamics_of(index):
            is_scalar = atom.expr.op == "scalar" and atom.expr.dtype.is_integer
            check(is_scalar, f"an end is no runtime scalar: {index}", kernel)
            is_known = is_scalar and 0 <= atom.expr.arg < len(kernel.scalars)
            check(is_known, f"unknown scalar in {index}", kernel)


def verify_compute(kernel: Kernel, part: Part, number: int, compute: Compute) -> None:
    """Check one compute: its axes, its monoid, its body and its store."""
    bound = {*compute.axes, *compute.reduce}
    count = len(compute.axes) + len(compute.reduce)
    check(len(bound) == count, f"an axis bound twice in %{number}", kernel)
    check(bool(compute.reduce) <= (compute.monoid in MONOIDS), f"no monoid in %{number}", kernel)
    check(compute.body.dtype is compute.dtype, f"body and value of %{number} differ", kernel)
    Checker(kernel, part, number, bound).visit(compute.body)
    if compute.store is not None:
        slot, index = compute.store
        check(axes_of(index) <= set(compute.axes), f"the store of %{number} is unbound", kernel)
        verify_store(kernel, slot, index, compute.dtype.name, compute.seen)
    for index, _, _ in compute.seen:
        check(axes_of(index) <= bound, f"what is seen of %{number} is unbound", kernel)


def verify_store(
    kernel: Kernel, slot: int, index: Index, dtype: str, tests: Iterable[Condition] = ()
) -> None:
    """Check that a store writes an output inside its bounds, where `tests` hold."""
    check(0 <= slot < len(kernel.slots), f"no slot s{slot}", kernel)
    facts = kernel.slots[slot]
    check(facts.role != "in", f"s{slot} is stored but is an input", kernel)
    check(facts.dtype.name == dtype, f"s{slot} is stored as another dtype", kernel)
    lo, hi = narrowed(index, tests) if tests else (index.lo, index.hi)
    is_inside = (lo >= 0 and hi < facts.size) or lo > hi
    is_inside = is_inside or (bool(tests) and not is_disproved(index, tests, facts.size))
    if not is_inside and facts.size:  # written only then: the text of an index costs more
        internal(f"store outside s{slot}: {index}", kernel)


def verify_scatter(kernel: Kernel, part: Part) -> None:
    """Check the scatter of a part."""
    scatter = part.scatter
    if scatter is None:
        return
    bound = {*scatter.serial, *scatter.inner}
    check(scatter.monoid in (None, ONCE, *MONOIDS), "unknown monoid", kernel)
    Checker(kernel, part, len(part.computes), bound).visit(scatter.body)
    for place in (scatter.target, *(test[0] for test in scatter.conditions)):
        check(axes_of(place) <= bound, "scatter target unbound", kernel)
    verify_store(kernel, scatter.slot, scatter.target, scatter.body.dtype.name)


def verify_along(kernel: Kernel, part: Part, step: Along) -> None:
    """Check the step along an axis of a part."""
    rows = (*step.outer, *step.inner) if isinstance(step, Scan) else step.rows
    bound = axes_along(step)
    held = step.conditions if isinstance(step, Scan) else ()
    is_wide = isinstance(step, Elimination) or (isinstance(step, Runs) and step.stop is not None)
    own = 2 if is_wide else 1
    check(len(bound) == len(rows) + own, "an axis bound twice", kernel)
    places = places_along(step)
    check(axes_of(step.target) <= places, "scan or sort target unbound", kernel)
    checker, body = Checker(kernel, part, 0, bound), step.body
    if held:
        fill = Expr("const", (), 0, body.dtype)
        body = Expr("guard", (body, fill), held, body.dtype)
    checker.visit(body)
    if isinstance(step, Scan):
        verify_start(kernel, part, step)
    else:
        verify_keys(kernel, step, checker)
    if isinstance(step, Radix) and step.counted is not None:
        Checker(kernel, part, 0, places).visit(step.counted)
    if isinstance(step, Runs):
        verify_runs(kernel, part, step)
    check(0 <= step.slot < len(kernel.slots), f"no slot s{step.slot}", kernel)
    slot, name = kernel.slots[step.slot], f"s{step.slot}"
    is_written = slot.role in ("out", "inout")
    check(is_written, f"{name} is stored but is an input", kernel)
    is_right = not isinstance(step, Sort) or slot.dtype.name == "int64"
    check(is_right, "sort gives int64 positions", kernel)
    lo, hi = narrowed(step.target, held)
    is_inside = lo >= 0 and hi < slot.size
    check(is_inside, f"store outside {name}: {step.target}", kernel)


def verify_keys(kernel: Kernel, step: Row, checker: "Checker") -> None:
    """Check what a step sorts by, or puts in bins, and how long its tiles are."""
    if isinstance(step, Elimination):
        check(step.body.dtype.is_float, "numbers are eliminated", kernel)
        return
    key = step.key if isinstance(step, Runs | Bins) else step.body
    checker.visit(key)
    if isinstance(step, Bins):
        check(key.dtype.is_integer, "bins are numbered", kernel)
        is_whole = step.run * step.tile.size >= step.axis.size
        check(is_whole, "tiles end before the axis", kernel)
        return
    check(key.dtype.kind == "uint", "sort keys are unsigned", kernel)
    if isinstance(step, Sort | Radix):
        check(1 <= step.run, "a bad run", kernel)


def places_along(step: Along) -> set[Axis]:
    """List the axes that say where a step stores."""
    if isinstance(step, Elimination):
        return {*step.rows, step.place}
    if isinstance(step, Bins):
        return {*step.rows, step.tile, step.place}
    own = {step.digit, step.tile} if isinstance(step, Radix) else set()
    return axes_along(step) | own


def axes_along(step: Along) -> set[Axis]:
    """List the axes of a step along one of them."""
    rows = (*step.outer, *step.inner) if isinstance(step, Scan) else step.rows
    own = {*rows, step.axis}
    if isinstance(step, Runs):
        own.add(step.number)
    return own | {step.column} if isinstance(step, Elimination) else own


def verify_start(kernel: Kernel, part: Part, scan: Scan) -> None:
    """Check the monoid of a scan, and the value it starts from."""
    check(scan.monoid in SCAN_MONOIDS, "unknown monoid", kernel)
    if scan.start is not None:
        is_same = scan.start.dtype is scan.body.dtype
        check(is_same, "start and body differ", kernel)
        rows = {*scan.outer, *scan.inner}
        Checker(kernel, part, 0, rows).visit(scan.start)


def verify_runs(kernel: Kernel, part: Part, runs: Runs) -> None:
    """Check the monoid, the positions and the levels of a reduction of runs."""
    check(runs.monoid is None or runs.monoid in MONOIDS, "unknown monoid", kernel)
    for place in (runs.first, runs.stop or runs.first):
        check(place.dtype.is_integer, "a run begins at a position", kernel)
        Checker(kernel, part, 0, {runs.number}).visit(place)
    below = runs.axis.size
    for axis, expr in runs.levels:
        check(axis.size == below // runs.fan, "a level of another size", kernel)
        check(expr.dtype is runs.body.dtype, "a level of another dtype", kernel)
        Checker(kernel, part, 0, {axis, *runs.rows}).visit(expr)
        below = axis.size


class Checker:
    """This class checks one expression; a node is looked at once for each set of guards."""

    def __init__(self, kernel: Kernel, part: Part, number: int, bound: set[Axis]) -> None:
        self.kernel: Kernel = kernel
        self.part: Part = part
        self.number: int = number
        self.bound: set[Axis] = bound
        self.seen: set[tuple[int, tuple[Condition, ...]]] = set()

    def visit(self, root: Expr) -> None:
        """Check every node under `root`, with the guards met on the way (iterative)."""
        stack: list[tuple[Expr, tuple[Condition, ...]]] = [(root, ())]
        while stack:
            expr, tests = stack.pop()
            if (id(expr), tests) in self.seen:
                continue
            self.seen.add((id(expr), tests))
            self.visit_node(expr, tests)
            if expr.op == "guard":
                check(len(expr.args) == 2, "guard takes (value, fill)", self.kernel)
                stack += [(expr.args[0], tests + expr.arg), (expr.args[1], tests)]
            else:
                stack += [(child, tests) for child in expr.args]
            stack += [(child, tests) for child in dynamic_children(expr)]

    def visit_node(self, expr: Expr, tests: tuple[Condition, ...]) -> None:
        """Check one node: its axes are bound, its loads inside, its references legal."""
        for index in indices_of(expr):
            for atom in dynamics_of(index):
                is_integer = atom.expr.dtype.is_integer
                check(is_integer, f"a run-time index of {atom.expr.dtype.name}", self.kernel)
            if unbound := axes_of(index) - self.bound:
                problem = f"%{self.number} uses axes it does not bind: {unbound}"
                internal(problem, self.kernel)
        if expr.op == "load":
            self.visit_load(expr, tests)
        elif expr.op == "ref":
            self.visit_ref(expr.arg, expr.dtype, self.bound)
        elif expr.op == "element":
            self.visit_element(expr, tests)
        elif expr.op == "scalar":
            known = 0 <= expr.arg < len(self.kernel.scalars)
            check(known, f"unknown scalar{expr.arg}", self.kernel)

    def visit_load(self, expr: Expr, tests: tuple[Condition, ...]) -> None:
        """Check one load against the slot."""
        slot, index = expr.arg
        check(0 <= slot < len(self.kernel.slots), f"no slot s{slot}", self.kernel)
        facts = self.kernel.slots[slot]
        check(facts.dtype is expr.dtype, f"s{slot} is loaded as another dtype", self.kernel)
        if index.lo >= 0 and index.hi < facts.size:
            return
        lo, hi = narrowed(index, tests)
        is_proven = (lo >= 0 and hi < facts.size) or lo > hi
        is_inside = is_proven or not is_disproved(index, tests, facts.size)
        check(is_inside, f"load outside s{slot}: {index} in {lo}..{hi}", self.kernel)

    def visit_ref(self, number: int, dtype: DType, bound: set[Axis]) -> None:
        """Check one reference to an earlier compute, where some axes of it are known."""
        check(0 <= number < self.number, f"%{self.number} refers to %{number}", self.kernel)
        target = self.part.computes[number]
        check(set(target.axes) <= bound, f"%{number} has axes unbound here", self.kernel)
        check(target.dtype is dtype, f"%{number} has another dtype", self.kernel)

    def visit_element(self, expr: Expr, tests: tuple[Condition, ...]) -> None:
        """Check one reference to a place of an earlier compute."""
        number, places = expr.arg
        placed = {axis for axis, _ in places}
        is_apart = placed.isdisjoint(self.bound)
        check(is_apart, f"%{self.number} binds axes that it places in %{number}", self.kernel)
        self.visit_ref(number, expr.dtype, self.bound | placed)
        for axis, index in places:
            lo, hi = narrowed(index, tests)
            is_inside = lo >= 0 and hi < axis.size
            check(is_inside, f"%{number} is read outside of {axis}: {index}", self.kernel)


def narrowed(index: Index, tests: Iterable[Condition]) -> tuple[int, int]:
    """Bounds of `index` where all `tests` hold; lo > hi where they cannot hold together."""
    atoms: Ranges = {}
    tests = combined(tests)
    for test, low, high in tests:
        if len(test.terms) == 1:
            narrow_atom(atoms, test, low, high)
    rest, lo, hi = index, 0, 0
    for test, low, high in sorted(tests, key=lambda t: -len(t[0].terms)):
        factor = leading_factor(rest, test)
        if factor is None:
            continue
        low, high = max(low, test.lo), min(high, test.hi)
        less = rest - test * factor  # rest = factor * test + less, whatever the factor
        if width(less, atoms) + abs(factor) * (high - low) < width(rest, atoms):
            rest = less
            lo += factor * (low if factor > 0 else high)
            hi += factor * (high if factor > 0 else low)
    rest_lo, rest_hi = bounds_within(rest, atoms)
    whole_lo, whole_hi = bounds_within(index, atoms)
    return max(lo + rest_lo, whole_lo), min(hi + rest_hi, whole_hi)


def combined(tests: Iterable[Condition]) -> list[Condition]:
    """Join tests of one sum of terms: 0 <= x - 1 <= 2 and 0 <= x - 2 <= 1 is 2 <= x <= 3."""
    found: dict[frozenset[tuple[Atom, int]], Condition] = {}
    for test, low, high in tests:
        plain = Index(test.terms, 0)
        low, high = low - test.const, high - test.const
        _, old_low, old_high = found.get(frozenset(test.terms), (plain, low, high))
        found[frozenset(test.terms)] = (plain, max(low, old_low), min(high, old_high))
    return list(found.values())


def is_disproved(index: Index, tests: Iterable[Condition], size: int) -> bool:
    """Look at every point of the axes involved: does one pass the tests and leave 0..size-1?

    The last resort for what the rules cannot prove; more than POINT_LIMIT points are not looked at.
    """
    indices = [index, *(test for test, _, _ in tests)]
    if any(True for each in indices for _ in dynamics_of(each)):
        return False
    axes = sorted(set().union(*map(axes_of, indices)), key=lambda axis: axis.number)
    if product(axis.size for axis in axes) > POINT_LIMIT:
        return False
    grid = np.indices([axis.size for axis in axes], sparse=True)
    values = dict(zip(axes, grid, strict=True))
    held: Any = np.asarray(True)
    for test, low, high in tests:
        at = evaluate(test, values, lambda expr: None)
        held = held & (at >= low) & (at <= high)
    at = evaluate(index, values, lambda expr: None)
    return bool(np.any(held & ((at < 0) | (at >= size))))


def narrow_atom(atoms: Ranges, test: Index, low: int, high: int) -> None:
    """Record what `low <= c * atom + const <= high` says about the atom."""
    atom, c = test.terms[0]
    low, high = low - test.const, high - test.const
    if c < 0:
        low, high, c = -high, -low, -c
    old_low, old_high = atoms.get(atom, atom.bounds)
    atoms[atom] = max(old_low, -(-low // c)), min(old_high, high // c)


def leading_factor(index: Index, test: Index) -> int | None:
    """How often `index` holds the first term of `test`, if that is a whole number of times."""
    terms = dict(index.terms)
    for atom, c in test.terms:
        own = terms.get(atom)
        if own is not None:
            return own // c if own % c == 0 else None
    return None


def width(index: Index, atoms: Mapping[Atom, tuple[int, int]]) -> int:
    """Distance between the bounds of an index."""
    lo, hi = bounds_within(index, atoms)
    return hi - lo


def bounds_within(index: Index, atoms: Mapping[Atom, tuple[int, int]]) -> tuple[int, int]:
    """Bounds of an index whose atoms may be narrowed."""
    lo = hi = index.const
    for atom, c in index.terms:
        low, high = atoms.get(atom, atom.bounds)
        lo += c * low if c > 0 else c * high
        hi += c * high if c > 0 else c * low
    return lo, hi
