"""Methods of `Tensor` that are functions of networks: convolutions, activations, norms, losses.

`x.mish()` is `picograd.nn.functional.mish(x)`: one row binds one function, whose first argument is
the tensor. The class is a base of `Tensor` alone.
"""

from typing import Final

from picograd.tensor.core.recording import Recorded
from picograd.tensor.network import (
    activation_functions,
    attention,
    convolution_functions,
    dropout,
    interpolation,
    losses,
    normalization,
    pooling_functions,
)


class NetworkMethods(Recorded):
    """This class holds the functions of networks as methods of `Tensor`."""

    __slots__ = ()

    celu: Final = activation_functions.celu
    glu: Final = activation_functions.glu
    gumbel_softmax: Final = activation_functions.gumbel_softmax
    hardshrink: Final = activation_functions.hardshrink
    hardsigmoid: Final = activation_functions.hardsigmoid
    hardswish: Final = activation_functions.hardswish
    mish: Final = activation_functions.mish
    prelu: Final = activation_functions.prelu
    quick_gelu: Final = activation_functions.quick_gelu
    rrelu: Final = activation_functions.rrelu
    selu: Final = activation_functions.selu
    softmin: Final = activation_functions.softmin
    softshrink: Final = activation_functions.softshrink
    softsign: Final = activation_functions.softsign
    swish: Final = activation_functions.swish
    tanhshrink: Final = activation_functions.tanhshrink
    threshold: Final = activation_functions.threshold

    conv1d: Final = convolution_functions.conv1d
    conv2d: Final = convolution_functions.conv2d
    conv3d: Final = convolution_functions.conv3d
    conv_transpose1d: Final = convolution_functions.conv_transpose1d
    conv_transpose2d: Final = convolution_functions.conv_transpose2d
    conv_transpose3d: Final = convolution_functions.conv_transpose3d

    max_pool1d: Final = pooling_functions.max_pool1d
    max_pool2d: Final = pooling_functions.max_pool2d
    max_pool3d: Final = pooling_functions.max_pool3d
    avg_pool1d: Final = pooling_functions.avg_pool1d
    avg_pool2d: Final = pooling_functions.avg_pool2d
    avg_pool3d: Final = pooling_functions.avg_pool3d
    adaptive_max_pool1d: Final = pooling_functions.adaptive_max_pool1d
    adaptive_max_pool2d: Final = pooling_functions.adaptive_max_pool2d
    adaptive_max_pool3d: Final = pooling_functions.adaptive_max_pool3d
    adaptive_avg_pool1d: Final = pooling_functions.adaptive_avg_pool1d
    adaptive_avg_pool2d: Final = pooling_functions.adaptive_avg_pool2d
    adaptive_avg_pool3d: Final = pooling_functions.adaptive_avg_pool3d
    lp_pool1d: Final = pooling_functions.lp_pool1d
    lp_pool2d: Final = pooling_functions.lp_pool2d
    lp_pool3d: Final = pooling_functions.lp_pool3d
    max_unpool1d: Final = pooling_functions.max_unpool1d
    max_unpool2d: Final = pooling_functions.max_unpool2d
    max_unpool3d: Final = pooling_functions.max_unpool3d
    im2col: Final = pooling_functions.unfold
    col2im: Final = pooling_functions.fold

    scaled_dot_product_attention: Final = attention.scaled_dot_product_attention
    dropout: Final = dropout.dropout
    interpolate: Final = interpolation.interpolate

    batchnorm: Final = normalization.batchnorm
    layernorm: Final = normalization.layernorm

    binary_crossentropy: Final = losses.binary_cross_entropy
    binary_crossentropy_logits: Final = losses.binary_cross_entropy_with_logits
    cross_entropy: Final = losses.cross_entropy
    nll_loss: Final = losses.nll_loss
    sparse_categorical_crossentropy: Final = losses.sparse_categorical_crossentropy
