"""Methods of `Tensor` by kind. In-place forms: `x.exp_()` gives x its next value.

Each computes as the method without the underscore and writes the result back: the shape and dtype
stay. GradientError for a leaf that asked for gradients, as for any change in place.
"""

from collections.abc import Callable
from typing import Any, Final

from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.recording import Recorded, become, rewrite
from picograd.tensor.shaping import resizing


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
    transpose_: Final = seen_as("transpose")
    swapaxes_: Final = seen_as("swapaxes")
    swapdims_: Final = seen_as("swapdims")
    squeeze_: Final = seen_as("squeeze")
    unsqueeze_: Final = seen_as("unsqueeze")
    as_strided_: Final = seen_as("as_strided")
    resize_: Final = resizing.resize_
    resize_as_: Final = resizing.resize_as_
    set_: Final = resizing.set_
    abs_: Final = in_place("abs")
    neg_: Final = in_place("neg")
    exp_: Final = in_place("exp")
    exp2_: Final = in_place("exp2")
    expm1_: Final = in_place("expm1")
    log_: Final = in_place("log")
    log2_: Final = in_place("log2")
    log10_: Final = in_place("log10")
    log1p_: Final = in_place("log1p")
    sqrt_: Final = in_place("sqrt")
    rsqrt_: Final = in_place("rsqrt")
    reciprocal_: Final = in_place("reciprocal")
    square_: Final = in_place("square")
    sin_: Final = in_place("sin")
    cos_: Final = in_place("cos")
    tan_: Final = in_place("tan")
    tanh_: Final = in_place("tanh")
    sinh_: Final = in_place("sinh")
    cosh_: Final = in_place("cosh")
    sigmoid_: Final = in_place("sigmoid")
    relu_: Final = in_place("relu")
    erf_: Final = in_place("erf")
    floor_: Final = in_place("floor")
    ceil_: Final = in_place("ceil")
    round_: Final = in_place("round")
    trunc_: Final = in_place("trunc")
    frac_: Final = in_place("frac")
    nan_to_num_: Final = in_place("nan_to_num")
    pow_: Final = in_place("pow")
    clamp_: Final = in_place("clamp")
    clip_: Final = in_place("clip")
    lerp_: Final = in_place("lerp")
    fmod_: Final = in_place("fmod")
    floor_divide_: Final = in_place("floor_divide")
    remainder_: Final = in_place("remainder")
    addcmul_: Final = in_place("addcmul")
    addcdiv_: Final = in_place("addcdiv")
    addmm_: Final = in_place("addmm")
    logical_and_: Final = in_place("logical_and")
    logical_or_: Final = in_place("logical_or")
    logical_xor_: Final = in_place("logical_xor")
    logical_not_: Final = in_place("logical_not")
    bitwise_and_: Final = in_place("bitwise_and")
    bitwise_or_: Final = in_place("bitwise_or")
    bitwise_xor_: Final = in_place("bitwise_xor")
    masked_fill_: Final = in_place("masked_fill")
    masked_scatter_: Final = in_place("masked_scatter")
    scatter_: Final = in_place("scatter")
    scatter_add_: Final = in_place("scatter_add")
    scatter_reduce_: Final = in_place("scatter_reduce")
    index_add_: Final = in_place("index_add")
    index_copy_: Final = in_place("index_copy")
    index_fill_: Final = in_place("index_fill")
    put_: Final = in_place("put")
    tril_: Final = in_place("tril")
    triu_: Final = in_place("triu")
    absolute_: Final = in_place("absolute")
    acos_: Final = in_place("acos")
    acosh_: Final = in_place("acosh")
    addbmm_: Final = in_place("addbmm")
    addmv_: Final = in_place("addmv")
    addr_: Final = in_place("addr")
    arccos_: Final = in_place("arccos")
    arccosh_: Final = in_place("arccosh")
    arcsin_: Final = in_place("arcsin")
    arcsinh_: Final = in_place("arcsinh")
    arctan_: Final = in_place("arctan")
    arctan2_: Final = in_place("arctan2")
    arctanh_: Final = in_place("arctanh")
    asin_: Final = in_place("asin")
    asinh_: Final = in_place("asinh")
    atan_: Final = in_place("atan")
    atan2_: Final = in_place("atan2")
    atanh_: Final = in_place("atanh")
    baddbmm_: Final = in_place("baddbmm")
    bitwise_left_shift_: Final = in_place("bitwise_left_shift")
    bitwise_not_: Final = in_place("bitwise_not")
    bitwise_right_shift_: Final = in_place("bitwise_right_shift")
    clamp_max_: Final = in_place("clamp_max")
    clamp_min_: Final = in_place("clamp_min")
    copysign_: Final = in_place("copysign")
    cumprod_: Final = in_place("cumprod")
    cumsum_: Final = in_place("cumsum")
    deg2rad_: Final = in_place("deg2rad")
    digamma_: Final = in_place("digamma")
    divide_: Final = in_place("divide")
    eq_: Final = in_place("eq")
    erfc_: Final = in_place("erfc")
    erfinv_: Final = in_place("erfinv")
    fix_: Final = in_place("fix")
    float_power_: Final = in_place("float_power")
    gcd_: Final = in_place("gcd")
    ge_: Final = in_place("ge")
    greater_: Final = in_place("greater")
    greater_equal_: Final = in_place("greater_equal")
    gt_: Final = in_place("gt")
    heaviside_: Final = in_place("heaviside")
    hypot_: Final = in_place("hypot")
    i0_: Final = in_place("i0")
    igamma_: Final = in_place("igamma")
    igammac_: Final = in_place("igammac")
    index_reduce_: Final = in_place("index_reduce")
    lcm_: Final = in_place("lcm")
    ldexp_: Final = in_place("ldexp")
    le_: Final = in_place("le")
    less_: Final = in_place("less")
    less_equal_: Final = in_place("less_equal")
    lgamma_: Final = in_place("lgamma")
    logit_: Final = in_place("logit")
    lt_: Final = in_place("lt")
    multiply_: Final = in_place("multiply")
    mvlgamma_: Final = in_place("mvlgamma")
    ne_: Final = in_place("ne")
    negative_: Final = in_place("negative")
    nextafter_: Final = in_place("nextafter")
    not_equal_: Final = in_place("not_equal")
    polygamma_: Final = in_place("polygamma")
    rad2deg_: Final = in_place("rad2deg")
    renorm_: Final = in_place("renorm")
    sgn_: Final = in_place("sgn")
    sign_: Final = in_place("sign")
    sinc_: Final = in_place("sinc")
    subtract_: Final = in_place("subtract")
    true_divide_: Final = in_place("true_divide")
    xlogy_: Final = in_place("xlogy")
