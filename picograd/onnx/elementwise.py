"""ONNX operators on elements: arithmetic, comparisons, activations, casts."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import picograd.nn.functional as functional
from picograd.dtype import DType, bool_, float8_e5m2
from picograd.onnx.table import Call, Value, formulas, operator
from picograd.onnx.values import dtype_of_onnx, is_held
from picograd.tensor.tensor import Tensor, where

ONE = {  # operator -> method of `Tensor`
    "Reciprocal": "reciprocal", "Not": "logical_not", "BitwiseNot": "bitwise_not",
    **{name: name.lower() for name in (
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Det",
        "Erf", "Exp", "Floor", "IsNaN", "Log", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin",
        "Sinh", "Sqrt", "Tan", "Tanh",
    )},
}  # fmt: skip
TWO = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Equal": "eq", "Greater": "gt", "Less": "lt",
    "GreaterOrEqual": "ge", "LessOrEqual": "le", "And": "logical_and", "Or": "logical_or",
    "Xor": "logical_xor", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
}  # fmt: skip
PLAIN = {  # functions of `nn.functional`, whose options are the attributes
    "Softplus": "softplus", "Softsign": "softsign", "Mish": "mish", "HardSwish": "hardswish",
    "Elu": "elu", "Celu": "celu", "Gelu": "gelu",
}  # fmt: skip
LARGEST_E5M2 = 57344.0
SOME = {"Sum": Tensor.add, "Max": Tensor.maximum, "Min": Tensor.minimum}


for each, method in ONE.items():
    operator(each)(lambda x, method=method: getattr(x, method)())
for each, method in TWO.items():
    operator(each)(lambda x, y, method=method: getattr(x, method)(y))
for each, function in SOME.items():
    operator(each)(lambda *xs, function=function: functools.reduce(function, xs))
for each, method in PLAIN.items():
    operator(each)(lambda x, method=method, **options: getattr(functional, method)(x, **options))


SELU = 1.67326319217681884765625, 1.05070102214813232421875

FORMULAS: dict[str, Callable[..., Value]] = {  # options have the attributes' defaults
    "Identity": lambda x: x,  # the value itself: nothing writes to it
    "Mean": lambda *xs: functools.reduce(Tensor.add, xs) / len(xs),
    # integers towards zero
    "Div": lambda x, y: x / y if x.is_floating_point() else x.div(y, rounding_mode="trunc"),
    "Mod": lambda x, y, fmod=0: x.fmod(y) if fmod else x.remainder(y),
    "BitShift": lambda x, y, direction: x << y if direction == "LEFT" else x >> y,
    "Where": lambda condition, x, y: where(condition, x, y),
    "PRelu": lambda x, slope: where(x < 0, x * slope, x),
    "LeakyRelu": lambda x, alpha=0.01: functional.leaky_relu(x, alpha),
    "Swish": lambda x, alpha=1.0: x * (x * alpha).sigmoid(),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: (x * alpha + beta).clamp(0, 1),
    "ThresholdedRelu": lambda x, alpha=1.0: where(x > alpha, x, x.zeros_like()),
    "Selu": lambda x, alpha=SELU[0], gamma=SELU[1]: functional.elu(x, alpha) * gamma,
}
formulas(FORMULAS)


@operator("Pow")
def power(x: Tensor, y: Tensor) -> Tensor:
    """Raise to a power, in the dtype of the base."""
    if not x.is_floating_point() and y.is_floating_point():
        return x.to(y.dtype).pow(y).to(x.dtype)
    return x.pow(y).to(x.dtype)


@operator("Clip")
def clip(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Limit to bounds, attributes before opset 11; the upper one wins."""
    return x if min is None and max is None else x.clamp(min, max)


@operator("Shrink")
def shrink(x: Tensor, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    """Move towards 0 by `bias`; 0 up to `lambd`."""
    low, high = where(x < -lambd, x + bias, x.zeros_like()), x > lambd
    return where(high, x - bias, low).to(x.dtype)


@operator("IsInf")
def is_infinite(x: Tensor, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    """Tell which elements are infinite, of the signs asked for."""
    none = x.isnan() & False
    return (x.isneginf() if detect_negative else none) | (x.isposinf() if detect_positive else none)


@operator("Cast")
def cast(call: Call, x: Value, to: int, saturate: int = 1, **_: Any) -> Value:
    """Convert to a dtype; text, and dtypes that picograd has not, on the host."""
    dtype = dtype_of_onnx(to)
    if dtype is None or not saturate or isinstance(x, np.ndarray):
        return call.on_host("Cast", x, to=to, **narrowing(saturate))
    return as_dtype(x, dtype)


@operator("CastLike")
def cast_like(call: Call, x: Value, like: Value, saturate: int = 1, **_: Any) -> Value:
    """Convert to the dtype of another tensor."""
    if is_held(x) or is_held(like) or not saturate:
        return call.on_host("CastLike", x, like, **narrowing(saturate))
    return as_dtype(call.tensor(x), like.dtype)


def narrowing(saturate: int) -> dict[str, int]:
    """Give the attribute of a cast where it is not what it is by default: old opsets have none."""
    return {} if saturate else {"saturate": 0}


def as_dtype(x: Tensor, dtype: DType) -> Tensor:
    """Convert; NaN is true, and what is too large for 8 bits becomes the largest number."""
    if dtype is float8_e5m2:
        x = x.clamp(-LARGEST_E5M2, LARGEST_E5M2)
    return x != 0 if dtype is bool_ else x.to(dtype)


@operator("BitCast")
def bit_cast(call: Call, x: Value, to: int) -> Value:
    """Read the same bits as another dtype."""
    dtype = dtype_of_onnx(to)
    if dtype is None or isinstance(x, np.ndarray):
        return call.on_host("BitCast", x, to=to)
    return x.view(dtype)


@operator("Dropout")
def dropout(
    call: Call, x: Tensor, ratio: float | None = None, training: bool = False, **_: Any
) -> Any:
    """Drop elements while training; the second output says which are kept.

    Before opset 12 nothing is trained: the input is given, as trained networks do.
    """
    share = 0.5 if ratio is None else ratio
    if not training or share == 0:
        return (x, x.zeros_like().eq(0)) if call.outputs > 1 else x
    kept = x.rand_like() >= share
    return where(kept, x / (1 - share), x.zeros_like()), kept


@operator("Bernoulli")
def bernoulli(x: Tensor, dtype: int | None = None, seed: float = 0.0) -> Tensor:
    """Draw 0 and 1 with probabilities."""
    drawn = x.rand_like() < x
    return drawn.to((dtype_of_onnx(dtype) if dtype else None) or x.dtype)


@operator("RandomUniformLike")
def random_uniform_like(
    x: Tensor, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float = 0.0
) -> Tensor:
    """Draw numbers between two in the shape of a tensor."""
    drawn = x.float().rand_like() * (high - low) + low
    return drawn.to((dtype_of_onnx(dtype) if dtype else None) or x.dtype)


@operator("RandomNormalLike")
def random_normal_like(
    x: Tensor, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float = 0.0
) -> Tensor:
    """Draw normal numbers in the shape of a tensor."""
    drawn = x.float().randn_like() * scale + mean
    return drawn.to((dtype_of_onnx(dtype) if dtype else None) or x.dtype)
