"""lower: the value of a node at given indices, as a scalar expression: views become indices.

    value(node, indices) -> Expr

recurses through floating nodes only, whose chains are bounded by fusion. What is in memory becomes
a `load`, what the part has computed at these indices a `ref`, an element of a product's result at
others an `element`. A window reduction becomes a compute of its own, before its reader, over the
axes its indices mention.
"""

from dataclasses import field

from picograd.conversion import convert
from picograd.dtype import DType, accumulate_dtype, bool_, int64
from picograd.errors import internal
from picograd.graph.bounded import End, sources_of
from picograd.graph.node import Node
from picograd.graph.random import HALF_BITS, SECOND_WORD
from picograd.graph.row import OPS, Role
from picograd.helpers import product, row_major
from picograd.late_methods import dataclass
from picograd.number import GivenInt
from picograd.schedule.draws import drawn, half_drawn, half_numbered, written_out
from picograd.schedule.group import Facts
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    Indices,
    atom_index,
    axes_of,
    axis_index,
    constant,
)
from picograd.schedule.loop import (
    Compute,
    Condition,
    Conditions,
    Expr,
    Slot,
    chosen,
    const,
    dynamics_of,
    needed,
    rewrite,
)
from picograd.schedule.monoid import identity
from picograd.schedule.plan import PlanSlot
from picograd.schedule.viewindex import fold_source, pad_source, view_source


@dataclass(slots=True)
class Location:
    """Where a node lies in memory: a plan slot and its strides."""

    slot: int
    strides: tuple[int, ...]


def scalar_key(node: Node) -> tuple[int, DType]:
    """Tell runtime scalars apart: one number may enter a plan in two dtypes."""
    return id(node.arg), node.dtype


Memo = dict[int, Expr]  # values at some places, by the numbers of nodes


@dataclass(slots=True)
class KernelBuilder:
    """Numbers the slots and scalars of one kernel in order of first use."""

    locations: dict[int, Location]
    plan_slots: list[PlanSlot]
    scalar_numbers: dict[tuple[int, DType], int]
    aside: dict[int, Location] = field(default_factory=dict)  # where assignments go first
    slots: dict[int, int] = field(default_factory=dict)
    kinds: list[tuple[DType, int]] = field(default_factory=list)
    scalars: dict[int, tuple[int, DType]] = field(default_factory=dict)
    loaded: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)

    def slot(self, plan_slot: int, dtype: DType) -> int:
        """Kernel slot number of a plan slot."""
        number = self.slots.setdefault(plan_slot, len(self.slots))
        if number == len(self.kinds):
            self.kinds.append((dtype, self.plan_slots[plan_slot].size))
        return number

    def scalar(self, facts: Facts) -> int:
        """Kernel scalar number of a runtime scalar."""
        return self.argument(*scalar_key(facts.node))

    def argument(self, identity: int, plain: DType) -> int:
        """Kernel scalar number of a number by its identity."""
        number = self.scalar_numbers[identity, plain]
        new = len(self.scalars), accumulate_dtype(plain)
        return self.scalars.setdefault(number, new)[0]

    def finish(self) -> tuple[Slot, ...]:
        """The kernel's slots, with the roles seen."""
        roles = {(True, False): "in", (False, True): "out", (True, True): "inout"}
        found = []
        for number, kind in enumerate(self.kinds):
            role = roles[number in self.loaded, number in self.stored]
            found.append(Slot(*kind, role))
        return tuple(found)


class PartBuilder:
    """This class lowers the nodes of one part; `value` is the recursion of the module docstring."""

    def __init__(self, kernel: KernelBuilder, depth: int) -> None:
        self.kernel: KernelBuilder = kernel
        self.depth: int = depth
        self.computes: list[Compute] = []
        self.available: dict[int, tuple[Indices, Expr]] = {}
        known: Memo = {}
        self.memos: dict[tuple[Indices, Conditions], Memo] = {((), ()): known}
        self.newest: tuple[Indices, Conditions, Memo] = (), (), known  # asked for
        self.places: dict[tuple[Indices, tuple[int, ...]], Index] = {}
        self.conditions: Conditions = ()
        self.bound: tuple[Axis, ...] = ()  # axes of the compute being lowered
        self.is_final = False  # whether the axes are no longer changed

    def value(self, facts: Facts, indices: Indices) -> Expr:
        """Build the value of a node at `indices`."""
        ready = self.available.get(facts.number)
        if ready is not None and ready[0] == indices:
            return ready[1]
        tests = self.conditions
        places, before, memo = self.newest
        if places is not indices or before is not tests:
            memo = self.memos.setdefault((indices, tests), {})
            self.newest = indices, tests, memo
        found = memo.get(facts.number)
        if found is None:
            found = memo[facts.number] = self.build(facts, indices)
        return found

    def build(self, facts: Facts, indices: Indices) -> Expr:
        """Build a value that is not known yet."""
        node = facts.node
        group = facts.group
        if facts.is_source or (group is not None and group.depth < self.depth):
            return self.load(facts, indices)
        is_pooled = facts.level == "hero" and group is not None and bool(group.pooled)
        lowering = None if is_pooled else LOWERINGS.get(node.row.role)
        if lowering is None and facts.number in self.available:
            return self.element(facts, indices)
        if lowering is None:
            internal(f"{node} is read where it is not available", indices)
        return lowering(self, facts, indices)

    def element(self, facts: Facts, indices: Indices) -> Expr:
        """Refer to an element of a product's result at another place than this point's."""
        own, value = self.available[facts.number]
        places = []
        for mine, index in zip(own, indices, strict=True):
            if mine != index:
                ((axis, _),) = mine.terms
                places.append((axis, index))

        def moved(expr: Expr) -> Expr | None:
            arg = expr.arg, tuple(places)
            return Expr("element", (), arg, expr.dtype) if expr.op == "ref" else None

        return rewrite(value, {}, moved)

    def position(self, start: int, room: int) -> Index:
        """Where a slice begins: a number, or one passed to the kernel that is at most `room`."""
        if type(start) is not GivenInt:
            return constant(start)
        number = self.kernel.argument(id(start), int64)
        place = Dynamic(Expr("scalar", (), number, int64), 0, room)
        return atom_index(place)

    def load(self, facts: Facts, indices: Indices) -> Expr:
        """Load an element from memory."""
        place = self.kernel.locations[facts.number]
        slot = self.kernel.slot(place.slot, facts.node.dtype)
        self.kernel.loaded.add(slot)
        arg = slot, self.place(indices, place.strides)
        return Expr("load", (), arg, facts.node.dtype)

    def place(self, indices: Indices, strides: tuple[int, ...]) -> Index:
        """Position in memory of an element: most arrays of a part are read at the same."""
        key = indices, strides
        found = self.places.get(key)
        if found is None:
            found = self.places[key] = flat_index(indices, strides)
        return found

    def elementwise(self, facts: Facts, indices: Indices) -> Expr:
        """Apply an elementwise operation to the values of its inputs."""
        node = facts.node
        args = tuple([self.value(source, indices) for source in facts.inputs])
        if node.dtype is bool_:
            args = tuple(map(as_stored, args))
        return apply(node.op, args, node.dtype)

    def constant(self, facts: Facts, indices: Indices) -> Expr:
        """A constant."""
        return const(facts.node.arg, facts.node.dtype)

    def iota(self, facts: Facts, indices: Indices) -> Expr:
        """The position along one axis."""
        return Expr("index", (), indices[facts.node.arg], facts.node.dtype)

    def scalar(self, facts: Facts, indices: Indices) -> Expr:
        """A number passed to the kernel."""
        return Expr("scalar", (), self.kernel.scalar(facts), facts.node.dtype)

    def random(self, facts: Facts, indices: Indices) -> Expr:
        """Random bits, a function of the seed, the offset and the element's position."""
        offset, seed = facts.inputs
        place = flat_index(indices, row_major(facts.node.shape))
        if offset.node.shape:  # the counter of each element
            place = constant(0)
        else:
            indices = ()
        start, key = self.value(offset, indices), self.value(seed, ())
        if facts.node.arg == HALF_BITS:
            return half_numbered(key, start) if indices else half_drawn(key, start, place)
        bits = drawn(key, start, place, facts.node.arg == SECOND_WORD)
        return written_out(bits) if self.is_final else bits

    def passed(self, facts: Facts, indices: Indices) -> Expr:
        """The value of the input; of an assignment, what it writes."""
        return self.value(facts.inputs[0], indices)

    def view(self, facts: Facts, indices: Indices) -> Expr:
        """An element of the input; of a pad the fill value outside of it."""
        node = facts.node
        if node.row.is_showing:
            return self.value(facts.inputs[0], view_source(node, indices, self.position))
        inside, tests = pad_source(node, indices, self.position)
        return self.guarded(facts.inputs[0], inside, tests, const(node.arg[1], node.dtype))

    def guarded(self, source: Facts, indices: Indices, tests: Conditions, fill: Expr) -> Expr:
        """The value of `source` where all tests hold, else `fill`."""
        tests = needed(tests)
        if any(t[0].lo > t[2] or t[0].hi < t[1] for t in tests):
            return fill
        outer = self.conditions
        self.conditions = outer + tuple(t for t in tests if t not in outer)
        value = self.value(source, indices)
        self.conditions = outer
        if not tests or value == fill:
            return value
        if value.op == "guard" and value.args[1] == fill and not reads_memory(value.arg):
            tests, value = tests + value.arg, value.args[0]
        return Expr("guard", (value, fill), tests, value.dtype)

    def gather(self, facts: Facts, indices: Indices) -> Expr:
        """An element whose position along some axes is itself a value."""
        node, source = facts.node, facts.inputs[0]
        rank = len(facts.inputs[1].node.shape)
        rest, found = list(indices[rank:]), []
        positions = dict(zip(node.arg, facts.inputs[1:], strict=True))
        for axis, size in enumerate(source.node.shape):
            if axis in positions:
                found.append(as_index(self.value(positions[axis], indices[:rank]), size))
            else:
                found.append(rest.pop(0))
        return self.value(source, tuple(found))

    def fold(self, facts: Facts, indices: Indices) -> Expr:
        """Sum of the window elements that lie on one position."""
        node, source = facts.node, facts.inputs[0]
        inside, tests, axes = fold_source(node, indices, source.node.shape)
        fill = const(0, node.dtype)
        if not axes:
            return self.guarded(source, inside, tests, fill)
        return self.window(source, inside, tests, axes, "sum", node.dtype)

    def reduce(self, facts: Facts, indices: Indices) -> Expr:
        """A small reduction, computed where it is read."""
        node, source = facts.node, facts.inputs[0]
        monoid, reduced = node.arg
        rest, inside = list(indices), []
        axes: list[Axis] = []
        for d, size in enumerate(source.node.shape):
            if d not in reduced:
                inside.append(rest.pop(0))
                continue
            axis = Axis(f"w{d}", size)
            inside.append(axis_index(axis))
            axes += [axis] if size != 1 else []
        if product(source.node.shape[d] for d in reduced) == 0:
            return const(identity(monoid, node.dtype), node.dtype)
        if not axes:
            return apply("cast", (self.value(source, tuple(inside)),), node.dtype)
        tests = self.tests_of_source(node, 0, tuple(inside))
        return self.window(source, tuple(inside), tests, tuple(axes), monoid, node.dtype)

    def tests_of_source(self, node: Node, number: int, at: Indices) -> Conditions:
        """Say where an input of a reduction is not left out."""
        sources = sources_of(node)
        ends = sources[number] if sources else ()
        return tuple([self.test_of(end, at[end.axis]) for end in ends])

    def test_of(self, end: End, place: Index) -> Condition:
        """Write an end at a place of its axis: less than a count that is at most the bound."""
        scalar = Expr("scalar", (), self.kernel.argument(id(end.count), int64), int64)
        place = place // end.step
        place = place % end.size if end.size else place
        index = place - atom_index(Dynamic(scalar, 0, place.hi + 1))
        return index, index.lo, -1

    def window(
        self,
        source: Facts,
        inside: Indices,
        tests: Conditions,
        axes: tuple[Axis, ...],
        monoid: str,
        dtype: DType,
    ) -> Expr:
        """Append a compute that reduces over window axes, and refer to it."""
        wide = accumulate_dtype(dtype) if monoid in ("sum", "prod") else dtype
        outer, bound = self.conditions, self.bound
        self.bound = bound + axes
        fill = const(identity(monoid, source.node.dtype), source.node.dtype)
        self.conditions = ()
        body = apply("cast", (self.guarded(source, inside, outer + tests, fill),), wide)
        self.conditions, self.bound = outer, bound
        mentioned = mentioned_axes(inside, outer + tests)
        own = tuple(a for a in bound if mentioned is None or a in mentioned)
        self.computes.append(Compute(own, axes, monoid, body, wide))
        ref = Expr("ref", (), len(self.computes) - 1, wide)
        return apply("cast", (ref,), dtype)


LOWERINGS = {
    Role.ELEMENTWISE: PartBuilder.elementwise,
    Role.VIEW: PartBuilder.view,
    Role.NUMBER: PartBuilder.constant,
    Role.POSITION: PartBuilder.iota,
    Role.SCALAR: PartBuilder.scalar,
    Role.DRAW: PartBuilder.random,
    Role.GATHER: PartBuilder.gather,
    Role.FOLD: PartBuilder.fold,
    Role.REDUCE: PartBuilder.reduce,
    Role.PASS: PartBuilder.passed,
    Role.WRITE: PartBuilder.passed,
}


def as_stored(value: Expr) -> Expr:
    """Round what is compared as a store would: kernels carry 16-bit floats in more digits.

    An extreme that was stored equals the element that it is then, computed again or not.
    """
    inner = value.args[0] if value.op == "guard" else value
    is_carried = value.dtype.is_float and accumulate_dtype(value.dtype) is not value.dtype
    row = OPS.get(inner.op)
    is_made = row is not None and (row.keeps_value or row.role is Role.NUMBER)
    is_rounded = is_made or inner.op == "load"
    return value if not is_carried or is_rounded else Expr("cast", (value,), None, value.dtype)


def apply(op: str, args: tuple[Expr, ...], dtype: DType) -> Expr:
    """Build an elementwise expression; a cast to the same dtype is nothing."""
    if op == "cast":
        source = args[0]
        if source.dtype is dtype:
            return source
        if source.op == "const" and dtype.is_float and not isinstance(source.arg, complex):
            return (
                const(float(source.arg), dtype)
                if not source.dtype.is_float
                else cast_const(source, dtype)
            )
        if source.op == "index" and dtype.name in ("int32", "int64"):
            return Expr("index", (), source.arg, dtype)
    return chosen(op, args) or Expr(op, args, None, dtype)


def reads_memory(tests: Conditions) -> bool:
    """Tell whether tests look at values: under a test before them, they may not stand beside it."""
    return any(is_read(test[0]) for test in tests)


def is_read(index: Index) -> bool:
    """Tell whether an index comes from more than runtime scalars."""
    return any(each.expr.op != "scalar" for each in dynamics_of(index))


def cast_const(source: Expr, dtype: DType) -> Expr:
    """Cast a float constant: exact only towards a wider dtype."""
    if dtype.bits > source.dtype.bits:
        return const(float(convert(source.arg, source.dtype)), dtype)
    return Expr("cast", (source,), None, dtype)


def flat_index(indices: Indices, strides: tuple[int, ...]) -> Index:
    """Position in memory of one element."""
    flat = constant(0)
    for index, stride in zip(indices, strides, strict=True):
        flat = flat + index * stride
    return flat


def as_index(value: Expr, size: int) -> Index:
    """Use a value as an index into `size` elements."""
    if value.op == "index":
        return value.arg  # type: ignore[no-any-return]
    if value.op == "const":
        return constant(int(value.arg))
    if size <= 1:
        return constant(0)
    return atom_index(Dynamic(value, 0, max(size - 1, 0)))


def mentioned_axes(indices: Indices, tests: Conditions) -> set[Axis] | None:
    """Axes that a window depends on; None (all) where run-time indices hide them."""
    found: set[Axis] = set()
    for index in (*indices, *(test[0] for test in tests)):
        if is_read(index):
            return None
        found |= axes_of(index)
    return found
