"""`picograd.jit`: trace a function of tensors once, then replay its plan.

The first call with given shapes runs the function, which records one graph; everything it computed
is realized by one plan, and that result is returned. Later calls skip Python altogether: they put
new buffers into the plan and run it. A trace depends on

  arguments   tensors anywhere inside tuples, lists, dicts and dataclasses, by shape, dtype, device,
              `requires_grad`, and by which of them are the same tensor; numbers by what the
              function reads of them (`jit_numbers`); everything else by value, or by identity
              where a class defines no equality (modules)
  captured    tensors the function reaches otherwise (weights), in the same way: new contents, and a
              new value given by `w.data = ...`, are seen; assignments to them always happen
  gradients   whether a `grad` that the function looks at is there
  state       variables of outer functions, globals and attributes that its code names; of the
              modules it calls, and of optimizers that step, modes and options
  modes       `no_grad`, `autocast`, settings

and is made again when one of these changes, unless a trace for the new state is there. Every call
returns fresh tensors. What else it does in Python (print, append to a list) happens when it is
traced. What it stores in Python's state is a new tensor at every call. Random numbers continue
their generator. A function through whose outputs gradients went, and that does not train itself,
runs as if it were not jitted where gradients are recorded. Reading a value while tracing raises
TraceError; after an error in the function all tensors are what they were.
docs/design/0010-what-a-trace-depends-on.md says why.
"""

import copy
import functools
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from traceback import clear_frames
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from picograd.buffer import REPLAYS, Buffer
from picograd.config import config
from picograd.engine import carried, pending
from picograd.engine.debug import user_line
from picograd.engine.executable import scalar_values
from picograd.engine.followed import leave
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import graph_key, leaf_buffer
from picograd.engine.realize import find_plan
from picograd.engine.realize import settle as hang
from picograd.engine.sizes import FOR_EVER, PATIENCE, SHORT_PATIENCE
from picograd.engine.tracing import Trace, is_tracing
from picograd.errors import TraceError, check_callable
from picograd.runtime.log import log
from picograd.tensor.core import autocast, autograd
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.recording import root_of, same_value, share, wrap
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_arguments import (
    Flattener,
    Reference,
    changed_sizes,
    names_of,
    signature_of,
)
from picograd.tensor.transforms.jit_checks import early_checks
from picograd.tensor.transforms.jit_closure import (
    MISSED,
    Closure,
    alike_of,
    closure_of,
    shared,
    shown_of,
)
from picograd.tensor.transforms.jit_numbers import (
    changed_numbers,
    known_numbers,
    places_of,
    settle,
    worded,
)
from picograd.tensor.transforms.jit_places import Places, with_lists
from picograd.tensor.transforms.jit_replay import (
    Given,
    Hand,
    change,
    check_results,
    copy_of,
    found,
    give_gradient,
    given_of,
    keep_graph,
    put_together,
    ready,
    replace,
    replay,
    spread_writes,
    undo,
)
from picograd.tensor.transforms.jit_sizes import Marked, Sizes, marks_of, read_dynamic
from picograd.tensor.transforms.jit_state import (
    Copies,
    Guard,
    Reach,
    asked_of,
    name_of,
    noted_on,
    put_back,
)
from picograd.tensor.transforms.jit_trace import Capture, Result, Tracer, is_tied
from picograd.tensor.transforms.jit_variables import Holders, Variable
from picograd.tensor.transforms.jit_varying import Varying
from picograd.traced_number import Difference, Numbers, program

TRACE_LIMIT = 8  # traces of one function before we say what keeps changing, and 8 times as many
KEPT = 1024  # traces of one function: in bytes, the cache of plans bounds those of all
SWEPT = 64  # traces made until those whose plans fell out are looked for
WARN_AT = tuple(TRACE_LIMIT**power for power in range(1, 8))
KEPT_ALIKE = 8  # of them with equal arguments, for different state
PARTS = (
    "static arguments", "shapes or dtypes of its tensors", "which arguments are the same",
    "objects among its arguments", "modes (no_grad, autocast, settings)", "numbers",
)  # fmt: skip


P = ParamSpec("P")  # arguments of the function
R = TypeVar("R")  # its result
Outcome = tuple[list[Buffer], list[int | float], list[Given]]
S = TypeVar("S")  # the instance, of a method
Rest = ParamSpec("Rest")  # the arguments behind it


class Jitted(Generic[P, R]):
    """A jitted function; see the module docstring. `traces` counts the traces that are kept."""

    def __init__(self, function: Callable[P, R], dynamic: Any = None) -> None:
        functools.update_wrapper(self, function)
        self.signature: Any = signature_of(function)
        self.dynamic: Any = read_dynamic(dynamic, self.signature)
        self.function = function
        self.captures: OrderedDict[Any, list[Capture]] = OrderedDict()
        self.captured: dict[int, weakref.ref[Any]] = {}  # tensors known to be reached otherwise
        self.objects: dict[int, Any] = {}  # arguments that are told apart by identity
        self.varying = Varying()
        self.fixed: dict[Any, dict[int, str]] = {}  # by structure: numbers in the key, and why
        self.stored: set[Any] = set()  # keys of which a trace stored tensors
        self.places: dict[Any, Places] = {}  # of tensors in state, by objects among arguments
        self.moving: dict[Any, Variable] = {}  # numbers of Python's state that it changes itself
        self.asked: set[str] = set()  # of tensors among its arguments, beside their values
        self.count: int = 0  # traces made
        self.copies: Copies | None = None  # of Python's state, while a trace is made
        self.closure: Closure | None = None  # the short way of the last call
        self.is_asked = False  # for gradients that go through its outputs

    @property
    def traces(self) -> int:
        """Number of traces kept."""
        return sum(map(len, self.captures.values()))

    def _jitted(self) -> Any:
        return self.function

    def __deepcopy__(self, memo: dict[int, Any]) -> "Jitted[P, R]":
        """Copy what the function belongs to; a copy has no traces of the memory of the other."""
        function = copy.deepcopy(self.function, memo)
        return self if function is self.function else Jitted(function, self.dynamic)

    def __reduce__(self) -> Any:
        """Pickle the function: by its name where that leads here, and never its traces."""
        found: Any = sys.modules.get(self.function.__module__)
        name = getattr(self.function, "__qualname__", "")
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (Jitted, (self.function, self.dynamic))

    @overload
    def __get__(self, instance: None, owner: Any = None) -> "Jitted[P, R]": ...

    @overload
    def __get__(
        self: "Jitted[Concatenate[S, Rest], R]", instance: S, owner: Any = None
    ) -> "BoundJitted[Rest, R]": ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else BoundJitted(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the plan kept for arguments like these, or trace."""
        if self.is_asked and MODE.enabled:
            return self.function(*args, **kwargs)
        with pending.LOCK:
            leave()
            closure = self.closure
            found: Any = MISSED
            if closure is not None:
                given = closure.tensors_of(args, kwargs, ())
                if given is not None:
                    if closure.native is not None:
                        made: Any = closure.native(*given)
                        if made is not None:
                            return made if closure.put is None else closure.put(made)
                    found = closure.run(given)
            result: R = self.call(args, kwargs, ()) if found is MISSED else found
        return result

    def call(self, args: Any, kwargs: Any, bound: tuple[Any, ...]) -> Any:
        """Call with the instance of a method before the arguments, if there is one."""
        if is_tracing():  # a jitted function inside another is inlined
            return self.function(*bound, *args, **kwargs)
        flattener = Flattener()
        structure = flattener.flatten_call(args, kwargs)
        arguments = flattener.tensors
        objects = [*bound, *flattener.objects, *noted_on(arguments)]
        numbers, identities = flattener.numbers, tuple(map(id, objects))
        if identities in self.places:
            part, flattener.opened = self.places[identities].open(flattener)
            structure = structure, part
        pending.flush_assigns()
        buffers = realized(arguments)
        described = tuple([self.describe(tensor) for tensor in arguments])
        same = shared(arguments, buffers)
        facts = structure, described, same, identities, present_modes()
        call = bound, args, kwargs
        reason = ""
        moved: list[Any] = []
        for marked in self.markings(facts, flattener, call):
            key, numbers = self.key_of(facts, flattener.numbers, marked)
            result, why = self.replayed(key, arguments, buffers, numbers, moved)
            if result is not MISSED:
                return result
            reason = reason or why
        if self.note_places(identities, moved):
            return self.call(args, kwargs, bound)
        follows = self.dynamic is None and config.dynamic
        if follows and (sizes := self.varying.learn(facts)):
            names = names_of(self.signature, call, flattener.opened)
            changed = changed_sizes(names, sizes, described)
            reason = f"{changed} changed"
            marked = self.markings(facts, flattener, call)[-1]
            key, numbers = self.key_of(facts, flattener.numbers, marked)
        flattener.numbers = numbers
        return self.followed(key, call, flattener, objects, reason, marked)

    def markings(self, facts: Any, found: Flattener, call: Any) -> list[Marked | None]:
        """List what traces for a call may follow of its sizes, the likeliest one first.

        The first sizes have a trace of their own where others were found to vary later.
        """
        marks, is_first = self.varying.find(facts)
        if not self.dynamic and not marks:
            return [None]
        names = functools.partial(names_of, self.signature, call, found.opened)
        if self.dynamic:
            marks, is_first = marks_of(self.dynamic, names(), found.tensors), False
        marked = Marked(marks, names, found.tensors, len(found.numbers))
        return [None, marked] if is_first else [marked]

    def key_of(self, facts: Any, numbers: list[Any], marked: Marked | None) -> tuple[Any, Any]:
        """Make the key of a call, and list its numbers: the sizes that are followed are some."""
        structure, described, *others = facts
        numbers = numbers if marked is None else numbers + marked.values
        structure = structure, () if marked is None else marked.key
        known = known_numbers(numbers, self.fixed.get(structure, ()))
        return (structure, masked(described, marked), *others, known), numbers

    def replayed(
        self, key: Any, arguments: list[Tensor], buffers: list[Buffer], numbers: list[Any],
        moved: list[Any],
    ) -> tuple[Any, Any]:  # fmt: skip
        """Replay a trace kept for a key; else MISSED, and why none of them serves."""
        reason: Any = ""
        for capture in reversed(self.captures.get(key, ())):
            slots = capture.program.run(numbers)
            if isinstance(slots, Difference):
                reason = reason or slots
                continue
            if not capture.guard.holds():
                moved.extend(capture.guard.moved())
                reason = reason or capture.guard.difference()
                continue
            if capture.written and shown_of(arguments, self.captured) != capture.shown:
                reason = reason or "arguments show other tensors, and one is written"
                continue
            if capture.written and alike_of(capture.captured, arguments) != capture.alike:
                reason = reason or "captured tensors show other memory, and one is written"
                continue
            if is_tied(capture, arguments):
                reason = reason or "arguments show memory that another one shows"
                continue
            plan, inputs = chosen_plan(capture, arguments, buffers, slots)
            if isinstance(inputs, list):
                self.note_use(capture, plan, key)
                result = replay(capture, plan, arguments, inputs, slots)
                opened = capture.opened
                return result if opened is None else opened.put(result, capture), ""
            reason = reason or inputs
        return MISSED, reason

    def note_use(self, capture: Capture, plan: Any, key: Any) -> None:
        """Note that a plan is used; calls like this one take the short way, if there is one."""
        if len(self.captures) > 1:
            self.captures.move_to_end(key)
        if plan is None:
            return
        PLANS.touch(plan)
        if capture.closure is None:
            capture.closure = closure_of(capture, plan, key, self.captured) or False
        self.closure = capture.closure or None

    def followed(
        self, key: Any, call: Any, found: Flattener, objects: list[Any], reason: Any,
        marked: Marked | None = None,
    ) -> Any:  # fmt: skip
        """Trace with numbers that are followed; where they are in the way, with the values."""
        self.closure = None  # of a trace that may be let go, as where the state was cleared
        numbers = Numbers(found.numbers, user_line)
        if isinstance(reason, Difference):
            reason = worded(reason, self.names_of(call, found, marked))
        reason = reason or self.why(key, call, found, marked)
        fixed = places_of(key[-1])
        try:
            return self.trace(key, call, found, objects, reason, numbers, marked)
        except Exception as raised:  # some code takes nothing but a number of Python's own
            error = raised
            is_open = isinstance(error, TraceError) and found.opened is not None
            is_fixed = len(fixed) == len(found.numbers) and not numbers.variables
            if not is_open and (is_fixed or isinstance(error, TraceError)):
                raise
            clear_frames(error.__traceback__)  # what they hold would be computed
            if self.copies is not None:
                put_back(self.copies)
            if is_open:
                return self.without_places(key[3], call, error)
            self.count -= 1
        finally:
            numbers.close()
            self.copies = None
        return self.fixed_all(key, call, found, objects, reason, str(error), marked)

    def without_places(self, objects: Any, call: Any, error: Exception) -> Any:
        """Call the function once more, and follow no tensors of Python's state."""
        self.count -= 1
        places, (bound, args, kwargs) = self.places[objects], call
        places.failures, places.is_open, places.problem = places.failures + 1, False, str(error)
        try:
            return self.call(args, kwargs, bound)
        finally:
            places.is_open = True

    def fixed_all(
        self, key: Any, call: Any, found: Flattener, objects: list[Any], reason: Any, error: str,
        marked: Marked | None,
    ) -> Any:  # fmt: skip
        """Trace with the values of all numbers; an error that is raised then is the function's."""
        before = self.fixed.get(key[0])
        fixed = self.fix(key, dict.fromkeys(range(len(found.numbers)), error), found.numbers)
        plain = Numbers(found.numbers, user_line)
        plain.follows_state = False
        try:
            return self.trace(fixed, call, found, objects, reason, plain, marked)
        except Exception:
            self.fixed.pop(key[0], None)
            if before is not None:
                self.fixed[key[0]] = before
            raise

    def fix(self, key: Any, lines: dict[int, str], numbers: list[Any]) -> Any:
        """Let the traces of a structure depend on the values of some numbers; gives the new key."""
        self.fixed[key[0]] = {**lines, **self.fixed.get(key[0], {})}
        while len(self.fixed) > KEPT:
            del self.fixed[next(iter(self.fixed))]
        return *key[:-1], known_numbers(numbers, self.fixed[key[0]])

    def fix_all(self, key: Any, numbers: Numbers) -> Any:
        """Fix all numbers of a call: code asks for the class of something, which may be one."""
        lines = dict.fromkeys(range(len(key[-1])), "code that asks for its type")
        return self.fix(key, lines, numbers.slots[: numbers.arguments])

    def names_of(self, call: Any, found: Flattener, marked: Marked | None = None) -> list[str]:
        """Name the arguments and places of the numbers of a call, and its followed sizes."""
        names = names_of(self.signature, call, found.opened, "numbers")
        return names + (marked.names if marked else [])

    def describe(self, tensor: Tensor) -> tuple[Any, ...]:
        """Say what of a tensor argument a trace depends on."""
        node = tensor._node
        known = id(tensor) if id(tensor) in self.captured else 0
        facts = node.shape, node.dtype.name, node.device, known
        asked: tuple[Any, ...] = ()
        if self.asked or vars(tensor):
            asked = asked_of(tensor, self.asked)
        if not tensor._tracks:
            return *facts, tensor._is_frozen, *asked
        hooks = () if tensor._hooks is None else tensor._hooks.numbers()
        return *facts, "tracks", tensor.is_leaf, hooks, *asked

    def described(self, key: Any, arguments: list[Tensor], marked: Marked | None) -> Any:
        """Describe the arguments in a key as they are asked for now."""
        return key[0], masked(tuple(map(self.describe, arguments)), marked), *key[2:]

    def is_captured(self, tensor: Tensor) -> bool:
        """Tell whether an argument is known to be reached otherwise too."""
        return id(tensor) in self.captured

    def trace(
        self, key: Any, call: Any, found: Flattener, objects: list[Any], reason: str,
        numbers: Numbers, marked: Marked | None,
    ) -> Any:  # fmt: skip
        """Trace, and keep what was found unless the next call must trace again anyway."""
        self.count += 1
        sizes = sizes_to_follow(numbers, marked, places_of(key[-1]), bool(self.dynamic))
        arguments, opened = found.tensors, found.opened
        reach = Reach(self.function, objects, () if opened is None else opened.identities())
        self.copies, opened = reach.copies(), with_lists(opened, reach)
        if self.note_captured(reach.tensors, arguments):
            key = self.described(key, arguments, marked)
        key = self.fix_all(key, numbers) if reach.asks_class and key[-1] else key
        realize_live()
        tracer = Tracer(arguments, self.is_captured, numbers, places_of(key[-1]), sizes)
        function = functools.partial(self.function, *call[0])
        try:
            tracer.run(function, call[1], call[2], reach, self.moving.values(), opened)
            noted = tracer.trace
            if noted.asked:
                self.asked |= noted.asked
                key = self.described(key, arguments, marked)
            guard = Guard(reach, noted)
            self.moving |= {each.identity(): each for each in guard.moving}
            known = Holders(reach)
            guard.settle(reach, noted)
            capture = tracer.find(known)
            self.learn(key[3], guard, tracer, capture)
            results, values, given = compute(tracer, capture)
        except BaseException:
            undo(tracer)
            raise
        del noted, known
        capture.set_guard(guard)
        key = self.settled(key, capture, tracer)
        outputs = first_outputs(tracer, capture, results, values, given)
        self.keep(key, capture, objects)
        self.tell(capture, reason)
        if capture.checks:
            check_results(capture, results)
        return outputs if opened is None else opened.put(outputs, capture)

    def settled(self, key: Any, capture: Capture, tracer: Tracer) -> Any:
        """Say what replays compute of numbers; gives the key with the values of those it reads."""
        numbers = tracer.numbers
        captured = [each.find() for each in capture.captured]
        self.note_captured(captured, ())
        if capture.written:
            capture.shown = shown_of(tracer.arguments, self.captured)
            capture.alike = alike_of(capture.captured, tracer.arguments)
        written = [find() for find in capture.written if not isinstance(find, int)]
        if capture.graph and not (capture.gradients or any(each._tracks for each in written)):
            capture.graph.owner = weakref.ref(self)  # it does not train
        self.note_stored(key, capture)
        others = self.captures.get(key, ())
        lines = settle(capture, numbers, others)
        if not lines:
            return key
        return self.fix(key, lines, numbers.slots[: numbers.arguments])

    def learn(self, objects: Any, guard: Guard, tracer: Tracer, capture: Capture) -> None:
        """Take up the places in which a trace found, or put, other tensors."""
        is_new = self.note_places(objects, guard.rebound)
        if self.note_places(objects, tracer.rebound, False) or is_new:
            capture.refusals.append("it stored a new tensor")
        elif objects in self.places and self.places[objects].problem:
            capture.refusals.append(self.places[objects].problem)

    def note_places(self, objects: Any, found: Sequence[Any], is_sure: bool = True) -> bool:
        """Take up places of tensors; tells whether one of them is followed from now on.

        Then no call has the key of a trace that was made before.
        """
        if not found or not self.places.setdefault(objects, Places()).learn(found, is_sure):
            return False
        for key in [key for key in self.captures if key[3] == objects]:
            del self.captures[key]
        return True

    def note_stored(self, key: Any, capture: Capture) -> None:
        """Trace once more what stores a tensor: the next trace may find it there."""
        if capture.escapes and key not in self.stored:
            self.stored.add(key)
            capture.refusals.append("it stored a new tensor")

    def note_captured(self, tensors: Sequence[Any], arguments: Sequence[Tensor]) -> bool:
        """Remember tensors that are reached otherwise, and what they show.

        Tells whether an argument is one of them.
        """
        found = [each for each in tensors if isinstance(each, Tensor)]
        for tensor in (*found, *map(root_of, found)):
            if id(tensor) not in self.captured:
                gone = functools.partial(forget, self.captured, id(tensor))
                self.captured[id(tensor)] = weakref.ref(tensor, gone)
        return any(map(self.is_captured, arguments))

    def keep(self, key: Any, capture: Capture, objects: list[Any]) -> None:
        """Keep a trace for later calls, and let those go that are too many or of no use."""
        alike = [each for each in self.captures.get(key, ()) if is_possible(each)]
        if not capture.refusals:
            alike.append(capture)
        self.captures[key] = alike[-KEPT_ALIKE:]
        self.captures.move_to_end(key)
        if not alike:
            del self.captures[key]
        if self.count % SWEPT == 0 or self.traces > KEPT:
            self.captures = self.held()
        while self.traces > KEPT:
            self.captures.popitem(last=False)
        while len(self.places) > KEPT:
            del self.places[next(iter(self.places))]
        if len(self.stored) > KEPT:
            self.stored &= self.captures.keys()
        for each in objects:
            if id(each) not in self.objects:
                self.objects[id(each)] = Reference(each, functools.partial(self.gone, id(each)))

    def held(self) -> OrderedDict[Any, list[Capture]]:
        """Leave out the traces whose plans fell out of their cache."""
        alive = ((key, [e for e in each if not is_gone(e)]) for key, each in self.captures.items())
        return OrderedDict((key, each) for key, each in alive if each)

    def gone(self, identity: int, reference: Any = None) -> None:
        """Let the traces of an object go that died."""
        self.closure = None
        self.objects.pop(identity, None)
        for key in [key for key in self.captures if identity in key[3]]:
            del self.captures[key]
        self.stored = {key for key in self.stored if identity not in key[3]}
        self.places = {key: each for key, each in self.places.items() if identity not in key}

    def why(self, key: Any, call: Any, given: Flattener, marked: Marked | None) -> str:
        """Say what is new about arguments; of a size, which argument and axis it is."""
        if not self.captures:
            return ""
        last = next(reversed(self.captures))
        before = (last[0][0], *last[1:])  # whatever is followed
        after = (key[0][0], *key[1:])
        found = [part for part, was, now in zip(PARTS, before, after) if was != now]
        if found[:1] == [PARTS[1]]:
            names = names_of(self.signature, call, given.opened)
            sizes = changed_sizes(names, last[1], key[1])
            if sizes:
                return f"{' and '.join([sizes, *(f'the {part}' for part in found[1:])])} changed"
        if found == [PARTS[5]]:
            names = self.names_of(call, given, marked)
            return changed_numbers(names, last[5], key[5], self.fixed.get(key[0], {}))
        return f"the {' and '.join(found)} changed" if found else ""

    def tell(self, capture: Capture, reason: str) -> None:
        """Say why a function is traced: with DEBUG=1 each time, and once when it is too often."""
        name = name_of(self.function)
        again = f"; it must be traced again: {'; '.join(capture.refusals)}"
        text = f"{f' because {reason}' if reason else ''}{again if capture.refusals else ''}"
        log(1, f"jit: traced {name}{text}")
        if self.count in WARN_AT:
            print(f"picograd.jit: {name} was traced {self.count} times, this time{text}",
                  file=sys.stderr)  # fmt: skip


class BoundJitted(Generic[P, R]):
    """A jitted method of one instance, whose traces die with the instance."""

    __slots__ = ("__func__", "__self__")

    def __init__(self, function: "Jitted[..., R]", instance: Any) -> None:
        self.__func__: Any = function
        self.__self__: Any = instance

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the plan kept for the instance and arguments like these, or trace."""
        jitted = self.__func__
        if jitted.is_asked and MODE.enabled:
            return jitted.function(self.__self__, *args, **kwargs)  # type: ignore[no-any-return]
        with pending.LOCK:
            leave()
            closure, bound = jitted.closure, (id(self.__self__),)
            found: Any = MISSED
            if closure is not None:
                given = closure.tensors_of(args, kwargs, bound)
                if given is not None:
                    if closure.native is not None:
                        made: Any = closure.native(*given)
                        if made is not None:
                            return made if closure.put is None else closure.put(made)
                    found = closure.run(given)
            if found is MISSED:
                found = jitted.call(args, kwargs, (self.__self__,))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> "BoundJitted[P, R]":
        """Copy the instance alone."""
        return BoundJitted(self.__func__, copy.deepcopy(self.__self__, memo))

    def __reduce__(self) -> Any:
        """Pickle the instance and the name of its method, as bound methods are."""
        return getattr, (self.__self__, self.__func__.function.__name__)


def forget(table: dict[int, Any], identity: int, reference: Any) -> None:
    """Take what died off a table."""
    if table.get(identity) is reference:
        del table[identity]


def masked(described: Any, marked: Marked | None) -> Any:
    """Leave the sizes that are followed out of what is said of the tensors of a call."""
    return described if marked is None else marked.masked(described)


def sizes_to_follow(
    numbers: Numbers, marked: Marked | None, fixed: Any, is_told: bool
) -> Sizes | None:
    """Prepare a trace to follow sizes, unless all are fixed; told ones stay with one plan."""
    if marked is None or fixed.issuperset(marked.axes.values()):
        return None
    return Sizes(numbers, marked, FOR_EVER if is_told else PATIENCE)


def chosen_plan(
    capture: Capture, arguments: Sequence[Tensor], buffers: Sequence[Buffer], slots: Any
) -> tuple[Any, Any]:
    """Choose the plan of a trace, and its inputs for a call: the reason where it has none."""
    plan = capture.find_plan()  # held: making others must not let it fall out now
    inputs = ready(capture, arguments, buffers)
    if isinstance(inputs, list) and plan is not None and capture.sizes is not None:
        PLANS.touch(plan)  # the trace goes when it falls out
        plan, inputs = capture.sizes.plan(capture, slots, inputs)
    return plan, inputs


def present_modes() -> tuple[Any, ...]:
    """Say what modes and settings a trace depends on."""
    return MODE.enabled, autocast.state() if REGIONS.dtypes else (), config.epoch


def realized(arguments: Sequence[Tensor]) -> list[Buffer]:
    """Compute the arguments, and give their memory."""
    buffers = [leaf_buffer(tensor._node) for tensor in arguments]
    if None in buffers:
        pending.compute([tensor._node for tensor in arguments])
        buffers = [leaf_buffer(tensor._node) for tensor in arguments]
    return [buffer for buffer in buffers if buffer is not None]


def realize_live() -> None:
    """Compute all live tensors, constants too: what folds into kernels is not seen to change.

    Not views larger than their memory, which may be larger than any.
    """
    pending.realize_all()
    nodes = [tensor._node for tensor in pending.live_tensors()]
    wanted = [node for node in nodes if leaf_buffer(node) is None]
    pending.compute([node for node in wanted if not carried.is_wide(node)])


def is_possible(capture: Capture) -> bool:
    """Tell whether a trace may still fit a call."""
    return not is_gone(capture) and all(each.find() is not None for each in capture.captured)


def is_gone(capture: Capture) -> bool:
    """Tell whether the plan of a trace fell out of the cache."""
    return capture.plan is not None and capture.plan() is None


def compute(tracer: Tracer, capture: Capture) -> Outcome:
    """Compute the roots of a trace by one plan; gives the results, and what it started from."""
    checks = tracer.find_checks(capture)
    roots, sizes = list(tracer.roots.values()), tracer.sizes
    if not roots:
        return [], [], []
    traced = roots
    if sizes is not None:
        roots = sizes.graph(traced)
    found = graph_key(roots)
    tracer.find_inputs(capture, found)
    wanted = unspent(recorded(capture, roots), traced, tracer, capture)
    if wanted:
        owners = tracer.argument_of(), tracer.find_captured, tracer.state_of
        capture.graph = keep_graph(wanted, found, *owners)
        if capture.graph.is_fixed:
            text = "gradients go through a position that no value needs, or a checkpoint"
            capture.refusals.append(text)
    capture.scalars = found.scalars
    limits = None if sizes is None else follow(capture, tracer, traced, roots, found)
    plan = find_plan(found, roots, limits, SHORT_PATIENCE if sizes is None else sizes.patience)
    for position in capture.copies:
        capture.inputs[position] = copy_of(capture.inputs[position])
    values = scalar_values(found.scalars)
    capture.set_plan(plan)
    capture.early = early_checks(checks, found)
    if capture.early is not None:
        capture.early.run(found.buffers)
    given = given_of(capture, tracer.arguments, tracer.outside.values())
    REPLAYS[0] += 1
    results = plan.run(found.buffers, values, user_line())
    hang(roots, results)
    hang(traced, results)
    pending.settle(traced)
    for target in capture.written:
        if isinstance(target, int):
            tensor = tracer.arguments[target]
            tensor._move(pending.next_leaf(tensor._node))
    spread_writes(capture, tracer.arguments)
    return results, values, given


def follow(
    capture: Capture, tracer: Tracer, traced: Sequence[Any], roots: Sequence[Any], found: Any
) -> Any:
    """Keep a graph for other sizes, unless the trace does what only these sizes allow.

    Gives the largest sizes of its inputs, for a plan.
    """
    sizes, numbers = tracer.sizes, tracer.numbers
    for each in (*results_of(capture), *[result for _, result in capture.gradients]):
        each.sizes = each.shape
        each.shape = sizes.copied.value(each.shape, False)
    graph = capture.graph
    if graph is not None and (graph.written or sizes.has_own_gradients(traced)):
        for place in set(sizes.marked.axes.values()):
            numbers.read(place)  # what is kept of the graph has these sizes
        return None
    sizes.fix_positions(capture, roots)
    for place, scalar in enumerate(found.scalars):
        if id(scalar) in sizes.copied.slot_of:
            capture.traced.append((place, sizes.copied.slot_of[id(scalar)]))
    capture.sizes = sizes
    sizes.keep(traced, found.buffers)
    wanted = range(len(numbers.slots))
    sizes.prime(program(numbers, wanted), found.buffers)
    return sizes.limits(found.buffers, capture.arguments)


def recorded(capture: Capture, roots: Sequence[Any]) -> dict[int, Any]:
    """List the roots of which gradients may be asked."""
    gradients = [result for _, result in capture.gradients]
    results = (*results_of(capture), *gradients)
    tracking = [each.number for each in results if each.tracks and not each.is_leaf]
    return {number: roots[number] for number in tracking}


def unspent(
    wanted: dict[int, Any], traced: Sequence[Any], tracer: Tracer, capture: Capture
) -> dict[int, Any]:
    """Leave out of roots those whose gradients were taken and stored, by what they share.

    And those of values of leaves that no call keeps, as these are written again.
    """
    leaves = {at: autograd.leaf_nodes([traced[at]]) for at in wanted}
    wanted = {at: wanted[at] for at, found in leaves.items() if not any(map(tracer.is_past, found))}
    trace = tracer.trace
    is_stored = any(each.is_given for each in trace.gradients.values())
    is_stored = is_stored or any(each.kind != "none" for _, each in capture.gradients)
    if not is_stored and not capture.written_gradients:
        return wanted
    taken = set(map(id, autograd.passing(trace.spent)))
    own = {at: map(id, autograd.passing([traced[at]])) for at in wanted}
    return {at: root for at, root in wanted.items() if taken.isdisjoint(own[at])}


def results_of(capture: Capture) -> list[Result]:
    """List what is computed and handed out, other than gradients."""
    pairs = [result for _, result in (*capture.replaced, *capture.escapes)]
    shown = [each.source[0] for each in capture.outputs if each.kind == "view"]
    outputs = {id(e): e for e in (*capture.outputs, *shown) if e.kind == "root"}
    return [*outputs.values(), *[each for each in pairs if each.kind == "root"]]


def first_outputs(
    tracer: Tracer, capture: Capture, results: Sequence[Buffer], values: Sequence[int | float],
    given: Sequence[Given],
) -> Any:  # fmt: skip
    """Hand out what the traced call itself computed: as later calls do, to the caller's tensors.

    A returned tensor that the function stored as well follows what later calls return.
    """
    hand = Hand(capture, tracer.arguments, results, values, given, capture.program.slots)
    for target, result in capture.replaced:
        if isinstance(target, int) or result.kind != "root":
            change(found(target, tracer.arguments), result, hand)
    for target, result in capture.gradients:
        if isinstance(target, int):
            give_gradient(tracer.arguments[target], hand.tensor(result))
        elif not result.tracks and (owner := target()) is not None and owner._grad is not None:
            owner._grad._history = None  # as of later calls: the next may take its memory
    outputs = [hand.tensor(result) for result in capture.outputs]
    for find, result in capture.escapes if tracer.sizes is not None else ():
        replace(find(), hand.tensor(result))  # its shape is that of the trace
    tracer.trace, tracer.roots = Trace(), {}
    for number, find in enumerate(tracer.returned):
        stored = find()
        if stored is not None and capture.outputs[number].kind == "view":
            capture.refusals.append("it stores a view that it returns too")
        elif stored is not None and capture.outputs[number].kind == "root":
            capture.escapes.append((find, Result("output", number)))
            if tracer.sizes is not None:
                replace(stored, outputs[number])
            elif not stored._tracks:  # else it keeps the graph of the trace
                replace(stored, wrap(same_value(outputs[number]._node), False))
                if capture.refusals:  # no later call gives it another value
                    share(stored, outputs[number])
    return put_together(capture, outputs, capture.program.slots)


@overload
def jit(function: Callable[P, R], *, dynamic: Any = None) -> Jitted[P, R]: ...


@overload
def jit(*, dynamic: Any = None) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(function: Any = None, *, dynamic: Any = None) -> Any:
    """Make a function whose tensor operations are traced once and then replayed as one plan.

    It is traced again for other dtypes and ranks, other static arguments, and other state that it
    reads: modes of modules, options of optimizers, variables (docs/training.md says which). Numbers
    among the arguments are followed: a trace serves all those that read the same. So are sizes from
    the second one of an axis on; False makes a trace for each. `dynamic` marks them before: True,
    or axes by argument, each with a `picograd.Dim`, its largest size or True. Raises ShapeError for
    a size outside the range of its Dim.

    >>> @picograd.jit
    ... def double(x):
    ...     return x + x
    >>> double(picograd.Tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    if function is None:
        return functools.partial(jit, dynamic=dynamic)
    check_callable("jit", function, "write @picograd.jit above a function")
    return Jitted(function, dynamic)
