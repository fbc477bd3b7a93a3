"""ONNX operators on quantised tensors: integers with a scale and a zero point."""

from typing import Any

import numpy as np

from picograd.helpers import lying_along
from picograd.onnx.network import conv
from picograd.onnx.recurrent import lstm
from picograd.onnx.table import Call, Value, operator
from picograd.onnx.values import dtype_of_onnx, is_held
from picograd.tensor.public import where
from picograd.tensor.tensor import Tensor


def along(value: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """Give a scale or zero point the shape of a tensor: one for all, an axis, or blocks."""
    if value.ndim == 0 or (value.numel() == 1 and value.ndim <= 1):
        return value.reshape(())
    if value.ndim == 1 and not block:
        return value.reshape(lying_along(axis, x.ndim))
    return value.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])


@operator("QuantizeLinear")
def quantize(
    call: Call, x: Any, scale: Any, zero: Value = None, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0, saturate: int = 1, **_: Any,
) -> Value:  # fmt: skip
    """Divide, round to even, add the zero point, limit to the integers there are."""
    zero = call.tensor(zero)
    wanted = dtype_of_onnx(output_dtype or 2) if zero is None else zero.dtype
    if is_held(zero) or wanted is None or wanted.is_float or not saturate:
        return call.hosted([x, scale, zero])[0]
    divided = (x / along(scale, x, axis, block_size)).float().round()
    if zero is not None:
        divided = divided + along(zero, x, axis, block_size).float()
    limits = np.iinfo(wanted.numpy)
    return divided.clamp(limits.min, limits.max).to(wanted)


@operator("DequantizeLinear")
def dequantize(
    call: Call,
    x: Any,
    scale: Any,
    zero: Value = None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    """Take the zero point away and multiply."""
    x, scale = call.tensor(x), call.tensor(scale)
    if is_held(x):
        return call.hosted([x, scale, zero])[0]
    value = x.to(scale.dtype) if x.dtype.is_float else x.float()
    if zero is not None:
        value = value - along(call.tensor(zero), x, axis, block_size).to(value.dtype)
    wanted = dtype_of_onnx(output_dtype) or scale.dtype
    return (value * along(scale, x, axis, block_size).to(value.dtype)).to(wanted)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find a scale for bytes and quantise; gives the scale and the zero point too."""
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    scale = (high - low) / 255
    scale = where(scale == 0, scale + 1, scale)
    zero = (0 - low / scale).clamp(0, 255).round()
    return ((x / scale).round() + zero).clamp(0, 255).to("uint8"), scale, zero.to("uint8")


def centred(x: Any, zero: Any, call: Call, axis: int = 1) -> Tensor:
    """Take a zero point away, in int32."""
    x = call.tensor(x)
    value = x.to("int32")
    return value if zero is None else value - along(call.tensor(zero), x, axis, 0).to("int32")


@operator("MatMulInteger")
def matmul_integer(call: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Tensor:
    """Product of integers, less their zero points."""
    rows = call.tensor(a).ndim - 2
    return centred(a, a_zero, call, rows) @ centred(b, b_zero, call, call.tensor(b).ndim - 1)


@operator("ConvInteger")
def conv_integer(
    call: Call, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None, **settings: Any
) -> Tensor:
    """Convolution of integers, less their zero points; exact in float64."""
    pair = (centred(x, x_zero, call).double(), centred(w, w_zero, call, 0).double())
    return conv(*pair, **settings).round().to("int32")


@operator("QLinearMatMul")
def quantized_matmul(call: Call, *inputs: Any) -> Value:
    """Product of quantised tensors, quantised."""
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = inputs
    if is_held(call.tensor(zero)):
        return call.hosted(list(inputs))[0]
    rows = call.tensor(a).ndim - 2
    left = centred(a, a_zero, call, rows).float() * spread(call.tensor(a_scale), rows, a)
    columns = call.tensor(b).ndim - 1
    right = centred(b, b_zero, call, columns).float() * spread(call.tensor(b_scale), columns, b)
    return quantize(call, left @ right, call.tensor(scale).float(), zero)


def spread(scale: Tensor, axis: int, x: Any) -> Tensor:
    """Give a scale the shape of an axis, in float32."""
    return along(scale.float(), x, axis, 0)


@operator("QLinearConv")
def quantized_conv(call: Call, *inputs: Any, **settings: Any) -> Value:
    """Convolution of quantised tensors, quantised."""
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero, *bias = inputs
    pair = (centred(x, x_zero, call).double(), centred(w, w_zero, call, 0).double())
    added = call.tensor(bias[0]).double() if bias and bias[0] is not None else None
    total = conv(*pair, added, **settings)
    factor = call.tensor(x_scale).double() * call.tensor(w_scale).double()
    factor = factor if factor.numel() == 1 else factor.reshape(-1, *[1] * (total.ndim - 2))
    return quantize(call, (total * factor).float(), call.tensor(scale), zero)


def rounded(x: Tensor) -> Tensor:
    """Quantise to bytes and back, with a scale found for all of it."""
    quantized, scale, zero = dynamic_quantize(x)
    return (quantized.float() - zero.float()) * scale


@operator("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantized_lstm(call: Call, *inputs: Any, **settings: Any) -> Any:
    """LSTM with weights in bytes (directions, inputs, gates); it rounds its inputs and states.

    Products are sums of whole numbers times a scale: float32 has them but for its rounding.
    """
    x, w, r, *others, w_scale, w_zero, r_scale, r_zero = inputs
    weights = [
        (centred(each, None, call) - along_gates(call, zero).to("int32")).float()
        * along_gates(call, scale).float()
        for each, scale, zero in ((w, w_scale, w_zero), (r, r_scale, r_zero))
    ]
    given = [call.tensor(each) for each in others]  # from the bias to the peepholes
    w, r = (each.transpose(1, 2) for each in weights)
    return lstm(call, rounded(x), w, r, *given, rounded=rounded, **settings)


def along_gates(call: Call, value: Any) -> Tensor:
    """Give a scale or zero point (directions) or (directions, gates) the axes of a weight."""
    value = call.tensor(value)
    return value.reshape(value.shape[0] if value.ndim else 1, 1, -1)
