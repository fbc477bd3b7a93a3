"""Tensor: an n-dimensional array that records what is done to it and computes when asked.

Every method records nodes of the graph (`tensor.node`) through the functions in the files beside
this one; nothing runs until a value is needed: `realize`, `numpy`, `item`, printing. Names and
meanings are PyTorch's; reductions take `axis` and `dim`, `keepdim` and `keepdims`.
"""

import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from picograd.dtype import (
    DType,
    bool_,
    float16,
    float32,
    float64,
    int32,
    int64,
    to_dtype,
)
from picograd.engine import pending
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_to_numpy, buffer_view, node_over_numpy
from picograd.engine.tracing import check_not_tracing, is_tracing
from picograd.errors import DTypeError, ShapeError
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.shape import broadcast_shapes
from picograd.helpers import row_major
from picograd.tensor import (
    autograd,
    creation,
    indexing,
    linalg,
    movement,
    printing,
    random,
    selecting,
)
from picograd.tensor.autograd import LEAVES, MODE
from picograd.tensor.methods_assemble import AssemblyMethods
from picograd.tensor.methods_convolution import ConvolutionMethods
from picograd.tensor.methods_elementwise import ElementwiseMethods
from picograd.tensor.methods_elementwise import where as where
from picograd.tensor.methods_in_place import InPlaceMethods
from picograd.tensor.methods_movement import MovementMethods
from picograd.tensor.methods_operator import OperatorMethods
from picograd.tensor.methods_order import OrderMethods
from picograd.tensor.methods_product import ProductMethods
from picograd.tensor.methods_reduce import ReduceMethods
from picograd.tensor.methods_select import SelectMethods
from picograd.tensor.methods_special import SpecialMethods
from picograd.tensor.operands import Scalar, Shape, as_shape, optional_dtype
from picograd.tensor.recording import (
    NUMBERS,
    HookHandle,
    Other,
    Recorded,
    add_hook,
    apply,
    apply_all,
    as_tensor,
    check_leaf_write,
    check_write,
    copied,
    drawn,
    fresh,
    grad,
    made,
    read,
    restored,
    run_hooks,
    selector,
    start,
    wrap,
    write,
)


class Tensor(
    OperatorMethods,
    ElementwiseMethods,
    ReduceMethods,
    MovementMethods,
    OrderMethods,
    SelectMethods,
    ProductMethods,
    SpecialMethods,
    ConvolutionMethods,
    AssemblyMethods,
    InPlaceMethods,
):
    """This class is a lazy tensor; see the module docstring.

    `data` is a number, nested lists, an array (NumPy, DLPack) or a Tensor. Ints give int64, floats
    float32, arrays keep their dtype.

    >>> from picograd import Tensor
    >>> (Tensor([1.0, 2.0]) * 3).tolist()
    [3.0, 6.0]
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves `array + tensor` to the methods here

    grad: "Tensor | None"

    def __init__(
        self,
        data: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        name: str = "",
    ) -> None:
        wanted = optional_dtype(dtype)
        if isinstance(data, Tensor):
            node = build.detach(data._node)
            node = node if wanted is None else node.cast(wanted)
            node = node if device is None else build.copy(node, creation.device_named(device))
        elif isinstance(data, Node):
            node = data
        else:
            node = creation.from_data(data, wanted, creation.device_named(device))
        start(self, node, False)
        self.name = name
        LEAVES[self._node] = weakref.ref(self)
        if requires_grad:
            self.requires_grad = True

    @staticmethod
    def from_node(node: Node, requires_grad: bool = False) -> "Tensor":
        """Wrap a node of the graph."""
        return wrap(node, requires_grad)

    def dim(self) -> int:
        """Count the axes."""
        return len(self._node.shape)

    def numel(self) -> int:
        """Count the elements."""
        return self._node.size

    def size(self, dim: int | None = None) -> Any:
        """Give the shape, or the size of one axis."""
        shape = self._node.shape
        return shape if dim is None else shape[indexing.as_axis(dim, len(shape), "size")]

    def element_size(self) -> int:
        """Count the bytes of one element."""
        return self._node.dtype.itemsize

    def stride(self) -> Shape:
        """Give the row-major strides, in elements."""
        return row_major(self._node.shape)

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is a float."""
        return self._node.dtype.is_float

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Ask for gradients, or stop asking; returns the tensor."""
        self.requires_grad = requires_grad
        return self

    # values

    def realize(self, *others: "Tensor") -> "Tensor":
        """Compute this tensor and others now, together."""
        realize_tensors((self, *others))
        return self

    def numpy(self) -> "np.ndarray[Any, Any]":
        """Compute, and copy the values to a NumPy array."""
        check_not_tracing("numpy()")
        if leaf_buffer(self._node) is None:
            realize_tensors((self,))
        buffer = leaf_buffer(self._node)
        if buffer is None:
            raise DTypeError("numpy()", "the tensor was not computed", "report this")
        return buffer_to_numpy(buffer, self._node.shape)

    def item(self) -> Scalar:
        """Compute, and return the only element as a Python number."""
        check_not_tracing("item()")
        if self._node.size != 1:
            text = f"a tensor of shape {self.shape} has {self.numel()} elements, not one"
            raise ShapeError("item()", text, "index it, or use .tolist()")
        value: Scalar = self.numpy().reshape(-1)[0].item()
        return value

    def tolist(self) -> Any:
        """Compute, and return nested lists of Python numbers."""
        check_not_tracing("tolist()")
        return self.numpy().tolist()

    def cpu(self) -> "Tensor":
        """Copy to the CPU."""
        return self.to("cpu")

    def cuda(self, index: int = 0) -> "Tensor":
        """Copy to an NVIDIA GPU."""
        return self.to(f"cuda:{index}")

    def to(self, *args: Any, dtype: Any = None, device: Any = None) -> "Tensor":
        """Copy to a device, convert to a dtype, or both; either order, or like another tensor."""
        for arg in args:
            if isinstance(arg, Tensor):
                dtype, device = arg.dtype, arg.device
            elif isinstance(arg, DType) or creation.is_dtype(arg):
                dtype = arg
            else:
                device = arg
        result = self if dtype is None else self.cast(dtype)
        if device is None or creation.device_named(device) == self.device:
            return result
        return apply(build.copy, result, creation.device_named(device))

    def cast(self, dtype: Any) -> "Tensor":
        """Convert the elements; the same tensor when the dtype is the same."""
        wanted = to_dtype(dtype)
        return self if wanted is self.dtype else apply(build.cast, self, wanted)

    def type(self, dtype: Any) -> "Tensor":
        """Convert the elements."""
        return self.cast(dtype)

    def bitcast(self, dtype: Any) -> "Tensor":
        """Read the same bits as another dtype of the same width."""
        return apply(build.bitcast, self, to_dtype(dtype))

    def float(self) -> "Tensor":
        """Convert to float32."""
        return self.cast(float32)

    def half(self) -> "Tensor":
        """Convert to float16."""
        return self.cast(float16)

    def bfloat16(self) -> "Tensor":
        """Convert to bfloat16."""
        return self.cast("bfloat16")

    def double(self) -> "Tensor":
        """Convert to float64."""
        return self.cast(float64)

    def int(self) -> "Tensor":
        """Convert to int32."""
        return self.cast(int32)

    def long(self) -> "Tensor":
        """Convert to int64."""
        return self.cast(int64)

    def bool(self) -> "Tensor":
        """Convert to bool: non-zero is True."""
        return self.cast(bool_)

    def detach(self) -> "Tensor":
        """Give the same values, cut off from gradients."""
        return made(build.detach(self._node))

    def clone(self) -> "Tensor":
        """Copy; gradients flow through."""
        return apply(build.contiguous, self)

    def contiguous(self) -> "Tensor":
        """Ask for a row-major buffer of its own."""
        return apply(build.contiguous, self)

    # gradients

    def backward(
        self,
        gradient: "Tensor | None" = None,
        retain_graph: Any = None,
        create_graph: Any = False,
    ) -> None:
        """Add the gradient of every leaf that asked for one to its `grad`; nothing runs yet.

        Starts from ones, or from `gradient`. If no leaf asked, every floating leaf gets one.
        The graph is always kept: `retain_graph` is accepted and changes nothing.
        Raises GradientError when there is none.
        """
        root = self._history if self._history is not None else self._node
        given = None if gradient is None else as_tensor(gradient, self)._node
        for leaf, node in autograd.backward(root, given):
            node = run_hooks(leaf._hooks, node) if leaf._hooks else node
            found = wrap(node if create_graph else build.detach(node), bool(create_graph))
            leaf.grad = found if leaf.grad is None else leaf.grad + found

    def register_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call a hook with this tensor's gradient; what it returns, unless None, replaces it.

        For a computed tensor the hook sees the gradient of what is recorded from now on.
        """
        return add_hook(self, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of a computed tensor in `grad` too."""
        if self.is_leaf:
            return

        def keep(gradient: "Tensor") -> None:
            self.grad = gradient.detach() if self.grad is None else self.grad + gradient.detach()

        add_hook(self, keep)

    def gradient(self, *targets: "Tensor") -> "list[Tensor | None]":
        """Find the gradients of this tensor with respect to targets, without touching `grad`."""
        return grad(self, targets, allow_unused=True)

    # writing

    def assign(self, value: Any) -> "Tensor":
        """Overwrite with values of the same shape and dtype, in place; no gradient flows."""
        source = as_tensor(value, self)
        check_write("assign", self, source._node)
        node = build.detach(source._node) if source._tracks else source._node
        write(self, node, False)
        return self

    def copy_(self, value: Any) -> "Tensor":
        """Overwrite with values that broadcast, converted to this dtype and device."""
        node = indexing.value_node(self._node, as_tensor(value, self).to(self.device)._node)
        return self.assign(wrap(indexing.fit_value(node, self.shape), False))

    def zero_(self) -> "Tensor":
        """Overwrite with zeros."""
        return self.fill_(0)

    def fill_(self, value: Scalar) -> "Tensor":
        """Overwrite with one number."""
        node = indexing.fit_value(indexing.value_node(self._node, value), self.shape)
        return self.assign(wrap(node, False))

    def __setitem__(self, items: Any, value: Any) -> None:
        source = value if isinstance(value, (Tensor, *NUMBERS)) else as_tensor(value, self)
        tracks = MODE.enabled and (
            self._tracks or (isinstance(source, Tensor) and source._tracks)
        )
        check_leaf_write("setitem", self)
        node = selecting.write(read(self), selector(items), read(source))
        write(self, node, tracks)

    def __getitem__(self, items: Any) -> "Tensor":
        return apply(selecting.read, self, selector(items))

    # making tensors

    @staticmethod
    def zeros(*sizes: Any, dtype: Any = None, device: Any = None, **more: Any) -> "Tensor":
        """Make zeros, float32 unless told otherwise."""
        return fresh(creation.filled("zeros", sizes, 0, dtype, device), **more)

    @staticmethod
    def ones(*sizes: Any, dtype: Any = None, device: Any = None, **more: Any) -> "Tensor":
        """Make ones, float32 unless told otherwise."""
        return fresh(creation.filled("ones", sizes, 1, dtype, device), **more)

    @staticmethod
    def empty(*sizes: Any, dtype: Any = None, device: Any = None, **more: Any) -> "Tensor":
        """Make a tensor whose values nobody promises; here zeros."""
        return fresh(creation.filled("empty", sizes, 0, dtype, device), **more)

    @staticmethod
    def full(
        size: Any, fill_value: Scalar, dtype: Any = None, device: Any = None, **more: Any
    ) -> "Tensor":
        """Fill a shape with one value; its Python type gives the dtype."""
        return fresh(creation.full((size,), fill_value, dtype, device), **more)

    @staticmethod
    def arange(
        start: Scalar, end: Scalar | None = None, step: Scalar = 1, dtype: Any = None,
        device: Any = None, **more: Any,
    ) -> "Tensor":  # fmt: skip
        """Count from start (0) up to but not including end."""
        first, last = (0, start) if end is None else (start, end)
        return fresh(creation.arange(first, last, step, dtype, device), **more)

    @staticmethod
    def linspace(
        start: Scalar,
        end: Scalar,
        steps: Any,
        dtype: Any = None,
        device: Any = None,
        **more: Any,
    ) -> "Tensor":
        """Space numbers evenly, both ends included."""
        return fresh(creation.linspace(start, end, steps, dtype, device), **more)

    @staticmethod
    def eye(
        n: Any, m: Any = None, dtype: Any = None, device: Any = None, **more: Any
    ) -> "Tensor":
        """Make an identity matrix."""
        return fresh(creation.eye(n, m, dtype, device), **more)

    @staticmethod
    def from_numpy(array: Any) -> "Tensor":
        """Make a CPU tensor of a NumPy array's own memory; changes show on both sides.

        The dtype stays. A read-only, strided or misaligned array is copied.
        """
        if not isinstance(array, np.ndarray):
            text = f"expected a NumPy array, got {type(array).__name__}"
            raise DTypeError("from_numpy", text, "use picograd.Tensor(...)")
        is_shared = array.flags.writeable and creation.device_named(None) == "cpu"
        if not is_shared or not creation.is_dtype(array.dtype) or not array.size:
            return Tensor(array)
        return made(node_over_numpy(array, to_dtype(array.dtype)))

    @staticmethod
    def from_dlpack(source: Any) -> "Tensor":
        """Make a tensor of another library's CPU tensor: of its own memory where that is possible.

        >>> import numpy, picograd
        >>> picograd.Tensor.from_dlpack(numpy.ones(2)).tolist()
        [1.0, 1.0]
        """
        return Tensor.from_numpy(np.from_dlpack(source))

    @staticmethod
    def manual_seed(seed: Any) -> random.Generator:
        """Restart the default random generator from a seed."""
        return random.DEFAULT.manual_seed(seed)

    @staticmethod
    def rand(
        *sizes: Any, generator: Any = None, dtype: Any = None, device: Any = None, **more: Any
    ) -> "Tensor":
        """Draw from the uniform distribution on [0, 1)."""
        return drawn("rand", random.uniform, sizes, generator, dtype, device, more)

    @staticmethod
    def randn(
        *sizes: Any, generator: Any = None, dtype: Any = None, device: Any = None, **more: Any
    ) -> "Tensor":
        """Draw from the standard normal distribution."""
        return drawn("randn", random.normal, sizes, generator, dtype, device, more)

    @staticmethod
    def uniform(
        *sizes: Any, low: Any = 0.0, high: Any = 1.0, generator: Any = None, dtype: Any = None,
        device: Any = None, **more: Any,
    ) -> "Tensor":  # fmt: skip
        """Draw from the uniform distribution on [low, high)."""
        random.check_spread("uniform", low, high, None)
        unit = drawn("uniform", random.uniform, sizes, generator, dtype, device, {})
        return fresh((unit * (high - low) + low)._node, **more)

    @staticmethod
    def normal(
        *sizes: Any, mean: Any = 0.0, std: Any = 1.0, generator: Any = None, dtype: Any = None,
        device: Any = None, **more: Any,
    ) -> "Tensor":  # fmt: skip
        """Draw from a normal distribution."""
        random.check_spread("normal", mean, std)
        unit = drawn("normal", random.normal, sizes, generator, dtype, device, {})
        return fresh((unit * std + mean)._node, **more)

    @staticmethod
    def randint(
        low: Any, high: Any = None, size: Any = (), generator: Any = None, dtype: Any = None,
        device: Any = None,
    ) -> "Tensor":  # fmt: skip
        """Draw whole numbers: randint(high, size=...) from [0, high), or from [low, high)."""
        if isinstance(high, (tuple, list)):
            low, high, size = 0, low, high
        low, high = (0, low) if high is None else (low, high)
        place = (optional_dtype(dtype) or int64, creation.device_named(device), generator)
        shape = as_shape((size,), "randint")
        return fresh(random.integers(operator.index(low), operator.index(high), shape, *place))

    @staticmethod
    def randperm(n: Any, generator: Any = None, device: Any = None) -> "Tensor":
        """Shuffle the numbers from 0 to n - 1."""
        return Tensor(random.permutation(operator.index(n), generator), device=device)

    @staticmethod
    def cat(tensors: "Sequence[Tensor]", dim: Any = 0) -> "Tensor":
        """Join tensors along an axis."""
        return apply_all(movement.cat, tensors, dim)

    @staticmethod
    def stack(tensors: "Sequence[Tensor]", dim: Any = 0) -> "Tensor":
        """Join tensors along a new axis."""
        return apply_all(movement.stack, tensors, dim)

    @staticmethod
    def einsum(equation: str, *tensors: "Tensor") -> "Tensor":
        """Sum products by Einstein's convention: einsum("ij,jk->ik", a, b)."""
        listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list) else tensors
        return apply_all(lambda nodes: linalg.einsum(equation, nodes), listed)

    # Python protocols

    def allclose(self, other: "Tensor", rtol: Any = 1e-5, atol: Any = 1e-8) -> Any:
        """Tell whether all elements are close to another tensor's; computes."""
        wanted = as_tensor(other, self)
        broadcast_shapes(self.shape, wanted.shape, op="allclose")
        return np.allclose(self.numpy(), wanted.numpy(), rtol, atol)

    def __len__(self) -> Any:
        if not self.shape:
            raise DTypeError("len()", "a zero-dim tensor has no length", "use .numel()")
        return self.shape[0]

    def __iter__(self) -> "Iterator[Tensor]":
        if not self.shape:
            raise DTypeError(
                "iter()", "a zero-dim tensor has no elements to visit", "use .item()"
            )
        return iter([self[at] for at in range(self.shape[0])])

    def __contains__(self, value: Other) -> Any:
        return (self == value).any().item()

    def __bool__(self) -> Any:
        if self.numel() != 1:
            text = f"the truth value of a tensor of shape {self.shape} is ambiguous"
            raise ShapeError("bool()", text, "use .any() or .all()")
        check_not_tracing("bool()")
        return bool(self.item())

    def __float__(self) -> Any:
        return float(self.item())

    def __int__(self) -> Any:
        return int(self.item())

    def __index__(self) -> Any:
        if self.dtype.is_float or self.numel() != 1:
            text = f"a {self.dtype.name} tensor of shape {self.shape} is not an index"
            raise DTypeError("index()", text, "use a whole number")
        return int(self.item())

    def __array__(self, dtype: Any = None, copy: Any = None) -> "np.ndarray[Any, Any]":
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """Share the memory of a CPU tensor with another library, without a copy."""
        if self.device != "cpu" or self.dtype.name == "bfloat16":
            text = f"a {self.dtype.name} tensor on {self.device} cannot be shared"
            raise DTypeError("dlpack", text, 'call .cpu(), and .float() for bfloat16')
        buffer = leaf_buffer(self.realize()._node)
        if buffer is None:
            raise DTypeError("dlpack", "the tensor was not computed", "report this")
        return buffer_view(buffer, self.shape).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return (1, 0)  # kDLCPU

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.numel() == 1 else repr(self)

    def __repr__(self) -> str:
        if is_tracing():
            return printing.format_traced(self.shape, self.dtype.name, self.device)
        values = self.numpy()
        return printing.format_tensor(values, self.dtype.name, self.device, self.requires_grad)

    def __copy__(self) -> "Tensor":
        return copied(self)

    def __deepcopy__(self, memo: Any) -> "Tensor":
        result = memo[id(self)] = copied(self)
        if self.grad is not None:
            result.grad = copied(self.grad)
        return result

    def __reduce__(self) -> Any:
        more = getattr(self, "__dict__", None)
        state = (self.numpy(), self.dtype.name, self.device, self.requires_grad)
        return restored, (type(self), *state), more or None


Recorded.kind = Tensor


def realize_tensors(tensors: Sequence[Tensor]) -> None:
    """Compute tensors together, with whatever has to run in the same plan."""
    pending.compute([tensor._node for tensor in tensors])
