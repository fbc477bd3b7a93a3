"""Tensor: an n-dimensional array that records what is done to it and computes when asked.

Every method records nodes of the graph (`tensor.node`) through the functions in the files beside
this one; nothing runs until a value is needed: `realize`, `numpy`, `item`, printing. Names and
meanings are PyTorch's; reductions take `axis` and `dim`, `keepdim` and `keepdims`.
"""

import builtins
import operator
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from picograd.buffer import Buffer
from picograd.dtype import (
    DType,
    bool_,
    default_float,
    float16,
    float32,
    float64,
    int32,
    int64,
    kind_name,
    to_dtype,
)
from picograd.engine import carried, foreign, pending
from picograd.engine.collector import undisturbed
from picograd.engine.followed import EVENTS, FILLING, cutting, event
from picograd.engine.foreign import share
from picograd.engine.native_calls import CODED
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_to_numpy, node_over_numpy, number_in, numbers_in
from picograd.engine.tracing import RUNNING, check_not_tracing, is_tracing, note_spent
from picograd.errors import DTypeError, GradientError, ShapeError
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.shape import broadcast_shapes
from picograd.target import is_gpu, is_host
from picograd.tensor.core import aliasing, autograd, cells, copying, exchange, running_vmaps
from picograd.tensor.core.annotations import (
    Data,
    DeviceLike,
    DTypeLike,
    Scalar,
    Shape,
    Sizes,
    TensorLike,
)
from picograd.tensor.core.argument_kinds import read_whole
from picograd.tensor.core.arguments import kept_number, selector
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.following import follow_plans
from picograd.tensor.core.function import composed
from picograd.tensor.core.gradient_hooks import (
    HookHandle,
    add_hook,
    hooks_of,
    is_retained,
    register,
    retain,
)
from picograd.tensor.core.guard import guard_methods
from picograd.tensor.core.known_values import shown_number, shown_values
from picograd.tensor.core.methods_family import FamilyMethods
from picograd.tensor.core.methods_protocol import ProtocolMethods
from picograd.tensor.core.native_elements import declare_elements
from picograd.tensor.core.native_following import declare_following
from picograd.tensor.core.native_recording import declare_recording
from picograd.tensor.core.native_small import declare_small
from picograd.tensor.core.native_tensors import declare_tensors
from picograd.tensor.core.native_writes import declare_writes
from picograd.tensor.core.operands import (
    UNSET,
    as_shape,
    compute_known,
    either,
    optional_dtype,
    own_axis,
)
from picograd.tensor.core.recipes import again_over
from picograd.tensor.core.recording import (
    NUMBERS,
    Recorded,
    apply,
    apply_all,
    as_gradient,
    as_tensor,
    attach,
    check_leaf_write,
    check_overlap,
    check_write,
    fresh,
    grad,
    is_plain,
    made,
    note_view,
    read,
    renew_views,
    root_of,
    shown,
    start,
    wrap,
    write,
)
from picograd.tensor.core.size_attribute import SizeAttribute
from picograd.tensor.core.spelling import spell_methods
from picograd.tensor.core.subclasses import adopt, answer
from picograd.tensor.indexing import choosing, indexing, masking, selecting
from picograd.tensor.linalg import products
from picograd.tensor.making import creation, distributions, random
from picograd.tensor.making.random import Generator
from picograd.tensor.math.methods_operator import OperatorMethods
from picograd.tensor.math.methods_operator import where as where
from picograd.tensor.methods import Methods
from picograd.tensor.shaping import movement
from picograd.tensor.shaping.methods_movement import MovementMethods

LISTED = {list, tuple, *NUMBERS}  # kinds of data that are numbers of Python, or have some
FEW = 64  # elements that are read one by one


class Tensor(OperatorMethods, Methods, MovementMethods, FamilyMethods, ProtocolMethods):
    """This class is a lazy tensor; see the module docstring.

    `data` is a number, nested lists, an array (NumPy, DLPack) or a Tensor. Lists of ints give
    int64, of floats and bools float32, arrays keep their dtype. Ints alone, or a `Size`, are the
    sizes of a tensor of zeros, and no data is a tensor of no elements, as in PyTorch;
    `picograd.tensor(3)` is a number, and `picograd.tensor([True])` a bool. In a module that calls
    picograd `torch`, as programs written for PyTorch do, lists and arrays of numbers give float32.

    >>> (Tensor([1.0, 2.0]) * 3).tolist(), Tensor(2, 1).shape, picograd.tensor(3).item()
    ([3.0, 6.0], (2, 1), 3)
    """

    __slots__ = ("__dict__",)  # programs note things on tensors: `p.is_bias = True`

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        adopt(cls)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function of tensors; results have the class, which may override this."""
        return answer(cls, func, types, args, kwargs)

    def __init__(
        self,
        data: Data = (),
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool | None = None,
        name: str = "",
        *sizes: int,
    ) -> None:
        if dtype is None or type(dtype) is int:
            shape = creation.sizes_among((data, dtype, device, requires_grad, name, *sizes))
            if shape is not None:
                where = device if isinstance(device, str) else None
                self._fill(creation.filled("Tensor", shape, 0, None, where), None, None, None, "")
                return
            if isinstance(data, Tensor) and device is None and requires_grad is None:
                self._show(data, name)
                return
            data = creation.flags_as_floats(data)
            if dtype is None and creation.is_named_torch(sys._getframe(1).f_globals):
                dtype = default_float()
        self._fill(data, dtype, device, requires_grad, name)

    def _show(self, shown: "Tensor", name: str) -> None:
        """Show all of another tensor, which gradients reach: what `Tensor(x)` is in PyTorch."""
        seen: Any = shown.view(shown.shape)
        node, tracks, view = seen._node, seen._tracks, seen._view
        del seen  # the node is this tensor's own
        start(self, node, tracks)
        attach(self, view)
        self.name = name

    @classmethod
    def of(
        cls,
        data: Data,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool | None = None,
        name: str = "",
    ) -> "Tensor":
        """Make a tensor of data that keeps its dtype: `picograd.tensor`.

        >>> Tensor.of([1, 2]).dtype, Tensor.of(3).shape
        (picograd.int64, ())
        """
        made = cls.__new__(cls)
        made._fill(data, dtype, device, requires_grad, name)
        return made

    def _fill(
        self,
        data: Any,
        dtype: DTypeLike | None,
        device: DeviceLike | None,
        requires_grad: bool | None,
        name: str,
    ) -> None:
        """Take on the value of data, as a leaf."""
        wanted = optional_dtype(dtype)
        if type(data) in LISTED and creation.is_filled(
            self, data, wanted, creation.device_named(device)
        ):
            self.name = name
            if requires_grad is not None:
                self.requires_grad = requires_grad
            return
        if isinstance(data, Tensor):
            node = build.detach(foreign.apart(data._node).below("detach"))
            node = node if wanted is None else node.cast(wanted)
            node = node if device is None else build.copy(node, creation.device_named(device))
        elif isinstance(data, Node):
            node = data
        elif exchange.is_exporter(data):
            node = exchange.as_leaf(data, wanted, creation.device_named(device), True)
        else:
            node = creation.from_data(data, wanted, creation.device_named(device))
        start(self, node, False)
        if foreign.SHARED:
            foreign.settle(self._node)
        self.name = name
        self._node.leaf = weakref.ref(self)
        del node, data  # nothing was computed of it yet
        if requires_grad is not None:
            self.requires_grad = requires_grad

    @staticmethod
    def from_node(node: Node, requires_grad: bool = False) -> "Tensor":
        """Wrap a node of the graph."""
        if not isinstance(node, Node):
            text = f"{type(node).__name__} is no node of the graph"
            raise DTypeError("from_node", text, "pass tensor.node, or write Tensor(data)")
        return wrap(node, requires_grad)

    def dim(self) -> int:
        """Count the axes.

        >>> Tensor([[1.0, 2.0]]).dim()
        2
        """
        return len(self._node.shape)

    def numel(self) -> int:
        """Count the elements."""
        return self._node.size

    size: SizeAttribute = SizeAttribute()

    def element_size(self) -> int:
        """Count the bytes of one element.

        >>> Tensor([1.0]).element_size()
        4
        """
        return self._node.dtype.itemsize

    @overload
    def stride(self, dim: None = None) -> Shape: ...

    @overload
    def stride(self, dim: int) -> int: ...

    def stride(self, dim: int | None = None) -> Shape | int:
        """Give the distances of neighbours along each axis in the memory shown, in elements.

        Or that along one axis.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).stride()
        (2, 1)
        """
        strides = aliasing.strides_of(aliasing.as_passed(self, "strides"))
        return strides if dim is None else strides[own_axis(dim, self.ndim, "stride")]

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is a float."""
        return self._node.dtype.is_float

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Ask for gradients, or stop asking; returns the tensor.

        >>> Tensor([1.0]).requires_grad_().requires_grad
        True
        """
        self.requires_grad = requires_grad
        return self

    # values

    def realize(self, *others: "Tensor") -> "Tensor":
        """Compute this tensor and others now, together.

        >>> Tensor([1.0, 2.0]).realize().tolist()
        [1.0, 2.0]
        """
        nodes = [self._node, *(each._node for each in others)] if others else [self._node]
        if foreign.SHARED:  # a view of what others write stays one
            nodes = [node for node in nodes if not foreign.are_read((node,))]
        pending.compute(nodes)
        return self

    def numpy(self, *, force: bool = False) -> "np.ndarray[Any, Any]":
        """Compute, and copy the values to a NumPy array, of any device; `force` changes nothing.

        PyTorch's shares memory with the tensor; here `numpy.from_dlpack(x)` does.

        >>> Tensor([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        check_not_tracing("numpy()")
        with pending.LOCK:  # nobody writes it meanwhile
            shown = shown_values(self._node)
            return buffer_to_numpy(self._computed(), self._node.shape) if shown is None else shown

    def _computed(self) -> Buffer:
        """Compute, and give the memory."""
        node = self._node
        if leaf_buffer(node) is None:
            if foreign.are_read((node,)):  # a view that shows what others write later, too
                node = foreign.copy_now(node, False)
            else:
                pending.compute([node])
                node = self._node
        buffer = leaf_buffer(node)
        if buffer is None:
            raise DTypeError("numpy()", "the tensor was not computed", "report this")
        return buffer

    def item(self) -> Scalar:
        """Compute, and return the only element as a Python number.

        >>> Tensor([2.5]).item()
        2.5
        """
        check_not_tracing("item()")
        node = self._node
        if node.shape and node.size != 1:
            text = f"a tensor of shape {self.shape} has {self.numel()} elements, not one"
            raise ShapeError("item()", text, "index it, or use .tolist()")
        with pending.LOCK:
            value: Scalar | None = shown_number(self._node)  # another thread may have written
            if value is None:
                value = number_in(self._computed())
        return self.numpy().reshape(-1)[0].item() if value is None else value

    def tolist(self) -> Any:
        """Compute, and return nested lists of Python numbers.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        check_not_tracing("tolist()")
        node, found = self._node, None
        if 0 < node.size <= FEW:
            with pending.LOCK:  # nobody writes it meanwhile
                if (shown := shown_values(node)) is not None:
                    return shown.tolist()
                found = numbers_in(self._computed(), node.shape)
        return self.numpy().tolist() if found is None else found

    def cpu(self) -> "Tensor":
        """Copy to the CPU.

        >>> Tensor([1.0]).cpu().device
        'cpu'
        """
        return self.to("cpu")

    def cuda(self, device: "DeviceLike | int | None" = None, non_blocking: Any = False) -> "Tensor":
        """Copy to an NVIDIA GPU: the first one, unless told a number or a name."""
        return self.to("cuda" if device is None else device)

    def to(
        self,
        *args: Any,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        non_blocking: bool = False,
        copy: bool = False,
    ) -> "Tensor":
        """Copy to a device, convert to a dtype, or both; either order, or like another tensor.

        Every copy may overlap with the host: `non_blocking` changes nothing. By place it comes
        after these, and `copy` after it.

        >>> Tensor([1.0]).to("cpu").device
        'cpu'
        """
        flags = [arg for arg in args if isinstance(arg, builtins.bool)]
        copy = flags[1] if len(flags) > 1 else copy
        for arg in args:
            if isinstance(arg, builtins.bool):
                continue
            if isinstance(arg, Tensor):
                dtype, device = arg.dtype, arg.device
            elif isinstance(arg, DType) or creation.is_dtype(arg):
                dtype = arg
            elif device is None:
                device = arg
            else:
                text = f"{arg!r} is no dtype, and the device is {device!r}"
                raise DTypeError("to", text, "pass a dtype as picograd.float32 or its name")
        result = self if dtype is None else self.cast(dtype)
        result = result.clone() if copy and result is self else result
        place = self.device if device is None else creation.device_named(device)
        if place == self.device:
            return result
        if place != "meta":
            compute_known([result._node])
        if (found := copying.moved_at_once(result, place)) is not None:
            return found  # type: ignore[no-any-return]
        copied = apply(build.copy, result, place)
        compute_known([copied._node])
        return copied

    def to_(self, *args: Any, **options: Any) -> "Tensor":
        """Move this tensor itself to a device, a dtype or both: `to`, but the object stays.

        Raises GradientError for a computed tensor that tracks gradients.

        >>> x = Tensor([1.5])
        >>> x.to_("float64") is x, x.dtype
        (True, picograd.float64)
        """
        if not self.is_leaf:
            text = "a computed tensor that tracks gradients cannot move"
            raise GradientError("to_", text, "use x = x.to(...)")
        moved = self.to(*args, **options)
        if moved is not self:
            self.node = build.detach(moved._node)
            self.grad = None if self.grad is None else self.grad.to(*args, **options)
        return self

    def cast(self, dtype: DTypeLike) -> "Tensor":
        """Convert the elements; the same tensor when the dtype is the same.

        >>> Tensor([1.0, 2.5]).cast("int64").tolist()
        [1, 2]
        """
        wanted = to_dtype(dtype)
        return self if wanted is self.dtype else apply(build.cast, self, wanted)

    @overload
    def type(self, dtype: None = None, non_blocking: builtins.bool = False) -> str: ...

    @overload
    def type(self, dtype: DTypeLike, non_blocking: builtins.bool = False) -> "Tensor": ...

    def type(
        self, dtype: DTypeLike | None = None, non_blocking: builtins.bool = False
    ) -> "Tensor | str":
        """Convert the elements; without a dtype give PyTorch's name for tensors of this one.

        >>> Tensor([1.0, 2.5]).type(picograd.int32).tolist()
        [1, 2]
        >>> Tensor([1.0, 2.5]).type()
        'torch.FloatTensor'
        >>> Tensor([1, 2]).type(Tensor).dtype  # the usual one
        picograd.float32
        """
        if dtype is None:
            return kind_name(self.dtype, is_gpu(self.device))
        return self.cast(default_float() if dtype is Tensor else dtype)

    def bitcast(self, dtype: DTypeLike) -> "Tensor":
        """Read the same bits as another dtype; see `view`.

        >>> Tensor([1.0, 2.0]).bitcast("int32").tolist()
        [1065353216, 1073741824]
        """
        try:
            return self.view(dtype=dtype)
        except ShapeError as error:
            raise ShapeError("bitcast", error.problem, error.fix) from None

    def float(self) -> "Tensor":
        """Convert to float32.

        >>> picograd.tensor([1, 2]).float().tolist()
        [1.0, 2.0]
        """
        return self.cast(float32)

    def half(self) -> "Tensor":
        """Convert to float16.

        >>> Tensor([1.0]).half().dtype
        picograd.float16
        """
        return self.cast(float16)

    def bfloat16(self) -> "Tensor":
        """Convert to bfloat16."""
        return self.cast("bfloat16")

    def double(self) -> "Tensor":
        """Convert to float64.

        >>> Tensor([1.0]).double().dtype
        picograd.float64
        """
        return self.cast(float64)

    def int(self) -> "Tensor":
        """Convert to int32.

        >>> Tensor([1.0, 2.5]).int().tolist()
        [1, 2]
        """
        return self.cast(int32)

    def long(self) -> "Tensor":
        """Convert to int64.

        >>> Tensor([1.0, 2.5]).long().tolist()
        [1, 2]
        """
        return self.cast(int64)

    def bool(self) -> "Tensor":
        """Convert to bool: non-zero is True."""
        return self.cast(bool_)

    @composed(method=False)
    @event
    def detach(self) -> "Tensor":
        """Give the same values, cut off from gradients.

        >>> Tensor([1.0], requires_grad=True).detach().requires_grad
        False
        """
        node = build.detach(self._node)  # what is below may be a result of a formula
        found: Tensor = shown(node, False, self, build.detach)
        found._node.leaf = weakref.ref(found)
        return found

    @composed(method=False)
    def clone(self) -> "Tensor":
        """Copy; gradients flow through.

        >>> x = Tensor([1.0, 2.0])
        >>> y = x.clone()
        >>> y += 1
        >>> x.tolist(), y.tolist()
        ([1.0, 2.0], [2.0, 3.0])
        """
        return apply(build.contiguous, self)

    def contiguous(self) -> "Tensor":
        """Give the elements in row-major order: this tensor itself if they are, else a copy.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).T.contiguous().tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        return self if self.is_contiguous() else apply(build.contiguous, self)

    # gradients

    @undisturbed
    @pending.locked
    def backward(
        self,
        gradient: "Tensor | None" = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: "Sequence[Tensor] | Tensor | None" = None,
    ) -> None:
        """Add the gradient of every leaf that asked for one to its `grad`; nothing runs yet.

        Starts from ones, or from `gradient`; with `inputs` only these tensors get their gradient.
        If this tensor asked for none, every floating leaf gets one that was not told
        `requires_grad=False`. The graph is always kept, so that backward may be called again:
        `retain_graph` is accepted and changes nothing. Raises GradientError when there is none,
        and when a value it needs was changed in place.
        """
        if (take := EVENTS.take) is not None:
            if (
                take(Tensor.backward, (self, gradient, retain_graph, create_graph, inputs), {})
                is None
            ):
                return
        running_vmaps.check_backward()
        root = self._history if self._history is not None else self._node
        if RUNNING.traces and not (retain_graph or create_graph):
            note_spent(root)
        given = None if gradient is None else as_tensor(gradient, self)._node
        served = autograd.backward(root, given, inputs, self._tracks, not create_graph)
        carried.note_gradients(served)
        for leaf, node in served:
            found = as_gradient(autograd.hooked(leaf, node, not create_graph), create_graph)
            autograd.accumulate(leaf, found, create_graph)
        for leaf, _ in served:  # a step of one leaf overwrites what gradients of others read
            if leaf._hooks is not None and leaf.is_leaf:
                for hook in list(leaf._hooks.after.values()):
                    hook(leaf)

    @property
    def grad_fn(self) -> Any:
        """What computed this tensor, with `name()` and `next_functions`; None for a leaf.

        >>> Tensor([1.0]).grad_fn is None
        True
        """
        return autograd.function_of(self._node) if self._tracks and not self.is_leaf else None

    def register_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call a hook with this tensor's gradient; what it returns, unless None, replaces it.

        >>> x = Tensor([1.0, 2.0], requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad.tolist()
        [10.0, 10.0]
        """
        return add_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call a hook with this leaf after `backward` has added to its `grad`.

        >>> x = Tensor([1.0, 2.0], requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad.tolist()))
        >>> x.sum().backward()
        [1.0, 1.0]
        """
        if not (self.is_leaf and self._tracks):
            text = "the tensor is no leaf that asked for gradients"
            fix = "use register_hook on computed tensors"
            raise GradientError("register_post_accumulate_grad_hook", text, fix)
        return register(hooks_of(self).after, hook, self)

    def retain_grad(self) -> None:
        """Keep the gradient of a computed tensor in `grad` too.

        >>> x = Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 2
        >>> y.retain_grad()
        >>> y.sum().backward()
        >>> y.grad.tolist()
        [1.0, 1.0]
        """
        retain(self)

    @property
    def retains_grad(self) -> builtins.bool:
        """Whether this computed tensor keeps its gradient.

        >>> Tensor([1.0]).retains_grad
        False
        """
        return is_retained(self)

    def detach_(self) -> "Tensor":
        """Cut this tensor itself off from gradients: it becomes a leaf.

        >>> (Tensor([1.0], requires_grad=True) * 2).detach_().requires_grad
        False
        """
        if self._tracks and not self.is_leaf:
            if self._view is not None:
                text = "a view of what tracks gradients cannot be cut off itself"
                raise GradientError("detach_", text, "use .detach()")
            self._tracks = False
            self._move(build.detach(self._node))
            self._node.leaf = weakref.ref(self)
        self._tracks = False
        return self

    def gradient(self, *targets: "Tensor") -> "list[Tensor | None]":
        """Find the gradients of this tensor with respect to targets, without touching `grad`."""
        found: list[Any] = grad(self, targets, allow_unused=True)
        return found

    # writing

    @event
    def assign(self, value: TensorLike) -> "Tensor":
        """Overwrite with values of the same shape and dtype, in place; no gradient flows.

        >>> Tensor([1.0, 2.0]).assign(Tensor([3.0, 4.0])).tolist()
        [3.0, 4.0]
        """
        source = as_tensor(value, self)
        check_write("assign", self, source._node)
        node = build.detach(source._node) if source._tracks else source._node
        write(self, node, False)
        return self

    @event
    def copy_(self, value: TensorLike) -> "Tensor":
        """Overwrite with values that broadcast, converted to this dtype and device.

        >>> Tensor([1.0, 2.0]).copy_(Tensor([3.0, 4.0])).tolist()
        [3.0, 4.0]
        """
        check_leaf_write("copy_", self)
        if value is self:
            return self
        if self._view is not None and isinstance(value, Tensor):
            if cells.step_by_row(self, None, value, renew_views):
                return self
        check_overlap("copy_", self, value)
        source = as_tensor(value, self).to(self.device).cast(self.dtype)
        node = indexing.fit_value(indexing.value_node(self._node, read(source)), self.shape)
        write(self, node, MODE.enabled and source._tracks and self.dtype.is_differentiable)
        return self

    def zero_(self) -> "Tensor":
        """Overwrite with zeros.

        >>> Tensor([1.0, 2.0]).zero_().tolist()
        [0.0, 0.0]
        """
        return self.fill_(0)

    def fill_(self, value: "Scalar | Tensor") -> "Tensor":
        """Overwrite with one number, or with the one of a tensor that has no axes.

        >>> Tensor([1.0, 2.0]).fill_(7).tolist()
        [7.0, 7.0]
        """
        filled_with(self, selecting.filled, value)
        return self

    def __setitem__(self, items: Any, value: TensorLike) -> None:
        at_once = choosing.write if type(items) is Tensor else cells.write
        if not at_once(self, items, value, renew_views):
            self._write_items(items, value)

    @event
    def _write_items(self, items: Any, value: TensorLike) -> None:
        if type(value) is Recorded._masked:
            chosen: Any = value
            chosen.write_to(self, items)
            return
        source = value if isinstance(value, (Tensor, *NUMBERS)) else as_tensor(value, self)
        tracks = MODE.enabled and (self._tracks or (isinstance(source, Tensor) and source._tracks))
        check_leaf_write("setitem", self)
        listed = selector(items)
        if self._view is not None and aliasing.is_basic(listed):
            if aliasing.is_folded(self.shape, aliasing.strides_of(self)):
                self[items].copy_(source)  # the part may be one that shows no element twice
                return
        if source is not self and isinstance(source, Tensor) and source._view is not None:
            if not tracks and aliasing.is_part(source, self, listed):
                copying.put_back(self)
                return
            if root_of(source) is root_of(self) and aliasing.is_basic(listed):
                part = self[items]
                if part.numel() == source.numel():  # what is repeated may be read from anywhere
                    check_overlap("setitem", part, source, is_fitted=True)
        selected(self, selecting.write, listed, source)

    def __getitem__(self, items: Any) -> "Tensor":
        if CODED.row is not None and EVENTS.take is None:
            with pending.LOCK:
                row: Tensor | None = CODED.row(self, items)
            if row is not None:
                return row
        if type(items) is list and {*map(type, items)} == {int}:
            if not (is_tracing() or RUNNING.traces):  # a way is told by no numbers of a tensor
                items = Tensor(items, device=self.device)
        found: Tensor | None = choosing.choose(self, items) if type(items) is Tensor else None
        return self._read_items(items) if found is None else found

    @cutting
    @event
    def _read_items(self, items: Any) -> "Tensor":
        listed, node = selector(items), read(self)
        piece = indexing.chosen(node, listed) if is_plain((node,)) else None
        if piece is not None:
            tracks = self._tracks and MODE.enabled
            view: Tensor = shown(piece, tracks, self, aliasing.show_items, listed)
            return view
        if is_tracing():
            region = masking.region_of(self.shape, listed)
            if region is not None and Recorded._masked is not None:
                return Recorded._masked(self, region)  # type: ignore[no-any-return]
        found = apply(selecting.read, self, listed)
        if aliasing.is_basic(listed):
            note_view(found, self, aliasing.show_items, [*map(kept_number, listed)])
        return found

    # making tensors

    @staticmethod
    @composed(method=False)
    @event
    def zeros(
        *sizes: Sizes, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
    ) -> "Tensor":
        """Make zeros, float32 unless told otherwise.

        >>> Tensor.zeros(2, 2).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
        """
        return fresh(creation.filled("zeros", sizes, 0, dtype, device), **more)

    @staticmethod
    @composed(method=False)
    @event
    def ones(
        *sizes: Sizes, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
    ) -> "Tensor":
        """Make ones, float32 unless told otherwise.

        >>> Tensor.ones(2, 2).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
        """
        return fresh(creation.filled("ones", sizes, 1, dtype, device), **more)

    @staticmethod
    @composed(method=False)
    @event
    def empty(
        *sizes: Sizes, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
    ) -> "Tensor":
        """Make a tensor whose values nobody promises; here zeros.

        >>> Tensor.empty(2, 3).shape
        (2, 3)
        """
        return fresh(creation.filled("empty", sizes, 0, dtype, device), **more)

    @staticmethod
    @composed(method=False)
    @event
    def full(
        size: Sizes,
        fill_value: Scalar,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Fill a shape with one value; its Python type gives the dtype.

        >>> Tensor.full((2, 2), 7.0).tolist()
        [[7.0, 7.0], [7.0, 7.0]]
        """
        return fresh(creation.full((size,), fill_value, dtype, device), **more)

    @staticmethod
    @composed(method=False)
    @event
    def arange(
        start: Scalar = UNSET, end: Scalar | None = None, step: Scalar = 1,
        dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any,
    ) -> "Tensor":  # fmt: skip
        """Count from start (0) up to but not including end.

        >>> Tensor.arange(0, 1, 0.25).tolist()
        [0.0, 0.25, 0.5, 0.75]
        """
        if start is UNSET:
            start, end = end, None  # type: ignore[assignment]
        first, last = (0, start) if end is None else (start, end)
        return fresh(creation.arange(first, last, step, dtype, device), **more)

    @staticmethod
    @composed(method=False)
    @event
    def linspace(
        start: Scalar | builtins.complex,
        end: Scalar | builtins.complex,
        steps: builtins.int,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Space numbers evenly, both ends included; complex ones along a line.

        >>> Tensor.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        first, last = (x.detach() if isinstance(x, Tensor) else x for x in (start, end))
        return fresh(creation.linspace(first, last, steps, dtype, device), **more)

    @staticmethod
    @composed(method=False)
    @event
    def eye(
        n: builtins.int,
        m: builtins.int | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Make an identity matrix.

        >>> Tensor.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return fresh(creation.eye(n, m, dtype, device), **more)

    @staticmethod
    @composed(method=False)
    def from_numpy(array: np.ndarray[Any, Any]) -> "Tensor":
        """Make a CPU tensor of a NumPy array's own memory; changes show on both sides.

        The dtype stays. A read-only or misaligned array is copied, one of swapped bytes, and one
        that goes backwards or shows an element twice.

        >>> Tensor.from_numpy(numpy.ones(2)).tolist()
        [1.0, 1.0]
        """
        if not isinstance(array, np.ndarray):
            text = f"expected a NumPy array, got {type(array).__name__}"
            raise DTypeError("from_numpy", text, "use picograd.Tensor(...)")
        is_shared = array.flags.writeable and is_host(creation.device_named(None))
        is_known = creation.is_dtype(array.dtype) and array.dtype.isnative
        if not is_shared or not is_known or not array.size:
            return Tensor.of(array)
        dtype = to_dtype(array.dtype)
        if array.flags.c_contiguous:
            return made(share(node_over_numpy(array, dtype)))
        straight, order = exchange.straightened(array)
        if straight.flags.c_contiguous:
            return made(share(node_over_numpy(straight, dtype))).permute(order)
        found = exchange.rows_around(array)
        if found is None:
            return made(share(node_over_numpy(array, dtype)))
        flat, way, offset = found
        memory = made(share(node_over_numpy(flat, dtype)))
        view = made(exchange.seen_along(memory._node, way, offset, array.shape))
        note_view(view, memory, exchange.seen_along, way, offset, array.shape)
        return view

    @staticmethod
    @composed(method=False)
    def from_dlpack(
        source: Any, *, device: DeviceLike | None = None, copy: builtins.bool | None = None
    ) -> "Tensor":
        """Make a tensor of another library's memory, on the CPU or a GPU, by the DLPack protocol.

        `source` has `__dlpack__`, or is a capsule. The memory is shared, and stays alive with the
        tensor. Read-only, strided or misaligned memory is copied; `copy=False` makes that an
        ExportError, `copy=True` always copies.

        >>> picograd.Tensor.from_dlpack(numpy.ones(2)).tolist()
        [1.0, 1.0]
        """
        node = exchange.imported(source, copy)
        return made(node if device is None else build.copy(node, creation.device_named(device)))

    @staticmethod
    @composed(method=False)
    def manual_seed(seed: Any) -> random.Generator:
        """Restart the default random generator from a seed.

        >>> generator = Tensor.manual_seed(0)
        >>> first = Tensor.rand(2).tolist()
        >>> generator = Tensor.manual_seed(0)
        >>> first == Tensor.rand(2).tolist()
        True
        """
        return random.default().manual_seed(random.read_seed(seed))

    @staticmethod
    @composed(method=False)
    def rand(
        *sizes: Sizes,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Draw from the uniform distribution on [0, 1).

        >>> x = Tensor.rand(2, 3)
        >>> x.shape, bool((x >= 0).all()), bool((x < 1).all())
        ((2, 3), True, True)
        """
        return distributions.drawn("rand", random.uniform, sizes, generator, dtype, device, more)

    @staticmethod
    @composed(method=False)
    def randn(
        *sizes: Sizes,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Draw from the standard normal distribution.

        >>> Tensor.randn(2, 3).shape
        (2, 3)
        """
        return distributions.drawn("randn", random.normal, sizes, generator, dtype, device, more)

    @staticmethod
    def uniform(
        *sizes: Sizes,
        low: Scalar = 0.0,
        high: Scalar = 1.0,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Draw from the uniform distribution on [low, high).

        >>> x = Tensor.uniform(2, 3, low=5, high=6)
        >>> x.shape, bool((x >= 5).all()), bool((x < 6).all())
        ((2, 3), True, True)
        """
        distributions.check_range("uniform", low, high)
        unit = distributions.drawn("uniform", random.uniform, sizes, generator, dtype, device, {})
        return fresh(distributions.between(unit, low, high)._node, **more)

    @staticmethod
    def normal(
        *sizes: Sizes,
        mean: builtins.float = 0.0,
        std: builtins.float = 1.0,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Draw from a normal distribution."""
        random.check_spread("normal", mean, std)
        unit = distributions.drawn("normal", random.normal, sizes, generator, dtype, device, {})
        return fresh(distributions.affine(unit, std, mean)._node, **more)

    @staticmethod
    @composed(method=False)
    @event
    def randint(
        *given: Any,
        low: builtins.int | None = None,
        high: builtins.int | None = None,
        size: Sizes | None = None,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Draw whole numbers from [low, high): randint(high, size), randint(low, high, size).

        Or with the sizes in front, randint(*sizes, low=0, high=10).

        >>> x = Tensor.randint(0, 10, (2, 3))
        >>> x.shape, bool((x >= 0).all()), bool((x < 10).all())
        ((2, 3), True, True)
        """
        first, last, sizes = random.read_range(given, low, high, size)
        shape, wanted = as_shape((sizes,), "randint"), optional_dtype(dtype) or int64
        bounds = operator.index(first), operator.index(last)
        place = creation.device_named(device)
        return fresh(random.integers(*bounds, shape, wanted, place, generator), **more)

    @staticmethod
    @composed(method=False)
    @event
    def randperm(
        n: builtins.int,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **more: Any,
    ) -> "Tensor":
        """Shuffle the numbers from 0 to n - 1, on the device; the result is int64, or `dtype`.

        Raises ShapeError for a dtype that cannot hold the numbers, DTypeError for bool.

        >>> sorted(Tensor.randperm(3).tolist())
        [0, 1, 2]
        """
        place = (optional_dtype(dtype) or int64, creation.device_named(device), generator)
        return fresh(random.permutation(operator.index(n), *place), **more)

    @composed("cat", "concat", "concatenate", method=False)
    def cat(
        tensors: "Tensor | Sequence[Tensor]", *others: Any, dim: builtins.int = UNSET
    ) -> "Tensor":
        """Join tensors along an axis: cat([a, b], dim), or a.cat(b, dim=dim).

        >>> Tensor.cat([Tensor([1.0, 2.0]), Tensor([3.0])]).tolist()
        [1.0, 2.0, 3.0]
        >>> Tensor([[1.0]]).cat(Tensor([[2.0]]), Tensor([[3.0]]), dim=1).tolist()
        [[1.0, 2.0, 3.0]]
        """
        listed, axis = listed_with_axis("cat", tensors, others, dim)
        made = copying.joined(listed, axis, False)
        return apply_all(movement.cat, listed, axis) if made is None else made

    @composed(method=False)
    def stack(
        tensors: "Tensor | Sequence[Tensor]", *others: Any, dim: builtins.int = UNSET
    ) -> "Tensor":
        """Join tensors along a new axis: stack([a, b], dim), or a.stack(b, dim=dim).

        >>> Tensor.stack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        >>> Tensor([1.0]).stack(Tensor([2.0])).tolist()
        [[1.0], [2.0]]
        """
        listed, axis = listed_with_axis("stack", tensors, others, dim)
        made = copying.joined(listed, axis, True)
        return apply_all(movement.stack, listed, axis) if made is None else made

    @staticmethod
    @composed(method=False)
    def einsum(equation: Any, *tensors: Any) -> "Tensor":
        """Sum products by Einstein's convention: einsum("ij,jk->ik", a, b).

        Or with labels 0..51 after each tensor: einsum(a, [0, 1], b, [1, 2], [0, 2]).

        >>> Tensor.einsum("ij,j->i", Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1.0, 1.0])).tolist()
        [3.0, 7.0]
        """
        listed: Any = tensors
        if not isinstance(equation, str):
            equation, listed = products.sublist_equation((equation, *tensors))
        elif len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            listed = tensors[0]

        def einsum(nodes: Sequence[Node]) -> Node:
            return products.einsum(equation, nodes)

        return apply_all(einsum, listed)

    @composed(method=False)
    def allclose(
        self,
        other: "Tensor",
        rtol: builtins.float = 1e-5,
        atol: builtins.float = 1e-8,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Tell whether all elements are close to another tensor's; computes.

        >>> Tensor([1.0, 2.0]).allclose(picograd.tensor([1.0 + 1e-7, 2.0]))
        True
        """
        wanted = as_tensor(other, self)
        broadcast_shapes(self.shape, wanted.shape, op="allclose")
        near = builtins.float(rtol), builtins.float(atol)
        return np.allclose(self.numpy(), wanted.numpy(), *near, equal_nan)


Recorded.kind = Tensor
FILLING.add(Tensor.full)
declare_tensors()
declare_following()
declare_small()
declare_writes()
declare_recording()
declare_elements()
follow_plans()
INNER = (object, Recorded, Methods)
guard_methods(kind for kind in Tensor.__mro__ if kind not in INNER)
spell_methods(kind for kind in Tensor.__mro__ if kind is not Methods)


@again_over(read, 0)
@event
def filled_with(target: "Tensor", function: Callable[..., Node], value: Any) -> None:
    """Write one number over all of a tensor, by a function on nodes."""
    check_leaf_write("fill_", target)
    tracks = isinstance(value, Tensor) and value._tracks and MODE.enabled
    if isinstance(value, Tensor) and value.shape:
        text = f"a tensor of shape {value.shape} is not one number"
        raise ShapeError("fill_", text, "use copy_, which broadcasts")
    write(target, function(target._node, read(value)), tracks, is_alike=True)


@again_over(read, 0)
def selected(target: "Tensor", function: Callable[..., Node], items: Any, value: Any) -> None:
    """Write a value over what an index chooses, by a function on nodes."""
    tracks = MODE.enabled and (target._tracks or (isinstance(value, Tensor) and value._tracks))
    write(target, function(read(target), items, read(value)), tracks)


def listed_with_axis(op: str, tensors: Any, others: Any, dim: Any) -> tuple[Any, Any]:
    """Read f([a, b]), f([a, b], dim) and f(a, b, dim=dim) alike."""
    if others and isinstance(tensors, Tensor):
        return [tensors, *others], 0 if dim is UNSET else dim
    if len(others) > 1:
        raise DTypeError(op, f"{len(others)} arguments follow the list", "pass the axis alone")
    given = others[0] if others else UNSET
    axis = either(op, "the second argument", given, "dim", dim, 0)
    if isinstance(axis, bool):
        raise DTypeError(op, f"dim must be an int, not {axis}", "pass an int")
    return tensors, read_whole(axis)
