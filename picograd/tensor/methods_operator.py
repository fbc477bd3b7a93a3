"""Methods of `Tensor` by kind. Operators: arithmetic, comparisons and their named forms.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from picograd.graph.node import Node
from picograd.tensor import elementwise, linalg, special
from picograd.tensor.recording import Other, Recorded, Same, apply, as_tensor, update


class OperatorMethods(Recorded):
    """This class holds the operators of `Tensor`, and their named forms."""

    __slots__ = ()

    # arithmetic

    def __add__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "add", self, other)

    def __radd__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "add", other, self)

    def __sub__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "sub", self, other)

    def __rsub__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "sub", other, self)

    def __mul__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "mul", self, other)

    def __rmul__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "mul", other, self)

    def __truediv__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.division, "div", self, other)

    def __rtruediv__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.division, "div", other, self)

    def __floordiv__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "floordiv", self, other)

    def __rfloordiv__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "floordiv", other, self)

    def __mod__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "mod", self, other)

    def __rmod__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.arithmetic, "mod", other, self)

    def __pow__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.power, "pow", self, other)

    def __rpow__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.power, "pow", other, self)

    def __matmul__(
        self: Same,
        other: Same,
    ) -> Same:
        return apply(linalg.matmul, self, as_tensor(other, self))

    def __rmatmul__(
        self: Same,
        other: Any,
    ) -> Same:
        return apply(linalg.matmul, as_tensor(other, self), self)

    def __neg__(self: Same) -> Same:
        return apply(elementwise.negate, self)

    def __pos__(self: Same) -> Same:
        return self

    def __abs__(self: Same) -> Same:
        return apply(elementwise.absolute, self)

    def __invert__(self: Same) -> Same:
        return apply(elementwise.bitwise_not, self)

    def __and__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.bitwise, "bitwise_and", self, other)

    def __rand__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.bitwise, "bitwise_and", other, self)

    def __or__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.bitwise, "bitwise_or", self, other)

    def __ror__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.bitwise, "bitwise_or", other, self)

    def __xor__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.bitwise, "bitwise_xor", self, other)

    def __rxor__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.bitwise, "bitwise_xor", other, self)

    def __lshift__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.bitwise, "shift_left", self, other)

    def __rshift__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.bitwise, "shift_right", self, other)

    def __iadd__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.arithmetic, "add", other)

    def __isub__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.arithmetic, "sub", other)

    def __imul__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.arithmetic, "mul", other)

    def __itruediv__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.division, "div", other)

    def __ifloordiv__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.arithmetic, "floordiv", other)

    def __imod__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.arithmetic, "mod", other)

    def __ipow__(
        self: Same,
        other: Other,
    ) -> Same:  # type: ignore[misc]
        return update(self, elementwise.power, "pow", other)

    def __iand__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.bitwise, "bitwise_and", other)

    def __ior__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.bitwise, "bitwise_or", other)

    def __ixor__(
        self: Same,
        other: Other,
    ) -> Same:
        return update(self, elementwise.bitwise, "bitwise_xor", other)

    add, sub, mul = __add__, __sub__, __mul__
    subtract, multiply, negative = __sub__, __mul__, __neg__
    bitwise_left_shift, bitwise_right_shift = __lshift__, __rshift__
    true_divide, floor_divide, remainder, neg, matmul = (
        __truediv__,
        __floordiv__,
        __mod__,
        __neg__,
        __matmul__,
    )
    add_, sub_, mul_, div_ = __iadd__, __isub__, __imul__, __itruediv__
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = __and__, __or__, __xor__, __invert__

    def div(
        self: Same,
        other: Other,
        rounding_mode: str | None = None,
    ) -> Same:
        """Divide; rounding_mode="floor" or "trunc" rounds, and keeps integers."""
        if rounding_mode is None:
            return operate(elementwise.division, "div", self, other)
        return apply(special.divide_rounded, self, other, rounding_mode)

    divide = div

    def pow(
        self: Same,
        exponent: Other,
    ) -> Same:
        """Raise to a power."""
        return apply(elementwise.power, "pow", self, exponent)

    # comparison

    def __eq__(  # type: ignore[override]
        self: Same,
        other: Other,
    ) -> Same:  # type: ignore[override]
        return operate(elementwise.compare, "equal", self, other)

    def __ne__(  # type: ignore[override]
        self: Same,
        other: Other,
    ) -> Same:  # type: ignore[override]
        return operate(elementwise.compare, "not_equal", self, other)

    def __lt__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.compare, "less", self, other)

    def __le__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.compare, "less_equal", self, other)

    def __gt__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.compare_swapped, "less", self, other)

    def __ge__(
        self: Same,
        other: Other,
    ) -> Same:
        return operate(elementwise.compare_swapped, "less_equal", self, other)

    eq, ne, lt, le, gt, ge = __eq__, __ne__, __lt__, __le__, __gt__, __ge__

    less, less_equal, not_equal = __lt__, __le__, __ne__
    greater, greater_equal = __gt__, __ge__

    def __hash__(self: Same) -> Any:
        return id(self)

    def logical_and(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute `and` of truth values."""
        return apply(elementwise.logical, "logical_and", self, other)

    def logical_or(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute `or` of truth values."""
        return apply(elementwise.logical, "logical_or", self, other)

    def logical_xor(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute exclusive or of truth values."""
        return apply(elementwise.logical_xor, "logical_xor", self, other)

    def logical_not(self: Same) -> Same:
        """Negate truth values."""
        return apply(elementwise.logical_not, self)

    def isnan(self: Same) -> Same:
        """Tell which elements are NaN."""
        return apply(elementwise.is_nan, self)

    def isinf(self: Same) -> Same:
        """Tell which elements are infinite."""
        return apply(elementwise.is_infinite, self)

    def isfinite(self: Same) -> Same:
        """Tell which elements are finite."""
        return apply(elementwise.is_finite, self)


def operate(function: Callable[..., Node], op: str, a: Any, b: Any) -> Any:
    """Record an operator; other types than tensors, numbers and arrays are left to Python."""
    if not isinstance(b, (Recorded, int, float, np.generic)):
        if not hasattr(b, "__array__") and not isinstance(b, (list, tuple)):
            return NotImplemented
        b = as_tensor(b, a)
    if not isinstance(a, (Recorded, int, float, np.generic)):
        if not hasattr(a, "__array__") and not isinstance(a, (list, tuple)):
            return NotImplemented
        a = as_tensor(a, b)
    return apply(function, op, a, b)
