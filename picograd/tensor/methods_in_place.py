"""Methods of `Tensor` by kind. In-place forms: `x.exp_()` gives x its next value.

Each computes as the method without the underscore and writes the result back: the shape and dtype
stay. GradientError for a leaf that asked for gradients, as for any change in place.
"""

from collections.abc import Callable
from typing import Any

from picograd.tensor.recording import Recorded, rewrite


def in_place(name: str) -> Callable[..., Any]:
    """Make the in-place form of a method."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return rewrite(self, name, getattr(self, name)(*args, **options))

    method.__name__ = f"{name}_"
    method.__doc__ = f"Write the result of `{name}` back, in place."
    return method


class InPlaceMethods(Recorded):
    """This class holds the in-place methods of `Tensor`."""

    __slots__ = ()

    abs_ = in_place("abs")
    neg_ = in_place("neg")
    exp_ = in_place("exp")
    exp2_ = in_place("exp2")
    expm1_ = in_place("expm1")
    log_ = in_place("log")
    log2_ = in_place("log2")
    log10_ = in_place("log10")
    log1p_ = in_place("log1p")
    sqrt_ = in_place("sqrt")
    rsqrt_ = in_place("rsqrt")
    reciprocal_ = in_place("reciprocal")
    square_ = in_place("square")
    sin_ = in_place("sin")
    cos_ = in_place("cos")
    tan_ = in_place("tan")
    tanh_ = in_place("tanh")
    sinh_ = in_place("sinh")
    cosh_ = in_place("cosh")
    sigmoid_ = in_place("sigmoid")
    relu_ = in_place("relu")
    erf_ = in_place("erf")
    floor_ = in_place("floor")
    ceil_ = in_place("ceil")
    round_ = in_place("round")
    trunc_ = in_place("trunc")
    frac_ = in_place("frac")
    nan_to_num_ = in_place("nan_to_num")
    pow_ = in_place("pow")
    clamp_ = in_place("clamp")
    clip_ = in_place("clip")
    lerp_ = in_place("lerp")
    fmod_ = in_place("fmod")
    floor_divide_ = in_place("floor_divide")
    remainder_ = in_place("remainder")
    addcmul_ = in_place("addcmul")
    addcdiv_ = in_place("addcdiv")
    addmm_ = in_place("addmm")
    logical_and_ = in_place("logical_and")
    logical_or_ = in_place("logical_or")
    logical_xor_ = in_place("logical_xor")
    logical_not_ = in_place("logical_not")
    bitwise_and_ = in_place("bitwise_and")
    bitwise_or_ = in_place("bitwise_or")
    bitwise_xor_ = in_place("bitwise_xor")
    masked_fill_ = in_place("masked_fill")
    masked_scatter_ = in_place("masked_scatter")
    scatter_ = in_place("scatter")
    scatter_add_ = in_place("scatter_add")
    scatter_reduce_ = in_place("scatter_reduce")
    index_add_ = in_place("index_add")
    index_copy_ = in_place("index_copy")
    index_fill_ = in_place("index_fill")
    put_ = in_place("put")
    tril_ = in_place("tril")
    triu_ = in_place("triu")
