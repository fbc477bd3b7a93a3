"""Tensor: an n-dimensional array that records what is done to it and computes when asked.

Every method records nodes of the graph (`tensor.node`) through the functions in the files beside
this one; nothing runs until a value is needed: `realize`, `numpy`, `item`, printing. Names and
meanings are PyTorch's; reductions take `axis` and `dim`, `keepdim` and `keepdims`.
"""

import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

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
from picograd.engine.realize import buffer_to_numpy
from picograd.engine.tracing import check_not_tracing, is_tracing
from picograd.errors import DTypeError, ShapeError
from picograd.graph import build
from picograd.graph import build_composite as composite
from picograd.graph.node import Node
from picograd.helpers import row_major
from picograd.tensor import (
    autograd,
    convolution,
    creation,
    elementwise,
    indexing,
    linalg,
    movement,
    printing,
    random,
    reduce,
    selecting,
)
from picograd.tensor.autograd import LEAVES, MODE
from picograd.tensor.operands import UNSET, Scalar, Shape, as_shape, either, optional_dtype
from picograd.tensor.recording import (
    NUMBERS,
    Recorded,
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
    selector,
    several,
    start,
    update,
    wrap,
    write,
)

Other = Any  # a Tensor, a Python number or an array


class Extreme(NamedTuple):
    """This class holds the result of `max` and `min` along an axis."""

    values: "Tensor"
    indices: "Tensor"


class Tensor(Recorded):
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

    def backward(self, gradient: "Tensor | None" = None, create_graph: Any = False) -> None:
        """Add the gradient of every leaf that asked for one to its `grad`; nothing runs yet.

        Starts from ones, or from `gradient`. If no leaf asked, every floating leaf gets one.
        Raises GradientError when there is none.
        """
        root = self._history if self._history is not None else self._node
        given = None if gradient is None else as_tensor(gradient, self)._node
        for leaf, node in autograd.backward(root, given):
            found = wrap(node if create_graph else build.detach(node), bool(create_graph))
            leaf.grad = found if leaf.grad is None else leaf.grad + found

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
        return self.assign(wrap(indexing.value_node(self._node, value), False))

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

    # arithmetic

    def __add__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "add", self, other)

    def __radd__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "add", other, self)

    def __sub__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "sub", self, other)

    def __rsub__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "sub", other, self)

    def __mul__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "mul", self, other)

    def __rmul__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "mul", other, self)

    def __truediv__(self, other: Other) -> "Tensor":
        return operate(elementwise.division, "div", self, other)

    def __rtruediv__(self, other: Other) -> "Tensor":
        return operate(elementwise.division, "div", other, self)

    def __floordiv__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "floordiv", self, other)

    def __rfloordiv__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "floordiv", other, self)

    def __mod__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "mod", self, other)

    def __rmod__(self, other: Other) -> "Tensor":
        return operate(elementwise.arithmetic, "mod", other, self)

    def __pow__(self, other: Other) -> "Tensor":
        return operate(elementwise.power, "pow", self, other)

    def __rpow__(self, other: Other) -> "Tensor":
        return operate(elementwise.power, "pow", other, self)

    def __matmul__(self, other: "Tensor") -> "Tensor":
        return apply(linalg.matmul, self, as_tensor(other, self))

    def __rmatmul__(self, other: Any) -> "Tensor":
        return apply(linalg.matmul, as_tensor(other, self), self)

    def __neg__(self) -> "Tensor":
        return apply(elementwise.negate, self)

    def __pos__(self) -> "Tensor":
        return self

    def __abs__(self) -> "Tensor":
        return apply(elementwise.absolute, self)

    def __invert__(self) -> "Tensor":
        return apply(elementwise.bitwise_not, self)

    def __and__(self, other: Other) -> "Tensor":
        return operate(elementwise.bitwise, "bitwise_and", self, other)

    def __rand__(self, other: Other) -> "Tensor":
        return operate(elementwise.bitwise, "bitwise_and", other, self)

    def __or__(self, other: Other) -> "Tensor":
        return operate(elementwise.bitwise, "bitwise_or", self, other)

    def __ror__(self, other: Other) -> "Tensor":
        return operate(elementwise.bitwise, "bitwise_or", other, self)

    def __xor__(self, other: Other) -> "Tensor":
        return operate(elementwise.bitwise, "bitwise_xor", self, other)

    def __rxor__(self, other: Other) -> "Tensor":
        return operate(elementwise.bitwise, "bitwise_xor", other, self)

    def __lshift__(self, other: Other) -> "Tensor":
        return operate(elementwise.bitwise, "shift_left", self, other)

    def __rshift__(self, other: Other) -> "Tensor":
        return operate(elementwise.bitwise, "shift_right", self, other)

    def __iadd__(self, other: Other) -> "Tensor":
        return update(self, elementwise.arithmetic, "add", other)

    def __isub__(self, other: Other) -> "Tensor":
        return update(self, elementwise.arithmetic, "sub", other)

    def __imul__(self, other: Other) -> "Tensor":
        return update(self, elementwise.arithmetic, "mul", other)

    def __itruediv__(self, other: Other) -> "Tensor":
        return update(self, elementwise.division, "div", other)

    def __ifloordiv__(self, other: Other) -> "Tensor":
        return update(self, elementwise.arithmetic, "floordiv", other)

    def __imod__(self, other: Other) -> "Tensor":
        return update(self, elementwise.arithmetic, "mod", other)

    def __ipow__(self, other: Other) -> "Tensor":  # type: ignore[misc]
        return update(self, elementwise.power, "pow", other)

    def __iand__(self, other: Other) -> "Tensor":
        return update(self, elementwise.bitwise, "bitwise_and", other)

    def __ior__(self, other: Other) -> "Tensor":
        return update(self, elementwise.bitwise, "bitwise_or", other)

    def __ixor__(self, other: Other) -> "Tensor":
        return update(self, elementwise.bitwise, "bitwise_xor", other)

    add, sub, mul, div = __add__, __sub__, __mul__, __truediv__
    true_divide, floor_divide, remainder, neg, matmul = (
        __truediv__,
        __floordiv__,
        __mod__,
        __neg__,
        __matmul__,
    )
    add_, sub_, mul_, div_ = __iadd__, __isub__, __imul__, __itruediv__
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = __and__, __or__, __xor__, __invert__

    def pow(self, exponent: Other) -> "Tensor":
        """Raise to a power."""
        return apply(elementwise.power, "pow", self, exponent)

    # comparison

    def __eq__(self, other: Other) -> "Tensor":  # type: ignore[override]
        return operate(elementwise.compare, "equal", self, other)

    def __ne__(self, other: Other) -> "Tensor":  # type: ignore[override]
        return operate(elementwise.compare, "not_equal", self, other)

    def __lt__(self, other: Other) -> "Tensor":
        return operate(elementwise.compare, "less", self, other)

    def __le__(self, other: Other) -> "Tensor":
        return operate(elementwise.compare, "less_equal", self, other)

    def __gt__(self, other: Other) -> "Tensor":
        return operate(elementwise.compare_swapped, "less", self, other)

    def __ge__(self, other: Other) -> "Tensor":
        return operate(elementwise.compare_swapped, "less_equal", self, other)

    eq, ne, lt, le, gt, ge = __eq__, __ne__, __lt__, __le__, __gt__, __ge__

    def __hash__(self) -> Any:
        return id(self)

    def logical_and(self, other: Other) -> "Tensor":
        """Compute `and` of truth values."""
        return apply(elementwise.logical, "logical_and", self, other)

    def logical_or(self, other: Other) -> "Tensor":
        """Compute `or` of truth values."""
        return apply(elementwise.logical, "logical_or", self, other)

    def logical_xor(self, other: Other) -> "Tensor":
        """Compute exclusive or of truth values."""
        return apply(elementwise.logical_xor, "logical_xor", self, other)

    def logical_not(self) -> "Tensor":
        """Negate truth values."""
        return apply(elementwise.logical_not, self)

    def isnan(self) -> "Tensor":
        """Tell which elements are NaN."""
        return apply(elementwise.is_nan, self)

    def isinf(self) -> "Tensor":
        """Tell which elements are infinite."""
        return apply(elementwise.is_infinite, self)

    def isfinite(self) -> "Tensor":
        """Tell which elements are finite."""
        return apply(elementwise.is_finite, self)

    def allclose(self, other: "Tensor", rtol: Any = 1e-5, atol: Any = 1e-8) -> Any:
        """Tell whether all elements are close to another tensor's; computes."""
        return np.allclose(self.numpy(), as_tensor(other, self).numpy(), rtol, atol)

    # elementwise functions

    def exp(self) -> "Tensor":
        """Compute e ** x."""
        return apply(elementwise.unary, "exp", self)

    def exp2(self) -> "Tensor":
        """Compute 2 ** x."""
        return apply(elementwise.exp2, self)

    def expm1(self) -> "Tensor":
        """Compute e ** x - 1, exact near 0."""
        return apply(elementwise.expm1, self)

    def log(self) -> "Tensor":
        """Compute the natural logarithm."""
        return apply(elementwise.unary, "log", self)

    def log2(self) -> "Tensor":
        """Compute the logarithm to base 2."""
        return apply(elementwise.scaled_log, self, elementwise.LOG_2)

    def log10(self) -> "Tensor":
        """Compute the logarithm to base 10."""
        return apply(elementwise.scaled_log, self, elementwise.LOG_10)

    def log1p(self) -> "Tensor":
        """Compute log(1 + x), exact near 0."""
        return apply(elementwise.log1p, self)

    def sqrt(self) -> "Tensor":
        """Compute the square root."""
        return apply(elementwise.unary, "sqrt", self)

    def rsqrt(self) -> "Tensor":
        """Compute 1 / sqrt(x)."""
        return apply(elementwise.unary, "rsqrt", self)

    def reciprocal(self) -> "Tensor":
        """Compute 1 / x."""
        return apply(elementwise.unary, "reciprocal", self)

    def square(self) -> "Tensor":
        """Compute x * x."""
        return apply(elementwise.power, "pow", self, 2)

    def sin(self) -> "Tensor":
        """Compute the sine."""
        return apply(elementwise.unary, "sin", self)

    def cos(self) -> "Tensor":
        """Compute the cosine."""
        return apply(elementwise.unary, "cos", self)

    def tan(self) -> "Tensor":
        """Compute the tangent."""
        return self.sin() / self.cos()

    def tanh(self) -> "Tensor":
        """Compute the hyperbolic tangent."""
        return apply(elementwise.unary, "tanh", self)

    def erf(self) -> "Tensor":
        """Compute the error function."""
        return apply(elementwise.unary, "erf", self)

    def abs(self) -> "Tensor":
        """Compute |x|."""
        return apply(elementwise.absolute, self)

    def sign(self) -> "Tensor":
        """Compute -1, 0 or 1."""
        return apply(elementwise.sign, self)

    def floor(self) -> "Tensor":
        """Round down."""
        return apply(elementwise.rounding, "floor", self)

    def ceil(self) -> "Tensor":
        """Round up."""
        return apply(elementwise.rounding, "ceil", self)

    def round(self) -> "Tensor":
        """Round to the nearest whole number, halves to even."""
        return apply(elementwise.rounding, "round", self)

    def trunc(self) -> "Tensor":
        """Round towards 0."""
        return apply(elementwise.rounding, "trunc", self)

    def maximum(self, other: Other) -> "Tensor":
        """Compute the larger of two; NaN propagates."""
        return apply(elementwise.arithmetic, "maximum", self, other)

    def minimum(self, other: Other) -> "Tensor":
        """Compute the smaller of two; NaN propagates."""
        return apply(elementwise.arithmetic, "minimum", self, other)

    def clamp(self, min: Other = None, max: Other = None) -> "Tensor":
        """Limit values to [min, max]."""
        return apply(elementwise.clamp, self, min, max)

    clip = clamp

    def lerp(self, end: Other, weight: Other) -> "Tensor":
        """Interpolate: self + weight * (end - self)."""
        return apply(elementwise.lerp, self, end, weight)

    def where(self, condition: Any, other: Any) -> "Tensor":
        """Choose: `x.where(condition, y)`; a bool tensor is the condition: `mask.where(x, y)`."""
        if self.dtype is bool_:
            return where(self, condition, other)
        return where(condition, self, other)

    def masked_fill(self, mask: "Tensor", value: Other) -> "Tensor":
        """Replace elements where the mask holds."""
        return apply(indexing.masked_fill, self, mask, value)

    # activations

    def relu(self) -> "Tensor":
        """Compute max(x, 0)."""
        return apply(elementwise.relu, self)

    def sigmoid(self) -> "Tensor":
        """Compute 1 / (1 + exp(-x))."""
        return apply(elementwise.sigmoid, self)

    def logsigmoid(self) -> "Tensor":
        """Compute log(sigmoid(x))."""
        return apply(elementwise.log_sigmoid, self)

    def silu(self) -> "Tensor":
        """Compute x * sigmoid(x)."""
        return apply(composite.silu, self)

    def gelu(self, approximate: str = "none") -> "Tensor":
        """Compute x * Phi(x); approximate="tanh" for the usual approximation."""
        return apply(composite.gelu, self, approximate)

    def leaky_relu(self, negative_slope: Any = 0.01) -> "Tensor":
        """Compute x where positive, else negative_slope * x."""
        return apply(elementwise.leaky_relu, self, negative_slope)

    def elu(self, alpha: Any = 1.0) -> "Tensor":
        """Compute x where positive, else alpha * (exp(x) - 1)."""
        return apply(elementwise.elu, self, alpha)

    def softplus(self, beta: Any = 1.0, threshold: Any = 20.0) -> "Tensor":
        """Compute log(1 + exp(beta * x)) / beta."""
        return apply(elementwise.softplus, self, beta, threshold)

    def hardtanh(self, min_val: Any = -1.0, max_val: Any = 1.0) -> "Tensor":
        """Limit values to [min_val, max_val]."""
        return apply(elementwise.hard_limit, self, min_val, max_val)

    def relu6(self) -> "Tensor":
        """Compute min(max(x, 0), 6)."""
        return apply(elementwise.hard_limit, self, 0, 6)

    # reductions

    def sum(
        self,
        axis: Any = UNSET,
        keepdim: Any = UNSET,
        *,
        dtype: Any = None,
        dim: Any = UNSET,
        keepdims: Any = UNSET,
    ) -> "Tensor":
        """Add up; bool and integers give int64."""
        where_, keep = axes("sum", axis, dim, keepdim, keepdims)
        return apply(reduce.total, "sum", self, where_, keep, optional_dtype(dtype))

    def prod(
        self,
        axis: Any = UNSET,
        keepdim: Any = UNSET,
        *,
        dtype: Any = None,
        dim: Any = UNSET,
        keepdims: Any = UNSET,
    ) -> "Tensor":
        """Multiply up; bool and integers give int64."""
        where_, keep = axes("prod", axis, dim, keepdim, keepdims)
        return apply(reduce.total, "prod", self, where_, keep, optional_dtype(dtype))

    def mean(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> "Tensor":
        """Average."""
        return apply(reduce.mean, self, *axes("mean", axis, dim, keepdim, keepdims))

    def max(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> Any:
        """Find the largest element; along an axis (values, indices); or max(self, tensor)."""
        return extreme("max", self, axis, dim, keepdim, keepdims)

    def min(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> Any:
        """Find the smallest element; along an axis (values, indices); or min(self, tensor)."""
        return extreme("min", self, axis, dim, keepdim, keepdims)

    def amax(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> "Tensor":
        """Find the largest elements along axes; ties share the gradient."""
        return apply(reduce.extreme, "max", self, *axes("amax", axis, dim, keepdim, keepdims))

    def amin(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> "Tensor":
        """Find the smallest elements along axes; ties share the gradient."""
        return apply(reduce.extreme, "min", self, *axes("amin", axis, dim, keepdim, keepdims))

    def argmax(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> "Tensor":
        """Find the first position of the largest element, in int64."""
        chosen = axes("argmax", axis, dim, keepdim, keepdims)
        return apply(reduce.arg_extreme, "argmax", self, *chosen)

    def argmin(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> "Tensor":
        """Find the first position of the smallest element, in int64."""
        chosen = axes("argmin", axis, dim, keepdim, keepdims)
        return apply(reduce.arg_extreme, "argmin", self, *chosen)

    def var(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, correction: Any = 1,
        dim: Any = UNSET, keepdims: Any = UNSET,
    ) -> "Tensor":  # fmt: skip
        """Compute the variance, divided by n - correction."""
        chosen = axes("var", axis, dim, keepdim, keepdims)
        return apply(reduce.variance, "var", self, *chosen, correction)

    def std(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, correction: Any = 1,
        dim: Any = UNSET, keepdims: Any = UNSET,
    ) -> "Tensor":  # fmt: skip
        """Compute the standard deviation."""
        chosen = axes("std", axis, dim, keepdim, keepdims)
        return apply(reduce.deviation, self, *chosen, correction)

    def any(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> "Tensor":
        """Tell whether any element is non-zero."""
        chosen = axes("any", axis, dim, keepdim, keepdims)
        return apply(reduce.truth_test, "any", "any", self, *chosen)

    def all(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> "Tensor":
        """Tell whether all elements are non-zero."""
        chosen = axes("all", axis, dim, keepdim, keepdims)
        return apply(reduce.truth_test, "all", "all", self, *chosen)

    def logsumexp(
        self, axis: Any = UNSET, keepdim: Any = UNSET, *, dim: Any = UNSET, keepdims: Any = UNSET
    ) -> "Tensor":
        """Compute log(sum(exp(x))) without overflow."""
        return apply(reduce.logsumexp, self, *axes("logsumexp", axis, dim, keepdim, keepdims))

    def softmax(self, axis: Any = UNSET, dtype: Any = None, *, dim: Any = UNSET) -> "Tensor":
        """Normalise exp(x) to sum 1 along an axis (the last, unless given)."""
        x = self if dtype is None else self.cast(dtype)
        return apply(
            reduce.softmax, "softmax", x, either("softmax", "axis", axis, "dim", dim, -1)
        )

    def log_softmax(self, axis: Any = UNSET, dtype: Any = None, *, dim: Any = UNSET) -> "Tensor":
        """Compute log(softmax(x)) along an axis (the last, unless given)."""
        x = self if dtype is None else self.cast(dtype)
        chosen = either("log_softmax", "axis", axis, "dim", dim, -1)
        return apply(reduce.softmax, "log_softmax", x, chosen)

    def norm(
        self, p: Any = 2, axis: Any = UNSET, keepdim: Any = UNSET, *,
        dim: Any = UNSET, keepdims: Any = UNSET,
    ) -> "Tensor":  # fmt: skip
        """Compute the vector norm of order p."""
        return apply(reduce.norm, self, p, *axes("norm", axis, dim, keepdim, keepdims))

    def cumsum(self, axis: Any = UNSET, dtype: Any = None, *, dim: Any = UNSET) -> "Tensor":
        """Compute running sums along an axis."""
        chosen = either("cumsum", "axis", axis, "dim", dim, 0)
        return apply(reduce.cumulative_sum, self, chosen, optional_dtype(dtype))

    # movement

    def reshape(self, *sizes: Any) -> "Tensor":
        """Give the same elements another shape; one size may be -1."""
        return apply(movement.reshape, self, sizes)

    view = reshape

    def permute(self, *axes: Any) -> "Tensor":
        """Reorder the axes."""
        return apply(movement.permute, self, axes)

    def transpose(self, dim0: Any = 0, dim1: Any = 1) -> "Tensor":
        """Swap two axes."""
        return apply(movement.transpose, self, dim0, dim1)

    def movedim(self, source: Any, destination: Any) -> "Tensor":
        """Move an axis to another position."""
        return apply(movement.move_axis, self, source, destination)

    def t(self) -> "Tensor":
        """Transpose a matrix."""
        return self.T

    @property
    def T(self) -> "Tensor":
        """This tensor with its axes reversed: the transpose of a matrix."""
        return apply(movement.permute, self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> "Tensor":
        """This tensor with its last two axes swapped."""
        return apply(movement.transpose, self, -2, -1)

    def expand(self, *sizes: Any) -> "Tensor":
        """Repeat axes of size 1 without copying; -1 keeps a size."""
        return apply(movement.expand, self, sizes)

    broadcast_to = expand

    def expand_as(self, other: "Tensor") -> "Tensor":
        """Expand to another tensor's shape."""
        return self.expand(other.shape)

    def squeeze(self, axis: Any = UNSET, *, dim: Any = UNSET) -> "Tensor":
        """Drop axes of size 1."""
        return apply(movement.squeeze, self, either("squeeze", "axis", axis, "dim", dim))

    def unsqueeze(self, axis: Any = UNSET, *, dim: Any = UNSET) -> "Tensor":
        """Insert an axis of size 1."""
        return apply(movement.unsqueeze, self, either("unsqueeze", "axis", axis, "dim", dim, 0))

    def flatten(self, start_dim: Any = 0, end_dim: Any = -1) -> "Tensor":
        """Merge axes into one."""
        return apply(movement.flatten, self, start_dim, end_dim)

    def unflatten(self, dim: Any, sizes: Any) -> "Tensor":
        """Split one axis into several."""
        return apply(movement.unflatten, self, dim, sizes)

    def flip(self, *axes: Any) -> "Tensor":
        """Reverse the order along axes."""
        return apply(movement.flip, self, axes)

    def pad(self, padding: Any, mode: str = "constant", value: Scalar = 0) -> "Tensor":
        """Pad: PyTorch's flat list (last axis first) or one (low, high) pair per axis."""
        if mode == "constant":
            return apply(movement.pad, self, padding, value)
        return apply(movement.pad_mode, self, padding, mode)

    def repeat(self, *counts: Any) -> "Tensor":
        """Tile copies along each axis."""
        return apply(movement.repeat, self, counts)

    def repeat_interleave(self, repeats: Any, dim: Any = None) -> "Tensor":
        """Repeat each element in place."""
        return apply(movement.repeat_interleave, self, repeats, dim)

    def roll(self, shifts: Any, dims: Any = None) -> "Tensor":
        """Rotate elements along axes."""
        return apply(movement.roll, self, shifts, dims)

    def unfold(self, dimension: Any, size: Any, step: Any) -> "Tensor":
        """Slide windows along an axis."""
        return apply(movement.unfold, self, dimension, size, step)

    def narrow(self, dim: Any, start: Any, length: Any) -> "Tensor":
        """Take `length` elements from `start` along an axis."""
        axis = indexing.as_axis(dim, self.ndim, "narrow")
        return self[(slice(None),) * axis + (slice(start, start + length),)]

    def tril(self, diagonal: Any = 0) -> "Tensor":
        """Zero the elements above a diagonal."""
        return apply(movement.triangle, self, diagonal, True)

    def triu(self, diagonal: Any = 0) -> "Tensor":
        """Zero the elements below a diagonal."""
        return apply(movement.triangle, self, diagonal, False)

    def diagonal(self, offset: Any = 0, dim1: Any = 0, dim2: Any = 1) -> "Tensor":
        """Take a diagonal of two axes as the last axis."""
        return apply(movement.diagonal, self, offset, dim1, dim2)

    def split(self, sizes: Any, dim: Any = 0) -> "tuple[Tensor, ...]":
        """Cut into pieces of one size, or of listed sizes."""
        return several(self, movement.split(read(self), sizes, dim))

    def chunk(self, chunks: Any, dim: Any = 0) -> "tuple[Tensor, ...]":
        """Cut into at most `chunks` equal pieces."""
        return several(self, movement.chunk(read(self), chunks, dim))

    def unbind(self, dim: Any = 0) -> "tuple[Tensor, ...]":
        """Take an axis apart."""
        axis = indexing.as_axis(dim, self.ndim, "unbind")
        return tuple(self[(slice(None),) * axis + (at,)] for at in range(self.shape[axis]))

    # indexing

    def gather(self, dim: Any, index: "Tensor") -> "Tensor":
        """Read out[i][j] = self[i][index[i][j]] (dim 1); the index is clamped to the axis."""
        return apply(selecting.gather, "gather", self, dim, index)

    def take_along_dim(self, indices: "Tensor", dim: Any = None) -> "Tensor":
        """Read by index along an axis; the other axes broadcast."""
        return apply(selecting.take_along, self, indices, dim)

    def index_select(self, dim: Any, index: "Tensor") -> "Tensor":
        """Take slices along an axis in the order of an index."""
        return apply(selecting.index_select, self, dim, index)

    def scatter(self, dim: Any, index: "Tensor", src: Other, reduce: Any = None) -> "Tensor":
        """Write out[i][index[i][j]] = src[i][j] (dim 1); reduce="add" or "multiply"."""
        return apply(selecting.scatter, "scatter", self, dim, index, src, reduce)

    def scatter_add(self, dim: Any, index: "Tensor", src: "Tensor") -> "Tensor":
        """Add src[i][j] to out[i][index[i][j]] (dim 1)."""
        return apply(selecting.scatter, "scatter_add", self, dim, index, src, "add")

    def index_add(self, dim: Any, index: "Tensor", source: "Tensor") -> "Tensor":
        """Add slices of `source` along an axis at the positions of a 1-d index."""
        return apply(selecting.index_add, self, dim, index, source)

    def masked_select(self, mask: "Tensor") -> "Tensor":
        """Take the elements where the mask holds, as a vector; computes the mask."""
        return self.expand(np.broadcast_shapes(self.shape, mask.shape))[mask.expand(self.shape)]

    def nonzero(self) -> "Tensor":
        """List the positions of non-zero elements; computes."""
        return Tensor(np.argwhere(self.numpy()), device=self.device)

    def one_hot(self, num_classes: Any) -> "Tensor":
        """Write each index as a row with a single 1, in int64."""
        return apply(creation.one_hot, self, num_classes)

    # products and convolutions

    def dot(self, other: "Tensor") -> "Tensor":
        """Multiply vectors or matrices, as NumPy's dot for up to two axes."""
        return apply(linalg.matmul, self, as_tensor(other, self))

    def mm(self, other: "Tensor") -> "Tensor":
        """Multiply two matrices."""
        return apply(linalg.matmul_of_rank, "mm", self, other, 2)

    def bmm(self, other: "Tensor") -> "Tensor":
        """Multiply two stacks of matrices."""
        return apply(linalg.matmul_of_rank, "bmm", self, other, 3)

    def outer(self, other: "Tensor") -> "Tensor":
        """Multiply every element of one vector with every element of another."""
        return apply(linalg.outer, self, other)

    def linear(self, weight: "Tensor", bias: "Tensor | None" = None) -> "Tensor":
        """Compute self @ weight.T + bias."""
        return apply(linalg.linear, self, weight, bias)

    def conv1d(
        self, weight: "Tensor", bias: "Tensor | None" = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: Any = 1,
    ) -> "Tensor":  # fmt: skip
        """Convolve (N, C, L) with (O, C / groups, K)."""
        options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        return apply(convolution.convolve, "conv1d", 1, self, weight, bias, options)

    def conv2d(
        self, weight: "Tensor", bias: "Tensor | None" = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: Any = 1,
    ) -> "Tensor":  # fmt: skip
        """Convolve (N, C, H, W) with (O, C / groups, KH, KW)."""
        options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        return apply(convolution.convolve, "conv2d", 2, self, weight, bias, options)

    def conv_transpose2d(
        self, weight: "Tensor", bias: "Tensor | None" = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: Any = 1, dilation: Any = 1,
    ) -> "Tensor":  # fmt: skip
        """Apply the adjoint of conv2d: (N, C, H, W) with (C, O / groups, KH, KW)."""
        options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        options["output_padding"] = output_padding
        name = "conv_transpose2d"
        return apply(convolution.convolve_transposed, name, 2, self, weight, bias, options)

    def max_pool2d(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: Any = False,
    ) -> "Tensor":  # fmt: skip
        """Take the largest element of each window; the first one gets the gradient."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(dilation=dilation, ceil_mode=ceil_mode)
        return apply(convolution.max_pool, 2, self, options)

    def avg_pool2d(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False,
        count_include_pad: Any = True,
    ) -> "Tensor":  # fmt: skip
        """Average each window."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        return apply(convolution.average_pool, 2, self, options)

    def adaptive_avg_pool2d(self, output_size: Any) -> "Tensor":
        """Average so that the spatial axes get the given sizes."""
        return apply(convolution.adaptive_average_pool, 2, self, output_size)

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
        """Make a tensor of a NumPy array; the dtype stays."""
        return Tensor(array)

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
        unit = drawn("uniform", random.uniform, sizes, generator, dtype, device, {})
        return fresh((unit * (high - low) + low)._node, **more)

    @staticmethod
    def normal(
        *sizes: Any, mean: Any = 0.0, std: Any = 1.0, generator: Any = None, dtype: Any = None,
        device: Any = None, **more: Any,
    ) -> "Tensor":  # fmt: skip
        """Draw from a normal distribution."""
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


def operate(function: Callable[..., Node], op: str, a: Any, b: Any) -> Any:
    """Record an operator; other types than tensors, numbers and arrays are left to Python."""
    if not isinstance(b, (Tensor, int, float, np.generic)):
        if not hasattr(b, "__array__") and not isinstance(b, (list, tuple)):
            return NotImplemented
        b = as_tensor(b, a)
    if not isinstance(a, (Tensor, int, float, np.generic)):
        if not hasattr(a, "__array__") and not isinstance(a, (list, tuple)):
            return NotImplemented
        a = as_tensor(a, b)
    return apply(function, op, a, b)


def axes(op: str, axis: Any, dim: Any, keepdim: Any, keepdims: Any) -> tuple[Any, bool]:
    """Read the two spellings of a reduction's axes and of keeping them."""
    chosen = either(op, "axis", axis, "dim", dim)
    return chosen, bool(either(op, "keepdim", keepdim, "keepdims", keepdims, False))


def extreme(op: str, x: Tensor, axis: Any, dim: Any, keepdim: Any, keepdims: Any) -> Any:
    """Compute `max` and `min` in their three forms."""
    if isinstance(axis, Tensor):
        return x.maximum(axis) if op == "max" else x.minimum(axis)
    chosen, keep = axes(op, axis, dim, keepdim, keepdims)
    if not isinstance(chosen, int):
        return apply(reduce.extreme, op, x, chosen, keep)
    indices = apply(reduce.arg_extreme, f"arg{op}", x, chosen, keep)
    if not (x._tracks and MODE.enabled):
        return Extreme(apply(reduce.extreme, op, x, chosen, keep), indices)
    kept = indices if keep else apply(reduce.arg_extreme, f"arg{op}", x, chosen, True)
    return Extreme(apply(reduce.picked, x, kept, chosen, keep), indices)


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """Choose from `a` where the condition holds, else from `b`; all broadcast."""
    if not isinstance(condition, Tensor):
        like = a if isinstance(a, Tensor) else b
        condition = Tensor(condition, device=like.device if isinstance(like, Tensor) else None)
    return apply(elementwise.where, condition, a, b)


def realize_tensors(tensors: Sequence[Tensor]) -> None:
    """Compute tensors together, with whatever has to run in the same plan."""
    pending.compute([tensor._node for tensor in tensors])
