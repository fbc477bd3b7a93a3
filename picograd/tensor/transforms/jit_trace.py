"""One trace: run a function on stand-ins of its arguments, and find what a replay has to do.

The arguments the function sees are *twins*: tensors of their own over the same memory, one for each
distinct tensor, so that an argument is told apart from a captured tensor, and the caller's tensors
change only by what the function writes. When it returns, what outlives it are *roots* of one plan:

  outputs     tensors of the returned value
  gradients   `grad` of tensors from outside, where the function set it
  changes     arguments and captured tensors that were written, in place or by another value
  escapes     other tensors that the function made and stored somewhere

`Capture` says where the plan's inputs come from and where its results go; `jit_replay` follows it.
"""

import functools
import gc
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import count
from typing import Any

import numpy as np

from picograd.buffer import Buffer, RuntimeScalar
from picograd.engine import pending
from picograd.engine.carried import LEAVES_OF_THE_GRAPH
from picograd.engine.executable import Runnable
from picograd.engine.foreign import entangled
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import GraphKey, leaf_buffer, walk_pending
from picograd.engine.realize import leaf
from picograd.engine.tracing import Gradient, Trace, noting, trace_error, tracing
from picograd.errors import PicogradError
from picograd.graph.build import detach
from picograd.graph.node import Node
from picograd.graph.row import MEMORY, WRITES
from picograd.late_methods import dataclass
from picograd.tensor.core.autograd import leaf_of
from picograd.tensor.core.recording import is_view, one_piece, root_of, start
from picograd.tensor.indexing.indexing import Span
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_arguments import (
    check_returned,
    parts,
    rebuilt,
    template,
    tensors_in,
)
from picograd.tensor.transforms.jit_checks import Check, Early, is_early
from picograd.tensor.transforms.jit_places import TWINS, Finder, is_held, is_portable, tensors_of
from picograd.tensor.transforms.jit_state import is_plain
from picograd.tensor.transforms.jit_variables import Variable, finish, follow, search
from picograd.tensor.transforms.masked_choice import Chosen
from picograd.traced_number import Numbers, math_followed, plain

TRACE_BYTES = 8 << 10  # of a trace beside its plan, about (measured)
Target = Any  # an argument by its number, or a weak reference to a tensor from outside


@dataclass(slots=True)
class Captured:
    """A tensor from outside that the plan reads: which input it is, and what it was."""

    position: int  # among the plan's inputs; -1 for a constant of the graph
    find: Callable[[], Any]
    expected: Any  # the storage of a leaf, else the node
    tracks: bool
    is_frozen: bool
    described: tuple[Any, ...]


@dataclass(slots=True)
class Result:
    """One tensor that a call gives, and where from.

    `kind`: "root" (of the plan), "argument", "captured", "copy" (of memory the trace made), "none",
    or "view": its source is the result that it shows, and how.
    """

    kind: str
    number: int = -1
    source: Any = None
    shape: tuple[int, ...] = ()
    tracks: bool = False
    is_leaf: bool = True
    is_made: bool = False  # not computed from other tensors: gradients may stop at it
    sizes: Any = None  # the shape, with traced numbers in it
    is_shown: bool = False  # views of it are handed out too
    is_moved: bool = False  # in memory of its own: what showed the old goes on showing that
    noted: dict[str, Any] | None = None  # its attributes


@dataclass(slots=True)
class Capture:
    """One trace: its plan, where inputs come from, where results go; see the module docstring."""

    # The cache of plans owns it; None for a trace that computes nothing.
    plan: Callable[[], Runnable | None] | None = None
    inputs: list[Any] = field(default_factory=list)  # memory the trace made; the rest is filled in
    arguments: list[tuple[int, int]] = field(default_factory=list)  # (input, argument)
    captured: list[Captured] = field(default_factory=list)
    shown: tuple[int, ...] = ()  # what arguments are views of, if the trace writes something
    alike: tuple[int, ...] = ()  # which of these and captured tensors show one memory, then
    read: list[tuple[int, Target, tuple[Any, ...] | None]] = field(default_factory=list)  # grads
    copies: list[int] = field(default_factory=list)  # inputs that are written: copied each time
    scalars: list[Any] = field(default_factory=list)
    drawn: list[RuntimeScalar] = field(default_factory=list)  # in the order of recording
    outputs: list[Result] = field(default_factory=list)
    structure: Any = None
    gradients: list[tuple[Target, Result]] = field(default_factory=list)
    replaced: list[tuple[Target, Result]] = field(default_factory=list)  # not in place
    written: list[Target] = field(default_factory=list)  # in place
    written_gradients: list[Target] = field(default_factory=list)
    escapes: list[tuple[Target, Result]] = field(default_factory=list)
    checks: list[tuple[int, PicogradError]] = field(
        default_factory=list
    )  # (root, the error if it is true)
    early: Early | None = None  # checks that come before the plan
    sizes: Any = None  # the graph for other sizes, if some are followed
    graph: Any = None  # what the gradients of outputs need (jit_gradient)
    traced: list[tuple[int, int]] = field(default_factory=list)  # scalars that are such numbers
    program: Any = None  # the numbers among the arguments, if there are some
    stores: list[Any] = field(default_factory=list)  # places of Python's state that it sets
    opened: Any = None  # the places that hold tensors, if there are some (jit_places)
    guard: Any = None
    asked: set[str] = field(default_factory=set)  # what code asks of tensors beside their values
    refusals: list[str] = field(default_factory=list)
    recorded: int = -1  # operations recorded until the last call
    closure: Any = None  # the short way of its replays (jit_closure), None until that was asked

    def find_plan(self) -> Runnable | None:
        """Find the plan, for as long as the caller holds it; None where it fell out, or is none."""
        return None if self.plan is None else self.plan()

    def set_guard(self, guard: Any) -> None:
        """Keep what tells whether the state is that of the trace; or why no later one can be."""
        self.guard = guard
        captured = [each.find() for each in self.captured]
        guard.watch_hooks([each for each in captured if each is not None])
        self.refusals += guard.refusals

    def set_plan(self, plan: Runnable) -> None:
        """Refer to a plan, and count to it the memory that goes with it."""
        self.plan = weakref.ref(plan, functools.partial(let_go, self.inputs))
        own = {id(each): each.nbytes for each in self.inputs if each is not None}
        PLANS.charge(plan, TRACE_BYTES + sum(own.values()))

    def refer_to(self, plan: Runnable) -> None:
        """Refer to a plan that took the place of the present one in the cache."""
        present = self.find_plan()
        if present is None or PLANS.get(present.key) is not present:
            self.set_plan(plan)


def let_go(inputs: list[Any], reference: Any) -> None:
    """Let memory go that a trace made, when its plan falls out."""
    inputs.clear()


def describe(tensor: Tensor) -> tuple[Any, ...]:
    """Say what of a captured tensor a trace depends on, beside its values."""
    node = tensor._node
    tracks = tensor._tracks, tensor._is_frozen, tensor.is_leaf
    return node.shape, node.dtype, node.device, *tracks


class Before:
    """This class is the live tensors when a trace starts: what it changed is found, and undone."""

    def __init__(self) -> None:
        live = pending.live_tensors()
        self.nodes = {id(t._node): (weakref.ref(t), t._node, t._tracks, t._history) for t in live}
        self.described = {id(t._node): describe(t) for t in live}

    def owner(self, node: Node) -> Any:
        """Find the tensor that had a node."""
        found = self.nodes.get(id(node))
        return None if found is None else found[0]()

    def tensors(self) -> dict[int, tuple[Any, Node]]:
        """List the tensors that are still there, with their nodes before, by identity."""
        found = [(reference(), node) for reference, node, _, _ in self.nodes.values()]
        return {id(tensor): (tensor, node) for tensor, node in found if tensor is not None}

    def undo(self, trace: Trace) -> None:
        """Give every tensor what it had, and forget what was recorded since."""
        made = [reference() for reference in trace.made]
        for tensor in [*made, *trace.changed.values()]:
            if tensor is not None:
                pending.drop(tensor._node, tensor)
        for reference, node, tracks, history in self.nodes.values():
            tensor = reference()
            if tensor is not None and id(tensor) in trace.changed:
                tensor._node, tensor._tracks, tensor._history = (node, tracks, history)
                pending.track(node, tensor)
        for noted in trace.gradients.values():
            if noted.tensor is not None:
                noted.tensor._grad = noted.first
        for variable in trace.variables.values():
            variable.restore()
        for function in reversed(trace.undo):
            function()


def twin_of(tensor: Tensor, aliases: dict[int, Buffer], shape: Any) -> Tensor:
    """Make a stand-in of an argument: the same class and attributes, the same memory, its own node.

    Arguments that share memory share it among their twins.
    """
    buffer = leaf_buffer(tensor._node)
    if buffer is None:
        raise trace_error("jit", "an argument could not be realized", "call realize() on it first")
    if id(buffer) not in aliases:
        place = buffer.device, buffer.dtype, buffer.count, buffer.address
        aliases[id(buffer)] = Buffer(*place, buffer)
    kind = type(tensor)
    made: Any = kind.__new__(kind)
    start(made, leaf(aliases[id(buffer)], shape), False)
    made._node.leaf = weakref.ref(made)
    made._tracks, made._hooks, made.name = (tensor._tracks, tensor._hooks, tensor.name)
    made._is_frozen = tensor._is_frozen
    made._grad = tensor._grad
    for key, value in getattr(tensor, "__dict__", {}).items():
        setattr(made, key, value)
    return made


def tied(arguments: Sequence[Any]) -> dict[int, int]:
    """Say which arguments show bytes of NumPy's or another library's that another one shows."""
    return entangled([leaf_buffer(root_of(each)._node) for each in arguments])


def is_tied(capture: Capture, arguments: Sequence[Any]) -> bool:
    """Tell whether a trace writes an argument of which another one shows such bytes."""
    numbers = [target for target in capture.written if isinstance(target, int)]
    elsewhere = tied(arguments) if numbers else {}
    return any(number in elsewhere for number in numbers)


def are_pieces(views: Sequence[Any]) -> bool:
    """Tell whether views are different pieces that one call cut their base into."""
    cuts = [each._view for each in views]
    if any(cut is None or cut.function is not one_piece for cut in cuts):
        return False
    first = cuts[0]
    are_alike = all(c.base is first.base and c.operands[0] is first.operands[0] for c in cuts)
    return are_alike and len({cut.operands[1] for cut in cuts}) == len(cuts)


def views_of(tensor: Any) -> list[Any] | None:
    """List how a tensor shows the one that has its memory; None where tensors choose what."""
    found: list[Any] = []
    while is_view(tensor):
        if not is_spelt(tensor._view.operands):
            return None
        found.append(replace(tensor._view, base=None, known=None))
        tensor = tensor._view.base
    return found[::-1]


def is_spelt(value: Any) -> bool:
    """Tell whether the operands of a view hold numbers, also those of the call, and no tensor."""
    if isinstance(value, (tuple, list)):
        return all(map(is_spelt, value))
    if isinstance(value, slice):
        return is_spelt((value.start, value.stop, value.step))
    return not isinstance(value, (Tensor, Node, Span))


def base_of(node: Node) -> Node:
    """Find what a chain of in-place writes began with."""
    while node.op in WRITES:
        node = node.inputs[0]
    return node


def check_arguments(inside: Any, before: Any) -> None:
    """Raise TraceError where a container among the arguments was changed."""
    if not is_unchanged(inside, before):
        text = "the function changed a list, dict or dataclass among its arguments"
        raise trace_error("jit", text, "return the new tensors, or write them with assign")


def is_unchanged(value: Any, was: Any) -> bool:
    """Tell whether containers still hold the very same."""
    inner, former = parts(value), parts(was)
    if inner is None or former is None:
        return value is was or isinstance(value, np.ndarray)  # of which each has a copy
    if len(inner) != len(former) or (isinstance(value, dict) and list(value) != list(was)):
        return False
    return all(map(is_unchanged, inner, former))


class Tracer:
    """This class traces one call: `run` the function, then `find` what a replay does."""

    def __init__(
        self,
        arguments: Sequence[Tensor],
        is_captured: Callable[[Tensor], bool],
        numbers: Numbers,
        fixed: Iterable[int] = (),
        sizes: Any = None,
    ) -> None:
        self.arguments, self.trace = arguments, Trace()
        self.numbers, self.fixed, self.sizes = numbers, fixed, sizes
        self.before = Before()
        self.aliases: dict[int, Buffer] = {}
        self.twins: list[Tensor] = []
        self.first: dict[int, Node] = {}  # the nodes of the twins before, by argument
        self.number: dict[int, int] = {}  # the argument of a twin
        # before the function runs: where it writes what an argument shows, that is recorded anew
        self.memory: dict[int, int] = {}  # the argument with a buffer
        made: dict[int, Tensor] = {}
        for number, tensor in enumerate(arguments):
            if id(tensor) not in made:
                shape, twin = self.shape_of(number, tensor), tensor
                if is_captured(tensor):
                    list(map(plain, shape))  # the trace depends on the sizes that it has
                else:
                    twin = twin_of(tensor, self.aliases, shape)
                made[id(tensor)] = twin
                if twin is not tensor:
                    self.first[number], self.number[id(twin)] = (twin._node, number)
                    self.memory[id(leaf_buffer(tensor._node))] = number
            self.twins.append(made[id(tensor)])
        self.result: Any = None
        self.opened: Any = None
        self.rebound: list[Variable] = []  # places that hold what the function made or was given
        self.stores: list[Any] = []
        self.returned: list[weakref.ref[Tensor]] = []
        self.outside: dict[int, tuple[Any, Node]] = {}
        self.roots: dict[int, Node] = {}
        self.places: dict[int, int] = {}
        self.owners: dict[int, Target] = {}  # by the gradient it had: whose it was

    def run(
        self, function: Callable[..., Any], args: Any, kwargs: Any, reach: Any,
        followed: Iterable[Variable] = (), opened: Any = None,
    ) -> None:  # fmt: skip
        """Call the function on the twins.

        Of what it reaches, the variables that are functions of `math` take traced numbers;
        `followed` are places of Python's state that hold numbers, `opened` those of tensors.
        """
        if opened is not None:
            self.opened, function = opened, opened.wrapped(function)
            kwargs = {**kwargs, TWINS: opened.values}
        waiting = iter(self.twins)
        inside = rebuilt((args, kwargs), lambda tensor: next(waiting), self.number_of(count()))
        before = rebuilt(inside, lambda twin: twin)
        with tracing(), noting() as noted, math_followed(reach.math):
            self.trace = noted
            noted.numbers = self.numbers if self.numbers.follows_state else None
            noted.callers = {id(t): self.arguments[n] for n, t in enumerate(self.twins)}
            for each in followed:
                if each.identity()[:2] not in reach.followed:
                    follow(each.owner(), each.table, each.key, each.label)
            self.result = function(*inside[0], **inside[1])
        self.hand_attributes()
        check_arguments(inside, before)
        del inside, before
        for found in tensors_in(self.result):
            if isinstance(found, Chosen):
                raise found.unknown()
        self.stores = [*finish(noted), *search(noted, reach, self.result)]
        self.outside = self.before.tensors()
        check_returned(self.result, lambda tensor: not self.is_from_outside(tensor))
        self.check_memory()
        self.check_views()

    def hand_attributes(self) -> None:
        """Give arguments the attributes that the function set: every call must set them anew."""
        for twin, passed in zip(self.twins, self.arguments):
            if twin is not passed and not is_unchanged(vars(twin), vars(passed)):
                vars(passed).clear()
                vars(passed).update(vars(twin))
                self.trace.refusals.append("it sets an attribute of an argument")

    def shape_of(self, number: int, tensor: Tensor) -> Any:
        """Give the shape of an argument: sizes that are marked are followed."""
        if self.sizes is None:
            return tensor._node.shape
        return self.sizes.marked.shape(number, tensor._node.shape, self.size)

    def size(self, place: int) -> Any:
        """Give what stands for a size."""
        return self.numbers.slots[place] if place in self.fixed else self.numbers.argument(place)

    def number_of(self, places: Iterator[int]) -> Callable[[Any], Any]:
        """Give the function that finds what stands for the next number of the arguments."""

        def find(value: Any) -> Any:
            place = next(places)
            return value if place in self.fixed else self.numbers.argument(place)

        return find

    def check_memory(self) -> None:
        """Raise TraceError where what was written is the memory of an argument and captured."""
        roots = {id(root_of(self.arguments[n])): n for n in self.first}
        live = [tensor._node for tensor in (*self.made(), *self.trace.changed.values())]
        for node in walk_pending([node for node in live if leaf_buffer(node) is None]):
            owner = self.before.owner(node)
            if owner is None:
                continue
            number = self.memory.get(id(leaf_buffer(node)), roots.get(id(root_of(owner))))
            if number is None:
                continue
            is_written = self.twins[number]._node is not self.first[number]
            if is_written or id(owner) in self.trace.changed:
                text = f"argument {number} is captured too, and one of both is written"
                fix = "only pass it as an argument, or only use it from outside"
                raise trace_error("jit", text, fix)

    def check_views(self) -> None:
        """Raise TraceError where an argument was written whose elements another one shows too."""
        roots = [id(root_of(tensor)) for tensor in self.arguments]
        elsewhere = tied(self.arguments)
        for number, node in self.first.items():
            alike = [n for n, root in enumerate(roots) if root == roots[number]]
            others = [n for n in alike if self.arguments[n] is not self.arguments[number]]
            if number in elsewhere:
                others.append(elsewhere[number])
            if others and self.twins[number]._node is not node:
                text = f"arguments {number} and {others[0]} show one memory, and one is written"
                raise trace_error("jit", text, "pass their base alone, and slice it inside")

    def is_from_outside(self, tensor: Tensor) -> bool:
        """Tell whether a tensor is an argument, or was there before the trace."""
        return id(tensor) in self.number or id(tensor) in self.outside

    def made(self) -> list[Any]:
        """List the tensors that the function made and that are alive."""
        found = [reference() for reference in self.trace.made]
        return [tensor for tensor in found if tensor is not None]

    def target(self, tensor: Tensor) -> Target:
        """Say how a replay finds a tensor from outside."""
        number = self.number.get(id(tensor))
        return weakref.ref(tensor) if number is None else number

    def root(self, node: Node) -> int:
        """Number a node that the plan computes."""
        if id(node) not in self.places:
            self.places[id(node)] = len(self.roots)
            self.roots[id(node)] = node
        return self.places[id(node)]

    def given(self, tensor: Any) -> Result:
        """Say where a replay takes a tensor from that the function gave."""
        if tensor is None:
            return Result("none")
        if id(tensor) in self.number:
            return Result("argument", self.number[id(tensor)])
        if id(tensor) in self.outside:
            return Result("captured", source=weakref.ref(tensor))
        node = tensor._node
        buffer, state = (leaf_buffer(node), (tensor._tracks, tensor.is_leaf, node.leaf is not None))
        if buffer is not None:
            return Result("copy", -1, buffer, node.shape, *state)
        return Result("root", self.root(node), None, node.shape, *state)

    def find_places(self, known: Any, kept: set[int]) -> None:
        """Find the places that hold tensors of the trace; the caller's take that of their twins."""
        gradients = {id(each.tensor._grad) for each in self.trace.gradients.values()}
        made = [e for e in self.made() if id(e) not in kept and id(e) not in gradients]
        changed = self.trace.changed
        held = [each for each in self.twins if is_held(each, self.twins, changed)]
        made += [each for each in held if id(each) in self.number]
        del held
        if made:
            own = (made, self.twins, changed)
            self.rebound = Finder(known, own).find(made)
        for place in self.rebound:
            now = place.read()
            if is_portable(now) and any(id(each) in self.number for each in tensors_of(now)):
                place.write(rebuilt(now, self.callers))

    def callers(self, tensor: Any) -> Any:
        """Give the caller's tensor of a twin."""
        number = self.number.get(id(tensor))
        return tensor if number is None else self.arguments[number]

    def find(self, known: Any) -> Capture:
        """List the roots, and what a replay does with them; nothing is computed yet.

        `known` tells which objects were there before.
        """
        capture = Capture(
            drawn=self.trace.drawn, refusals=list(self.trace.refusals), stores=self.stores
        )
        capture.opened, capture.asked = self.opened, self.trace.asked
        outputs = self.find_outputs(capture)
        kept = set(map(id, self.find_kept()))
        self.find_places(known, kept)
        known = {*outputs, *self.outside, *self.number}
        known |= self.find_gradients(capture)
        self.find_changes(capture)
        if self.stored(known):
            gc.collect(1)  # a function inside that calls itself holds what it reads
        for tensor in self.stored(known):
            if id(tensor) in kept:
                self.root(tensor._node)
            else:
                capture.escapes.append((weakref.ref(tensor), self.given(tensor)))
        return capture

    def find_checks(self, capture: Capture) -> list[Check]:
        """Add checks to the roots; gives those that are to come before what the trace changes."""
        changes = capture.written, capture.written_gradients, capture.replaced, capture.gradients
        is_changing = any(changes) or capture.escapes or capture.stores
        known: set[int] = set()
        if is_changing and self.sizes is None and self.trace.checks:
            known = {id(leaf_buffer(node)) for node in walk_pending(list(self.roots.values()))}
        early: list[Any] = []
        later: dict[Any, tuple[Node, PicogradError]] = {}  # those of one error are one
        for check in self.trace.checks:
            if known and is_early(check, known):
                early.append(check)
                continue
            failed, error = check[:2]
            name = type(error), str(error), failed.device, failed.shape
            if name in later:
                failed = later[name][0].binary("logical_or", failed)
            later[name] = failed, error
        capture.checks += [(self.root(failed), error) for failed, error in later.values()]
        return early

    def find_kept(self) -> list[Tensor]:
        """List the tensors that later calls continue: not those of what is gone already."""
        alive = [pair for pair in self.trace.kept if pair[1] is None or pair[1]() is not None]
        if len(alive) < len(self.trace.kept):
            self.trace.kept = alive
        return [tensor for tensor, _ in alive]

    def find_outputs(self, capture: Capture) -> dict[int, int]:
        """List what the function returns, and let go of it: what is alive then is stored elsewhere.

        A view that is returned holds the tensor that it shows.
        """
        found = {id(tensor): tensor for tensor in tensors_in(self.result)}
        numbers = {key: number for number, key in enumerate(found)}
        results = {key: self.given(each) for key, each in self.own_memory(found.values()).items()}
        for key, tensor in found.items():
            if key not in results:
                results[key] = self.shown(tensor, results)
            if vars(tensor) and not self.is_from_outside(tensor):
                noted = results[key].noted = dict(vars(tensor))
                if not all(map(is_plain, noted.values())):
                    capture.refusals.append("it sets an attribute of a tensor it returns")
        capture.outputs = [results[key] for key in found]
        capture.structure = template(self.result, lambda tensor: numbers[id(tensor)])
        self.returned = [weakref.ref(tensor) for tensor in found.values()]
        self.result = None
        return numbers

    def own_memory(self, outputs: Iterable[Tensor]) -> dict[int, Tensor]:
        """List the outputs in memory of their own: nobody could tell that the rest show others'."""
        groups: dict[int, list[Any]] = {}
        for tensor in outputs:
            groups.setdefault(id(root_of(tensor)), []).append(tensor)
        found: dict[int, Tensor] = {}
        for group in groups.values():
            root: Any = root_of(group[0])
            is_visible = self.is_from_outside(root) or any(each is root for each in group)
            is_apart = len(group) == 1 or are_pieces(group)
            if id(root) in self.owners:
                is_visible, is_apart = False, True
            for each in group:
                views = views_of(each)  # what a tensor chooses is a value
                if each is root or (is_apart and not is_visible) or views is None:
                    found[id(each)] = each
        return found

    def shown(self, tensor: Tensor, results: dict[int, Result]) -> Result:
        """Say what an output shows, and how."""
        root: Any = root_of(tensor)
        if id(root) not in results:
            results[id(root)] = self.given(root)
        if tensor._tracks and any(not view.passes for view in views_of(tensor) or ()):
            text = "it returns a detached view that it wrote, with values that need gradients"
            raise trace_error("jit", text, "return view.clone(), or write view.detach()")
        base = results[id(root)]
        base.is_shown = True
        return Result("view", source=(base, views_of(tensor)))

    def stored(self, known: set[int]) -> list[Tensor]:
        """List the tensors that the function made and that somebody holds."""
        leaves = LEAVES_OF_THE_GRAPH
        return [
            tensor
            for tensor in self.made()
            if id(tensor) not in known
            and leaf_buffer(tensor._node) is None
            and tensor._node.op not in leaves
        ]

    def find_gradients(self, capture: Capture) -> set[int]:
        """List what became of gradients; gives those of tensors from outside, by identity.

        A tensor that the function made is stored only if somebody else holds it.
        """
        known = set()
        for noted in self.trace.gradients.values():
            if self.is_from_outside(noted.tensor):
                self.find_gradient(capture, noted)
                known.add(id(noted.tensor._grad))
            else:
                noted.tensor = noted.first = None
        return known

    def find_gradient(self, capture: Capture, noted: Gradient) -> None:
        """List what became of one gradient: whether it was there, and what the function set."""
        target = self.target(noted.tensor)
        if noted.first is not None:
            self.owners[id(noted.first)] = target
        if noted.is_read:
            described = None if noted.first is None else describe(noted.first)
            capture.read.append((-1, target, described))
        if noted.tensor._grad is not noted.first or not noted.is_read:
            capture.gradients.append((target, self.given(noted.tensor._grad)))

    def find_changes(self, capture: Capture) -> None:
        """List the tensors from outside that have another value now."""
        twins = [(self.twins[number], node) for number, node in self.first.items()]
        moved, handed = self.trace.moved, set(map(id, self.trace.stand_ins.values()))
        for tensor, node in [*twins, *self.outside.values()]:
            if tensor._node is node or id(tensor) not in self.trace.changed:
                continue
            root: Any = root_of(tensor)
            if id(tensor) not in moved and root is not tensor:
                is_twin = id(tensor) in self.number
                if id(root) in handed or (not is_twin and self.is_from_outside(root)):
                    continue  # it follows its base, or what has the memory of that now
            if base_of(tensor._node) is node:
                self.root(tensor._node)
                if id(tensor) in self.owners:
                    capture.written_gradients.append(self.owners[id(tensor)])
                else:
                    capture.written.append(self.target(tensor))
                continue
            self.find_left(tensor, node)
            made = self.shared_with(tensor)
            if made is None:
                made = Result("root", self.root(tensor._node), None, tensor._node.shape)
            made.tracks, made.is_leaf = tensor._tracks, tensor.is_leaf
            made.is_made = tensor._node.leaf is not None
            made.is_moved = id(tensor) in moved
            capture.replaced.append((self.target(tensor), made))

    def find_left(self, tensor: Tensor, node: Node) -> None:
        """Compute what was written in memory that a tensor had before: views of that show it."""
        stand_in = self.trace.stand_ins.get(id(tensor))
        left = self.trace.moved.get(id(tensor), node) if stand_in is None else stand_in._node
        if left is not node and base_of(left) is node:
            self.root(left)

    def shared_with(self, tensor: Tensor) -> Result | None:
        """Say which tensor from outside has the memory that the function gave another; or None."""
        moved = self.trace.moved
        root: Any = root_of(tensor)
        views = views_of(tensor)
        if id(tensor) not in moved or views is None:
            return None
        if id(root) not in moved:
            return (
                Result("view", source=(self.given(root), views))
                if self.is_from_outside(root)
                else None
            )
        for reference in root._views or ():
            shown = reference()  # one that had no base when its memory was given on
            is_base = shown is not None and is_view(shown) and shown._view.base is tensor
            if is_base and self.is_from_outside(shown) and id(shown) not in moved:
                return self.given(shown) if shown._view.function is detach else None
        return None

    def argument_of(self) -> dict[int, int]:
        """List the arguments by their twins' memory."""
        return {id(self.aliases[buffer]): number for buffer, number in self.memory.items()}

    def find_captured(self, node: Node) -> Any:
        """Refer to the tensor from outside that has a node, if there is one."""
        owner = self.before.owner(node)
        is_passed = owner is None or (id(owner) in self.owners and not owner._tracks)
        return None if is_passed else weakref.ref(owner)

    def state_of(self, node: Node) -> Target | None:
        """Find the trained tensor from outside of which a node is a value, computed here."""
        tensor: Any = leaf_of(node) if node.inputs else None
        is_state = tensor is not None and tensor._tracks and self.is_from_outside(tensor)
        return self.target(tensor) if is_state else None

    def is_past(self, node: Node) -> bool:
        """Tell whether such a value is not the last one."""
        return self.state_of(node) is not None and leaf_of(node)._node is not node

    def find_inputs(self, capture: Capture, found: GraphKey) -> None:
        """Say for every buffer of the plan where a replay takes it from."""
        numbers = {id(buffer): number for number, buffer in enumerate(found.buffers)}
        arguments = self.argument_of()
        kept = {id(base_of(tensor._node)): tensor for tensor in self.find_kept()}
        written = {id(base_of(node)) for node in found.order if node.op in WRITES}
        leaves = [target for target, _ in capture.replaced]  # other ones, in the same memory
        replaced = {each if isinstance(each, int) else id(each()) for each in leaves}
        capture.inputs = [None] * len(found.buffers)
        for node in found.order:
            buffer, owner = leaf_buffer(node), self.before.owner(node)
            position = -1 if buffer is None else numbers[id(buffer)]
            if buffer is not None and id(buffer) in arguments:
                if all(at != position for at, _ in capture.arguments):
                    capture.arguments.append((position, arguments[id(buffer)]))
                if arguments[id(buffer)] in replaced and id(node) in written:
                    capture.written.append(arguments[id(buffer)])
            elif owner is not None and id(owner) in self.owners:
                target = self.owners[id(owner)]
                capture.read.append((position, target, self.before.described[id(node)]))
            elif owner is not None or id(node) in kept:
                tensor = kept[id(node)] if owner is None else owner
                expected = node.arg if node.op in MEMORY else node
                state = describe(tensor) if owner is None else self.before.described[id(node)]
                tracks, is_frozen = state[3:5]
                find = weakref.ref(tensor)
                each = Captured(position, find, expected, tracks, is_frozen, state)
                capture.captured.append(each)
                is_new = owner is None or id(owner) in replaced  # a state began; another leaf
                if is_new and id(node) in written:
                    capture.written.append(each.find)
            elif id(node) in self.before.nodes:
                capture.refusals.append(f"a tensor {node.shape} that it reads is replaced in it")
            elif buffer is not None and capture.inputs[position] is None:
                capture.inputs[position] = buffer
                if id(node) in written:
                    capture.copies.append(position)
