"""Methods of `Tensor` that are functions of networks: convolutions, activations, norms, losses.

`x.mish()` is `picograd.nn.functional.mish(x)`: one row binds one function, whose first argument is
the tensor. The class is a base of `Tensor` alone.
"""

from picograd.tensor import (
    activation_functions,
    attention,
    convolution_functions,
    dropout,
    losses,
    normalization,
    pooling_functions,
    sampling,
)
from picograd.tensor.recording import Recorded


class NetworkMethods(Recorded):
    """This class holds the functions of networks as methods of `Tensor`."""

    __slots__ = ()

    celu = activation_functions.celu
    glu = activation_functions.glu
    gumbel_softmax = activation_functions.gumbel_softmax
    hardshrink = activation_functions.hardshrink
    hardsigmoid = activation_functions.hardsigmoid
    hardswish = activation_functions.hardswish
    mish = activation_functions.mish
    prelu = activation_functions.prelu
    quick_gelu = activation_functions.quick_gelu
    rrelu = activation_functions.rrelu
    selu = activation_functions.selu
    softmin = activation_functions.softmin
    softshrink = activation_functions.softshrink
    softsign = activation_functions.softsign
    swish = activation_functions.swish
    tanhshrink = activation_functions.tanhshrink
    threshold = activation_functions.threshold

    conv1d = convolution_functions.conv1d
    conv2d = convolution_functions.conv2d
    conv3d = convolution_functions.conv3d
    conv_transpose1d = convolution_functions.conv_transpose1d
    conv_transpose2d = convolution_functions.conv_transpose2d
    conv_transpose3d = convolution_functions.conv_transpose3d

    max_pool1d = pooling_functions.max_pool1d
    max_pool2d = pooling_functions.max_pool2d
    max_pool3d = pooling_functions.max_pool3d
    avg_pool1d = pooling_functions.avg_pool1d
    avg_pool2d = pooling_functions.avg_pool2d
    avg_pool3d = pooling_functions.avg_pool3d
    adaptive_max_pool1d = pooling_functions.adaptive_max_pool1d
    adaptive_max_pool2d = pooling_functions.adaptive_max_pool2d
    adaptive_max_pool3d = pooling_functions.adaptive_max_pool3d
    adaptive_avg_pool1d = pooling_functions.adaptive_avg_pool1d
    adaptive_avg_pool2d = pooling_functions.adaptive_avg_pool2d
    adaptive_avg_pool3d = pooling_functions.adaptive_avg_pool3d
    lp_pool1d = pooling_functions.lp_pool1d
    lp_pool2d = pooling_functions.lp_pool2d
    lp_pool3d = pooling_functions.lp_pool3d
    max_unpool1d = pooling_functions.max_unpool1d
    max_unpool2d = pooling_functions.max_unpool2d
    max_unpool3d = pooling_functions.max_unpool3d
    im2col = pooling_functions.unfold
    col2im = pooling_functions.fold

    scaled_dot_product_attention = attention.scaled_dot_product_attention
    dropout = dropout.dropout
    interpolate = sampling.interpolate

    batchnorm = normalization.batchnorm
    layernorm = normalization.layernorm

    binary_crossentropy = losses.binary_cross_entropy
    binary_crossentropy_logits = losses.binary_cross_entropy_with_logits
    cross_entropy = losses.cross_entropy
    nll_loss = losses.nll_loss
    sparse_categorical_crossentropy = losses.sparse_categorical_crossentropy
