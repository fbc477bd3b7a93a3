"""Methods of `Tensor` by kind. In-place forms: `x.exp_()` gives x its next value.

Each computes as the method without the underscore and writes the result back: the shape and dtype
stay. GradientError for a leaf that asked for gradients, as for any change in place.
"""

from collections.abc import Callable
from typing import Any, Final

from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.recording import Recorded, become, rewrite


def in_place(name: str) -> Callable[..., Tensor]:
    """Make the in-place form of a method."""

    def method(self: Any, *args: Any, **options: Any) -> Tensor:
        return rewrite(self, name, getattr(self, name)(*args, **options))

    method.__name__ = f"{name}_"
    method.__dict__["form_of"] = name
    method.__doc__ = f"Write the result of `{name}` back, in place."
    return method


def seen_as(name: str) -> Callable[..., Tensor]:
    """Make the in-place form of a method that shows the same elements in other axes."""

    def method(self: Any, *args: Any, **options: Any) -> Tensor:
        return become(f"{name}_", self, lambda memory: getattr(memory, name)(*args, **options))

    method.__name__ = f"{name}_"
    method.__dict__["form_of"] = name
    method.__doc__ = f"Give this tensor the axes that `{name}` gives; the memory stays."
    return method


class InPlaceMethods(Recorded):
    """This class holds the in-place methods of `Tensor`."""

    __slots__ = ()

    t_: Final = seen_as("t")
    swapaxes_: Final = seen_as("swapaxes")
    swapdims_: Final = seen_as("swapdims")
    neg_: Final = in_place("neg")
    round_: Final = in_place("round")
    floor_divide_: Final = in_place("floor_divide")
    remainder_: Final = in_place("remainder")
    bitwise_and_: Final = in_place("bitwise_and")
    bitwise_or_: Final = in_place("bitwise_or")
    bitwise_xor_: Final = in_place("bitwise_xor")
    absolute_: Final = in_place("absolute")
    addbmm_: Final = in_place("addbmm")
    bitwise_left_shift_: Final = in_place("bitwise_left_shift")
    bitwise_not_: Final = in_place("bitwise_not")
    bitwise_right_shift_: Final = in_place("bitwise_right_shift")
    deg2rad_: Final = in_place("deg2rad")
    divide_: Final = in_place("divide")
    eq_: Final = in_place("eq")
    fix_: Final = in_place("fix")
    ge_: Final = in_place("ge")
    greater_: Final = in_place("greater")
    greater_equal_: Final = in_place("greater_equal")
    gt_: Final = in_place("gt")
    le_: Final = in_place("le")
    less_: Final = in_place("less")
    less_equal_: Final = in_place("less_equal")
    lt_: Final = in_place("lt")
    multiply_: Final = in_place("multiply")
    ne_: Final = in_place("ne")
    negative_: Final = in_place("negative")
    not_equal_: Final = in_place("not_equal")
    rad2deg_: Final = in_place("rad2deg")
    subtract_: Final = in_place("subtract")
    true_divide_: Final = in_place("true_divide")
