"""Replays: put the present buffers into the plan of a trace, run it, hand its results out.

Gradients of what a jitted function returned may be asked for outside of it (`Recording`): a replay
records one node for each output that asks for gradients. Its value is the plan's, and its gradient
is that of the graph the trace recorded, over the arguments, captured tensors and random numbers of
this call. The kept graph holds no memory: its leaves are stand-ins.
"""

import dataclasses
import weakref
from collections.abc import Container, Iterable, Sequence
from dataclasses import field
from sys import getrefcount
from typing import Any

from picograd.buffer import REPLAYS, Buffer, Overwritten, RuntimeScalar, Storage
from picograd.config import config
from picograd.engine import pending
from picograd.engine.backends import get_device
from picograd.engine.carried import ALONE, FREE, LEAVES_OF_THE_GRAPH, held
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_key import GraphKey, leaf_buffer
from picograd.engine.realize import check_later, leaf, realize
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.composites import CustomGradient
from picograd.graph.gradient import HOOKS, gradient, with_hooks
from picograd.graph.node import Node, substituted, toposort
from picograd.graph.row import MEMORY, NUMBERS, SCALARS, WRITES
from picograd.graph.starts import moved, starts_of
from picograd.late_methods import dataclass
from picograd.number import GivenInt, position_of
from picograd.runtime.memory import Allocation
from picograd.tensor.core.arguments import item_of
from picograd.tensor.core.recording import (
    fill,
    is_view,
    move_to,
    note_view,
    renew_views,
    same_value,
    spread,
    wrap,
    write,
)
from picograd.tensor.core.recording import made as made_leaf
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_arguments import Place, rebuilt
from picograd.tensor.transforms.jit_trace import (
    Capture,
    Captured,
    Result,
    Target,
    base_of,
    describe,
)
from picograd.tensor.transforms.jit_variables import store
from picograd.traced_number import TracedNumber

Given = tuple[Node, Any, Any]  # a stand-in, what its gradient is for, and its value; None: later


@dataclass(slots=True)
class KeptGraph:
    """The graph of the outputs of a trace over stand-ins, each with where its value comes from.

    `arguments` are pairs with the number of an argument, `captured` with a weak reference, `fixed`
    with a leaf of memory the trace made, `scalars` with the place among the plan's scalars, where
    those of the positions in the graph are `starts`, by identity.
    """

    roots: dict[int, Node]
    arguments: list[tuple[Node, int]]
    captured: list[tuple[Node, Any]]
    fixed: list[tuple[Node, Node]]
    scalars: list[tuple[Node, int]]
    starts: dict[int, int]
    written: list[tuple[Node, Any]] = field(default_factory=list)  # leaves, as the call leaves them
    hooked: list[Node] = field(default_factory=list)  # of which hooks see the gradients
    is_fixed: bool = False  # gradients go through positions, or a checkpoint, of the trace
    owner: Any = None  # the function, weakly: it is told when gradients go through an output

    def given(
        self, arguments: Sequence[Any], written: Sequence[Any], before: Iterable[tuple[Any, Node]]
    ) -> list[Given]:
        """List what a call starts from; `before` are tensors, and nodes that they had.

        Gradients read what is about to be written as it is now.
        """
        given: list[Given] = []
        changing = set(map(id, written))
        nodes = {id(tensor): node for tensor, node in before}
        pairs = [(made, arguments[number]) for made, number in self.arguments]
        for made, tensor in (*pairs, *((made, find()) for made, find in self.captured)):
            node = nodes.get(id(tensor), tensor._node)
            if id(tensor) in changing:
                realize([node])
                buffer: Any = leaf_buffer(node)
                given.append((made, tensor, leaf(copy_of(buffer), node.shape)))
            else:
                given.append((made, node, node))
        return given + [(made, found(target, arguments), None) for made, target in self.written]


def note_asked(owner: Any) -> None:
    """Note that gradients go through what a jitted function gave: what it does is recorded now.

    A gradient through a replay computes once more all that the replay did.
    """
    function = None if owner is None else owner()
    if function is not None:
        function.is_asked = True


def stand_in(node: Node) -> Node:
    """Make a leaf without memory."""
    return Node("buffer", (), Storage(None), node.shape, node.dtype, node.device)


def keep_graph(
    roots: dict[int, Node], found: GraphKey, argument_of: dict[int, int], owner: Any,
    state_of: Any = lambda node: None,
) -> KeptGraph:  # fmt: skip
    """Copy the graph of some roots over stand-ins.

    `state_of` gives the leaf, if any, of which a node that writes is the value after the call.
    """
    states = {id(n): (stand_in(n), state_of(n)) for n in below(roots) if state_of(n) is not None}
    roots = without_writes(roots, {key: made for key, (made, _) in states.items()})
    nodes = toposort(list(roots.values()), lambda node: leaf_buffer(node) is not None)
    kept = KeptGraph({}, [], [], [], [], {})
    written = {id(leaf_buffer(base_of(node))) for node in found.order if node.op in WRITES}
    values: dict[int, Node] = {}
    scalars = {id(scalar): number for number, scalar in enumerate(found.scalars)}
    for node in nodes:
        buffer = leaf_buffer(node)
        for start in starts_of(node):
            if id(start) in scalars:
                kept.starts[id(start)] = scalars[id(start)]
            else:  # no value needs it, and so no call says where it is
                kept.is_fixed = True
        if node.op in SCALARS or (node.op in NUMBERS and id(node.arg) in scalars):
            values[id(node)] = stand_in(node)
            kept.scalars.append((values[id(node)], scalars[id(node.arg)]))
        elif buffer is not None:
            made = values[id(node)] = stand_in(node)
            tensor = owner(node)
            if id(buffer) in argument_of:
                kept.arguments.append((made, argument_of[id(buffer)]))
            elif tensor is not None:
                kept.captured.append((made, tensor))
            else:
                steady = copy_of(buffer) if id(buffer) in written else buffer
                kept.fixed.append((made, leaf(steady, node.shape)))
        elif type(node.arg) is CustomGradient:
            kept.is_fixed |= node.arg.is_fixed
    kept.written = list(states.values())
    kept.hooked = [node for node in nodes if node in HOOKS and id(node) not in values]
    ends = [*roots.values(), *kept.hooked]
    copies = with_hooks(ends, substituted(ends, values))
    kept.roots, kept.hooked = dict(zip(roots, copies)), copies[len(roots) :]
    return kept


def below(roots: dict[int, Node], states: Container[int] = ()) -> list[Node]:
    """List what roots are computed from, down to memory and `states`."""
    nodes = list(roots.values())
    return toposort(nodes, lambda node: leaf_buffer(node) is not None or id(node) in states)


def without_writes(roots: dict[int, Node], states: dict[int, Node]) -> dict[int, Node]:
    """Let what reads memory that was written read the value instead: the memory will change.

    But for `states`, by identity, in the place of which others are read.
    """
    nodes = below(roots, states)
    if not states and not any(node.op in WRITES for node in nodes):
        return roots
    copies = dict(states)
    for node in nodes:
        if leaf_buffer(node) is not None:
            copies[id(node)] = node
        if id(node) in copies:
            continue
        inputs = tuple([copies[id(child)] for child in node.inputs])
        copies[id(node)] = inputs[-1] if node.op in WRITES else node.with_inputs(inputs)
    with_hooks(nodes, [copies[id(node)] for node in nodes])
    return {number: copies[id(root)] for number, root in roots.items()}


def undo(tracer: Any) -> None:
    """After an error every tensor is what it was; what the function stored waits to be computed.

    What it computed of what it wrote is computed of the values. A stand-in of an argument that it
    stored shows the argument.
    """
    tracer.before.undo(tracer.trace)
    made = [each for each in tracer.made() if leaf_buffer(each._node) is None]
    known = computable([each._node for each in made])
    made = [each for each in made if id(each._node) in known]
    passed = [(number, node, tracer.arguments[number]) for number, node in tracer.first.items()]
    roots = list(without_writes({at: each._node for at, each in enumerate(made)}, {}).values())
    values = {id(node): tensor._node for _, node, tensor in passed}
    for each, node in zip(made, with_hooks(roots, substituted(roots, values))):
        each._move(node)
    for number, _, tensor in passed:
        if not tensor._tracks:
            tracer.twins[number]._move(build.detach(tensor._node))
            note_view(tracer.twins[number], tensor, build.detach)


def computable(nodes: Sequence[Node]) -> set[int]:
    """Identify what does not depend on values of a loop's step, or of a sample, inside a trace."""
    found: set[int] = set()
    for node in toposort(nodes, lambda node: leaf_buffer(node) is not None):
        is_number = node.op in LEAVES_OF_THE_GRAPH and node.op not in MEMORY
        is_leaf = is_number or leaf_buffer(node) is not None
        if is_leaf or (node.inputs and all(id(child) in found for child in node.inputs)):
            found.add(id(node))
    return found


class Recording:
    """This class is one call of a jitted function, for the gradients of its outputs."""

    def __init__(
        self, kept: KeptGraph, given: Sequence[Given], values: Sequence[int | float]
    ) -> None:
        self.kept = kept
        now = [(made, at._node, at._node) if value is None else (made, at, value)
               for made, at, value in given]  # fmt: skip
        self.leaves = [(made, value) for made, _, value in now] + kept.fixed
        self.asked = [each for each in now if each[0].dtype.is_differentiable]
        self.inputs: list[Any] = [getattr(source, "_node", source) for _, source, _ in self.asked]
        self.values = [(made, values[number]) for made, number in kept.scalars]
        self.starts = {start: GivenInt(values[at]) for start, at in kept.starts.items()}

    def output(self, number: int, buffer: Buffer, shape: tuple[int, ...]) -> Any:
        """Make one output, computed already, whose gradient is that of the trace."""
        ends = [self.kept.roots[number], *self.kept.hooked]
        if self.starts:
            ends = with_hooks(ends, moved(ends, lambda start: self.starts.get(id(start), start)))

        def vjp(flowing: Node, node: Node, *nodes: Node) -> list[Node | None]:
            note_asked(self.kept.owner)
            values = {id(made): given for made, given in self.leaves}
            for made, value in self.values:
                scalar = RuntimeScalar(value)
                number = build.scalar(scalar, made.device, made.dtype)
                values[id(made)] = number.broadcast_to(made.shape)
            pairs = zip(self.asked, nodes)  # of targets no path leads from one to another
            targets = [
                same_value(now if source is value else value) for (_, source, value), now in pairs
            ]
            values.update((id(made), target) for (made, *_), target in zip(self.asked, targets))
            root, *_ = with_hooks(ends, substituted(ends, values))
            return gradient([(root, flowing)], targets)

        node = custom(leaf(buffer, shape), self.inputs, vjp)
        node.realized = buffer
        return wrap(node, True)


def ready(capture: Capture, arguments: Sequence[Tensor], buffers: Sequence[Buffer]) -> Any:
    """List the inputs of the plan for this call, or the reason why the trace does not fit it."""
    plan = capture.find_plan()
    if capture.plan is not None and plan is None:
        return f"its plan fell out of the {config.plans_size} MiB of PICOGRAD_PLANS_SIZE"
    if plan is not None and plan.is_worn and capture.sizes is None:
        return "these sizes run so often that they get a plan of their own"
    inputs = capture.inputs.copy()
    for position, number in capture.arguments:
        inputs[position] = buffers[number]
    for each in capture.captured:
        tensor = each.find()
        if tensor is None:
            return "a captured tensor is gone"
        node = tensor._node
        if (node.arg is not each.expected and node is not each.expected) or (
            tensor._tracks is not each.tracks or tensor._is_frozen is not each.is_frozen
        ):
            if is_computed(tensor) and (capture.gradients or capture.written_gradients):
                return "gradients went through what a captured tensor was computed from"
            reason = renew(each, tensor)
            if reason:
                return reason
        if each.position >= 0:
            inputs[each.position] = leaf_buffer(tensor._node)
    for position, target, described in capture.read:
        owner = found(target, arguments)
        gradient = None if owner is None else owner._grad
        if (None if gradient is None else describe(gradient)) != described:
            there = "is" if gradient is not None else "is not"
            shape = () if owner is None else owner._node.shape
            return f"the gradient of a tensor {shape} {there} there, or is another kind"
        if is_computed(gradient):
            return "a gradient that it adds to leads to others"
        if position >= 0 and gradient is not None:
            realize([gradient._node])
            inputs[position] = leaf_buffer(gradient._node)
    return inputs


def renew(each: Captured, tensor: Tensor) -> str:
    """Take up the value that a captured tensor was given; says why where that does not do."""
    described = describe(tensor)
    if described != each.described:
        names = ("shape", "dtype", "device", "requires_grad", "frozen", "is_leaf")
        which = next(n for n, a, b in zip(names, described, each.described) if a != b)
        return f"{which} of a captured tensor {each.described[0]} changed"
    if each.position < 0 and not shows_alike(tensor._node, each.expected):
        return f"a captured constant {described[0]} has another value"
    if each.position >= 0 and leaf_buffer(tensor._node) is None:
        pending.compute([tensor._node])
    node = tensor._node
    each.expected = node.arg if node.op in MEMORY else node
    return ""


def shows_alike(node: Any, expected: Any) -> bool:
    """Tell whether two nodes are the same views of one memory, whatever it holds."""
    while node.op == expected.op and node.op in FREE and node.arg == expected.arg:
        node, expected = node.inputs[0], expected.inputs[0]
    are_leaves = node.op in MEMORY and expected.op in MEMORY
    return are_leaves and storage_of(node) is storage_of(expected)


def storage_of(leaf: Any) -> Any:
    """Find the storage of a leaf, of one that was overwritten too."""
    return leaf.arg.storage if isinstance(leaf.arg, Overwritten) else leaf.arg


def found(target: Target, arguments: Sequence[Tensor]) -> Any:
    """Find an argument by its number, or a tensor from outside by its reference."""
    return arguments[target] if isinstance(target, int) else target()


def replay(
    capture: Capture, plan: Any, arguments: Sequence[Tensor], inputs: list[Buffer],
    numbers: Sequence[Any] = (),
) -> Any:  # fmt: skip
    """Run a captured plan on its inputs; the function itself does not run."""
    if capture.early is not None:
        capture.early.run(inputs)
    if capture.recorded != pending.recorded() or writes_arguments(capture):
        prepare_writes(capture, arguments)
    for position in capture.copies:
        inputs[position] = copy_of(inputs[position])
    values = draw_again(capture, numbers)
    given = given_of(capture, arguments)
    REPLAYS[0] += 1
    results = [] if plan is None else run(capture, plan, arguments, inputs, values)
    spread_writes(capture, arguments)
    outputs = hand_out(capture, arguments, results, values, numbers, given)
    if capture.stores:
        store(capture, numbers)
    capture.recorded = pending.recorded()
    if capture.checks:
        check_results(capture, results)
    return outputs


def given_of(
    capture: Capture, arguments: Sequence[Tensor], before: Iterable[tuple[Any, Node]] = ()
) -> list[Given]:
    """List what a call starts from whose outputs may be asked for gradients, else nothing."""
    if capture.graph is None:
        return []
    return capture.graph.given(arguments, written_tensors(capture, arguments), before)


def run(
    capture: Capture, plan: Any, arguments: Sequence[Tensor], inputs: list[Buffer], values: Any
) -> list[Buffer]:
    """Run a plan; gradients that it does not read, and nothing else holds, lie where they lay."""
    if type(plan) is not CompiledPlan or capture.read or not capture.gradients:
        return plan.run(inputs, values)  # type: ignore[no-any-return]
    kept, places = list(plan.unkept), plan.new_results()
    for target, result in capture.gradients:
        owner = found(target, arguments)
        place = places[result.number] if result.kind == "root" else -1
        if owner is not None and place >= 0 and not result.tracks and not result.sizes:
            kept[place] = own_memory(owner, result.shape)
    return plan.run(inputs, values, "", kept)


def own_memory(owner: Any, shape: tuple[int, ...]) -> Buffer | None:
    """Give the memory of a tensor's gradient, if all that leads to it is the tensor itself."""
    if getrefcount(owner._grad) != ALONE:
        return None
    gradient: Any = owner._grad
    is_plain = type(gradient) is Tensor and not gradient._tracks and gradient._view is None
    if not is_plain or gradient._hooks is not None or gradient._history is not None:
        return None
    if getrefcount(gradient._node) != ALONE:
        return None
    node = gradient._node
    if type(node.arg) is not Storage or node.shape != shape or getrefcount(node.arg) != ALONE:
        return None
    storage = node.arg
    if getrefcount(storage.buffer) != ALONE:
        return None
    buffer: Any = storage.buffer
    if type(buffer.handle) is not Allocation or getrefcount(buffer.handle) != ALONE:
        return None
    storage.count_writes()
    return buffer  # type: ignore[no-any-return]


def spread_writes(capture: Capture, arguments: Sequence[Tensor]) -> None:
    """Let what the plan wrote reach the bases and views of its targets."""
    for tensor in written_tensors(capture, arguments):
        if tensor._view is not None or tensor._views is not None:
            spread(tensor)


def written_tensors(capture: Capture, arguments: Sequence[Tensor]) -> list[Tensor]:
    """List the tensors and the gradients that a plan writes in place, those still there."""
    tensors = [found(target, arguments) for target in capture.written]
    owners = [found(target, arguments) for target in capture.written_gradients]
    tensors += [owner._grad for owner in owners if owner is not None]
    return [each for each in tensors if each is not None]


def hand_out(
    capture: Capture, arguments: Sequence[Tensor], results: Sequence[Buffer], values: Any,
    numbers: Sequence[Any], given: Sequence[Given],
) -> Any:  # fmt: skip
    """Give every tensor its result, and build the returned value."""
    hand = Hand(capture, arguments, results, values, given, numbers)
    for target, result in capture.replaced:
        change(found(target, arguments), result, hand)
    later = []
    for target, result in capture.gradients:
        owner = found(target, arguments)
        if is_computed(owner):  # it adds to gradients that this call sets
            later.append((owner, hand.tensor(result)))
        else:
            give_gradient(owner, hand.tensor(result))
    for owner, flowing in later:
        give_gradient(owner, flowing)
    outputs = [hand.tensor(result) for result in capture.outputs]
    for find, result in capture.escapes:
        tensor = find()
        if tensor is not None and result.kind == "output":
            replace(tensor, wrap(same_value(outputs[result.number]._node), False))
        elif tensor is not None:
            replace(tensor, hand.tensor(result))
    return put_together(capture, outputs, numbers)


def put_together(capture: Capture, outputs: Sequence[Any], numbers: Sequence[Any]) -> Any:
    """Build the returned value of its tensors and numbers."""
    if type(capture.structure) is Place and capture.structure.slot < 0:
        return outputs[0]

    def at(place: Place) -> Any:
        return outputs[place.number] if place.slot < 0 else numbers[place.slot]

    return rebuilt(capture.structure, at)


class Hand:
    """This class makes the tensors of one call from the results of its plan."""

    __slots__ = (
        "arguments", "capture", "given", "numbers", "recording", "results", "shown", "values",
    )  # fmt: skip

    def __init__(
        self, capture: Capture, arguments: Sequence[Tensor], results: Sequence[Buffer], values: Any,
        given: Sequence[Given], numbers: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        self.given: Sequence[Given] = given
        self.numbers: Sequence[Any] = numbers
        self.capture = capture
        self.arguments = arguments
        self.results = results
        self.values: Any = values
        self.recording: Recording | None = None
        self.shown: dict[int, Any] = {}

    def tensor(self, result: Result) -> Any:
        """Find or make one tensor; what views show is made once."""
        made = self.shown_once(result)
        if result.noted:
            vars(made).update(result.noted)
        return made

    def shown_once(self, result: Result) -> Any:
        """Find or make one tensor, without its attributes."""
        if result.kind == "view":
            base, views = result.source
            return show_again(self.tensor(base), views, self.numbers)
        if not result.is_shown:
            return self.make(result)
        if id(result) not in self.shown:
            self.shown[id(result)] = self.make(result)
        return self.shown[id(result)]

    def make(self, result: Result) -> Any:
        """Find or make a tensor that shows no other."""
        if result.kind == "root":
            graph = self.capture.graph
            if graph is not None and result.number in graph.roots:
                return self.recorded(result)
            node = leaf(self.results[result.number], self.shape(result))
        elif result.kind == "argument":
            return self.arguments[result.number]
        elif result.kind == "captured":
            return result.source()
        elif result.kind == "none":
            return None
        else:
            node = leaf(copy_of(result.source), result.shape)
        made = made_leaf(node) if result.is_made else wrap(node, False)
        made._tracks = result.tracks and result.is_leaf
        return made

    def shape(self, result: Result) -> Any:
        """Give the shape of a result for the sizes of this call."""
        if result.sizes is None or not self.numbers:
            return result.shape
        slots = self.numbers
        return tuple([slots[n.slot] if type(n) is TracedNumber else n for n in result.sizes])

    def recorded(self, result: Result) -> Any:
        """Make an output that gradients can be asked of."""
        if self.recording is None:
            self.recording = Recording(self.capture.graph, self.given, self.values)
        return self.recording.output(result.number, self.results[result.number], self.shape(result))


def show_again(base: Any, views: Sequence[Any], numbers: Sequence[Any] = ()) -> Any:
    """Make a view of a tensor as views of another were made, the first one first.

    What is a number of a call in their operands is that of this call.
    """
    for view in views:
        if slots_of(view.operands):
            operands = at_numbers(view.operands, numbers)
            view = dataclasses.replace(view, operands=operands, moves=None)
        is_cut = base._tracks and not view.passes
        node = view.on(build.detach(base._node) if is_cut else base._node)
        made: Any = wrap(node, base._tracks and view.passes and node.dtype.is_differentiable)
        note_view(made, base, view.function, *view.operands)
        made._view = dataclasses.replace(view, base=base, known=None)
        base = made
    return base


def slots_of(value: Any) -> list[int]:
    """List the slots of the traced numbers in the operands of a view."""
    if type(value) is TracedNumber:
        return [value.slot]
    parts = (value.start, value.stop, value.step) if type(value) is slice else value
    is_several = isinstance(parts, (tuple, list))
    return [slot for each in parts for slot in slots_of(each)] if is_several else []


def at_numbers(value: Any, numbers: Sequence[Any]) -> Any:
    """Put the numbers of a call in the places of traced ones; positions are given, as a user's."""
    if type(value) is TracedNumber:
        return int(numbers[value.slot])
    if type(value) is slice:
        return item_of(slice(*at_numbers((value.start, value.stop, value.step), numbers)))
    if isinstance(value, list):
        return [position_of(at_numbers(each, numbers)) for each in value]
    if type(value) is tuple:
        return tuple([at_numbers(each, numbers) for each in value])
    return value


def change(tensor: Any, result: Result, hand: Hand) -> None:
    """Give a tensor from outside, if it is there, what a call gave it: another's memory, too."""
    value = None if tensor is None else hand.tensor(result)
    if value is not None and result.kind != "root":
        move_to(tensor, value)
    elif value is not None:
        replace(tensor, value, result.is_moved)


def replace(tensor: Any, value: Any, is_moved: bool = False) -> None:
    """Give a tensor another value, and what gradients lead to it; where `is_moved`, other memory.

    Its views show the new value, or keep the old memory.
    """
    if tensor is None:
        return
    node, is_computed = value._node, value._tracks and not value.is_leaf
    pending.forget(node, value)
    tensor._history = None
    if is_moved:
        tensor.node = node
    elif is_view(tensor):
        write(tensor, node, is_computed)
    else:
        give(tensor, node, is_computed)
        renew_views(tensor)


def give(tensor: Any, node: Any, is_computed: bool) -> None:
    """Give a tensor another node in its place."""
    if is_computed:
        pending.forget(tensor._node, tensor)
        tensor._node, tensor._tracks = node, True
        pending.track(node, tensor)
        return
    if not tensor.is_leaf:
        tensor._tracks = False
    tensor._move(node)


def is_computed(tensor: Any) -> bool:
    """Tell whether gradients of a tensor, if it is there, lead on to others."""
    return tensor is not None and tensor._tracks and not tensor.is_leaf


def give_gradient(tensor: Any, gradient: Any) -> None:
    """Set the gradient of a leaf; a computed argument hands it on to what it came from."""
    if tensor is None:
        return
    if gradient is not None and is_computed(tensor):
        tensor.backward(gradient)
    else:
        tensor._grad = gradient


def copy_of(buffer: Buffer) -> Buffer:
    """Copy memory that the trace made."""
    device = get_device(buffer.device)
    fresh = device.new_buffer(buffer.dtype, buffer.count)
    device.copy(fresh, buffer)
    return fresh


def computed(buffer: Buffer, shape: tuple[int, ...], is_made: bool) -> Tensor:
    """Make a tensor of memory that a plan filled; `is_made` if nothing leads to it."""
    node = Node("buffer", (), Storage(buffer), shape, buffer.dtype, buffer.device)
    tensor = Tensor.__new__(Tensor)
    fill(tensor, node, False)
    pending.enter(node, tensor)
    if is_made:
        node.leaf = weakref.ref(tensor)
    return tensor


def check_results(capture: Capture, results: Sequence[Buffer]) -> None:
    """Raise, as soon as the device can be looked at, where a check of the trace fails."""
    for number, error in capture.checks:
        check_later(results[number], error)


def draw_again(capture: Capture, numbers: Sequence[Any]) -> list[int | float]:
    """Give the runtime scalars of a plan their next values, as running the function would.

    Draws that nothing reads move their generators on too.
    """
    if not capture.scalars and not capture.drawn:
        return []
    drawn = {id(each): each.renew() for each in capture.drawn if each.renew is not None}
    rest = [s for s in capture.scalars if id(s) not in drawn]
    drawn.update({id(s): s.renew() if s.renew is not None else s.value for s in rest})
    values = [drawn[id(s)] for s in capture.scalars]
    for number, slot in capture.traced:
        values[number] = numbers[slot]
    return values


def prepare_writes(capture: Capture, arguments: Sequence[Tensor]) -> None:
    """Before memory is written: compute what still reads it, and give its tensors new leaves.

    Only where something was recorded since the last call, and for nodes that a graph refers to:
    else nothing can read the old contents.
    """
    written = written_tensors(capture, arguments)
    shared = [each for each in written if is_shared(each)]
    if shared:
        pending.before_writes([tensor.node for tensor in shared])
        for tensor in shared:
            tensor._move(pending.next_leaf(tensor.node))


def writes_arguments(capture: Capture) -> bool:
    """Tell whether a trace writes arguments: those of a call may be others than of the last one."""
    targets = (*capture.written, *capture.written_gradients)
    return any(isinstance(target, int) for target in targets)


def is_shared(tensor: Tensor) -> bool:
    """Tell whether graphs may read a tensor's memory, by its node or what was computed there."""
    if held(tensor, "_node") > ALONE or tensor._node.op not in MEMORY:
        return True
    source = tensor._node.arg.source
    return source is not None and source() is not None
