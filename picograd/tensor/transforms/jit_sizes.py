"""Sizes among the arguments of a jitted function: marked axes are followed as numbers are.

    picograd.jit(f, dynamic={"x": {0: picograd.Dim("batch", 1, 512)}})

A marked size is a traced number in the shape of the argument's twin, and so in all shapes that the
function's operations compute of it; what compares or reads one is a guard. When the function has
run, its graph is copied at the sizes of the call (`Sizes.graph`). It is kept, without memory, and
copied again for other sizes: their plans come from `picograd/engine/sizes.py`, which lays one out
for all sizes up to the bound. Size 0 is a structure of its own; 1 is where Python asks for it.
"""

import dataclasses
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.dtype import DType
from picograd.engine.bound_sizes import BoundSizes, bound_sizes
from picograd.engine.plan_key import graph_key, leaf_buffer
from picograd.engine.realize import find_plan, keep_plan, leaf, own_plan, plain_graph
from picograd.engine.sizes import FOR_EVER, BoundedPlan, prime
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.graph.composites import CustomGradient
from picograd.graph.node import Node, toposort
from picograd.graph.recurrence import Body, Recurrence
from picograd.graph.row import MEMORY, NUMBERS
from picograd.graph.starts import MOVING, starts_of
from picograd.number import Given, GivenInt
from picograd.tensor.transforms.jit_replay import keep_graph
from picograd.traced_number import Numbers, Program, TracedNumber

TRIALS = 16  # plans that are bound to traced sizes
KEPT = 512  # plans of a trace that are found without its graph, by sizes
PLAIN = (int, float, bool, str, type(None), DType, RuntimeScalar, Given, GivenInt)

Marks = list[tuple[int, int, Any]]  # tensor, axis, its Dim if it has one


class NotFollowed(Exception):
    """Numbers that a graph holds where nobody looks for them: the values are traced then."""


@dataclasses.dataclass(frozen=True)
class Dim:
    """This class names an axis whose size varies, from `min` to `max`, for `picograd.jit`.

    Axes of one name have one size. A call with a size outside the range is a ShapeError; plans are
    made for the largest.

    >>> batch = picograd.Dim("batch", 1, 512)
    >>> total = picograd.jit(lambda x: x.sum(), dynamic={"x": {0: batch}})
    >>> [total(picograd.ones(n)).item() for n in (2, 3, 4)], total.traces
    ([2.0, 3.0, 4.0], 1)
    """

    name: str
    min: int = 1
    max: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DTypeError("Dim", f"the name is {self.name!r}", "pass a text, then the sizes")
        most = self.min if self.max is None else self.max
        if type(self.min) is not int or type(most) is not int or not 0 <= self.min <= most:
            text = f"{self.name} from {self.min!r} to {self.max!r} is no range of sizes"
            raise ValueRangeError("Dim", text, 'write Dim("batch", 1, 512)')

    def check(self, size: int, argument: Callable[[], str], axis: int) -> None:
        """Raise ShapeError for a size outside the range."""
        if size < self.min or (self.max is not None and size > self.max):
            most = "up" if self.max is None else f"to {self.max}"
            text = f"axis {axis} of argument {argument()} has size {size}, and dimension"
            text = f"{text} {self.name} goes from {self.min} {most}"
            raise ShapeError("jit", text, "pass a size in the range, or widen it")


def read_dynamic(dynamic: Any, signature: Any) -> Any:
    """Check what `jit(dynamic=...)` is given: True, axes by argument, False, or None."""
    if dynamic in (None, False, True):
        return dynamic
    fix = 'write dynamic=True or dynamic={"x": {0: picograd.Dim("batch", 1, 512)}}'
    if not isinstance(dynamic, Mapping):
        raise DTypeError("jit", f"dynamic is a {type(dynamic).__name__}", fix)
    found: dict[str, dict[int, Any]] = {}
    for name, axes in dynamic.items():
        rows = axes if isinstance(axes, Mapping) else dict.fromkeys(as_tuple(axes, fix), True)
        found[name] = {}
        for axis, bound in rows.items():
            found[name][axis] = dimension(name, axis, bound, fix)
    check_names(found, signature)
    return found


def check_names(dynamic: Any, signature: Any) -> None:
    """Raise ValueRangeError where sizes are marked of what a function does not take."""
    known = {} if signature is None else signature.parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in known.values())
    unknown = [name for name in dynamic if name not in known]
    if known and unknown and not takes_any:
        text = f"dynamic marks {unknown[0]!r}, and the function takes {', '.join(known)}"
        raise ValueRangeError("jit", text, "name one of its arguments")


def as_tuple(axes: Any, fix: str) -> tuple[Any, ...]:
    """Read one axis or several."""
    if isinstance(axes, (tuple, list, set)):
        return tuple(axes)
    if type(axes) is not int:
        raise DTypeError("jit", f"{axes!r} says no axes", fix)
    return (axes,)


def dimension(name: str, axis: Any, bound: Any, fix: str) -> Any:
    """Read what is said of an axis: a Dim, the largest size, or True."""
    if type(axis) is not int:
        raise DTypeError("jit", f"{axis!r} is no axis of argument {name}", fix)
    if isinstance(bound, Dim) or bound in (True, None):
        return bound if isinstance(bound, Dim) else None
    if type(bound) is not int:
        raise DTypeError("jit", f"{bound!r} is no bound of axis {axis} of argument {name}", fix)
    return Dim(f"{name}.shape[{axis}]", 0, bound)


def marks_of(dynamic: Any, names: Sequence[str], tensors: Sequence[Any]) -> Marks:
    """List the marked axes of the tensors of a call."""
    found: Marks = []
    if dynamic is True:
        for n, each in enumerate(tensors):
            found += [(n, axis, None) for axis in range(each.ndim)]
        return found
    for n, (name, tensor) in enumerate(zip(names, tensors)):
        for axis, dim in dynamic.get(name, {}).items():
            if not -tensor.ndim <= axis < tensor.ndim:
                text = f"argument {name} has {tensor.ndim} axes, and axis {axis} is marked"
                raise ShapeError("jit", text, "mark an axis that is there")
            found.append((n, axis % tensor.ndim, dim))
    return found


class Marked:
    """The marked sizes of one call: `values` of the followed ones, and which axes have them."""

    def __init__(
        self, marks: Marks, names: Callable[[], Sequence[str]], tensors: Sequence[Any], first: int
    ) -> None:
        self.values: list[int] = []
        self.names_of_tensors = names  # asked for where something is told
        self.limits: list[int | None] = []
        self.axes: dict[tuple[int, int], int] = {}  # place among the numbers, by tensor and axis
        places: dict[Any, int] = {}
        for n, axis, dim in marks:
            size = tensors[n].shape[axis]
            if dim is not None:
                dim.check(size, lambda n=n: names()[n], axis)
            key = (n, axis) if dim is None else dim.name
            place = places.setdefault(key, first + len(self.values))
            if place == first + len(self.values):
                self.values.append(size)
                self.limits.append(None if dim is None else dim.max)
            elif self.values[place - first] != size:
                text = f"dimension {dim.name} is {self.values[place - first]} and, as axis {axis}"
                text = f"{text} of argument {names()[n]}, {size}"
                raise ShapeError("jit", text, "make them equal")
            self.axes[n, axis] = place
        self.first = first
        rows = []
        for at, place in self.axes.items():
            size = self.values[place - first]
            rows.append((at, place, None if size else 0))
        self.key = tuple(rows)

    @property
    def names(self) -> list[str]:
        """Name each followed size, after the first axis that has it."""
        tensors = self.names_of_tensors()
        found = {
            place: f"{tensors[n]}.shape[{axis}]" for (n, axis), place in reversed(self.axes.items())
        }
        return [found[place] for place in sorted(found)]

    def masked(self, described: Any) -> Any:
        """Leave the followed sizes out of what is said of the tensors of a call."""
        found = []
        for n, (shape, *rest) in enumerate(described):
            found.append((self.shape(n, shape, lambda place: None), *rest))
        return tuple(found)

    def shape(self, n: int, shape: Any, number: Callable[[int], Any]) -> tuple[Any, ...]:
        """Give the shape of a tensor, with what stands for the followed sizes."""
        found = list(shape)
        for axis, size in enumerate(found):
            place = self.axes.get((n, axis))
            if place is not None and size:
                found[axis] = number(place)
        return tuple(found)


class Copied:
    """A graph at the sizes of a call: what each traced number became."""

    def __init__(self, numbers: Numbers, first: int, slots: Sequence[Any]) -> None:
        self.numbers = numbers
        self.first = first
        self.slots = slots
        self.made: dict[int, Any] = {}  # given numbers by slot
        self.slot_of: dict[int, int] = {}  # by identity of a given number
        self.fixed: set[int] = set()  # slots whose values are part of the copy
        self.checked: set[Body] = set()  # steps of loops without traced numbers

    def given(self, number: TracedNumber) -> Any:
        """Make a number that plans take at run time."""
        if number.numbers is not self.numbers:
            return number
        slot = number.slot
        if slot not in self.made:
            value = self.slots[slot]
            self.made[slot] = made = (GivenInt if isinstance(value, int) else Given)(value)
            self.slot_of[id(made)] = slot
        return self.made[slot]

    def value(self, arg: Any, is_moving: bool) -> Any:
        """Give an argument with the numbers of the call; the same one if none is traced."""
        kind = type(arg)
        if kind is TracedNumber:
            if arg.numbers is not self.numbers:
                return arg.value
            if is_moving and min(self.numbers.sources([arg.slot]), default=0) < self.first:
                return self.given(arg)
            self.fixed.add(arg.slot)
            return self.slots[arg.slot]
        if kind in PLAIN or isinstance(arg, (DType, RuntimeScalar, Storage)):
            return arg
        if kind is tuple or kind is list:
            items = [self.value(each, is_moving) for each in arg]
            if all(a is b for a, b in zip(items, arg)):
                return arg
            return kind(items)
        if kind is Recurrence:
            self.check_body(arg.body)
            length = self.value(arg.length, False)
            return arg if length is arg.length else dataclasses.replace(arg, length=length)
        if dataclasses.is_dataclass(kind) and not hasattr(kind, "_trace_state"):
            changed = {}
            for field in dataclasses.fields(arg):
                was = getattr(arg, field.name)
                now = self.value(was, is_moving)
                if now is not was:
                    changed[field.name] = now
            return dataclasses.replace(arg, **changed) if changed else arg
        raise NotFollowed(f"sizes in a {kind.__name__}")

    def check_body(self, body: Body) -> None:
        """Raise NotFollowed where the step of a loop holds traced numbers."""
        if body not in self.checked:
            for node in body.order:
                if self.value(node.shape, False) is not node.shape:
                    raise NotFollowed("sizes in the step of a loop")
                if self.value(node.arg, False) is not node.arg:
                    raise NotFollowed("numbers in the step of a loop")
            self.checked.add(body)

    def node(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """Copy a node over other inputs."""
        shape = self.value(node.shape, False)
        if node.op in NUMBERS and type(node.arg) is TracedNumber:
            arg = self.given(node.arg)
        else:
            is_kept = (
                node.op in MEMORY or type(node.arg) is CustomGradient
            )  # a gradient of its own is asked for apart
            arg = node.arg if is_kept else self.value(node.arg, node.op in MOVING)
        is_same = shape is node.shape and arg is node.arg
        if is_same and all(a is b for a, b in zip(inputs, node.inputs)):
            return node
        return Node(node.op, inputs, arg, shape, node.dtype, node.device)


class TracedCopy(Copied):
    """A graph whose sizes and positions are traced numbers: `slots` has them."""

    def given(self, number: TracedNumber) -> Any:
        """Give a float as it is traced, and of an int one whose source is traced."""
        slot = number.slot
        if slot not in self.made:
            traced: Any = self.slots[slot]
            made: Any = traced
            if isinstance(traced.value, int):
                made = GivenInt(traced.value)
                made.source = traced
            self.made[slot] = made
            self.slot_of[id(made)] = slot
        return self.made[slot]


class Sizes:
    """The graph of one trace, to be copied at other sizes, and the plans found for them."""

    def __init__(self, numbers: Numbers, marked: Marked, patience: int = FOR_EVER) -> None:
        self.numbers, self.marked, self.patience = numbers, marked, patience
        numbers.follow_sizes()
        self.copied: Copied = Copied(numbers, marked.first, numbers.slots)
        self.roots: list[Node] = []
        self.leaves: list[tuple[Node, int]] = []  # without memory, and the input of the plan
        self.plans: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self.mark = object()  # of its plans in the cache
        self.learnt: list[BoundSizes] = []
        self.trials = TRIALS
        self.keyed: list[int] = []  # arguments of which a copy has values: sizes, and others

    def graph(self, roots: Sequence[Node]) -> list[Node]:
        """Copy the graph of the trace at its own sizes."""
        found = copied(roots, self.copied, {})
        sizes = range(self.marked.first, self.numbers.arguments)
        self.keyed = sorted({*sizes, *self.numbers.sources(self.copied.fixed)})
        return found

    def has_own_gradients(self, roots: Sequence[Node]) -> bool:
        """Tell whether gradients of outputs would ask functions that saw the traced sizes."""
        return any(type(node.arg) is CustomGradient for node in toposort(list(roots)))

    def fix_positions(self, capture: Any, roots: Sequence[Node]) -> None:
        """Fix the positions that gradients of outputs begin at."""
        for node in toposort(list(roots)) if capture.graph is not None else ():
            for start in starts_of(node):
                if id(start) in self.copied.slot_of:
                    self.numbers.read(self.copied.slot_of[id(start)])

    def limits(self, buffers: Sequence[Buffer], inputs: Sequence[tuple[int, int]]) -> Any:
        """Say how large the axes of a plan's inputs may be: by memory and axis."""
        found = {}
        for position, argument in inputs:
            for (n, axis), place in self.marked.axes.items():
                limit = self.marked.limits[place - self.marked.first]
                if n == argument and limit is not None:
                    found[id(buffers[position]), axis] = limit
        return found

    def keep(self, roots: Sequence[Node], buffers: Sequence[Buffer]) -> None:
        """Keep the graph over leaves without memory."""
        places = {id(buffer): position for position, buffer in enumerate(buffers)}
        stand_ins: dict[int, Node] = {}
        for node in toposort(list(roots), lambda node: leaf_buffer(node) is not None):
            buffer = leaf_buffer(node)
            if buffer is not None:
                made = Node("buffer", (), Storage(None), node.shape, node.dtype, node.device)
                stand_ins[id(node)] = made
                self.leaves.append((made, places[id(buffer)]))
        self.roots = over(roots, stand_ins)

    def at(
        self, slots: Sequence[Any], inputs: Sequence[Any], kind: type[Copied] = Copied
    ) -> tuple[list[Node], Copied]:
        """Copy the graph for the numbers of a call."""
        done = kind(self.numbers, self.marked.first, slots)
        leaves = {}
        for made, position in self.leaves:
            shape = done.value(made.shape, False)
            leaves[id(made)] = leaf(inputs[position], shape)
        return copied(self.roots, done, leaves), done

    def prime(self, program: Program, inputs: Sequence[Any]) -> None:
        """Let the family of this graph know other sizes: its first plan then is one for many."""
        numbers = list(self.numbers.slots[: self.numbers.arguments])
        for step in (1, -1):
            other = numbers.copy()
            for place in set(self.marked.axes.values()):
                if other[place] > 1:
                    other[place] += step
            slots = program.run(other)
            if isinstance(slots, list):
                prime(self.at(slots, inputs)[0])
                return

    def plan(self, capture: Any, slots: Sequence[Any], inputs: list[Any]) -> tuple[Any, Any]:
        """Find the plan for the sizes of a call, and its inputs: a text where it is another."""
        key = tuple([slots[place] for place in self.keyed])
        known = self.plans.get(key)
        plan, graph = (None, None) if known is None else (known[0](), known[1])
        is_worn = plan is not None and plan.is_worn
        if plan is not None and not is_worn:
            self.plans.move_to_end(key)
            capture.graph = graph
            return plan, inputs
        quick = None if is_worn else self.bound_plan(capture, slots)
        if quick is not None:
            if quick.binding is not None and not quick.binding.has_loop:
                quick.patience = self.patience
            keep_plan((self.mark, key), quick)
            self.remember(key, quick, None)
            return quick, inputs
        roots, done = self.at(slots, inputs)
        found = graph_key(roots)
        if not self.is_like(capture, done, found, inputs):
            return None, "its graph is another for these sizes"
        if capture.graph is not None:
            capture.graph = self.graph_of_gradients(capture, roots, found, inputs)
        if is_worn:
            plan = own_plan(*plain_graph(roots, found))
            capture.refer_to(plan)
        else:
            limits = self.limits(inputs, capture.arguments)
            plan = find_plan(found, roots, limits, self.patience)
            self.learn(capture, plan, slots, inputs)
        self.remember(key, plan, capture.graph)
        return plan, inputs

    def remember(self, key: Any, plan: Any, graph: Any) -> None:
        """Remember the plan for the numbers of a call; the cache of plans owns it."""
        self.plans[key] = weakref.ref(plan), graph
        while len(self.plans) > KEPT:
            self.plans.popitem(last=False)

    def bound_plan(self, capture: Any, slots: Sequence[Any]) -> BoundedPlan | None:
        """Find a plan for the numbers of a call by what was learnt of others."""
        alive = [each for each in self.learnt if each.is_alive()]
        self.trials += len(self.learnt) - len(alive)
        self.learnt = alive
        for number, each in enumerate(self.learnt if capture.graph is None else ()):
            found = each.find(slots)
            if found is not None:
                self.learnt.insert(0, self.learnt.pop(number))
                return found
        return None

    def learn(self, capture: Any, plan: Any, slots: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Bind a plan to traced sizes, so that other calls bind it by code."""
        if not isinstance(plan, BoundedPlan) or capture.graph is not None or self.trials <= 0:
            return
        self.trials -= 1

        def copy(given: Sequence[Any]) -> tuple[list[Node], dict[int, int]]:
            roots, done = self.at(given, inputs, TracedCopy)
            place_of = {slot: place for place, slot in capture.traced}
            places = {id(scalar): place for place, scalar in enumerate(capture.scalars)}
            for known, slot in done.slot_of.items():
                if slot in place_of:  # none where a slice ends
                    places[known] = place_of[slot]
            return roots, places

        numbers = sorted(self.copied.fixed | self.copied.made.keys())
        learnt = bound_sizes(plan, numbers, slots, copy, inputs)
        if learnt is not None:
            self.learnt.append(learnt)

    def is_like(self, capture: Any, done: Copied, found: Any, inputs: Sequence[Any]) -> bool:
        """Tell whether a copy numbers its buffers and numbers as the graph of the trace does."""
        traced = []
        for place, scalar in enumerate(found.scalars):
            if id(scalar) in done.slot_of:
                traced.append((place, done.slot_of[id(scalar)]))
        same = len(found.scalars) == len(capture.scalars)
        same = same and traced == capture.traced
        same = same and len(found.buffers) == len(inputs)
        return same and all(a is b for a, b in zip(found.buffers, inputs))

    def graph_of_gradients(
        self, capture: Any, roots: Sequence[Node], found: Any, inputs: Sequence[Any]
    ) -> Any:
        """Keep the graph of the outputs at the sizes of a call, for their gradients."""
        owners = {}
        for each in capture.captured:
            if each.position >= 0:
                owners[id(inputs[each.position])] = each.find
        arguments = {}
        for position, number in capture.arguments:
            arguments[id(inputs[position])] = number
        wanted = {number: roots[number] for number in capture.graph.roots}

        def owner(node: Node) -> Any:
            return owners.get(id(leaf_buffer(node)))

        return keep_graph(wanted, found, arguments, owner)


def over(roots: Sequence[Node], done: dict[int, Node]) -> list[Node]:
    """Copy a graph over other leaves: all of it, since the nodes of the trace will be computed."""
    for node in toposort(list(roots), lambda node: id(node) in done):
        if id(node) not in done:
            inputs = tuple([done[id(each)] for each in node.inputs])
            copy = Node(node.op, inputs, node.arg, node.shape, node.dtype, node.device)
            done[id(node)] = copy
    return [done[id(root)] for root in roots]


def copied(roots: Sequence[Node], at: Copied, done: dict[int, Node]) -> list[Node]:
    """Copy a graph for the numbers of a call."""
    for node in toposort(list(roots), lambda node: id(node) in done or node.realized is not None):
        if id(node) not in done:
            if node.realized is None:
                made = done[id(node)] = at.node(node, tuple([done[id(e)] for e in node.inputs]))
                tensor = None if node.leaf is None else node.leaf()
                if tensor is not None and tensor._node is node:
                    made.leaf = node.leaf  # gradients of what reads it end here
            else:
                done[id(node)] = node
    return [done[id(root)] for root in roots]
