"""Sizes are arguments: a graph that was seen with other sizes runs the plan of a bounded graph.

    first recording           sizes 37      a plan of its own
    second, other sizes       sizes 38      a plan for sizes up to 64 (graph/bounded.py)
    every later one           sizes 39..64  the same plan, other runtime scalars

Recordings of one structure are a family; comparing two of them shows which sizes vary. Inputs whose
sizes vary are laid out at the bound before a run, outputs cut out after it. A size that is used so
often that a plan of its own is worth its compilation gets one (`PATIENCE`).
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import count
from typing import Any

from picograd.buffer import Buffer
from picograd.config import config
from picograd.engine import native_calls
from picograd.engine.backends import get_device
from picograd.engine.binding import Binding, Bound, Pair, make_binding, written_parts
from picograd.engine.executable import CompiledPlan
from picograd.engine.native_calls import Native
from picograd.engine.plan_key import GraphKey, graph_key, leaf_buffer, walk_pending, with_scalar
from picograd.errors import CompileError, InternalError
from picograd.graph.axes import (
    Axes,
    Changes,
    Degenerate,
    NoRule,
    Record,
    all_sizes,
    is_degenerate,
    record,
)
from picograd.graph.bounded import Bounded
from picograd.graph.bounded_rules import (
    BESIDE,
    LEAST,
    NEAR,
    Bounds,
    bounded,
    choose_bounds,
    fits,
    is_near,
)
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node, Nodes
from picograd.graph.recurrence import Recurrence
from picograd.graph.row import Role
from picograd.graph.starts import placed, starts_of
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.number import GivenInt
from picograd.runtime.device import Executable, Scalars
from picograd.runtime.log import log_action
from picograd.schedule.plan import Plan

FAMILY_LIMIT = 256  # structures that are remembered; the one seen longest ago goes first
PATIENCE = 100  # runs at one size; a count, not a time, so that a program repeats its bits
SHORT_PATIENCE = 16  # where copies are a large part of a run
FOR_EVER = 1 << 60  # where a user says that sizes vary
KERNEL_PATIENCE = 4  # for each kernel that would have to be compiled
ROW_PATIENCE = 1  # likewise, of runs in a row, with no other size of that structure between
LEAST_ROW = 2
MOST_ALONE = 8  # plans for one size alone, of little work, before the others have more patience
MOST_ROOM = 2  # times what is there: how much memory a result may keep
FREE_ROOM = 1 << 10  # elements that it may keep whatever is there
TRIALS = 3  # plans for many sizes that a structure gets before one has served twice
LEASTS = 32, 16, LEAST  # as a bound: the first at which no array has more than `FEW`
MORE = 64  # and of sizes that grow, if none has more than `SMALL`
FEW, SMALL = 1 << 13, 1 << 14  # elements
PRODUCTS = Role.CONTRACT, Role.CONV
RETRIAL = 4  # graphs of it that go without before one more is tried
KEPT = ("scan", "sort", "scatter")  # composites with a rule of their own
BOUND_BYTES, ENTRY_BYTES = 2048, 768  # of a bound plan; of a row of its key, and of the way

Compile = Callable[[Nodes, GraphKey], CompiledPlan]
Limits = Mapping[tuple[int, int], int]


@dataclass(slots=True)
class Family:
    """Recordings of one structure: the first one, what varied since, and the bounds in use."""

    first: Record = field(default_factory=partial(Record, [], [], []))
    largest: list[int] = field(default_factory=list)  # of all axes, the largest that were seen
    changes: Changes = field(default_factory=Changes)
    bounds: list[Bounds] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    refused: str = ""
    made: int = 0  # plans for many sizes
    reused: int = 0  # recordings that took one that was there
    missed: int = 0  # and that got none
    alone: int = 0  # plans for a size alone that were made where those served too long
    last: int = -1  # which bounded plan of it ran last; -1: one for a size alone

    def may_make(self) -> bool:
        """Whether another plan for many sizes is likely to serve more than one of them.

        A sweep of shapes that are far apart may be followed by sizes that are not.
        """
        is_wanted = self.made < TRIALS or self.reused + self.missed // RETRIAL >= self.made
        self.missed += not is_wanted
        return is_wanted


FAMILIES: OrderedDict[Any, Family] = OrderedDict()
native_calls.SLOTS[Family] = ("last",)


@dataclass(eq=False)
class BoundedPlan:
    """A plan for many sizes, bound to one: how arrays are laid out, and the runtime scalars.

    Of `bound`, `inputs` has, for every buffer of the plan, which buffer of the graph key it is, and
    how it is laid out; `scalars` which scalar of the key, or -1 and a value; `outputs` how each
    root is cut out; `written` which buffers of the key get the last results; `assigned` the roots
    that are assignments, and their buffers of the key.
    """

    inner: CompiledPlan
    bound: Bound
    patience: int  # runs before a plan for these sizes alone is worth making
    nbytes: int = 0  # of memory it takes beside the code, about
    binding: Binding | None = None
    family: Family | None = None
    steady: int = FOR_EVER  # runs in a row, likewise
    row: int = 0  # of them so far
    number: int = field(default_factory=count().__next__)
    native: Native = field(default_factory=partial(Native, 0))  # unknown to machine code
    key: Any = None  # in the cache of plans

    @property
    def plan(self) -> Plan:
        """The plan of the bounded graph."""
        return self.inner.plan

    @property
    def executables(self) -> tuple[Executable, ...]:
        """The kernels of that plan, each once."""
        return self.inner.executables

    @property
    def is_worn(self) -> bool:
        """Whether these sizes ran so often that they should have a plan of their own."""
        return self.patience <= 0 or self.row >= self.steady

    @property
    def may_follow(self) -> bool:
        """Whether a way may end in it, and begin behind it: it writes to no memory there is."""
        return not (self.bound.written or self.bound.assigned)

    @property
    def least_patience(self) -> int:
        """How often little work of very many sizes runs so: compiling one more takes longer."""
        is_many = self.family is not None and self.family.alone >= MOST_ALONE
        is_little = self.binding is not None and self.binding.elements <= SMALL
        return PATIENCE if is_many and is_little else 0

    def have_patience(self, runs: int) -> None:
        """Let so many runs pass before these sizes get a plan of their own, and more."""
        if runs:
            self.patience, self.steady = max(self.patience, runs), FOR_EVER

    def count_run(self) -> None:
        """Note a run, and whether the one before was of these sizes too."""
        self.patience -= 1
        if self.family is not None:
            self.row = self.row + 1 if self.family.last == self.number else 1
            self.family.last = self.number

    def launch(self, buffers: Sequence[Buffer], values: Scalars, origin: Any = "") -> list[Buffer]:
        """Run on what it takes, which is all of a graph key."""
        return self.run(buffers, values, origin)

    def run(self, buffers: Sequence[Buffer], values: Scalars, origin: Any = "") -> list[Buffer]:
        """Run on the buffers and scalars of a graph key; returns one buffer a root."""
        self.count_run()
        bound = self.bound
        inner = [laid_out(buffers[number], pair, origin) for number, pair in bound.inputs]
        scalars = [values[number] if number >= 0 else value for number, value in bound.scalars]
        results = self.inner.run(inner, scalars, origin)
        made, assigned = len(bound.outputs), bound.assigned
        found = [
            buffers[assigned[n]] if n in assigned else laid_out(result, pair, origin)
            for n, (result, pair) in enumerate(zip(results, bound.outputs))
        ]
        for (number, (own, large)), result in zip(bound.written, results[made:], strict=True):
            to = buffers[number]
            get_device(to.device).copy_common((to, own), (result, large))
        return found


RUNNABLE = CompiledPlan, BoundedPlan


def laid_out(buffer: Buffer, pair: Pair | None, origin: Any) -> Buffer:
    """Give memory of the first layout in the second one, larger or smaller; None: they are one.

    It is copied, unless one layout begins as the other and there is room for both.
    """
    if pair is None:
        return buffer
    now, wanted = pair
    size = product(wanted)
    most = max(MOST_ROOM * min(size, buffer.count), FREE_ROOM)
    if are_rows(pair) and size <= buffer.room <= most:
        return buffer.resized(size)
    device = get_device(buffer.device)
    made = device.new_buffer(buffer.dtype, size, origin)
    if are_rows(pair):
        common = min(size, buffer.count)
        device.copy(made.resized(common), buffer.resized(common))
    else:
        device.copy_common((made, wanted), (buffer, now))
    return made


def are_rows(pair: Pair) -> bool:
    """Tell whether two layouts differ in their first axis alone: one is how the other begins."""
    return pair[0][1:] == pair[1][1:]


def prime(roots: Nodes, family: Family | None = None) -> None:
    """Note a graph as one seen before, at sizes that it will have; `family` is empty."""
    expanded = expand_composites(roots, KEPT, with_scalar)
    order = walk_pending(expanded)
    FAMILIES.setdefault(structure(order, expanded), new_family(order, family))


def new_family(order: Nodes, empty: Family | None = None) -> Family:
    """Begin with a first recording."""
    family, first = empty or Family(), record(order)
    family.first, family.largest = first, first.sizes
    return family


def bounded_plan(
    roots: Nodes, found: GraphKey, compiled: Compile, limits: Limits
) -> BoundedPlan | None:
    """Find a plan for many sizes; None if the sizes are new, or no plan for others will do.

    `compiled` finds or makes the plan of a graph; `limits` are bounds by memory and axis.
    """
    device = roots[0].device
    if any(node.device != device for node in found.order):
        return None
    expanded = expand_composites(roots, KEPT, with_scalar)
    order = walk_pending(expanded)
    key = structure(order, expanded)
    family = FAMILIES.get(key)
    if family is None:
        found.family = FAMILIES[key] = new_family(order)
        while len(FAMILIES) > FAMILY_LIMIT:
            FAMILIES.popitem(last=False)
        return None
    FAMILIES.move_to_end(key)
    found.family = family
    if family.refused:
        return None
    try:
        return fitted(family, order, expanded, found, compiled, limits)
    except Degenerate:
        return None
    except (NoRule, InternalError, CompileError, ArithmeticError, LookupError) as error:
        kind = "" if isinstance(error, NoRule) else f"{type(error).__name__}: "
        family.refused = f"{kind}{error}"
        log_action("sizes", f"each has a plan of its own: {error}")
        return None


def structure(order: Nodes, roots: Nodes) -> Any:
    """Key a graph by what stays when its sizes change."""
    numbers: dict[int, int] = {}
    buffers: dict[int, int] = {}
    scalars: dict[int, int] = {}
    rows: list[Any] = []
    for position, node in enumerate(order):
        numbers[id(node)] = position
        kind = node.op, len(node.shape), node.dtype.name
        buffer = leaf_buffer(node)
        if buffer is not None:
            rows.append((*kind[1:], buffers.setdefault(id(buffer), position)))
        elif node.op == "scalar":
            rows.append((kind, scalars.setdefault(id(node.arg), len(scalars))))
        else:
            inputs = tuple([numbers[id(source)] for source in node.inputs])
            rows.append((kind, inputs, fixed_part(node, scalars)))
    return roots[0].device, tuple(rows), tuple(numbers[id(root)] for root in roots)


def fixed_part(node: Node, scalars: dict[int, int]) -> Any:
    """Give what of an argument is no size; positions that a user gave are named by `scalars`."""
    if node.op in ("reshape", "expand", "const"):
        return None
    if node.op == "slice":
        return tuple([(step, name_of(start, scalars)) for start, _, step in node.arg])
    if node.op == "pad":
        pads, fill = node.arg
        ends = [(sign(low), sign(high), name_of(low, scalars)) for low, high in pads]
        return tuple(ends), repr(fill)
    if node.op == "put" and starts_of(node):
        return placed(node, lambda start: name_of(start, scalars))
    if node.op == "recur":
        spec: Recurrence = node.arg
        return spec.body, spec.is_reverse, None if spec.body.xs else spec.length
    return node.arg[0] if node.op == "fold" else node.arg


def sign(number: int) -> int:
    """Tell whether a number is below, at or above 0."""
    return (number > 0) - (number < 0)


def name_of(start: int, scalars: dict[int, int]) -> int | None:
    """Name a position that a user gave, by where it came first; None for other numbers."""
    return scalars.setdefault(id(start), len(scalars)) if type(start) is GivenInt else None


def fitted(
    family: Family,
    order: Nodes,
    expanded: Nodes,
    found: GraphKey,
    compiled: Compile,
    limits: Limits,
) -> BoundedPlan | None:
    """Bind the plan of a family to the sizes of a graph."""
    sizes = all_sizes(node.shape for node in order)
    if not is_regular(family, order, sizes):
        return None
    changes = family.changes.copy()
    changes.compare(order, family.first)
    is_wider = changes.size() != family.changes.size()
    is_given = bool(limits)
    plan = None if is_wider else known_plan(family, order, sizes, found, is_given)
    if plan is not None:
        return plan
    if not changes.axes or (is_wider and not family.may_make()):
        return None
    axes = Axes(order, family.first, changes)
    known = [] if is_wider else near_bounds(family, sizes, is_given)
    bounds = next((each for each in known if fits(axes, each)), None)
    if bounds is None:
        if not is_wider and not family.may_make():
            return None
        bounds = choose_bounds(axes, family.largest, limits, least_bound(axes, family.bounds))
        if bounds not in known:
            before = [] if is_wider else family.bounds
            family.changes, family.bounds = changes, [*before, bounds]
            family.bindings = [] if is_wider else family.bindings
            family.made += 1
    else:
        family.reused += 1
    binding = bind(bounded(axes, bounds), expanded, found.order, compiled)
    others = [each for each in family.bindings if each.bounds != bounds]
    family.bindings = [*others, binding]
    return bound_plan(family, binding, order, sizes, found)


def has_grown(sizes: Sequence[int], bounds: Bounds) -> bool:
    """Tell whether sizes are a little beyond bounds: they will grow on."""
    pairs = [(sizes[at], bound) for at, bound in bounds.items()]
    is_little = all(
        size <= bound + max(bound // 4, BESIDE) and bound < 2 * size for size, bound in pairs
    )
    return is_little and any(size > bound for size, bound in pairs)


def least_bound(axes: Axes, known: Sequence[Bounds]) -> int:
    """Find the least bound; what grew beyond one that is known has the first of little memory."""
    is_growing = any(has_grown(axes.sizes, each) for each in known)
    has_product = any(node.row.role in PRODUCTS for node in axes.order)
    # A product of more rows has another kernel, which rounds sums otherwise.
    own = LEASTS[1:] if has_product else LEASTS
    leasts, most = ((MORE, *LEASTS), SMALL) if is_growing else (own, FEW)
    for least in leasts:
        sizes = [
            product(
                max(size, least) if axes.is_dynamic(node, axis) else size
                for axis, size in enumerate(node.shape)
            )
            for node in axes.order
            if axes.dynamic_axes(node)
        ]
        if max(sizes, default=0) <= most:
            return least
    return LEAST


def is_regular(family: Family, order: Nodes, sizes: Sequence[int]) -> bool:
    """Note the sizes of a graph; tells whether they are none that make a structure of its own."""
    is_now, is_first = is_degenerate(sizes, family.first.sizes, family.changes.axes)
    family.largest = [*map(max, family.largest, sizes)]
    if is_first:
        family.first, family.changes = record(order), Changes()
        family.bounds.clear()
        family.bindings.clear()
    return not (is_now or is_first)


def near_bounds(family: Family, sizes: Sequence[int], is_given: bool) -> list[Bounds]:
    """List the bounds in use; without a user's, those that are near the sizes."""
    return [each for each in family.bounds if is_given or is_near(each, sizes, NEAR)]


def known_plan(
    family: Family, order: Nodes, sizes: Sequence[int], found: GraphKey, is_given: bool
) -> BoundedPlan | None:
    """Bind a plan that was bound before."""
    near = near_bounds(family, sizes, is_given)
    for binding in family.bindings:
        if binding.bounds not in near:
            continue
        plan = bound_plan(family, binding, order, sizes, found)
        if plan is not None:
            family.reused += 1
            return plan
    return None


def bind(graph: Bounded, expanded: Nodes, order: Nodes, compiled: Compile) -> Binding:
    """Compile a bounded graph of what was recorded, and note where its numbers are."""
    parts = written_parts(order)
    if any(id(buffer) in parts and buffer.count > FEW for buffer, _, _ in graph.written):
        raise Degenerate
    wanted = [graph.made[id(root)] for root in expanded]
    wanted += [value for _, _, value in graph.written]
    found = graph_key(wanted)
    return make_binding(graph, expanded, wanted, found, compiled(wanted, found))


def bound_plan(
    family: Family, binding: Binding, order: Nodes, sizes: Sequence[int], found: GraphKey
) -> BoundedPlan | None:
    """Bind a plan to the sizes of a graph; None if they do not fit, or the plan is gone."""
    inner = binding.plan()
    if inner is None or binding.epoch != config.epoch or not binding.fits(sizes):
        return None
    nbytes = BOUND_BYTES + ENTRY_BYTES * (len(found.order) + len(found.buffers))
    places = {id(scalar): number for number, scalar in enumerate(found.scalars)}
    bound = binding.bind(order, sizes, found.buffers, places)
    if binding.has_loop:  # nearly all of a run are its steps
        return BoundedPlan(inner, bound, FOR_EVER, nbytes, binding, family)
    elements = sum(node.size for node in order)
    # What lies far beyond the sizes is computed in part: then even sooner.
    waste = max(binding.elements // (2 * elements), 1)
    patience = patience_of(bound, inner.launches, elements) // waste
    steady = max(ROW_PATIENCE * inner.launches, LEAST_ROW)
    return BoundedPlan(inner, bound, patience, nbytes, binding, family, steady)


def rebound(family: Family, binding: Binding, bound: Bound, nbytes: int) -> BoundedPlan | None:
    """Give the plan of a binding for other sizes; None if it is gone, or the settings changed."""
    inner = binding.plan()
    if inner is None or binding.epoch != config.epoch:
        return None
    family.reused += 1
    return BoundedPlan(inner, bound, FOR_EVER, nbytes, binding, family)


def bind_traced(
    plan: BoundedPlan,
    roots: Nodes,
    buffers: Sequence[Buffer],
    places: dict[int, int],
    must_be_near: bool = False,
) -> Bound | None:
    """Bind a plan to a copy of its graph whose sizes are traced: what is asked of them is a guard.

    So what it gives, and says, holds for all sizes that read as these do.
    """

    def own_scalar(node: Node) -> Node:
        return with_scalar(node) if id(node.arg) in places else node  # others were computed

    expanded = expand_composites(roots, KEPT, own_scalar)
    order = walk_pending(expanded)
    family, binding = FAMILIES.get(structure(order, expanded)), plan.binding
    if family is None or family is not plan.family or binding is None:
        return None
    sizes = all_sizes(node.shape for node in order)
    changes = family.changes.copy()
    changes.compare(order, family.first)
    if changes.size() != family.changes.size() or not binding.fits(sizes):
        return None
    if must_be_near and not is_near(binding.bounds, sizes, NEAR):
        return None
    is_last = any(each is binding for each in family.bindings)
    return binding.bind(order, sizes, buffers, places, is_traced=True) if is_last else None


def patience_of(bound: Bound, kernels: int, elements: int) -> int:
    """Tell how often a plan may run for a graph of so many elements before it gets its own.

    A small plan is compiled soon: what it loses by a bound is a large part of it.
    """
    pairs = [pair for _, pair in bound.inputs] + bound.outputs
    pairs += [pair for _, pair in bound.written]
    copied = sum(product(map(min, *pair)) for pair in pairs if pair and not are_rows(pair))
    most = PATIENCE if 8 * copied < elements else min(PATIENCE, SHORT_PATIENCE)
    return min(most, KERNEL_PATIENCE * kernels)
