"""Recording: how operations on tensors become nodes, and what a tensor keeps beside its node.

`Recorded` is what the files below `tensor.py` know of a tensor: its node, whether it tracks
gradients, and how it lets its graph go. `apply` records an operation, `write` an in-place change.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from picograd.buffer import Storage
from picograd.dtype import DType, category, dtype_named
from picograd.engine import pending
from picograd.errors import DTypeError, GradientError, ShapeError
from picograd.graph import build
from picograd.graph import build_composite as composite
from picograd.graph.node import Node
from picograd.tensor import autograd, creation, elementwise, random
from picograd.tensor.autograd import LEAVES, MODE
from picograd.tensor.operands import Shape, as_shape, optional_dtype

NUMBERS = (bool, int, float, np.generic)
Other = Any  # a Tensor, a Python number or an array
Same = TypeVar("Same", bound="Recorded")  # the tensor class of a method's result: Tensor


class Recorded:
    """This class is a tensor's node and gradient state; `Tensor` is the only class made of it.

    `kind` is the class of recorded results; `tensor.py` sets it.
    """

    __slots__ = ("__weakref__", "_history", "_hooks", "_node", "_tracks", "grad", "name")
    kind: ClassVar[Any]

    _node: Node
    _tracks: bool
    _history: Node | None  # what a realized tensor was computed from, for small scripts' backward
    _hooks: "dict[int, Callable[..., Any]] | None"  # what `register_hook` was given
    grad: Any
    name: str

    @property
    def node(self) -> Node:
        """Node of the graph this tensor's value is."""
        return self._node

    @node.setter
    def node(self, node: Node) -> None:
        is_leaf = self.is_leaf
        pending.forget(self._node, self)
        if pending.owner(node) is not None:
            node = same_value(node)
        self._node = node
        pending.track(node, self)
        if is_leaf:
            LEAVES[node] = weakref.ref(self)

    # what it is

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return self._node.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._node.dtype

    @property
    def device(self) -> str:
        """Name of the device it lives on."""
        return self._node.device

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._node.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._node.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._node.size * self._node.dtype.itemsize

    @property
    def requires_grad(self) -> bool:
        """Whether `backward` gives this tensor, or what it was computed from, a gradient."""
        return self._tracks

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted == self._tracks:
            return
        if wanted and not self.dtype.is_float:
            text = f"a {self.dtype.name} tensor cannot have a gradient"
            raise GradientError("requires_grad", text, "use a float dtype")
        if not wanted and not self.is_leaf:
            text = "only a leaf can stop asking for gradients"
            raise GradientError("requires_grad", text, "use .detach()")
        if wanted and self._node not in LEAVES:
            self.node = build.detach(self._node)
            LEAVES[self._node] = weakref.ref(self)
        self._tracks = bool(wanted)

    @property
    def is_leaf(self) -> bool:
        """Whether the user made this tensor, rather than an operation on tensors that track."""
        return not self._tracks or autograd.leaf_of(self._node) is self

    def settle(self) -> None:
        """Let the graph go once the value is computed; the engine calls this."""
        node = self._node
        buffer = node.realized
        is_leaf = self.is_leaf
        if buffer is None or node.op == "buffer" or not is_leaf:
            return
        storage = pending.next_version(node) if node.op == "assign" else Storage(buffer)
        is_made = node in LEAVES
        keeps = not is_made and MODE.enabled and node.dtype.is_float and bool(node.inputs)
        self.node = Node("buffer", (), storage, node.shape, node.dtype, node.device)
        self._history = node if keeps else None


def start(tensor: "Recorded", node: Node, tracks: bool) -> None:
    """Fill the slots of a new tensor."""
    if id(node) in pending.LIVE:
        node = same_value(node)
    tensor._node, tensor._tracks = node, tracks
    tensor._history = tensor._hooks = tensor.grad = None
    tensor.name = ""
    pending.LIVE[id(node)] = tensor


def same_value(node: Node) -> Node:
    """Give another node of the same value: every tensor has a node of its own.

    A cast to the same dtype costs nothing in a kernel, and gradients pass.
    """
    return Node("cast", (node,), node.dtype, node.shape, node.dtype, node.device)


def wrap(node: Node, tracks: bool) -> Any:
    """Make a tensor of a recorded node; pending work over budget is computed here."""
    tensor = Recorded.kind.__new__(Recorded.kind)
    start(tensor, node, tracks)
    if pending.is_over_budget():
        pending.realize_all()
    return tensor


def made(node: Node) -> Any:
    """Make a leaf tensor of a node."""
    tensor = wrap(node, False)
    LEAVES[tensor._node] = weakref.ref(tensor)
    return tensor


def fresh(node: Node, requires_grad: bool = False) -> Any:
    """Make a leaf of a new value; floats are opaque, so that gradients can stop at them."""
    tensor = made(build.detach(node) if node.dtype.is_float else node)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def drawn(
    op: str, draw: Callable[..., Node], sizes: Any, generator: Any, dtype: Any, device: Any,
    more: dict[str, Any],
) -> Any:  # fmt: skip
    """Make a random float tensor."""
    wanted = random.float_dtype(op, optional_dtype(dtype))
    place = creation.device_named(device)
    return fresh(draw(as_shape(sizes, op), wanted, place, generator), **more)


def read(value: Any) -> Any:
    """Give the node of a tensor as an operand; inside no_grad gradients stop here."""
    if not isinstance(value, Recorded):
        return value
    if value._tracks and not MODE.enabled:
        return build.detach(value._node)
    return value._node


def apply(function: Callable[..., Node], *operands: Any) -> Any:
    """Record an operation: tensors among the operands become nodes, the result a tensor."""
    tracks, is_recorded, nodes = False, False, []
    for operand in operands:
        if isinstance(operand, Recorded):
            is_recorded = True
            node = operand._node
            if operand._tracks:
                if MODE.enabled:
                    tracks = True
                else:
                    node = build.detach(node)
            nodes.append(node)
        else:
            nodes.append(operand)
    if not is_recorded:
        raise no_tensor(function, operands)
    try:
        result = function(*nodes)
    except AttributeError as error:  # a number or list where only a tensor will do
        if any(error.obj is operand for operand in operands):
            raise no_tensor(function, operands, error.obj) from None
        raise
    return wrap(result, tracks and result.dtype.kind == "float")


def no_tensor(
    function: Callable[..., Node], operands: Sequence[Any], wrong: Any = None
) -> DTypeError:
    """Word the error of an operand that is no tensor: `picograd.exp(3)`."""
    names = [each for each in operands[:1] if isinstance(each, str)]
    op = names[0] if names else getattr(function, "__name__", "op")
    if wrong is None:
        wrong = next((each for each in operands[len(names) :]), None)
    text = f"the input must be a Tensor, not {type(wrong).__name__}"
    return DTypeError(op, text, "wrap it in picograd.Tensor(...)")


def apply_all(function: Callable[..., Node], tensors: Sequence[Any], *options: Any) -> Any:
    """Record an operation on a list of tensors."""
    if isinstance(tensors, Recorded):
        tensors = list(tensors)
    if not isinstance(tensors, (list, tuple)):
        text = f"expected a list of tensors, got {type(tensors).__name__}"
        raise DTypeError(getattr(function, "__name__", "op"), text, "pass [a, b]")
    for tensor in tensors:
        if not isinstance(tensor, Recorded):
            text = f"expected tensors, got {type(tensor).__name__}"
            raise DTypeError(getattr(function, "__name__", "op"), text, "wrap it in Tensor(...)")
    tracks = MODE.enabled and any(tensor._tracks for tensor in tensors)
    result = function([read(tensor) for tensor in tensors], *options)
    return wrap(result, tracks and result.dtype.is_float)


def several(source: "Recorded", nodes: Sequence[Node]) -> tuple[Any, ...]:
    """Wrap several results of one tensor."""
    tracks = source._tracks and MODE.enabled
    return tuple(wrap(node, tracks and node.dtype.is_float) for node in nodes)


def as_tensor(value: Any, like: "Recorded") -> Any:
    """Wrap data that is not a tensor yet, on the device of `like`; numbers take its dtype."""
    if isinstance(value, Recorded):
        return value
    if isinstance(value, (bool, int, float)):
        return wrap(build.const(value, (), like.dtype, like.device), False)
    return Recorded.kind(value, device=like.device)


def selector(items: Any) -> list[Any]:
    """Read an index expression; tensors become nodes."""
    listed = items if isinstance(items, tuple) else (items,)
    return [item._node if isinstance(item, Recorded) else item for item in listed]


def check_write(op: str, target: "Recorded", node: Node) -> None:
    """Raise unless a value has exactly the target's shape, dtype and device."""
    if node.shape != target.shape:
        text = f"value of shape {node.shape} does not fit a tensor of shape {target.shape}"
        raise ShapeError(op, text, "reshape or expand the value")
    if node.dtype is not target.dtype:
        text = f"value is {node.dtype.name} but the tensor is {target.dtype.name}"
        raise DTypeError(op, text, f'cast it with .cast("{target.dtype.name}")')
    elementwise.check_device(op, target._node, node)


def check_leaf_write(op: str, target: "Recorded") -> None:
    """Raise GradientError for an in-place operation on a leaf that asked for gradients."""
    if target._tracks and MODE.enabled and target.is_leaf:
        text = "a leaf that requires gradients cannot be changed in place"
        raise GradientError(op, text, "do it inside `with picograd.no_grad():`")


def update(target: "Recorded", function: Callable[..., Node], op: str, other: Any) -> Any:
    """Record `target op= other`: the shape and dtype of the target stay."""
    source = other if isinstance(other, (Recorded, *NUMBERS)) else as_tensor(other, target)
    check_leaf_write(op, target)
    tracks = MODE.enabled and (target._tracks or (isinstance(source, Recorded) and source._tracks))
    node = function(op, read(target), read(source))
    if category(node.dtype) > category(target.dtype):
        text = f"the result is {node.dtype.name} but the tensor is {target.dtype.name}"
        raise DTypeError(op, f"in place {text}", "write x = x op y instead")
    node = node.cast(target.dtype)
    check_write(op, target, node)
    write(target, node, tracks)
    return target


def rewrite(target: "Recorded", name: str, result: "Recorded") -> Any:
    """Write a result computed from a tensor back to it: its shape and dtype stay."""
    op = f"{name}_"
    check_leaf_write(op, target)
    if category(result.dtype) > category(target.dtype):
        text = f"the result is {result.dtype.name} but the tensor is {target.dtype.name}"
        raise DTypeError(op, text, f"write x = x.{name}(...) instead")
    node = result._node.cast(target.dtype)
    check_write(op, target, node)
    write(target, node, result._tracks and MODE.enabled)
    return target


def write(target: "Recorded", node: Node, tracks: bool) -> None:
    """Give a tensor its next value: in place if it has a buffer."""
    current, was_leaf = target._node, target.is_leaf
    if current.op in ("buffer", "assign") and not tracks:
        node = build.assign(current, node)
        pending.WRITES.add(node)
    elif was_leaf and not tracks:
        node = build.detach(node)
    target._history = None
    if tracks:
        target._tracks = False  # so that the setter does not make it a leaf
        pending.forget(current, target)
        target._node = same_value(node) if pending.owner(node) is not None else node
        pending.track(target._node, target)
        target._tracks = True
        return
    if not was_leaf:
        target._tracks = False
    target.node = node
    LEAVES[target._node] = weakref.ref(target)
    if pending.is_over_budget():
        pending.realize_all()


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, create_graph: bool = False,
    allow_unused: bool = False,
) -> Any:  # fmt: skip
    """Find the gradients of outputs with respect to inputs, without touching `grad`.

    A list of tensors, one per input (None where `allow_unused` and nothing leads there).
    """
    sources = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    targets = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    given = [grad_outputs] if isinstance(grad_outputs, Recorded) else grad_outputs
    starts = (
        [None] * len(sources)
        if given is None
        else [None if each is None else each._node for each in given]
    )
    for each in (*sources, *targets):
        if not isinstance(each, Recorded):
            text = f"expected tensors, got {type(each).__name__}"
            raise DTypeError("grad", text, "pass tensors that were computed from others")
    pairs = []
    for source, beginning in zip(sources, starts):
        root = source._history if source._history is not None else source._node
        pairs.append((root, autograd.start_gradient("grad", root, beginning)))
    found = autograd.gradients_of(pairs, targets)
    if not allow_unused and any(node is None for node in found):
        position = [node is None for node in found].index(True)
        text = f"input {position} was not used to compute the outputs"
        raise GradientError("grad", text, "pass allow_unused=True, or check for detach and no_grad")
    return [
        None if node is None else wrap(node if create_graph else build.detach(node), create_graph)
        for node in found
    ]


def copied(tensor: "Recorded") -> Any:
    """Make a leaf of the same class, values and attributes."""
    result = type(tensor).__new__(type(tensor))
    start(result, build.detach(tensor._node), False)
    LEAVES[result._node] = weakref.ref(result)
    result._tracks, result.name = tensor._tracks, tensor.name
    for key, value in getattr(tensor, "__dict__", {}).items():
        setattr(result, key, value)
    return result


def restored(kind: Any, values: Any, dtype: str, device: str, requires_grad: bool) -> Any:
    """Make the tensor that was pickled."""
    result: Recorded = kind.__new__(kind)
    start(result, creation.from_data(values, dtype_named(dtype), device), False)
    LEAVES[result._node] = weakref.ref(result)
    result._tracks = requires_grad
    return result


class HookHandle:
    """This class takes a hook away again."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], number: int) -> None:
        self.hooks, self.number = hooks, number

    def remove(self) -> None:
        """Stop calling the hook."""
        self.hooks.pop(self.number, None)


def run_hooks(hooks: dict[int, Callable[..., Any]], gradient: Node) -> Node:
    """Let hooks see a gradient, one after the other, and replace it."""
    for hook in list(hooks.values()):
        answer = hook(wrap(gradient, False))
        if answer is not None:
            gradient = answer._node
    return gradient


def add_hook(tensor: "Recorded", hook: Callable[..., Any]) -> HookHandle:
    """Call a hook with the gradient of a tensor; what it returns, unless None, replaces it."""
    if not tensor._tracks:
        text = "the tensor does not ask for gradients"
        raise GradientError("register_hook", text, "set requires_grad=True first")
    if tensor._hooks is None:
        hooks: dict[int, Callable[..., Any]] = {}
        tensor._hooks = hooks
        if not tensor.is_leaf:  # backward runs the hooks of leaves
            current = tensor._node
            node = composite.custom(current, (current,), lambda g, y, x: (run_hooks(hooks, g),))
            pending.forget(current, tensor)
            tensor._node = node
            pending.track(node, tensor)
    number = max(tensor._hooks, default=-1) + 1
    tensor._hooks[number] = hook
    return HookHandle(tensor._hooks, number)
