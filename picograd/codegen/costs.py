"""Costs: the floating operations and the memory traffic of a kernel, for reports.

Both count what the mathematics needs, once. An operation is one value of a floating dtype that is
calculated: choices (where), casts, guards, comparisons, integers and index arithmetic are none,
and one that several computes of a part repeat is counted once; a reduction makes one an element,
so that a product of matrices has 2 M N K. Traffic is every element of an array that is read or
written, once, however often a kernel touches it: an input that is broadcast counts as it is stored.
Where sizes vary all is counted up to their bounds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from math import gcd

from picograd.codegen.cuts import ends_of, single_axis
from picograd.codegen.operands import expr_axes
from picograd.graph.updates_at_once import ONCE
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Dynamic, Index, axes_of
from picograd.schedule.loop import (
    INDEXED,
    Bins,
    Condition,
    Elimination,
    Expr,
    Kernel,
    Part,
    Runs,
    Scan,
    dynamic_children,
    dynamics_of,
    indices_of,
    walk,
)

NOT_CALCULATED = {"where", "cast", "bitcast", "guard"}
Box = Mapping[Axis, tuple[int, int]]  # inclusive bounds of axes that conditions narrow
Run = tuple[int, int]  # elements `step` apart, `count` of them
WHOLE: Box = {}
NOWHERE: frozenset[Axis] = frozenset()


@dataclass(slots=True)
class Space:
    """Expressions calculated at every point of some axes, and where the result goes.

    `combines`: operations a point for combining the result with others. `needed` lists every node
    under the roots, arguments first, with bounds of the axes outside which it is not needed.
    """

    roots: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    slot: int | None = None
    target: Index | None = None
    is_updated: bool = False  # what was stored is read too
    combines: int = 0
    conditions: tuple[Condition, ...] = ()
    needed: list[tuple[Expr, Box]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for root in self.roots:
            self.needed += narrowed(root, self.conditions)


@dataclass(slots=True)
class Touched:
    """The elements of one array that a kernel reads, or those that it writes."""

    shapes: dict[object, int] = field(default_factory=dict)  # sets of elements -> how many
    lo: int = 0
    hi: int = -1
    step: int = 0  # every element is `lo` plus a multiple of it

    def add(self, index: Index, box: Box, points: int) -> None:
        """Add the elements an index reaches."""
        runs, lo, hi = reach(index, box)
        if self.shapes:
            self.step = gcd(self.step, lo - self.lo)
            self.lo, self.hi = min(self.lo, lo), max(self.hi, hi)
        else:
            self.lo, self.hi = lo, hi
        for step, _ in runs:
            self.step = gcd(self.step, step)
        count = min(points, product(count for _, count in runs))
        key = (runs, lo)
        self.shapes[key] = max(count, self.shapes.get(key, 0))

    def count(self, size: int) -> int:
        """Count the elements, of an array of `size`."""
        span = (self.hi - self.lo) // self.step + 1 if self.step else 1
        return min(sum(self.shapes.values()), span, size)


def costs(kernel: Kernel) -> tuple[int, int]:
    """Count the floating operations of a kernel and the bytes it must move."""
    known = [(part, list(spaces(part))) for part in kernel.parts]
    flops = sum(operations(part, found) for part, found in known)
    return flops, bytes_moved(kernel, [space for _, found in known for space in found])


def count_ended(kernel: Kernel) -> int:
    """Count the axes that end at a size of the call."""
    if not kernel.scalars:
        return 0
    return max([len({single_axis(end) for end in ends_of(p)} - {None}) for p in kernel.parts])


def operations(part: Part, known: Sequence[Space]) -> int:
    """Count the floating operations of one part."""
    total = 0
    counted: set[Expr] = set()
    axes_read: dict[Expr, frozenset[Axis]] = {}
    levels = [frozenset(compute.axes) for compute in part.computes]
    for space in known:
        total += space.combines * product(axis.size for axis in space.axes)
        for expr, box in space.needed:
            axes_read[expr] = dependence(expr, axes_read, levels)
            if expr not in counted and is_calculated(expr):
                counted.add(expr)
                total += size_of(axes_read[expr], box)
    return total


def is_zero(expr: Expr) -> bool:
    """Tell whether an expression is the constant +0."""
    return expr.op == "const" and str(expr.arg) in ("0", "0.0", "False")


def is_calculated(expr: Expr) -> bool:
    """Tell whether an expression is a floating operation."""
    return bool(expr.args) and expr.dtype.is_float and expr.op not in NOT_CALCULATED


def dependence(
    expr: Expr, known: Mapping[Expr, frozenset[Axis]], levels: Sequence[frozenset[Axis]]
) -> frozenset[Axis]:
    """Find the axes an expression varies along: it is calculated once for each of their points."""
    if expr.op == "ref":
        return levels[expr.arg]
    if expr.op == "element":
        number, places = expr.arg
        placed = {axis for axis, _ in places}
        return (levels[number] - placed).union(*(axes_of(index) for _, index in places))
    below = [known[child] for child in children(expr)]
    widest = max(below, key=len, default=NOWHERE)  # most often all: no set is made
    found = {axis for index in indices_of(expr) for axis in axes_of(index)}
    is_all = found <= widest and all(each <= widest for each in below)
    return widest if is_all else widest.union(found, *below)


def children(expr: Expr) -> tuple[Expr, ...]:
    """List the arguments of a node, then the expressions inside its indices."""
    return (*expr.args, *dynamic_children(expr)) if expr.op in INDEXED else expr.args


def size_of(axes: frozenset[Axis], box: Box) -> int:
    """Count the points of axes inside a box."""
    return product(extent(*box.get(axis, axis.bounds)) for axis in axes)


def extent(lo: int, hi: int) -> int:
    """Count lo..hi."""
    return max(hi - lo + 1, 0)


def spaces(part: Part) -> Iterator[Space]:
    """List what a part calculates, and where."""
    for compute in part.computes:
        slot, target = compute.store or (None, None)
        axes = (*compute.axes, *compute.reduce)
        combines = int(bool(compute.reduce) and compute.dtype.is_float)
        if target is None or not compute.reduce:
            yield Space((compute.body,), axes, slot, target, combines=combines)
        else:
            yield Space((compute.body,), axes, combines=combines)
            yield Space((), compute.axes, slot, target)
    if part.scatter:
        scatter = part.scatter
        axes = (*scatter.serial, *scatter.inner)
        roots = (scatter.body, *(atom.expr for atom in dynamics_of(scatter.target)))
        is_updated = scatter.monoid not in (None, ONCE)
        yield Space(
            roots,
            axes,
            scatter.slot,
            scatter.target,
            is_updated,
            int(is_updated and scatter.body.dtype.is_float),
            scatter.conditions,
        )
    elif isinstance(part.along, Scan):
        yield scan_space(part.along)
    elif part.along:
        step = part.along
        own = (step.axis, step.column) if isinstance(step, Elimination) else (step.axis,)
        axes = (*step.rows, *own)
        is_sum = isinstance(step, Bins) or (isinstance(step, Runs) and bool(step.monoid))
        yield Space((step.body,), axes, combines=int(is_sum and step.body.dtype.is_float))


def scan_space(scan: Scan) -> Space:
    """Describe a scan: each element is combined with those before it."""
    roots = (scan.body,) if scan.start is None else (scan.body, scan.start)
    axes = (*scan.outer, scan.axis, *scan.inner)
    return Space(
        roots,
        axes,
        scan.slot,
        scan.target,
        combines=int(scan.body.dtype.is_float),
        conditions=scan.conditions,
    )


def bytes_moved(kernel: Kernel, known: Sequence[Space]) -> int:
    """Count the bytes of the distinct elements a kernel reads, and of those it writes.

    A slot whose elements cannot be told counts whole: one that a sort moves about.
    """
    read: dict[int, Touched] = {}
    written: dict[int, Touched] = {}
    for space in known:
        touch(space, read, written)
    total = 0
    for number, slot in enumerate(kernel.slots):
        if slot.role == "shared":
            continue
        for touched, role in ((read, "in"), (written, "out")):
            if number in touched:
                count = touched[number].count(slot.size)
            else:
                count = slot.size if slot.role == role else 0
            total += count * slot.dtype.itemsize
    return total


def touch(space: Space, read: dict[int, Touched], written: dict[int, Touched]) -> None:
    """Add the elements that a space reads and writes."""
    points = product(axis.size for axis in space.axes)
    for expr, box in space.needed:
        if expr.op == "load":
            slot, index = expr.arg
            read.setdefault(slot, Touched()).add(index, box, points)
    if space.slot is not None and space.target is not None:
        box = clip(WHOLE, space.conditions)
        written.setdefault(space.slot, Touched()).add(space.target, box, points)
        if space.is_updated:
            read.setdefault(space.slot, Touched()).add(space.target, box, points)


def narrowed(root: Expr, conditions: Sequence[Condition]) -> list[tuple[Expr, Box]]:
    """Find, for every node, bounds of the axes outside which it is not needed."""
    order = walk(root)
    boxes: dict[int, Box] = {id(root): clip(WHOLE, conditions)}
    for expr in reversed(order):
        box = boxes[id(expr)]
        inside = clip(box, expr.arg) if expr.op == "guard" else box
        for number, child in enumerate(children(expr)):
            needed = box if number else inside
            known = boxes.get(id(child))
            boxes[id(child)] = needed if known is None else around(known, needed)
    return [(expr, boxes[id(expr)]) for expr in order]


def clip(box: Box, conditions: Sequence[Condition]) -> Box:
    """Narrow a box by the conditions that speak of a single axis."""
    bounds = dict(box)
    for index, lo, hi in conditions:
        if len(index.terms) != 1:
            continue
        axis, factor = index.terms[0]
        if not isinstance(axis, Axis):
            continue
        first, last = lo - index.const, hi - index.const
        if factor < 0:
            first, last = -last, -first
        low, high = bounds.get(axis, axis.bounds)
        bounds[axis] = (max(low, ceil_div(first, abs(factor))), min(high, last // abs(factor)))
    return bounds


def around(a: Box, b: Box) -> Box:
    """Find the smallest box around two: an axis that one leaves open is open."""
    if a is b:
        return a
    box = {}
    for axis in a.keys() & b.keys():
        (first, last), (other_first, other_last) = a[axis], b[axis]
        box[axis] = min(first, other_first), max(last, other_last)
    return box


def reach(index: Index, box: Box) -> tuple[tuple[Run, ...], int, int]:
    """Find the elements an index reaches inside a box: runs of runs, the first and the last."""
    spans = []
    lo = hi = index.const
    for atom, factor in index.terms:
        is_axis = isinstance(atom, Axis)
        low, high = box.get(atom, atom.bounds) if is_axis else atom.bounds  # type: ignore[arg-type]
        lo += factor * (low if factor > 0 else high)
        hi += factor * (high if factor > 0 else low)
        count = extent(low, high)
        is_scattered = isinstance(atom, Dynamic)
        if isinstance(atom, Dynamic):
            count = min(count, points_of(atom))
        spans.append((abs(factor), count, is_scattered))
    return tuple(joined(spans)), lo, hi


def points_of(atom: Dynamic) -> int:
    """Count the points at which an index computed at run time is computed."""
    return product(axis.size for axis in expr_axes(atom.expr))


def joined(spans: Sequence[tuple[int, int, bool]]) -> list[Run]:
    """Join terms (step, count, is it computed at run time) into runs.

    They are taken from the smallest step up. One whose step falls on the elements that those
    before it reach, or next to them, prolongs their run (windows overlap); any other repeats it.
    """
    runs: list[Run] = []
    for step, count, is_scattered in sorted(spans):
        last, held = runs[-1] if runs else (0, 0)
        if runs and not is_scattered and step % last == 0 and step <= last * held and count:
            runs[-1] = last, held + step // last * (count - 1)
        else:
            runs.append((step, count))
    return runs
