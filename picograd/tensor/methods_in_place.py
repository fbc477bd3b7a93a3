"""Methods of `Tensor` by kind. In-place forms: `x.exp_()` gives x its next value.

Each computes as the method without the underscore and writes the result back: the shape and dtype
stay. GradientError for a leaf that asked for gradients, as for any change in place.
"""

from collections.abc import Callable
from typing import Any

from picograd.tensor.recording import Recorded, become, rewrite


def in_place(name: str) -> Callable[..., Any]:
    """Make the in-place form of a method."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return rewrite(self, name, getattr(self, name)(*args, **options))

    method.__name__ = f"{name}_"
    method.__dict__["form_of"] = name
    method.__doc__ = f"Write the result of `{name}` back, in place."
    return method


def seen_as(name: str) -> Callable[..., Any]:
    """Make the in-place form of a method that shows the same elements in other axes."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return become(f"{name}_", self, lambda memory: getattr(memory, name)(*args, **options))

    method.__name__ = f"{name}_"
    method.__dict__["form_of"] = name
    method.__doc__ = f"Give this tensor the axes that `{name}` gives; the memory stays."
    return method


class InPlaceMethods(Recorded):
    """This class holds the in-place methods of `Tensor`."""

    __slots__ = ()

    t_ = seen_as("t")
    transpose_ = seen_as("transpose")
    swapaxes_ = seen_as("swapaxes")
    swapdims_ = seen_as("swapdims")
    squeeze_ = seen_as("squeeze")
    unsqueeze_ = seen_as("unsqueeze")
    as_strided_ = seen_as("as_strided")
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
    absolute_ = in_place("absolute")
    acos_ = in_place("acos")
    acosh_ = in_place("acosh")
    addbmm_ = in_place("addbmm")
    addmv_ = in_place("addmv")
    addr_ = in_place("addr")
    arccos_ = in_place("arccos")
    arccosh_ = in_place("arccosh")
    arcsin_ = in_place("arcsin")
    arcsinh_ = in_place("arcsinh")
    arctan_ = in_place("arctan")
    arctan2_ = in_place("arctan2")
    arctanh_ = in_place("arctanh")
    asin_ = in_place("asin")
    asinh_ = in_place("asinh")
    atan_ = in_place("atan")
    atan2_ = in_place("atan2")
    atanh_ = in_place("atanh")
    baddbmm_ = in_place("baddbmm")
    bitwise_left_shift_ = in_place("bitwise_left_shift")
    bitwise_not_ = in_place("bitwise_not")
    bitwise_right_shift_ = in_place("bitwise_right_shift")
    clamp_max_ = in_place("clamp_max")
    clamp_min_ = in_place("clamp_min")
    copysign_ = in_place("copysign")
    cumprod_ = in_place("cumprod")
    cumsum_ = in_place("cumsum")
    deg2rad_ = in_place("deg2rad")
    digamma_ = in_place("digamma")
    divide_ = in_place("divide")
    eq_ = in_place("eq")
    erfc_ = in_place("erfc")
    erfinv_ = in_place("erfinv")
    fix_ = in_place("fix")
    float_power_ = in_place("float_power")
    gcd_ = in_place("gcd")
    ge_ = in_place("ge")
    greater_ = in_place("greater")
    greater_equal_ = in_place("greater_equal")
    gt_ = in_place("gt")
    heaviside_ = in_place("heaviside")
    hypot_ = in_place("hypot")
    i0_ = in_place("i0")
    igamma_ = in_place("igamma")
    igammac_ = in_place("igammac")
    index_reduce_ = in_place("index_reduce")
    lcm_ = in_place("lcm")
    ldexp_ = in_place("ldexp")
    le_ = in_place("le")
    less_ = in_place("less")
    less_equal_ = in_place("less_equal")
    lgamma_ = in_place("lgamma")
    logit_ = in_place("logit")
    lt_ = in_place("lt")
    multiply_ = in_place("multiply")
    mvlgamma_ = in_place("mvlgamma")
    ne_ = in_place("ne")
    negative_ = in_place("negative")
    nextafter_ = in_place("nextafter")
    not_equal_ = in_place("not_equal")
    polygamma_ = in_place("polygamma")
    rad2deg_ = in_place("rad2deg")
    renorm_ = in_place("renorm")
    sgn_ = in_place("sgn")
    sign_ = in_place("sign")
    sinc_ = in_place("sinc")
    subtract_ = in_place("subtract")
    true_divide_ = in_place("true_divide")
    xlogy_ = in_place("xlogy")
