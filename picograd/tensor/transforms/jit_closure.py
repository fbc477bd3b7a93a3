"""The short way of a replay: a call like the last one, of a trace that computes, or trains.

Such a trace was called with tensors and numbers, and hands out new ones; what it changes are
gradients and what it writes in place (`Changes`). Then all that a replay does is to see that
nothing changed, to evaluate what the trace followed of numbers, to run the plan on the memory of
its arguments and of the tensors it captured, and to hand out the results. What is seen at each call
is compared one by one, without the key that finds traces in general; whatever differs is left to
the long way.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.buffer import REPLAYS, Buffer
from picograd.config import config
from picograd.engine import pending
from picograd.engine.carried import entries
from picograd.engine.executable import CompiledPlan, scalar_values
from picograd.engine.native_calls import CALLS, NATIVE_AFTER
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.tracing import RUNNING
from picograd.engine.watch import PROFILES
from picograd.graph.row import MEMORY
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.recording import root_of
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_arguments import Flattener, Place, structure_of_tensors
from picograd.tensor.transforms.jit_native import declare_replay, native_of
from picograd.tensor.transforms.jit_numbers import known_numbers, places_of
from picograd.tensor.transforms.jit_replay import (
    check_results,
    computed,
    draw_again,
    given_of,
    hand_out,
    own_memory,
    prepare_writes,
    put_together,
    spread_writes,
    writes_arguments,
)
from picograd.tensor.transforms.jit_replay import found as target_of
from picograd.tensor.transforms.jit_trace import Capture, Result, Target, is_tied
from picograd.tensor.transforms.pytree import is_named_tuple
from picograd.traced_number import Difference


class Changes:
    """This class runs a plan and does what a trace did beside computing: a training step.

    Its writes happen in the plan. Gradients are new tensors, as everywhere; but where nothing
    except its owner holds the last one, nobody can tell a new gradient from the old one with other
    contents: then the plan writes into the same memory, and no tensor is made.
    """

    def __init__(self, capture: Capture, plan: CompiledPlan) -> None:
        self.capture = capture
        self.draws = bool(capture.drawn) or any(each.renew is not None for each in capture.scalars)
        places = plan.new_results()
        self.unkept: list[Any] = list(plan.unkept)
        self.reads = any(was is not None for *_, was in capture.read)  # gradients: they stay
        self.writes_arguments = writes_arguments(capture)
        self.gradients: list[tuple[Target, Result, int]] = [
            (target, result, places[result.number] if result.kind == "root" else -1)
            for target, result in capture.gradients
        ]

    def run(
        self,
        plan: CompiledPlan,
        args: Sequence[Tensor],
        inputs: list[Any],
        values: Sequence[int | float],
        are_shown: bool,
    ) -> list[Buffer]:
        """Run the plan of the trace; `are_shown` if views may show captured tensors it writes."""
        capture = self.capture
        if self.writes_arguments or capture.recorded != pending.recorded():
            prepare_writes(capture, args)
        kept = self.kept(args) if self.gradients else None
        REPLAYS[0] += 1
        results = plan.run(inputs, values, "", kept)
        if are_shown or self.writes_arguments:
            spread_writes(capture, args)
        if kept is not None:
            self.give_gradients(args, results, kept)
        capture.recorded = pending.recorded()
        return results

    def kept(self, args: Sequence[Tensor]) -> list[Any]:
        """List the memory of gradients that nothing else holds, for the plan to write."""
        kept = self.unkept.copy()
        for target, result, place in self.gradients:
            owner = target_of(target, args)
            if place >= 0 and owner is not None and not self.reads:
                kept[place] = own_memory(owner, result.shape)
        return kept

    def give_gradients(
        self, args: Sequence[Tensor], results: Sequence[Buffer], kept: list[Any]
    ) -> None:
        """Set the gradients that the plan did not write where they are."""
        for target, result, place in self.gradients:
            if place >= 0 and results[result.number] is kept[place]:
                continue
            owner = target_of(target, args)
            if owner is None:
                continue
            is_none = result.kind == "none"
            buffer = None if is_none else results[result.number]
            owner._grad = buffer and computed(buffer, result.shape, result.is_made)


def changes_of(capture: Capture, plan: CompiledPlan, described: Any) -> Changes | None:
    """Prepare what a trace changes; None if it does more than a training step."""
    leaves = {id(each.find()) for each in capture.captured if each.described[-1]}
    for target, result in capture.gradients:
        is_ours = result.kind == "none" or (result.kind == "root" and not result.tracks)
        is_number = isinstance(target, int)
        is_leaf = described[target][4:] == LEAF if is_number else id(target()) in leaves
        if not is_leaf or not is_ours or result.sizes:
            return None
    return Changes(capture, plan)


MISSED = object()  # the call is none of a closure's
# What a trace does that needs the long way.
MORE = (
    "copies", "replaced", "escapes", "sizes", "stores", "opened", "refusals", "asked",
)  # fmt: skip
LEAF = "tracks", True, ()  # what `describe` says of an argument that asks, and has no hooks
PLAIN = (False,), (True,), LEAF
CHANGES = "drawn", "gradients", "written", "written_gradients", "early"


class Closure:
    """This class runs one trace for tensors like those of one call, and any numbers it followed."""

    def __init__(
        self, capture: Capture, key: Any, known: dict[int, Any], changes: Changes | None
    ) -> None:
        (structure, _), described, self.same, self.bound, modes, self.numbers = key
        self.fixed = places_of(self.numbers)  # numbers of which the trace has the values
        self.given: Sequence[Any] = ()  # numbers of the call that is looked at
        self.evaluates = is_program(capture)
        self.structure, self.is_flat = structure, structure == structure_of_tensors(len(described))
        self.capture, self.known, self.changes = capture, known, changes
        self.are_shown = False  # views show captured tensors
        self.draws = changes is not None and changes.draws
        self.missing = [target for _, target, was in capture.read if was is None]
        added: list[Any] = [each for each in capture.read if each[2] is not None]
        self.added = added  # gradients that are added to, as `describe` does
        self.is_recording, _, self.epoch = modes
        self.wanted = [(*each[:3], each[4]) for each in described]
        self.holds = capture.guard.holds
        self.is_single = type(capture.structure) is Place and capture.structure.slot < 0
        # as machine code (jit_native.py): `run` of what only computes, and what comes before; `put`
        # makes what is returned of a tuple of tensors
        self.native: Any = None
        # the same of a trace with numbers that are others at each call, which it finds in `scalars`
        self.renewed: Any = None
        self.scalars: list[Any] = []
        self.put = None if self.is_single else put_in(capture)
        self.ready: Any = None
        self.made: Any = computed
        self.runs, self.limit = 0, NATIVE_AFTER  # without it; until another try
        self.waits = False  # for the plan to be known to machine code
        self.results = [
            (each.number, each.shape, each.is_made)
            for each in capture.outputs
            if each.kind == "root"
        ]
        # of results, which argument each is, if it is one
        self.given_back = [e.number if e.kind == "argument" else -1 for e in capture.outputs]
        self.gives_back = len(self.results) != len(self.given_back)
        self.is_bare = self.is_single and not self.gives_back

    def run(self, args: tuple[Any, ...]) -> Any:
        """Run the trace for these arguments; MISSED if it may not be for them."""
        capture = self.capture
        plan: Any = capture.find_plan()
        if plan is None or not PLANS.touch(plan):
            return MISSED
        self.are_shown = False
        slots: Any = ()
        if self.evaluates:
            slots = capture.program.run(self.given)
            if type(slots) is Difference:
                return MISSED
        if self.renewed is not None and not self.draws:
            given = self.renew(plan, args, slots, self.values(slots))
            if given is not MISSED:
                return given
        inputs = self.ready(*args) if self.ready is not None and self.are_apart(args) else None
        if inputs is None:
            inputs = self.inputs(args)
        if inputs is None:
            return MISSED
        if self.runs >= self.limit or (self.waits and plan.native.address):
            self.compile(plan)
        if capture.graph is not None:
            return self.tracking(plan, args, inputs, slots)
        if capture.early is not None:
            capture.early.run(inputs)
        values = self.values(slots)
        if self.renewed is not None and self.draws:  # behind all looks: they move generators on
            given = self.renew(plan, args, slots, values)
            if given is not MISSED:
                return given
        return self.replay(plan, args, inputs, slots, values)

    def replay(
        self,
        plan: CompiledPlan,
        args: Sequence[Tensor],
        inputs: list[Any],
        slots: Sequence[Any],
        values: Sequence[Any],
    ) -> Any:
        """Run the plan, and hand its results out; all that is looked at is as it was."""
        capture = self.capture
        if self.changes is not None:
            found = self.changes.run(plan, args, inputs, values, self.are_shown)
        elif plan.fills_one and self.is_bare and not (config.debug or PROFILES):
            ((_, shape, is_made),) = self.results
            taken = [inputs[number] for number in plan.input_numbers]
            return computed(plan.fill(taken), shape, is_made)
        else:
            found = plan.run(inputs, values)
        if capture.checks:
            check_results(capture, found)
        if self.is_bare:
            ((number, shape, is_made),) = self.results
            return self.made(found[number], shape, is_made)
        made = [self.made(found[number], shape, is_made) for number, shape, is_made in self.results]
        if self.gives_back:
            others = iter(made)
            made = [args[at] if at >= 0 else next(others) for at in self.given_back]
        return put_together(capture, made, slots)

    def renew(self, plan: Any, args: Any, slots: Sequence[Any], values: Sequence[Any]) -> Any:
        """Run the trace by machine code with numbers of this call; MISSED where Python has to."""
        self.scalars[:] = [values[number] for number in plan.scalar_numbers]
        given = self.renewed(*args)
        if given is None:
            return MISSED
        return given if self.is_single else put_together(self.capture, given, slots)

    def values(self, slots: Sequence[Any]) -> Sequence[int | float]:
        """Give the plan's numbers for a call; `slots` are those that the trace followed."""
        if slots or self.draws:
            return draw_again(self.capture, slots)
        return scalar_values(self.capture.scalars) if self.capture.scalars else ()

    def tracking(
        self, plan: CompiledPlan, args: Sequence[Tensor], inputs: list[Any], slots: Sequence[Any]
    ) -> Any:
        """Run the trace, and hand out what gradients can be asked of."""
        capture = self.capture
        values = draw_again(capture, slots)
        given = given_of(capture, args)
        found = plan.run(inputs, values)
        if capture.checks:
            check_results(capture, found)
        return hand_out(capture, args, found, values, slots, given)

    def compile(self, plan: CompiledPlan) -> None:
        """Let machine code do what it can from now on; again, where other things are expected."""
        self.runs, self.waits = 0, not plan.native.address
        self.made = CALLS.find("picograd_computed") or computed
        self.limit *= 1 if CALLS.is_coming else 2
        if self.made is not computed:
            self.native, self.renewed, self.ready = native_of(self, plan)

    def inputs(self, args: tuple[Any, ...]) -> list[Any] | None:
        """List the memory that the trace reads; None unless all is as it was."""
        if (
            MODE.enabled is not self.is_recording
            or config.epoch != self.epoch
            or RUNNING.active
            or REGIONS.dtypes
            or entries(pending.WRITES)
        ):
            return None
        buffers = self.memory(args)
        if buffers is None or not self.holds():
            return None
        capture = self.capture
        inputs = capture.inputs.copy()
        for position, number in capture.arguments:
            inputs[position] = buffers[number]
        if (capture.captured or capture.read) and not self.take(args, inputs):
            return None
        if self.are_shown and not self.are_alike(args):
            return None
        self.runs += 1
        return inputs

    def tensors_of(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], bound: tuple[int, ...]
    ) -> tuple[Any, ...] | None:
        """List the tensors of a call, in containers or by name; None if it is another kind."""
        if self.is_flat:
            return args if self.bound == bound and not kwargs else None
        flattener = Flattener()
        if flattener.flatten_call(args, kwargs) != self.structure:
            return None
        self.given = flattener.numbers
        if self.fixed and known_numbers(self.given, self.fixed) != self.numbers:
            return None
        objects = tuple(map(id, flattener.objects))
        return tuple(flattener.tensors) if self.bound == bound + objects else None

    def are_apart(self, args: tuple[Any, ...]) -> bool:
        """Tell whether machine code can see that what the trace writes is no other argument."""
        if self.changes is None or not self.changes.writes_arguments:
            return True
        return all(each._view is None for each in args) and not is_tied(self.capture, args)

    def are_alike(self, args: Sequence[Tensor]) -> bool:
        """Tell whether arguments show what captured tensors show as those of the trace did."""
        capture = self.capture
        if not capture.written or all(each._view is None for each in args):
            return True
        return alike_of(capture.captured, args) == capture.alike

    def memory(self, args: tuple[Any, ...]) -> list[Any] | None:
        """Give the memory of arguments; None unless they are what they were."""
        buffers, known = [], self.known
        if len(args) != len(self.wanted):
            return None
        for tensor, (shape, dtype, device, kind) in zip(args, self.wanted):
            if type(tensor) is not Tensor or kind != kind_of(tensor):
                return None
            node = tensor._node
            if node.op not in MEMORY or node.shape != shape or node.device != device:
                return None
            if node.dtype.name != dtype or (known and id(tensor) in known):
                return None
            buffers.append(node.arg.buffer)
        count = len(args)
        if count > 1 and shared(args, buffers) != self.same:
            return None
        changes = self.changes
        if changes is not None and shown_of(args, known) != self.capture.shown:
            return None
        if changes is not None and changes.writes_arguments and is_tied(self.capture, args):
            return None
        return None if None in buffers else buffers

    def take(self, args: Sequence[Tensor], inputs: list[Any]) -> bool:
        """Fill in the memory of captured tensors; False if one is not what it was."""
        for each in self.capture.captured:
            tensor = each.find()
            if tensor is None or tensor._tracks is not each.tracks:
                return False
            node = tensor._node
            if node.arg is not each.expected and node is not each.expected:
                return False
            if tensor._is_frozen is not each.is_frozen:
                return False
            if is_shown(tensor) or tensor._view is not None:
                self.are_shown = True
            if each.position >= 0:
                inputs[each.position] = leaf_buffer(node)
        for target in self.missing:
            owner = target_of(target, args)
            if owner is None or owner._grad is not None:
                return False
        return not self.added or self.take_gradients(inputs)

    def take_gradients(self, inputs: list[Any]) -> bool:
        """Fill in the memory of gradients that are added to; False if one is another kind."""
        for position, find, (shape, dtype, device, *asks) in self.added:
            owner = find()
            gradient = None if owner is None else owner._grad
            if type(gradient) is not Tensor or gradient._view is not None:
                return False
            node = gradient._node
            if node.op not in MEMORY or node.shape != shape or node.device != device:
                return False
            if node.dtype is not dtype or asks != [gradient._tracks, gradient._is_frozen, True]:
                return False
            self.are_shown |= is_shown(gradient)
            if position >= 0:
                inputs[position] = leaf_buffer(node)
        return None not in inputs


def kind_of(tensor: Tensor) -> Any:
    """Say of an argument what `describe` says: whether it is frozen, or a leaf that tracks."""
    if not tensor._tracks:
        return tensor._is_frozen
    return LEAF[0] if tensor.is_leaf and tensor._hooks is None else None


def is_shown(tensor: Tensor) -> bool:
    """Tell whether a view shows a tensor; names none that is gone, as machine code wants it."""
    if tensor._views is not None:
        tensor._views = [each for each in tensor._views if each() is not None] or None
    return tensor._views is not None


def shown_of(arguments: Sequence[Any], known: dict[int, Any]) -> tuple[int, ...]:
    """Say which arguments show one tensor, and which one of `known`; nothing if none does.

    Of those that are views; `known` are tensors that are reached otherwise, too.
    """
    if all(each._view is None for each in arguments):
        return ()
    roots = [id(root_of(each)) for each in arguments]
    first: dict[int, int] = {}
    alike = [first.setdefault(root, number) for number, root in enumerate(roots)]
    outside = [root in known and id(each) not in known for root, each in zip(roots, arguments)]
    if len(first) == len(roots) and not any(outside):
        return ()
    return *alike, *[root if is_known else 0 for root, is_known in zip(roots, outside)]


def alike_of(captured: Sequence[Any], arguments: Sequence[Any]) -> tuple[int, ...]:
    """Say which of these show one memory, each by the first that does; nothing if none do.

    Of captured tensors that are views; arguments alone are compared by `shown_of`.
    """
    tensors = [each.find() for each in captured]
    if all(each is None or each._view is None for each in tensors):
        return ()
    tensors += arguments
    first: dict[int, int] = {}
    roots = [each if each is None else root_of(each) for each in tensors]
    alike = [first.setdefault(id(root), number) for number, root in enumerate(roots)]
    return () if len(first) == len(roots) else tuple(alike)


def shared(arguments: Any, buffers: Any) -> tuple[int, ...]:
    """Say which arguments are the same tensor, and which are the same memory."""
    count = len(arguments)
    if count == 2:
        if arguments[0] is not arguments[1]:
            return () if buffers[0] is not buffers[1] else (0, 1, 0, 0)
        return (0, 0, 0, 0)
    if count < 2 or len({*map(id, arguments), *map(id, buffers)}) == 2 * count:
        return ()
    first: dict[int, int] = {}
    same = [first.setdefault(id(tensor), number) for number, tensor in enumerate(arguments)]
    return *same, *[first.setdefault(id(buffer), n) for n, buffer in enumerate(buffers)]


def closure_of(capture: Capture, plan: Any, key: Any, known: dict[int, Any]) -> Closure | None:
    """Make the closure of a trace, for calls with a key; None if it does more than compute."""
    structure, described, _, _, modes, _ = key
    if structure[1] or modes[1] or any(capture.shown[len(described) :]):
        return None
    if any(each[3] or each[4:] not in PLAIN for each in described):
        return None
    if type(plan) is not CompiledPlan or any(getattr(capture, name) for name in MORE):
        return None
    if any(was and (isinstance(target, int) or was[3]) for _, target, was in capture.read):
        return None  # gradients of arguments that are there, or have a graph of their own
    outputs = capture.outputs
    if any(each.kind not in ("root", "argument") or each.sizes or each.noted for each in outputs):
        return None
    if any(each.tracks and each.is_leaf for each in outputs):
        return None
    changes = None
    if any(getattr(capture, name) for name in CHANGES) or renews(capture):
        changes = None if capture.graph else changes_of(capture, plan, described)
        if changes is None:
            return None
    return Closure(capture, key, known, changes)


def put_in(capture: Capture) -> Callable[[Any], Any] | None:
    """Say how the returned value is made of a tuple of its tensors; None where it is that."""
    value = capture.structure
    items = value.values() if type(value) is dict else value
    if type(value) in (tuple, list, dict) or is_named_tuple(value):
        places = [each.number if type(each) is Place else -1 for each in items]
        if places == [*range(len(capture.outputs))]:
            if type(value) is dict:
                return lambda made: dict(zip(value, made))
            kind = type(value)
            return None if kind is tuple else list if kind is list else lambda made: kind(*made)
    return lambda made: put_together(capture, made, ())


def is_program(capture: Capture) -> bool:
    """Tell whether a trace evaluates numbers at every call."""
    program = capture.program
    return bool(program.slots or program.guards or program.variables)


def renews(capture: Capture) -> bool:
    """Tell whether a trace takes numbers that are others at every call."""
    return any(scalar.renew is not None for scalar in capture.scalars)


declare_replay()
