"""Methods of `Tensor` by kind. Operators: arithmetic, comparisons and their named forms.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from collections.abc import Callable
from typing import Any, Final, overload

import numpy as np

from picograd.dtype import DType, bool_
from picograd.engine.followed import EVENTS, MISS, SCALING, STEADY
from picograd.errors import DTypeError
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.graph.row import NUMBERS
from picograd.number import given, like
from picograd.tensor.core.annotations import Scalar, Tensor, TensorLike
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import CODE, UNSET, is_data
from picograd.tensor.core.recording import (
    Recorded,
    Same,
    apply,
    as_tensor,
    is_operand,
    is_plain,
    rewrite,
    update,
    wrap_own,
)
from picograd.tensor.core.subclasses import ask, asked_kinds, is_asked
from picograd.tensor.linalg import products
from picograd.tensor.math import elementwise, transcendental

# Of two floats of one dtype and shape, or of one and a number: nothing to prepare.
SIMPLE = (elementwise.arithmetic, elementwise.division)
COMPARING = (elementwise.compare, elementwise.compare_swapped)
DIRECT = {*SIMPLE, *COMPARING}
WHOLE = range(-(1 << 24), 1 << 24)  # every float32 tells these apart
STEADY.update(SIMPLE)
OF_NUMBERS = (*SIMPLE, elementwise.add_scaled, transcendental.divide_rounded)
SCALING.add(elementwise.add_scaled)


class OperatorMethods(Recorded):
    """This class holds the operators of `Tensor`, and their named forms."""

    __slots__ = ()

    def where(self: Same, condition: TensorLike, other: TensorLike) -> Same:
        """Choose: `x.where(condition, y)`; a bool tensor is the condition: `mask.where(x, y)`."""
        if self.dtype is bool_:
            return chosen(self, condition, other)
        return chosen(condition, self, other)

    # arithmetic

    def __add__(self: Same, other: TensorLike) -> Same:
        """Add elementwise; shapes broadcast, dtypes promote.

        >>> (Tensor([1.0, 2.0, 3.0]) + 1).tolist()
        [2.0, 3.0, 4.0]
        """
        return operate(elementwise.arithmetic, "add", self, other)

    def __radd__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.arithmetic, "add", other, self)

    def __sub__(self: Same, other: TensorLike) -> Same:
        """Subtract elementwise; shapes broadcast, dtypes promote.

        >>> (Tensor([1.0, 2.0, 3.0]) - 1).tolist()
        [0.0, 1.0, 2.0]
        """
        return operate(elementwise.arithmetic, "sub", self, other)

    def __rsub__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.arithmetic, "sub", other, self)

    @composed("mul")
    @composed("multiply", in_place=True)
    def __mul__(self: Same, other: TensorLike) -> Same:
        """Multiply elementwise; shapes broadcast, dtypes promote.

        >>> (Tensor([1.0, 2.0, 3.0]) * 2).tolist()
        [2.0, 4.0, 6.0]
        """
        return operate(elementwise.arithmetic, "mul", self, other)

    def __rmul__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.arithmetic, "mul", other, self)

    @composed("true_divide", in_place=True)
    def __truediv__(self: Same, other: TensorLike) -> Same:
        """Divide elementwise; integers give floats.

        >>> (Tensor([1, 2, 3]) / 2).tolist()
        [0.5, 1.0, 1.5]
        """
        return operate(elementwise.division, "div", self, other)

    def __rtruediv__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.division, "div", other, self)

    @composed("floor_divide", in_place=True)
    def __floordiv__(self: Same, other: TensorLike) -> Same:
        """Divide and round down.

        >>> (Tensor([5, -5, 6]) // 3).tolist()
        [1, -2, 2]
        """
        return operate(elementwise.arithmetic, "floordiv", self, other)

    def __rfloordiv__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.arithmetic, "floordiv", other, self)

    @composed("remainder", in_place=True)
    def __mod__(self: Same, other: TensorLike) -> Same:
        """Compute the remainder of floor division, which has the divisor's sign.

        >>> (Tensor([5, -5, 6]) % 3).tolist()
        [2, 1, 0]
        """
        return operate(elementwise.arithmetic, "mod", self, other)

    def __rmod__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.arithmetic, "mod", other, self)

    def __pow__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.power, "pow", self, other)

    def __rpow__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.power, "pow", other, self)

    @composed("matmul")
    def __matmul__(self: Same, other: Same) -> Same:
        is_short = EVENTS.take is None and isinstance(other, Recorded)
        if is_short and (made := multiplied(self, other)) is not None:
            return made  # type: ignore[no-any-return]
        if hasattr(other, "__rmatmul__") and not hasattr(other, "__array__"):
            return other.__rmatmul__(self)
        if not is_operand(other):
            return NotImplemented
        return apply(products.matmul, self, as_tensor(other, self))

    def __rmatmul__(self: Same, other: TensorLike) -> Same:
        if not is_operand(other):
            return NotImplemented
        return apply(products.matmul, as_tensor(other, self), self)

    @composed("neg", "negative", in_place=True)
    def __neg__(self: Same) -> Same:
        """Change the sign.

        >>> (-Tensor([1.0, 2.0, -3.0])).tolist()
        [-1.0, -2.0, 3.0]
        """
        return apply(elementwise.negate, self)

    def __pos__(self: Same) -> Same:
        return self

    def __abs__(self: Same) -> Same:
        return apply(elementwise.absolute, self)

    @composed("bitwise_not", in_place=True)
    def __invert__(self: Same) -> Same:
        """Invert every bit; of bools, logical not.

        >>> (~Tensor([0, 1, -1])).tolist()
        [-1, -2, 0]
        """
        return apply(elementwise.bitwise_not, self)

    @composed("bitwise_and", in_place=True)
    def __and__(self: Same, other: TensorLike) -> Same:
        """Compute bitwise and; of bools, logical and.

        >>> (Tensor([6, 5, 4]) & 4).tolist()
        [4, 4, 4]
        """
        return operate(elementwise.bitwise, "bitwise_and", self, other)

    def __rand__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.bitwise, "bitwise_and", other, self)

    @composed("bitwise_or", in_place=True)
    def __or__(self: Same, other: TensorLike) -> Same:
        """Compute bitwise or; of bools, logical or.

        >>> (Tensor([6, 5, 4]) | 1).tolist()
        [7, 5, 5]
        """
        return operate(elementwise.bitwise, "bitwise_or", self, other)

    def __ror__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.bitwise, "bitwise_or", other, self)

    @composed("bitwise_xor", in_place=True)
    def __xor__(self: Same, other: TensorLike) -> Same:
        """Compute bitwise exclusive or; of bools, unequal.

        >>> (Tensor([6, 5, 4]) ^ 5).tolist()
        [3, 0, 1]
        """
        return operate(elementwise.bitwise, "bitwise_xor", self, other)

    def __rxor__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.bitwise, "bitwise_xor", other, self)

    @composed("bitwise_left_shift", in_place=True)
    def __lshift__(self: Same, other: TensorLike) -> Same:
        """Shift the bits of integers to the left.

        >>> (Tensor([1, 2, 3]) << 2).tolist()
        [4, 8, 12]
        """
        return operate(elementwise.bitwise, "shift_left", self, other)

    def __rlshift__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.bitwise, "shift_left", other, self)

    @composed("bitwise_right_shift", in_place=True)
    def __rshift__(self: Same, other: TensorLike) -> Same:
        """Shift the bits of integers to the right, the sign stays.

        >>> (Tensor([4, 8, -8]) >> 2).tolist()
        [1, 2, -2]
        """
        return operate(elementwise.bitwise, "shift_right", self, other)

    def __rrshift__(self: Same, other: TensorLike) -> Same:
        return operate(elementwise.bitwise, "shift_right", other, self)

    def __iadd__(self: Same, other: TensorLike) -> Same:
        """Add in place.

        >>> x = Tensor([1.0, 2.0, 3.0])
        >>> x += 1
        >>> x.tolist()
        [2.0, 3.0, 4.0]
        """
        return update(self, elementwise.arithmetic, "add", other)

    def __isub__(self: Same, other: TensorLike) -> Same:
        """Subtract in place.

        >>> x = Tensor([1.0, 2.0, 3.0])
        >>> x -= 1
        >>> x.tolist()
        [0.0, 1.0, 2.0]
        """
        return update(self, elementwise.arithmetic, "sub", other)

    def __imul__(self: Same, other: TensorLike) -> Same:
        """Multiply in place.

        >>> x = Tensor([1.0, 2.0, 3.0])
        >>> x *= 2
        >>> x.tolist()
        [2.0, 4.0, 6.0]
        """
        return update(self, elementwise.arithmetic, "mul", other)

    def __itruediv__(self: Same, other: TensorLike) -> Same:
        return update(self, elementwise.division, "div", other)

    def __ifloordiv__(self: Same, other: TensorLike) -> Same:
        return update(self, elementwise.arithmetic, "floordiv", other)

    def __imod__(self: Same, other: TensorLike) -> Same:
        return update(self, elementwise.arithmetic, "mod", other)

    def __ipow__(self: Same, other: TensorLike) -> Same:  # type: ignore[misc]
        return update(self, elementwise.power, "pow", other)

    def __iand__(self: Same, other: TensorLike) -> Same:
        return update(self, elementwise.bitwise, "bitwise_and", other)

    def __ior__(self: Same, other: TensorLike) -> Same:
        return update(self, elementwise.bitwise, "bitwise_or", other)

    def __ixor__(self: Same, other: TensorLike) -> Same:
        return update(self, elementwise.bitwise, "bitwise_xor", other)

    def __ilshift__(self: Same, other: TensorLike) -> Same:
        return update(self, elementwise.bitwise, "shift_left", other)

    def __irshift__(self: Same, other: TensorLike) -> Same:
        return update(self, elementwise.bitwise, "shift_right", other)

    @composed(method=False)
    def add(self: Same, other: TensorLike, *, alpha: Scalar = 1) -> Same:
        """Compute self + alpha * other.

        >>> Tensor([1.0, 2.0]).add(Tensor([1.0, 1.0]), alpha=3).tolist()
        [4.0, 5.0]
        """
        return combined(self, "add", *factored(other, alpha))

    @composed(method=False)
    @composed("subtract", in_place=True)
    def sub(self: Same, other: TensorLike, *, alpha: Scalar = 1) -> Same:
        """Compute self - alpha * other.

        >>> Tensor([1.0, 2.0]).sub(Tensor([1.0, 1.0]), alpha=3).tolist()
        [-2.0, -1.0]
        """
        return combined(self, "sub", *factored(other, alpha))

    def add_(self: Same, other: TensorLike, *, alpha: Scalar = 1) -> Same:
        """Add alpha * other in place.

        >>> Tensor([1.0, 2.0]).add_(1.0, alpha=2).tolist()
        [3.0, 4.0]
        """
        other, alpha = factored(other, alpha)
        function, *more = scaled_by(alpha)
        return update(self, function, "add", other, *more)

    def sub_(self: Same, other: TensorLike, *, alpha: Scalar = 1) -> Same:
        """Subtract alpha * other in place.

        >>> Tensor([1.0, 2.0]).sub_(1.0, alpha=2).tolist()
        [-1.0, 0.0]
        """
        other, alpha = factored(other, alpha)
        function, *more = scaled_by(alpha)
        return update(self, function, "sub", other, *more)

    mul_: Final = __imul__

    def div_(self: Same, other: TensorLike, *, rounding_mode: str | None = None) -> Same:
        """Divide in place; see `div`.

        >>> Tensor([7, -7]).div_(2, rounding_mode="floor").tolist()
        [3, -4]
        """
        if rounding_mode is None:
            return update(self, elementwise.division, "div", other)
        return rewrite(self, "div", OperatorMethods.div(self, other, rounding_mode))

    @composed(method=False)
    @composed("divide", in_place=True)
    def div(self: Same, other: TensorLike, rounding_mode: str | None = None) -> Same:
        """Divide; rounding_mode="floor" or "trunc" rounds, and keeps integers.

        >>> Tensor([5.0, -5.0, 6.0]).div(2, rounding_mode="trunc").tolist()
        [2.0, -2.0, 3.0]
        """
        if rounding_mode is None:
            return operate(elementwise.division, "div", self, other)
        return operate(transcendental.divide_rounded, "div", self, other, rounding_mode)

    # comparison

    @composed("eq", in_place=True)
    def __eq__(  # type: ignore[override]
        self: Same, other: TensorLike
    ) -> Same:  # type: ignore[override]
        """Compare elementwise, equal or not.

        >>> (Tensor([1.0, 2.0, 3.0]) == 2).tolist()
        [False, True, False]
        """
        return operate(elementwise.compare, "equal", self, other)

    @composed("ne", "not_equal", in_place=True)
    def __ne__(  # type: ignore[override]
        self: Same, other: TensorLike
    ) -> Same:  # type: ignore[override]
        """Compare elementwise, unequal or not.

        >>> (Tensor([1.0, 2.0, 3.0]) != 2).tolist()
        [True, False, True]
        """
        return operate(elementwise.compare, "not_equal", self, other)

    @composed("lt", "less", in_place=True)
    def __lt__(self: Same, other: TensorLike) -> Same:
        """Compare elementwise whether each is less.

        >>> (Tensor([1.0, 2.0, 3.0]) < 2).tolist()
        [True, False, False]
        """
        return operate(elementwise.compare, "less", self, other)

    @composed("le", "less_equal", in_place=True)
    def __le__(self: Same, other: TensorLike) -> Same:
        """Compare elementwise whether each is at most the other.

        >>> (Tensor([1.0, 2.0, 3.0]) <= 2).tolist()
        [True, True, False]
        """
        return operate(elementwise.compare, "less_equal", self, other)

    @composed("gt", "greater", in_place=True)
    def __gt__(self: Same, other: TensorLike) -> Same:
        """Compare elementwise whether each is greater.

        >>> (Tensor([1.0, 2.0, 3.0]) > 2).tolist()
        [False, False, True]
        """
        return operate(elementwise.compare_swapped, "less", self, other)

    @composed("ge", "greater_equal", in_place=True)
    def __ge__(self: Same, other: TensorLike) -> Same:
        """Compare elementwise whether each is at least the other.

        >>> (Tensor([1.0, 2.0, 3.0]) >= 2).tolist()
        [False, True, True]
        """
        return operate(elementwise.compare_swapped, "less_equal", self, other)

    def __hash__(self: Same) -> Any:
        return id(self)


def scaled_by(alpha: Scalar) -> tuple[Any, ...]:
    """Give the function of `add` and `sub` for a factor of the second operand, and that."""
    if type(alpha) is int and alpha == 1:
        return (elementwise.arithmetic,)
    return elementwise.add_scaled, alpha


def combined(x: Any, op: str, other: Any, alpha: Scalar) -> Any:
    """Compute `add` or `sub`; what an operator would leave to Python is a DTypeError here."""
    function, *more = scaled_by(alpha)
    result = operate(function, op, x, other, *more)
    if result is NotImplemented:
        text = f"operand must be a Tensor or a number, not {type(other).__name__}"
        raise DTypeError(op, text, "wrap it in picograd.Tensor(...)")
    return result


def factored(other: Any, alpha: Any) -> tuple[Any, Scalar]:
    """Multiply by a factor that is a tensor of no axes at once."""
    if isinstance(alpha, Recorded) and not alpha.shape:
        return other * alpha, 1
    return other, alpha


def paired(op: str, a: Recorded, b: Recorded) -> Any:
    """Record an elementwise op of two tensors as they are; None where they must be changed.

    What `apply` asks for one by one is not there: numbers, other dtypes, traces, autocast.
    """
    x, y = a._node, b._node
    if not are_usual(x, y, op) or x.shape != y.shape:  # a trace would note that shapes differ
        return None
    tracks = a._tracks or b._tracks
    if tracks and not MODE.enabled:
        return None
    return wrap_own(Node(op, (x, y), None, x.shape, x.dtype, x.device), tracks)


def compared(function: Callable[..., Node], op: str, a: Recorded, b: Recorded) -> Any:
    """Record a comparison of two tensors as `paired` does."""
    x, y = a._node, b._node
    if not are_usual(x, y, op) or x.shape != y.shape:
        return None
    x, y = (x, y) if function is elementwise.compare else (y, x)
    return wrap_own(x.binary(op, y), False)


def with_number(function: Callable[..., Node], op: str, a: Any, b: Any) -> Any:
    """Record an elementwise op of a tensor and a number as `paired` does."""
    is_first = isinstance(a, Recorded)
    tensor, number = (a, b) if is_first else (b, a)
    node = tensor._node if isinstance(tensor, Recorded) else None
    if node is None or not are_usual(node, node, op):
        return None
    number = number_beside(node.dtype, number)
    if number is None:
        return None
    tracks = tensor._tracks and function not in COMPARING
    if tracks and not MODE.enabled:
        return None
    const = Node("const", (), number, node.shape, node.dtype, node.device)
    is_straight = is_first is not (function is elementwise.compare_swapped)
    made = node.binary(op, const) if is_straight else const.binary(op, node)
    return wrap_own(made, tracks)


def number_beside(dtype: DType, number: Any) -> Any:
    """Give the number of a constant beside a tensor of floats or integers; None for others."""
    if dtype.kind == "int":
        least, most = dtype.ends
        return given(number) if type(number) is int and least <= number <= most else None
    if dtype.bits < 32:
        return None
    if type(number) is float:
        return given(number)
    is_exact = type(number) is int and number in WHOLE
    return like(float(number), given(number)) if is_exact else None


def are_usual(x: Node, y: Node, op: str = "") -> bool:
    """Tell whether two nodes are floats alike, no numbers, and nothing changes what is recorded.

    Or integers alike, for an op that takes them.
    """
    if x.dtype is not y.dtype or x.device != y.device:
        return False
    if x.dtype.kind != "float" and not (x.dtype.kind == "int" and takes_integers(op)):
        return False
    return x.op not in NUMBERS and y.op not in NUMBERS and is_plain((x, y))


def takes_integers(op: str) -> bool:
    """Tell whether an elementwise op takes integers as they are, and demands nothing of them."""
    return bool(op) and op not in CODE and "int" in OPS[op].dtype_rule.kinds


def multiplied(a: Recorded, b: Recorded) -> Any:
    """Record a product of two float matrices as they are; None where `apply` has to look."""
    x, y = a._node, b._node
    if len(x.shape) != 2 or len(y.shape) != 2 or not are_usual(x, y) or x.shape[1] != y.shape[0]:
        return None
    tracks = a._tracks or b._tracks
    if tracks and not MODE.enabled:
        return None
    return wrap_own(build.matrix_product(x, y), tracks)


# what methods record that are called otherwise; and those that turn their operands
RECORDED = {
    "eq": "equal", "lt": "less", "le": "less_equal", "ne": "not_equal", "remainder": "mod",
    "__floordiv__": "floordiv", "__lshift__": "shift_left", "__rshift__": "shift_right",
}  # fmt: skip
TURNED = {"gt": "less", "ge": "less_equal"}


def ask_operator(function: Callable[..., Node], op: str, *operands: Any) -> Any:
    """Ask the class of an operand that is no tensor."""
    table = TURNED if function is elementwise.compare_swapped else RECORDED
    names = [name for name, what in table.items() if what == op]
    method = getattr(Recorded.kind, names[0] if names else op)
    return ask(method, asked_kinds(operands), operands, {})


def operate(function: Callable[..., Node], op: str, a: Any, b: Any, *more: Any) -> Any:
    """Record an operator; other types than tensors, numbers and arrays are left to Python."""
    if EVENTS.take is not None:
        known = EVENTS.take(operate, (function, op, a, b, *more), {})
        if known is not MISS:
            return known
    if function in DIRECT:
        if not isinstance(a, Recorded) or not isinstance(b, Recorded):
            made = with_number(function, op, a, b)
        elif function in SIMPLE:
            made = paired(op, a, b)
        else:
            made = compared(function, op, a, b)
        if made is not None:
            return made
    if not isinstance(b, (Recorded, int, float, complex, np.generic)):
        if not is_data(b):
            if more or not is_asked(type(b)):  # of options the function that has them asks
                return NotImplemented
            return ask_operator(function, op, a, b)
        b = as_tensor(b, a)
    if not isinstance(a, (Recorded, int, float, complex, np.generic)):
        if not is_data(a):
            return NotImplemented
        a = as_tensor(a, b)
    if function in OF_NUMBERS and not isinstance(a, Recorded) and not isinstance(b, Recorded):
        a = Recorded.kind.full((), a)  # sums, products, quotients of two numbers
    return apply(function, op, a, b, *more)


@composed()
def dot(input: Tensor, other: TensorLike) -> Tensor:
    """Multiply vectors or matrices, as NumPy's dot for up to two axes.

    >>> Tensor([1.0, 2.0, 3.0]).dot(Tensor([1.0, 1.0, 2.0])).item()
    9.0
    """
    return apply(products.dot, input, as_tensor(other, input))


@overload
def where(condition: TensorLike) -> tuple[Tensor, ...]: ...


@overload
def where(condition: TensorLike, a: TensorLike, b: TensorLike) -> Tensor: ...


@composed(method=False)
def where(condition: TensorLike, a: TensorLike = UNSET, b: TensorLike = UNSET) -> Any:
    """Choose from `a` where the condition holds, else from `b`; all broadcast.

    With a condition alone, the positions where it holds, one vector per axis.

    >>> picograd.where(picograd.tensor([True, False, True]), Tensor([1.0, 2.0, 3.0]), 0.0).tolist()
    [1.0, 0.0, 3.0]
    """
    if b is UNSET:
        found: Any = condition
        return found.nonzero(as_tuple=True)
    return chosen(condition, a, b)


def chosen(condition: Any, a: Any, b: Any) -> Any:
    """Choose elements; what is no tensor yet comes to the device of the others."""
    if not isinstance(condition, Recorded):
        like = a if isinstance(a, Recorded) else b
        condition = Recorded.kind.of(
            condition, device=like.device if isinstance(like, Recorded) else None
        )
    return apply(elementwise.where, condition, a, b)
