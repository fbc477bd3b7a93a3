"""Methods of `Tensor` by kind. Functions of single elements, and activations.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Any, overload

from picograd.dtype import bool_
from picograd.errors import DTypeError
from picograd.tensor.core.annotations import Tensor, TensorLike
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import UNSET
from picograd.tensor.core.recording import Recorded, Same, apply
from picograd.tensor.math import elementwise


class ElementwiseMethods(Recorded):
    """This class holds methods of `Tensor`. Functions of single elements, and activations."""

    __slots__ = ()

    # elementwise functions

    @composed(method=False, in_place=True)
    def round(self: Same, *, decimals: int = 0) -> Same:
        """Round to so many decimals, halves to even."""
        if not isinstance(decimals, int):
            text = f"decimals must be an int, not {decimals!r}"
            raise DTypeError("round", text, "pass a whole number")
        if decimals and self.dtype.is_float:
            return apply(elementwise.round_decimals, self, decimals)
        return apply(elementwise.rounding, "round", self)

    def where(self: Same, condition: TensorLike, other: TensorLike) -> Same:
        """Choose: `x.where(condition, y)`; a bool tensor is the condition: `mask.where(x, y)`."""
        if self.dtype is bool_:
            return chosen(self, condition, other)
        return chosen(condition, self, other)

    # activations


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
