"""Recording: how operations on tensors become nodes, and what a tensor keeps beside its node.

`Recorded` is what the files below `tensor.py` know of a tensor: its node, whether it tracks
gradients, and how it lets its graph go. `apply` records an operation, `write` an in-place change.
"""

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from picograd.buffer import Storage
from picograd.device_name import NAMES, device
from picograd.dtype import DType, category, dtype_named, int64, scalar_dtype
from picograd.engine import foreign, pending, tracing
from picograd.engine.carried import entries, is_near
from picograd.engine.followed import EVENTS, MISS, event, leave, noted
from picograd.engine.native_calls import CODED
from picograd.engine.tracing import RUNNING, is_tracing, note_changed, note_gradient, note_spent
from picograd.errors import DTypeError, GradientError, PicogradError, ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph.batch import Batch
from picograd.graph.build_composite import check_device
from picograd.graph.node import Node
from picograd.graph.room import check_recorded, check_size
from picograd.graph.row import MEMORY, MOVES, PAIRS, WRITES
from picograd.number import WHOLE, given
from picograd.tensor.core import aliasing, autograd, cells, running_vmaps, saved_hooks
from picograd.tensor.core.aliasing import View, is_basic, is_chosen, show_items, written_each
from picograd.tensor.core.alone import ask
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.autocast import REGIONS, converted, recorder_of
from picograd.tensor.core.autograd import MODE, TRACKED
from picograd.tensor.core.function import check_tensors, composed, no_tensor
from picograd.tensor.core.operands import constant, is_data
from picograd.tensor.core.recipes import again, again_over
from picograd.tensor.core.sizes import Size
from picograd.tensor.indexing import selecting
from picograd.tensor.making import creation
from picograd.tensor.shaping import assembling, bits

HELD = MEMORY | WRITES  # ops of nodes that have memory
NUMBERS = (bool, int, float, complex, np.generic)
VERSIONS: "weakref.WeakKeyDictionary[Node, int]" = weakref.WeakKeyDictionary()  # see `write`
Same = TypeVar("Same", bound="Recorded")  # the tensor class of a method's result: Tensor


class Recorded:
    """This class is a tensor's node and gradient state; `Tensor` is the only class made of it.

    `kind` is the class of recorded results; `tensor.py` sets it.
    """

    __slots__ = (
        "__weakref__", "_grad", "_history", "_hooks", "_is_frozen", "_node", "_tracks", "_view",
        "_views", "name",
    )  # fmt: skip
    kind: ClassVar[Any]
    _masked: ClassVar[Any] = None  # of what a mask chose in a trace; `masked_choice.py` sets it

    _node: Node
    _tracks: bool
    _is_frozen: bool  # the user said requires_grad=False: `backward` serves it by no courtesy
    _history: Node | None  # what a realized tensor was computed from, for small scripts' backward
    _hooks: Any  # what `register_hook` was given
    _view: View | None  # how it shows another tensor's memory
    _views: "list[weakref.ref[Recorded]] | None"  # what was made to show its memory
    _grad: Any
    name: str

    @property
    def grad(self) -> "Tensor | None":
        """The gradient that `backward` added up; None before.

        >>> Tensor([1.0]).grad is None
        True
        """
        if RUNNING.traces:
            note_gradient(self, True)
        elif self._grad is None and self._tracks:
            autograd.warn_if_computed(self)
        return self._grad

    @grad.setter
    def grad(self, value: "Tensor | None") -> None:
        if value is not None:
            autograd.check_gradient(self, value, Recorded)
            check_write("grad", self, value._node)
        if RUNNING.traces:
            note_gradient(self, False, value is not None)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def node(self) -> Node:
        """Node of the graph this tensor's value is."""
        return self._node

    @node.setter
    def node(self, node: Node) -> None:
        """Give it memory of its own: it shows no other tensor's, and its views keep the old."""
        leave()
        with pending.LOCK:
            tracing.note_moved(self)
            if any(each() is not None for each in self._views or ()):
                tracing.note_stand_in(self, hand_over(self))
            self._view = self._views = None
            self._move(node)

    def _move(self, node: Node) -> None:
        """Give it another node in the place of its own."""
        leave()
        if RUNNING.traces:
            note_changed(self)
        with pending.LOCK:
            is_leaf = self.is_leaf
            pending.forget(self._node, self)
            node = same_value(node) if is_shared(node) else node
            if is_leaf:
                node.leaf = weakref.ref(self)
            self._node = node
            pending.track(node, self)

    # what it is

    @property
    def shape(self) -> Size:
        """Sizes of the axes.

        >>> Tensor([[1.0, 2.0]]).shape
        (1, 2)
        """
        return Size(self._node.shape)

    @property
    def dtype(self) -> DType:
        """Element type.

        >>> Tensor([1.0, 2.0]).dtype
        picograd.float32
        """
        return self._node.dtype

    @property
    def device(self) -> device:
        """Name of the device it lives on: a string that knows its `type` and `index`.

        >>> Tensor([1.0], device="cpu").device
        'cpu'
        """
        return NAMES[self._node.device]

    @property
    def ndim(self) -> int:
        """Number of axes.

        >>> Tensor([[1.0, 2.0]]).ndim
        2
        """
        return len(self._node.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element.

        >>> Tensor([1.0, 2.0]).itemsize
        4
        """
        return self._node.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements.

        >>> Tensor([1.0, 2.0]).nbytes
        8
        """
        return self._node.size * self._node.dtype.itemsize

    @property
    def requires_grad(self) -> bool:
        """Whether `backward` gives this tensor, or what it was computed from, a gradient.

        >>> Tensor([1.0], requires_grad=True).requires_grad
        True
        """
        return self._tracks

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        was_frozen, self._is_frozen = self._is_frozen, not wanted and self.is_leaf
        if was_frozen != self._is_frozen or wanted < self._tracks:
            leave()
        if wanted == self._tracks:
            return
        if wanted and not self.dtype.is_differentiable:
            text = f"a {self.dtype.name} tensor cannot have a gradient"
            raise GradientError("requires_grad", text, "use a float dtype")
        if not wanted and not self.is_leaf:
            raise GradientError("requires_grad", "only a leaf can turn it off", "use .detach()")
        if wanted:
            ask(self)
        self._tracks = wanted

    @property
    def is_leaf(self) -> bool:
        """Whether the user made this tensor, rather than an operation on tensors that track.

        >>> x = Tensor([1.0], requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        is_own = not self._tracks or autograd.leaf_of(self._node) is self
        return is_own and (not RUNNING.traces or tracing.is_leaf_outside(self))

    @property
    def _version(self) -> int:
        """How often the tensor was changed in place."""
        with pending.LOCK:
            node, count = root_of(self)._node, 0
            while node.op in WRITES:
                node, count = node.inputs[0], count + 1
        stored: int = node.arg.version if node.op in MEMORY else VERSIONS.get(node, 0)
        return stored + count

    def settle(self) -> None:
        """Let the graph go once the value is computed; the engine calls this."""
        node = self._node
        buffer = node.realized
        if buffer is None or node.op in MEMORY or (self._tracks and not self.is_leaf):
            return
        storage = Storage(buffer)
        storage.source = weakref.ref(node)
        if entries(VERSIONS):
            storage.version = VERSIONS.get(node, 0)
        keeps = node.inputs and node.leaf is None and MODE.enabled and node.dtype.kind in TRACKED
        leaf = Node("buffer", (), storage, node.shape, node.dtype, node.device)
        leaf.leaf = weakref.ref(self)
        if RUNNING.traces:
            note_changed(self)
        self._node = leaf
        pending.LIVE.move(id(node), id(leaf), self)
        self._history = node if keeps else None


def fill(tensor: "Recorded", node: Node, tracks: bool) -> None:
    """Fill the slots of a new tensor."""
    tensor._node, tensor._tracks, tensor._is_frozen, tensor.name = node, tracks, False, ""
    tensor._history = tensor._hooks = tensor._view = tensor._views = tensor._grad = None


def start(tensor: "Recorded", node: Node, tracks: bool) -> None:
    """Fill the slots of a new tensor, and enter it among those that are alive."""
    if EVENTS.take is not None and node.op not in MEMORY:
        leave()
    fill(tensor, node, tracks)
    if not pending.adopt(node, tensor):
        tensor._node = same_value(node)
        pending.adopt(tensor._node, tensor)
    if RUNNING.traces:
        tracing.note_made(tensor)


def is_shared(node: Node) -> bool:
    """Tell whether another tensor has a node, or the memory it was computed into.

    An operation that gives its operand back may find it computed by another thread meanwhile.
    """
    return node.realized is not None or pending.owner(node) is not None


def same_value(node: Node) -> Node:
    """Give another node of the same value: every tensor has a node of its own.

    A cast to the same dtype costs nothing in a kernel, and gradients pass.
    """
    return Node("cast", (node,), node.dtype, node.shape, node.dtype, node.device)


def wrap(node: Node, tracks: bool) -> Any:
    """Make a tensor of a recorded node, of which it is not known whose memory it reads."""
    tensor = wrap_own(node, tracks)
    if foreign.SHARED:
        foreign.settle(tensor._node)
    return tensor


def wrap_own(node: Node, tracks: bool) -> Any:
    """Make a tensor of a recorded node; pending work over budget is computed here.

    By machine code as a rule: where no trace or way is told of it.
    """
    if CODED.wrap is not None:
        with pending.LOCK:
            made = CODED.wrap(node, tracks)
        if made is not None:
            return made
    check_recorded(node)
    if tracks and node.op in MOVES:  # no view of the result may be recorded past it
        node.is_asked = True
    return begun(node.whole() if tracks and node.op in PAIRS else node, tracks)


def shown(
    node: Node, tracks: bool, base: "Recorded", function: Callable[..., Node], *operands: Any
) -> Any:
    """Make a tensor that shows another's memory, which nobody else has."""
    if CODED.show is not None and not foreign.SHARED:
        with pending.LOCK:
            made = CODED.show(node, tracks, base, function, operands)
        if made is not None:
            return made
    made = wrap(node, tracks)
    note_view(made, base, function, *operands)
    return made


def begun(node: Node, tracks: bool) -> Any:
    """Make a tensor of a node, and compute what waits if that is much."""
    tensor = Recorded.kind.__new__(Recorded.kind)
    start(tensor, node, tracks)
    if pending.is_over_budget():
        pending.realize_all()
    return tensor


def decided(*results: Any) -> Any:
    """Compute results of a function that refuses some values: it does so at the user's line.

    Not in a trace: there the error comes when its plan runs. What failed is computed no more.
    """
    waiting = [tensor._node for tensor in results if tensor._node.op not in MEMORY]
    if waiting and not is_tracing():
        try:
            pending.compute(waiting)
        except PicogradError:
            for tensor in results:
                pending.forget(tensor._node, tensor)
            raise
    return results[0] if len(results) == 1 else results


def made(node: Node) -> Any:
    """Make a leaf tensor of a node."""
    tensor = wrap(node, False)
    tensor._node.leaf = weakref.ref(tensor)
    return tensor


def fresh(node: Node, requires_grad: bool | None = None) -> Any:
    """Make a leaf of a new value; floats are opaque, so that gradients can stop at them."""
    check_size(node.op, node.shape, node.dtype.itemsize, node.device)
    tensor = made(build.detach(node.below("detach")) if node.dtype.is_differentiable else node)
    if requires_grad is not None:
        tensor.requires_grad = requires_grad
    return tensor


def read(value: Any) -> Any:
    """Give the node of a tensor as an operand; inside no_grad gradients stop here."""
    if not isinstance(value, Recorded):
        return value
    if value._tracks and not MODE.enabled:
        return build.detach(value._node)
    return value._node


@again(read)
def apply(function: Callable[..., Node], *operands: Any) -> Any:
    """Record an operation: tensors among the operands become nodes, the result a tensor."""
    take = EVENTS.take
    if take is not None and (known := take(apply, (function, *operands), {})) is not MISS:
        return known
    with EVENTS.lock:  # as in `event`
        return record_result(function, operands)


def record_result(function: Callable[..., Node], operands: Sequence[Any]) -> Any:
    """Record an operation that no way knows."""
    tracks, is_recorded, nodes, record = False, False, [], function
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
        else:  # a size of NumPy in a shape is none that kernels are told by
            plain: Any = int(operand) if type(operand) in WHOLE else operand
            nodes.append(given(plain) if type(plain) is float else plain)
    if not is_recorded:
        raise no_tensor(function, operands)
    is_view = function in SHOWING
    # before casts, behind which nobody looks
    is_theirs = bool(foreign.SHARED) and foreign.are_read(nodes)
    if is_theirs and not (is_view or (function is selecting.read and is_basic(nodes[1]))):
        nodes = foreign.kept(nodes, operands, tracks)
    if REGIONS.dtypes:
        record, nodes = recorder_of(function, nodes)
    try:
        result = record(*nodes)
    except AttributeError as error:
        check_tensors(function, operands, error.obj)
        raise
    if is_theirs and not is_view and function not in KEEPING:
        result = foreign.apart(result)
    tracks = tracks and result.dtype.kind in TRACKED and function not in CUTTING
    if tracks and not is_view and REGIONS.dtypes:
        result = packed(result, function, nodes)
    if is_view:
        return shown(result, tracks, operands[0], function, *nodes[1:])
    return (wrap if is_theirs else wrap_own)(result, tracks)


def packed(result: Node, function: Callable[..., Node], operands: Sequence[Any]) -> Node:
    """Let the hooks of a block pack what the gradient of a result reads."""
    if saved_hooks.current() is None:
        return result
    nodes = [each for each in operands if isinstance(each, Node)]

    def again(*values: Node) -> Node:
        waiting = iter(values)
        given = [next(waiting) if isinstance(each, Node) else each for each in operands]
        return function(*given)

    def show(node: Node) -> Any:
        return wrap(build.detach(node), False)

    return saved_hooks.hooked(result, nodes, again, show)


@again(read)
@event
def apply_each(function: Callable[..., Any], *operands: Any) -> Any:
    """Record an operation that may give several results: a tuple of tensors."""
    found: list[Any] = []

    def first(*nodes: Any) -> Node:
        result = function(*nodes)
        if isinstance(result, tuple):
            found.append((result, nodes))
            result = result[0]
        return result  # type: ignore[no-any-return]

    first.__name__ = function.__name__
    made = apply(first, *operands)
    if not found:
        return made
    results, nodes = found[0]
    tracked = MODE.enabled and any(isinstance(x, Recorded) and x._tracks for x in operands)
    others = []
    for number, node in enumerate(results[1:], 1):
        tracks = tracked and node.dtype.kind in TRACKED
        if tracks and REGIONS.dtypes:
            node = packed(node, one_result, [function, number, *nodes])
        others.append(wrap(node, tracks))
    return (made, *others)


def one_result(function: Callable[..., Sequence[Node]], number: int, *nodes: Any) -> Node:
    """Record an operation of several results, and take one."""
    return function(*nodes)[number]


def is_plain(nodes: Sequence[Node]) -> bool:
    """Tell whether nothing changes what an operation on some nodes records, or notes it."""
    is_told = tracing.OPEN and (RUNNING.active or RUNNING.traces or REGIONS.dtypes)
    return not (is_told or (foreign.SHARED and foreign.are_read(nodes)))


def read_listed(value: Any) -> Any:
    """Give the nodes of a list of tensors as an operand, or what it is."""
    return [*map(read, value)] if isinstance(value, (list, tuple)) else value


@again(read_listed)
@event
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
    nodes = [read(tensor) for tensor in tensors]
    if foreign.are_read(nodes) and function not in KEEPING:
        nodes = foreign.kept(nodes, tensors, tracks)
    result = function(converted(function, nodes) if REGIONS.dtypes else nodes, *options)
    if tracks and REGIONS.dtypes:
        result = packed(result, lambda *values: function(values, *options), nodes)
    if foreign.SHARED and function not in KEEPING:
        result = foreign.apart(result)
    return wrap(result, tracks and result.dtype.is_differentiable)


@event
def pieces(function: Callable[..., Sequence[Node]], source: "Recorded", *options: Any) -> Any:
    """Wrap the pieces that a function cuts a tensor into, each a view of it."""
    tracks = source._tracks and MODE.enabled
    nodes = function(read(source), *options)
    found = tuple(wrap(node, tracks and node.dtype.is_differentiable) for node in nodes)
    for number, piece in enumerate(found):
        note_view(piece, source, one_piece, function, number, options)
    return found


def one_piece(
    node: Node, function: Callable[..., Sequence[Node]], number: int, options: Any
) -> Node:
    """Cut off one of the pieces."""
    return function(node, *options)[number]


def as_tensor(value: Any, like: "Recorded") -> Any:
    """Wrap data that is not a tensor yet, on the device of `like`; numbers promote beside it."""
    if isinstance(value, Recorded):
        return value
    if not isinstance(like, Recorded):
        text = f"the input must be a Tensor, not {type(like).__name__}"
        raise DTypeError("op", text, "wrap it in picograd.Tensor(...)")
    if isinstance(value, (tuple, list)) and any(isinstance(each, Recorded) for each in value):
        text = f"a {type(value).__name__} of tensors is no tensor"
        raise DTypeError("op", text, "take one of them, as in x.max(1).values, or stack them")
    if isinstance(value, (bool, int, float, complex)):
        dtype = scalar_dtype(value, like.dtype)
        if isinstance(value, int) and dtype.is_integer and not -128 <= value < 128:
            dtype = int64
        return wrap(constant("op", value, (), dtype, like.device), False)
    return Recorded.kind.of(value, device=like.device)


def is_operand(value: Any) -> bool:
    """Tell whether an operator takes a value; others are left to Python."""
    return isinstance(value, (Recorded, *NUMBERS)) or is_data(value)


def check_write(op: str, target: "Recorded", node: Node) -> None:
    """Raise unless a value has exactly the target's shape, dtype and device."""
    if node.shape != target.shape:
        text = f"value of shape {node.shape} does not fit a tensor of shape {target.shape}"
        raise ShapeError(op, text, "reshape or expand the value")
    if node.dtype is not target.dtype:
        text = f"value is {node.dtype.name} but the tensor is {target.dtype.name}"
        raise DTypeError(op, text, f'cast it with .cast("{target.dtype.name}")')
    check_device(op, (target._node, node))


def check_leaf_write(op: str, target: "Recorded") -> None:
    """Raise GradientError for an in-place operation on a leaf that asked for gradients."""
    if target._tracks and MODE.enabled and target.is_leaf:
        text = "a leaf that requires gradients cannot be changed in place"
        raise GradientError(op, text, "do it inside `with picograd.no_grad():`")


@again_over(read, 1)
@event
def update(
    target: "Recorded", function: Callable[..., Node], op: str, other: Any, *more: Any
) -> Any:
    """Record `target op= other`: the shape and dtype of the target stay.

    What is no operand is left to Python, as by operators that make a tensor.
    """
    source = other
    if not isinstance(other, (Recorded, *NUMBERS)):
        if not is_data(other):
            return NotImplemented
        source = as_tensor(other, target)
    check_leaf_write(op, target)
    if not more and cells.step_view(target, op, source, renew_views):
        return target
    check_overlap(op, target, source)
    tracks = MODE.enabled and (target._tracks or (isinstance(source, Recorded) and source._tracks))
    operand = given(source) if type(source) is float else read(source)
    node = function(op, read(target), operand, *more)
    if category(node.dtype) > category(target.dtype):
        text = f"the result is {node.dtype.name} but the tensor is {target.dtype.name}"
        raise DTypeError(op, f"in place {text}", "write x = x op y instead")
    node = node.cast(target.dtype)
    check_write(op, target, node)
    if tracks and REGIONS.dtypes:
        operands = [op, read(target), read(source), *more]
        node = packed(node, lambda *values: function(*values).cast(target.dtype), operands)
    write(target, node, tracks)
    return target


@event
def rewrite(target: "Recorded", name: str, result: "Recorded") -> Any:
    """Write a result computed from a tensor back to it: its shape and dtype stay."""
    op = f"{name}_"
    if result is NotImplemented:  # what an operator says of an operand it does not know
        raise DTypeError(op, "the operand is neither a tensor nor a number", "wrap it in Tensor")
    if not result._tracks and is_written(target, result._node):
        return target
    check_leaf_write(op, target)
    if category(result.dtype) > category(target.dtype):
        text = f"the result is {result.dtype.name} but the tensor is {target.dtype.name}"
        raise DTypeError(op, text, f"write x = x.{name}(...) instead")
    node = result._node.cast(target.dtype)
    check_write(op, target, node)
    write(target, node, result._tracks and MODE.enabled)
    return target


def maybe_in_place(op: str, input: Any, result: Any, inplace: bool) -> Any:
    """Write a result over the input where that was asked for."""
    over = getattr(type(input), "_rewrite", rewrite)  # what stands for a tensor has its own
    return over(input, op, result) if inplace and result is not input else result


def check_overlap(op: str, target: "Recorded", source: Any, is_fitted: bool = False) -> None:
    """Raise ShapeError where what is read shares some memory with what is written, but not all."""
    is_other = isinstance(source, Recorded) and source is not target
    if not is_other or (target._view is None and source._view is None):
        return
    if target._view is not None and cells.are_apart(target, source):
        return
    if root_of(target) is not root_of(source) or target.dtype is not source.dtype:
        return
    if aliasing.is_overlapping(target, source, is_fitted):
        text = "the tensor that is read shares some of its memory with the one that is written"
        raise ShapeError(op, text, "call .clone() on what is read")


@pending.locked
def write(
    target: "Recorded", node: Node, tracks: bool, is_alike: bool = False, is_one: bool = True
) -> None:
    """Give a tensor its next value: in place if it has memory, through to its base if it is a view.

    A value that is still to be computed is replaced; `VERSIONS` counts that as a change. All
    elements may be written through repeated ones where they are alike. Unless `is_one`, other
    writes follow that read what this one overwrites, and nothing may be computed before.
    """
    if is_one and not tracks and is_written(target, node):
        return
    if is_view(target):
        if not tracks and is_one and cells.write_view(target, node, renew_views):
            return
        if not is_alike:
            aliasing.check_target("in-place", target)
        own = detached_by(target) if MODE.enabled else None
        if own is not None and (tracks or not own.is_leaf):
            _, after, _ = through(target, node, tracks, own)
            take(own, after, True)  # what has its memory is given the value alone
            target, node, tracks = own, build.detach(after), False
        target, node, tracks = through(target, node, tracks)
        if node is target._node:  # no element was written
            return
    tracing.note_write(target, node)
    replace_value(target, node, tracks, is_one)
    if target._views is not None:
        renew_views(target)
    if is_one and pending.is_over_budget():
        pending.realize_all()


def is_written(target: "Recorded", node: Node) -> bool:
    """Write over memory that one tensor shows, by machine code; False, and nothing, for others."""
    native = CODED.assign
    if native is None or target._view is not None or target._views is not None:
        return False
    if not native(target, node):
        return False
    if pending.is_over_budget():
        pending.realize_all()
    return True


@pending.locked
def write_each(targets: Sequence["Recorded"], nodes: Sequence[Node]) -> None:
    """Give tensors their next values, which ask for no gradients, as `write` does one."""
    for target, node in zip(targets, nodes, strict=True):
        is_alone = target._view is None and target._views is None and not foreign.SHARED
        if not (is_alone and write_memory(target, node)):
            write(target, node, False)


def write_memory(target: "Recorded", node: Node) -> bool:
    """Give a leaf that has memory its next value there, the usual write; False for any other."""
    if EVENTS.take is not None:
        leave()
    if CODED.assign is not None and CODED.assign(target, node):
        return True
    current = target._node
    is_plain_leaf = current.op in HELD and target.is_leaf and not (RUNNING.active or RUNNING.writes)
    is_other = not is_plain_leaf or RUNNING.traces or foreign.are_read((current,))
    if is_other or (foreign.SHARED and foreign.reads(node)):  # it is computed now
        return False
    after = build.assign(current, node)
    after.leaf = weakref.ref(target)
    target._node, target._history = after, None
    pending.move_on(current, after, target)
    if EVENTS.learning is not None:
        EVENTS.learning.note_write(target, after)
    return True


def replace_value(target: "Recorded", node: Node, tracks: bool, is_one: bool = True) -> None:
    """Give a tensor that shows no other's memory its next value."""
    node = foreign.apart(node) if foreign.SHARED else node
    if tracks or not write_memory(target, node):
        noted(move, target, node, tracks, is_one)


def move(target: "Recorded", node: Node, tracks: bool, is_one: bool) -> None:
    """Give a tensor its next value, by a write if it has memory and asks for no gradients."""
    current, was_leaf = target._node, target.is_leaf
    if not was_leaf and not (tracks and (not MODE.enabled or is_near(node, current))):
        node, tracks = autograd.severed(current, node, tracks), True
    if current.op in HELD and not tracks:
        running_vmaps.check_write(node)
        node = build.assign(current, node)
    elif was_leaf and not tracks:
        node = build.detach(node)
    # A write counts itself; asking each time would walk the chain of those that wait.
    version = 0 if node.op in WRITES and not tracks else target._version
    target._history = None
    if tracks:
        take(target, node, True)
        VERSIONS[target._node] = version + 1
        return
    if not was_leaf:
        target._tracks = False
    target._move(node)
    target._node.leaf = weakref.ref(target)
    if target._node.op not in WRITES:
        VERSIONS[target._node] = version + 1
    pending.note_write(target._node, version)
    if foreign.SHARED and is_one:
        foreign.settle(target._node)


def take(target: "Recorded", node: Node, tracks: bool) -> None:
    """Give a tensor a recorded node: it is no leaf."""
    leave()
    if RUNNING.traces:
        note_changed(target)
    pending.forget(target._node, target)
    target._node = same_value(node) if is_shared(node) else node
    pending.track(target._node, target)
    target._tracks, target._history = tracks, None
    target._node.is_asked = tracks and target._view is not None
    if target._hooks is not None:
        autograd.leave_behind(target)


# views

# what gives its operand, or a view of it, where that has all that was asked for
KEEPING: set[Callable[..., Node]] = {build.cast, selecting.read}
SHOWING: set[Callable[..., Node]] = {build.detach}  # functions on nodes whose results alias
ALWAYS: set[Callable[..., Node]] = set()  # whose results alias whatever the strides are
CUTTING = (build.detach, bits.show_bits)  # views that no gradient passes
SLICING = (assembling.tensor_split,)  # what cuts into slices, which may be changed one by one


def showing(*functions: Callable[..., Any], always: Sequence[Callable[..., Any]] = ()) -> None:
    """Declare functions on nodes whose results are views in PyTorch."""
    SHOWING.update((*functions, *always))
    ALWAYS.update(always)


showing(always=(show_items, bits.show_bits))


def note_view(
    view: "Recorded", base: "Recorded", function: Callable[..., Node], *operands: Any
) -> None:
    """Remember that a tensor shows another's memory."""
    passes = MODE.enabled and function not in CUTTING
    always = function in ALWAYS
    attach(view, View(base, function, operands, passes, not MODE.enabled, always))


def attach(tensor: "Recorded", view: View) -> None:
    """Let a tensor be a view, and its base know of it."""
    tensor._view, base = view, view.base
    tensor._node.is_asked = tensor._tracks or tensor._node.is_asked
    base._views = base._views or []
    if len(base._views) >= 16 and not len(base._views) & (len(base._views) - 1):
        base._views = [each for each in base._views if each() is not None]
    base._views.append(weakref.ref(tensor))


def apart(tensor: Any) -> Any:
    """Let a result be a value of its own, though views gave it: PyTorch copies there."""
    tensor._view = None
    return tensor


def is_view(tensor: "Recorded") -> bool:
    """Tell whether a tensor shows another's memory; what turns out to be a copy forgets it."""
    view = tensor._view
    if view is None or view.function is build.detach:
        return view is not None
    if view.strides() is None:
        tensor._view = None
    return tensor._view is not None


def undetached(tensor: "Recorded") -> "Recorded":
    """Find the tensor of which one is `detach()` or `data`, all of it in its shape, or itself."""
    while (view := tensor._view) is not None and view.function is build.detach:
        tensor = view.base
    return tensor


def root_of(tensor: "Recorded") -> "Recorded":
    """Find the tensor whose memory a view shows, or itself."""
    while is_view(tensor):
        view: Any = tensor._view
        tensor = view.base
    return tensor


def memory_of(tensor: "Recorded") -> tuple[Any, int]:
    """Find the tensor that has the memory a view shows, and where in it the view starts.

    It is cut off from gradients if the view is. Memory of another dtype is shown as that of the
    view. A view that a computed number chooses counts as memory of its own, as does one whose
    gradients are its own, that shows all.
    """
    root: Any = tensor
    is_cut = False
    offset = aliasing.offset_of(tensor)
    while is_view(root):
        view: Any = root._view
        if root._tracks and not view.passes and aliasing.shows_all(root):
            break
        root, is_cut = view.base, is_cut or not view.passes
    if offset is None:
        return tensor, 0
    return aliasing.seen_as(root.detach() if is_cut else root, tensor.dtype), offset


def hand_over(tensor: "Recorded") -> Any:
    """Let a tensor of no name have the memory of another; the live views of that show it.

    The other is given a node, and perhaps a view, next.
    """
    node = tensor._node
    holder = Recorded.kind.__new__(Recorded.kind)
    pending.forget(node, tensor)
    start(holder, node, tensor._tracks)
    if not tensor._tracks:
        holder._node.leaf = weakref.ref(holder)
    holder._view, holder._views, tensor._views = tensor._view, tensor._views, None
    if holder._view is not None:
        holder._view.base._views.append(weakref.ref(holder))
    for reference in holder._views or ():
        view = reference()
        if view is not None and view._view is not None and view._view.base is tensor:
            view._view.base = holder
    return holder


@pending.locked
def become(op: str, tensor: "Recorded", look: Callable[[Any], Any]) -> Any:
    """Make a tensor a view of its own memory, in place: other axes, the same elements.

    Gradients go through, in `no_grad` too; a leaf that asks for them there stays one.
    """
    leave()
    check_leaf_write(op, tensor)
    if any(id(tensor) not in trace.own for trace in RUNNING.traces):
        text = "a tensor from outside keeps its axes, which calls without tracing do not change"
        raise tracing.trace_error(op, text, f"write x = x.{op[:-1]}(...)")
    if is_view(tensor):
        view: Any = tensor._view
        check_flow(view, view.base)
    asks = tensor._tracks and tensor.is_leaf
    tensor._tracks = tensor._tracks and not asks
    holder = hand_over(tensor)
    with autograd.enable_grad():
        shown = look(holder)
    pending.forget(shown._node, shown)
    take(tensor, shown._node, shown._tracks)
    if not tensor._tracks:
        tensor._node.leaf = weakref.ref(tensor)
    tensor._view = shown._view
    tensor._view.base._views.append(weakref.ref(tensor))
    if asks:
        tensor.requires_grad = True
    return tensor


@pending.locked
@event
def show_memory(tensor: "Recorded", source: "Recorded") -> None:
    """Let a tensor show the memory of another from now on, as `tensor.data = source` does.

    Of what was computed and tracks gradients this is a copy.
    """
    if undetached(source) is not tensor:
        noted(move_to, tensor, source)


def move_to(tensor: "Recorded", source: "Recorded") -> None:
    """Give a tensor the memory of another; a computed one keeps what its gradient goes to."""
    keeps = tensor._tracks and not tensor.is_leaf and tensor.shape == source.shape
    tensor.node = autograd.led(source._node, tensor._node) if keeps else build.detach(source._node)
    pending.note_write(tensor._node)
    share(tensor, source)


def share(tensor: "Recorded", source: "Recorded") -> None:
    """Let a tensor and the source of its value have one memory: writes to either reach both.

    A source that has no base shows the tensor, which looks the same, as it may be gone soon.
    """
    is_shown = is_view(source) or foreign.is_shared(foreign.behind_views(source._node))
    if is_shown or source.is_leaf or not source._tracks:
        is_first = is_shown or source._tracks
        note_view(*((tensor, source) if is_first else (source, tensor)), build.detach)


def spread(tensor: "Recorded") -> None:
    """Let what a plan wrote into a tensor's memory reach its base, and the views of both."""
    with autograd.no_grad():
        if is_view(tensor):
            tensor, node, tracks = through(tensor, tensor._node, False)
            replace_value(tensor, node, tracks)
    renew_views(tensor)


def detached_by(tensor: "Recorded") -> Any:
    """Find what shows a tensor's memory cut off by `detach()` or `data`, itself or a base; or None.

    What asks for gradients and is written there gives them to it, not to what it was cut off from.
    """
    while is_view(tensor):
        view: Any = tensor._view
        if view.function is build.detach:
            return tensor
        tensor = view.base
    return None


def through(
    target: "Recorded", node: Node, tracks: bool, last: "Recorded | None" = None
) -> tuple[Any, Node, bool]:
    """Take a write through a view back: what has the memory, its next value, if that tracks.

    With `last` it goes back to that base only.
    """
    views: list[Any] = []
    base, is_cut, is_detached = target, not MODE.enabled, False
    while base is not last and is_view(base):
        view: Any = base._view
        if not is_detached:
            check_flow(view, view.base)
        views.append(view)
        if view.function is show_items:
            view.steps(base._node)
        is_detached |= view.function is build.detach
        base, is_cut = view.base, is_cut or not view.passes
    before = build.detach(base._node) if is_cut and base._tracks else base._node
    value = build.detach(node) if is_cut and tracks else node
    if not views or (value.size and all(view.function is build.detach for view in views)):
        after = value
    elif any(is_chosen(view) or view.function is bits.show_bits for view in views):
        after = written_each(views, before, value)
    else:
        is_repeated = aliasing.is_folded(target.shape, aliasing.strides_of(target))
        after = aliasing.written_together(views, before, value, is_repeated)
    if after is before:  # no element was written
        return base, base._node, base._tracks
    if is_cut and not base.is_leaf:
        return base, autograd.led(after, base._node), True
    return base, after, not is_cut and (tracks or base._tracks)


def check_flow(view: View, base: "Recorded") -> None:
    """Raise for a write through a view that PyTorch refuses because of gradients."""
    if not (base._tracks and MODE.enabled):
        return
    if view.function is one_piece and view.operands[0] not in SLICING:
        text = "a piece of a tensor that tracks gradients cannot be changed in place"
        raise GradientError("in-place", text, "change a slice of it instead: x[a:b]")
    is_old = view.in_no_grad and view.function not in CUTTING
    if is_old and not base.is_leaf:
        text = "a view made in no_grad cannot be changed in place where gradients are recorded"
        raise GradientError("in-place", text, "make and change it both inside, or both outside")
    if base.is_leaf and (view.passes or is_old):
        text = "a view of a leaf that requires gradients cannot be changed in place"
        raise GradientError("in-place", text, "change a .clone(), or use picograd.no_grad()")


def renew_views(base: "Recorded") -> None:
    """Give the live views of a tensor, and theirs, the nodes that show its new value."""
    waiting = [base]
    while waiting:
        shown = waiting.pop()
        kept = []
        for reference in shown._views or ():
            view = reference()
            if view is None or view._view is None or view._view.base is not shown:
                continue
            if is_view(view):
                kept.append(reference)
                noted(renew, view, shown)
                waiting.append(view)
        shown._views = kept or None


def renew(tensor: "Recorded", base: "Recorded") -> None:
    """Record a view of a new value of its base."""
    view: Any = tensor._view
    is_cut = base._tracks and not view.passes
    if tensor._tracks and tensor.is_leaf:  # the memory of its `data`
        tensor._move(build.detach(view.on(base._node)))
        return
    node = view.on(build.detach(base._node) if is_cut else base._node)
    if tensor._tracks and view.function is build.detach:  # gradients of its own
        take(tensor, autograd.led(node, tensor._node), True)
        return
    tracks = base._tracks and view.passes and node.dtype.is_differentiable
    was_made = tensor._node.leaf is not None
    take(tensor, node, tracks)
    if was_made and not tracks:
        tensor._node.leaf = weakref.ref(tensor)


@pending.locked
@composed(method=False)
@event
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> list[Tensor]:
    """Find the gradients of outputs with respect to inputs, without touching `grad`.

    A list of tensors, one per input. An input that nothing leads to is an error, None with
    `allow_unused`, or zeros with `materialize_grads`. With `is_grads_batched` the grad_outputs, and
    the gradients, have a leading axis of cases, computed together. The graph is always kept.

    >>> x = picograd.Tensor([3.0], requires_grad=True)
    >>> picograd.grad(x * x, x)[0].tolist()
    [6.0]
    """
    sources, targets = listed(outputs), listed(inputs)
    given = [None] * len(sources) if grad_outputs is None else listed(grad_outputs)
    for each in (*sources, *targets, *(each for each in given if each is not None)):
        if not isinstance(each, Recorded):
            text = f"expected tensors, got {type(each).__name__}"
            raise DTypeError("grad", text, "pass tensors that were computed from others")
    if len(given) != len(sources):
        text = f"{len(given)} grad_outputs for {len(sources)} outputs"
        raise ShapeError("grad", text, "give one per output, or None")
    if materialize_grads and allow_unused is False:
        text = "materialize_grads=True contradicts allow_unused=False"
        raise ValueRangeError("grad", text, "leave allow_unused out")
    if RUNNING.traces and not (retain_graph or create_graph):
        list(map(note_spent, map(started, sources)))
    found, first = None, sources[0] if grad_outputs is None and len(sources) == 1 else None
    if first is not None and first._tracks and not is_grads_batched:
        found = autograd.known_gradients(started(first), targets, not create_graph)
    batch = running_vmaps.cases_of(given) if is_grads_batched else None
    if found is None:
        found = autograd.gradients_of(beginnings(sources, given, batch), targets, not create_graph)
    if batch is not None:
        found = [None if node is None else batch.full(node) for node in found]
    found = [autograd.hooked(each, node, not create_graph) for each, node in zip(targets, found)]
    return [
        answered(node, target, create_graph, allow_unused, materialize_grads, position)
        for position, (node, target) in enumerate(zip(found, targets))
    ]


def as_gradient(node: Node, create_graph: bool | None) -> Any:
    """Make the tensor of a gradient; that of what is linear has none, and is a value."""
    return wrap(*autograd.as_recorded(node, bool(create_graph)))


def started(tensor: "Recorded") -> Node:
    """Give the node that gradients of a tensor start from."""
    return tensor._node if tensor._history is None else tensor._history


def beginnings(
    sources: Sequence[Any], given: Sequence[Any], batch: Batch | None
) -> list[tuple[Node, Node]]:
    """Pair what gradients start from with what they start with."""
    pairs = []
    for source, beginning in zip(sources, given):
        root, node = started(source), None if beginning is None else beginning._node
        start = node if batch is None or node is None else batch.sample(node)
        pairs.append((root, autograd.start_gradient("grad", root, start)))
    return pairs


def listed(values: Any) -> list[Any]:
    """Read one tensor or several: a list, or whatever else can be walked."""
    is_one = isinstance(values, Recorded) or not isinstance(values, Iterable)
    return [values] if is_one else list(values)


def answered(
    node: Node | None, target: "Recorded", create_graph: bool, allow_unused: bool | None,
    materialize: bool, position: int,
) -> Any:  # fmt: skip
    """Make the gradient tensor of one input."""
    if node is not None:
        return as_gradient(node, create_graph)
    if materialize:
        return fresh(target._node.const_like(0))
    if not allow_unused:
        text = f"input {position} was not used to compute the outputs"
        raise GradientError("grad", text, "pass allow_unused=True, or check for detach and no_grad")
    return None


def restored(kind: Any, values: Any, dtype: str, device: str, requires_grad: bool | None) -> Any:
    """Make the tensor that was pickled; requires_grad=False is what the user said, None nothing."""
    result: Recorded = kind.__new__(kind)
    start(result, creation.from_data(values, dtype_named(dtype), device), False)
    result._node.leaf = weakref.ref(result)
    result._tracks, result._is_frozen = bool(requires_grad), requires_grad is False
    return result
