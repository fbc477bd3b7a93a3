"""`picograd.jit`: trace a function of tensors once, then replay its plan.

The first call with given shapes runs the function, which records one graph; everything it computed
is realized by one plan, and that result is returned. Later calls skip Python altogether: they put
new buffers into the plan and run it.

What a plan reads and writes:
  arguments   tensors anywhere inside tuples, lists and dicts; everything else is static, and part
              of the key (a new value, shape, dtype or device traces again)
  captured    tensors the function reaches otherwise (weights): tracked by storage, so new contents
              are seen; assignments to them always happen
  escaping    tensors made in the trace that are still alive after it (gradients): every later
              call gives those tensor objects their new values
  outputs     tensors inside the returned value: fresh memory each call
Random numbers continue their generator. Reading a value while tracing raises TraceError.
"""

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.config import config
from picograd.engine import pending
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_key import graph_key, leaf_buffer
from picograd.engine.realize import leaf, realize, realize_roots
from picograd.engine.tracing import drawing, is_tracing, tracing
from picograd.errors import DTypeError, TraceError
from picograd.graph.node import Node
from picograd.tensor import autocast
from picograd.tensor.tensor import Tensor

TRACE_LIMIT = 8  # traces of one function before we say what keeps changing


@dataclass(slots=True)
class Source:
    """Where a plan input comes from at a replay: argument number, or a captured storage."""

    argument: int
    storage: Storage | None
    buffer: Buffer

    def current(self, arguments: Sequence[Buffer]) -> Buffer:
        """Find the buffer for this call."""
        if self.argument >= 0:
            return arguments[self.argument]
        stored = self.storage.buffer if self.storage is not None else None
        return stored if stored is not None else self.buffer


@dataclass(slots=True)
class Escape:
    """A tensor of the trace that outlives it: which root, and whether it is an assignment."""

    tensor: "weakref.ref[Tensor]"
    root: int
    is_assign: bool


@dataclass(slots=True)
class Capture:
    """One trace: its plan, where inputs come from, and how to build the returned value."""

    plan: CompiledPlan | None
    sources: list[Source]
    scalars: list[RuntimeScalar]
    escapes: list[Escape]
    outputs: list[tuple[int, tuple[int, ...], bool]]  # root (or -1 - argument), shape, gradient
    structure: Any
    constants: list[Tensor]
    epoch: int
    drawn: list[RuntimeScalar]  # in the order of recording, which generators must follow
    written: Sequence[int] = ()  # the arguments that are assigned to
    recorded: int = -1  # operations recorded until the last call


class Flattener:
    """Takes nested tuples, lists and dicts apart into tensors and a hashable description."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []

    def flatten(self, value: Any) -> Any:
        """Describe `value`, moving its tensors to `self.tensors`."""
        if isinstance(value, Tensor):
            self.tensors.append(value)
            return ("tensor", len(self.tensors) - 1)
        if isinstance(value, (tuple, list)):
            return (type(value), tuple(self.flatten(item) for item in value))
        if isinstance(value, dict):
            return (dict, tuple((key, self.flatten(item)) for key, item in value.items()))
        return ("static", type(value), value)


def unflatten(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """Build the value a Flattener described, with these tensors in it."""
    kind = structure[0]
    if kind == "tensor":
        return tensors[structure[1]]
    if kind == "static":
        return structure[2]
    if kind is dict:
        return {key: unflatten(item, tensors) for key, item in structure[1]}
    items = [unflatten(item, tensors) for item in structure[1]]
    if hasattr(kind, "_fields"):  # a named tuple takes its items one by one
        return kind(*items)
    return kind(items)


class Jitted:
    """A jitted function; see the module docstring. `traces` counts how often it was traced."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.captures: dict[Any, Capture] = {}

    @property
    def traces(self) -> int:
        """Number of traces kept."""
        return len(self.captures)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @pending.locked
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the plan kept for arguments like these, or trace."""
        if is_tracing():  # a jitted function inside another is inlined
            return self.function(*args, **kwargs)
        flattener = Flattener()
        structure = flattener.flatten((args, kwargs))
        arguments = flattener.tensors
        pending.flush_assigns()
        realize([tensor.node for tensor in arguments])
        described = tuple(describe(tensor) for tensor in arguments)
        key = (structure, described, config.epoch, autocast.state())
        capture = self.find(key)
        if capture is None:
            self.warn_when_many(key)
            capture, result = trace(self.function, args, kwargs, arguments)
            self.captures[key] = capture
            return result
        return replay(capture, arguments)

    def find(self, key: Any) -> Capture | None:
        """Look a trace up; static arguments must be hashable."""
        try:
            return self.captures.get(key)
        except TypeError:
            kind = unhashable(key[0])
            problem = f"an argument of type {kind} cannot be hashed, so no trace can be kept"
            raise TraceError("jit", problem, "pass tensors, numbers, strings or tuples") from None

    def warn_when_many(self, key: Any) -> None:
        """Say why a function keeps being traced."""
        if len(self.captures) != TRACE_LIMIT:
            return
        last = next(reversed(self.captures))
        what = "static arguments" if last[0] != key[0] else "shapes or dtypes of its tensors"
        name = getattr(self.function, "__name__", "function")
        print(f"picograd.jit: {name} was traced {TRACE_LIMIT} times: the {what} keep changing",
              file=sys.stderr)  # fmt: skip


def unhashable(structure: Any) -> str:
    """Name the type of the first argument that cannot be part of a key."""
    if structure[0] == "static":
        try:
            hash(structure[2])
        except TypeError:
            return str(structure[1].__name__)
        return ""
    if structure[0] == "tensor":
        return ""
    items = [item[1] if structure[0] is dict else item for item in structure[1]]
    return next((found for found in map(unhashable, items) if found), "")


def describe(tensor: Tensor) -> tuple[Any, ...]:
    """What of a tensor argument a trace depends on."""
    return tensor.shape, tensor.dtype.name, tensor.device, tensor.requires_grad


def trace(
    function: Callable[..., Any], args: Any, kwargs: Any, arguments: Sequence[Tensor]
) -> tuple[Capture, Any]:
    """Run a function once, realize all it made in one plan, and remember how to do so again."""
    pending.realize_all()
    originals = [tensor.node for tensor in arguments]
    aliases = [alias(node) for node in originals]
    for tensor, node in zip(arguments, aliases, strict=True):
        tensor.node = node
    try:
        with tracing(), drawing() as drawn:
            result = function(*args, **kwargs)
        flattener = Flattener()
        structure = flattener.flatten(result)
        live = pending.live_tensors()
        capture = capture_plan(flattener.tensors, live, aliases, drawn)
        capture.structure = structure
    finally:
        written = restore(arguments, aliases, originals)
    capture.written = written
    pending.realize_all()
    return capture, result


def alias(node: Node) -> Node:
    """Make a leaf over the same memory as an argument, yet told apart from captured tensors."""
    buffer = leaf_buffer(node)
    if buffer is None:
        raise TraceError("jit", "an argument could not be realized", "call realize() on it first")
    twin = Buffer(buffer.device, buffer.dtype, buffer.count, buffer.address, buffer)
    return leaf(twin, node.shape)


def restore(
    arguments: Sequence[Tensor], aliases: Sequence[Node], originals: Sequence[Node]
) -> list[int]:
    """Give arguments that were not replaced their own nodes back; those assigned to, the next leaf.

    Returns the numbers of the arguments assigned to.
    """
    assigned = []
    for number, tensor in enumerate(arguments):
        node, original = aliases[number], originals[number]
        is_replaced = tensor.node is not node
        if is_replaced and tensor.node.realized is node.arg.buffer:
            assigned.append(number)
            tensor.node = pending.next_leaf(original)
        elif not is_replaced:
            tensor.node = original
    return assigned


def read_outputs(
    outputs: Sequence[Tensor], numbers: dict[int, int], argument_of: dict[int, int], count: int
) -> tuple[list[tuple[int, tuple[int, ...], bool]], list[Tensor]]:
    """Describe where each output comes from: a root, an argument, or a constant."""
    described: list[tuple[int, tuple[int, ...], bool]] = []
    constants: list[Tensor] = []
    for tensor in outputs:
        root = numbers.get(id(tensor.node))
        if root is None and id(tensor.node) in argument_of:
            root = -1 - argument_of[id(tensor.node)]
        elif root is None:
            root = -1 - count - len(constants)
            constants.append(tensor)
        described.append((root, tensor.shape, tensor.requires_grad))
    return described, constants


def capture_plan(
    outputs: Sequence[Tensor], live: Sequence[Tensor], aliases: Sequence[Node],
    drawn: list[RuntimeScalar],
) -> Capture:  # fmt: skip
    """Realize outputs and escaping tensors together; record what a replay needs."""
    roots: dict[int, Node] = {}
    for tensor in (*outputs, *live):
        if leaf_buffer(tensor.node) is None:
            roots[id(tensor.node)] = tensor.node
    numbers = {key: number for number, key in enumerate(roots)}
    argument_of = {id(node): number for number, node in enumerate(aliases)}
    described, constants = read_outputs(outputs, numbers, argument_of, len(aliases))
    output_ids = {id(tensor) for tensor in outputs}
    escapes = [
        Escape(weakref.ref(tensor), numbers[id(tensor.node)], tensor.node.op == "assign")
        for tensor in live
        if id(tensor.node) in numbers and id(tensor) not in output_ids
    ]
    if not roots:
        return Capture(None, [], [], escapes, described, None, constants, config.epoch, drawn)
    found = graph_key(list(roots.values()))
    compiled = realize_roots(list(roots.values()), found)
    buffer_argument = {id(node.arg.buffer): number for number, node in enumerate(aliases)}
    storages = {
        id(leaf_buffer(node)): node.arg for node in found.leaves if isinstance(node.arg, Storage)
    }
    sources = [
        Source(buffer_argument.get(id(buffer), -1), storages.get(id(buffer)), buffer)
        for buffer in found.buffers
    ]
    return Capture(
        compiled, sources, found.scalars, escapes, described, None, constants, config.epoch, drawn
    )


def replay(capture: Capture, arguments: Sequence[Tensor]) -> Any:
    """Run a captured plan on new arguments; the function itself does not run."""
    if capture.recorded != pending.recorded():
        prepare_writes(capture, arguments)
    buffers = [leaf_buffer(tensor.node) for tensor in arguments]
    given = [buffer for buffer in buffers if buffer is not None]
    results: list[Buffer] = []
    values = draw_again(capture)
    if capture.plan is not None:
        inputs = [source.current(given) for source in capture.sources]
        results = capture.plan.run(inputs, values)
    for escape in capture.escapes:
        tensor = escape.tensor()
        if tensor is not None and not escape.is_assign:
            tensor.node = leaf(results[escape.root], tensor.shape)
    outputs = [
        rebuild(root, shape, requires_grad, capture, results, arguments)
        for root, shape, requires_grad in capture.outputs
    ]
    capture.recorded = pending.recorded()
    return unflatten(capture.structure, outputs)


def draw_again(capture: Capture) -> list[int | float]:
    """Give the runtime scalars of a plan their next values, as running the function would.

    Draws that nothing reads move their generators on too.
    """
    drawn = {id(each): each.renew() for each in capture.drawn if each.renew is not None}
    rest = [s for s in capture.scalars if id(s) not in drawn]
    drawn.update({id(s): s.renew() if s.renew is not None else s.value for s in rest})
    return [drawn[id(s)] for s in capture.scalars]


def prepare_writes(capture: Capture, arguments: Sequence[Tensor]) -> None:
    """Before memory is written: compute what still reads it, and give its tensors new leaves.

    Only where something was recorded since the last call, and for nodes that a graph refers to:
    else nothing can read the old contents.
    """
    found = [escape.tensor() for escape in capture.escapes if escape.is_assign]
    tensors = [tensor for tensor in found if tensor is not None]
    tensors += [arguments[number] for number in capture.written]
    shared = [tensor for tensor in tensors if references(tensor) > UNSHARED]
    if shared:
        pending.before_writes([tensor.node for tensor in shared])
        for tensor in shared:
            tensor.node = pending.next_leaf(tensor.node)


def references(tensor: Any) -> int:
    """Count the references to a tensor's node."""
    return sys.getrefcount(tensor._node)


@dataclass(slots=True)
class Alone:
    """Holds the only reference to an object, as a tensor does that no graph reads."""

    _node: object


UNSHARED = references(Alone(object()))  # differs between versions of Python


def rebuild(
    root: int,
    shape: tuple[int, ...],
    requires_grad: bool,
    capture: Capture,
    results: Sequence[Buffer],
    arguments: Sequence[Tensor],
) -> Tensor:
    """Make one tensor of the returned value."""
    if root >= 0:
        return Tensor.from_node(leaf(results[root], shape))
    number = -1 - root
    if number < len(arguments):
        return arguments[number]
    return capture.constants[number - len(arguments)]


def jit(function: Callable[..., Any]) -> Jitted:
    """Make a function whose tensor operations are traced once and then replayed as one plan.

    >>> import picograd
    >>> @picograd.jit
    ... def double(x):
    ...     return x + x
    >>> double(picograd.Tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    if not callable(function):
        problem = f"{type(function).__name__} is no function"
        raise DTypeError("jit", problem, "write @picograd.jit above a function")
    return Jitted(function)
