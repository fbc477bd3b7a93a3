"""Written by docs/stubs.py: the functions of picograd.nn.functional."""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.nn.fractional_pooling import Ratios
from picograd.nn.functional_losses import Lengths
from picograd.tensor.core.annotations import DTypeLike, Scalar, Sizes, Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "batch_normalize",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "grouped_mm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "normalize_channels",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

def adaptive_avg_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, out: Any = None
) -> Tensor: ...
def adaptive_avg_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, out: Any = None
) -> Tensor: ...
def adaptive_avg_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, out: Any = None
) -> Tensor: ...
def adaptive_max_pool1d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def adaptive_max_pool2d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def adaptive_max_pool3d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def affine_grid(
    input: Tensor, size: Sequence[int], align_corners: bool | None = False, *, out: Any = None
) -> Tensor: ...
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
    *,
    out: Any = None,
) -> Tensor: ...
def batch_normalize(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, *, out: Any = None
) -> tuple[Tensor, Tensor, Tensor]: ...
def bilinear(
    input: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None
) -> Tensor: ...
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def celu(
    input: Tensor, alpha: float = 1.0, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def celu_(
    input: Tensor, alpha: float = 1.0, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def channel_shuffle(input: Tensor, groups: int, *, out: Any = None) -> Tensor: ...
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv_tbc(
    input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0, *, out: Any = None
) -> Tensor: ...
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def cosine_embedding_loss(
    input: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def cosine_similarity(
    input: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-08, *, out: Any = None
) -> Tensor: ...
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    out: Any = None,
) -> Tensor: ...
def ctc_loss(
    input: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def elu_(input: Tensor, alpha: float = 1.0, *, out: Any = None) -> Tensor: ...
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
    *,
    out: Any = None,
) -> Any: ...
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
    *,
    out: Any = None,
) -> Any: ...
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-06,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def gelu(input: Tensor, approximate: str = "none", *, out: Any = None) -> Tensor: ...
def glu(input: Tensor, dim: int = -1, *, out: Any = None) -> Tensor: ...
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    *,
    out: Any = None,
) -> Tensor: ...
def grouped_mm(
    input: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DTypeLike | None = None,
    out: Any = None,
) -> Tensor: ...
def gumbel_softmax(
    input: Tensor,
    tau: float = 1.0,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    out: Any = None,
) -> Tensor: ...
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Any = None) -> Tensor: ...
def hardsigmoid(input: Tensor, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def hardswish(input: Tensor, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def hardtanh(
    input: Tensor,
    min_val: Scalar = -1.0,
    max_val: Scalar = 1.0,
    inplace: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def hardtanh_(
    input: Tensor, min_val: Scalar = -1.0, max_val: Scalar = 1.0, *, out: Any = None
) -> Tensor: ...
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean", *, out: Any = None
) -> Tensor: ...
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
    *,
    out: Any = None,
) -> Tensor: ...
def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def kl_div(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    log_target: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    weight: Tensor | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def layer_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    *,
    out: Any = None,
) -> Tensor: ...
def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def leaky_relu_(input: Tensor, negative_slope: float = 0.01, *, out: Any = None) -> Tensor: ...
def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None
) -> Tensor: ...
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: object = None,
    out: Any = None,
) -> Tensor: ...
def local_response_norm(
    input: Tensor,
    size: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    k: float = 1.0,
    *,
    out: Any = None,
) -> Tensor: ...
def log_softmax(
    input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None, out: Any = None
) -> Tensor: ...
def logsigmoid(input: Tensor, *, out: Any = None) -> Tensor: ...
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def margin_ranking_loss(
    input: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def mish(input: Tensor, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def mse_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    weight: Tensor | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def multi_head_attention_forward(
    input: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    *,
    out: Any = None,
) -> tuple[Tensor, Tensor | None]: ...
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def multilabel_margin_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", *, out: Any = None
) -> Tensor: ...
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = -100,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, *, out: Any = None
) -> Tensor: ...
def normalize_channels(
    input: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    *,
    out: Any = None,
) -> Tensor: ...
def one_hot(input: Tensor, num_classes: int = -1, *, out: Any = None) -> Tensor: ...
def pad(
    input: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def pairwise_distance(
    input: Tensor,
    b: Tensor,
    p: float = 2.0,
    eps: float = 1e-06,
    keepdim: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def pdist(input: Tensor, p: float = 2.0, *, out: Any = None) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: int, *, out: Any = None) -> Tensor: ...
def pixel_unshuffle(input: Tensor, downscale_factor: int, *, out: Any = None) -> Tensor: ...
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-08,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor, *, out: Any = None) -> Tensor: ...
def relu(input: Tensor, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def relu_(input: Tensor, *, out: Any = None) -> Tensor: ...
def relu6(input: Tensor, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def rms_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def scaled_dot_product_attention(
    input: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def selu(input: Tensor, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def selu_(input: Tensor, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor: ...
def silu(input: Tensor, inplace: bool = False, *, out: Any = None) -> Tensor: ...
def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0, *, out: Any = None
) -> Tensor: ...
def soft_margin_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", *, out: Any = None
) -> Tensor: ...
def softmax(
    input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None, out: Any = None
) -> Tensor: ...
def softmin(
    input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None, out: Any = None
) -> Tensor: ...
def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Any = None
) -> Tensor: ...
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Any = None) -> Tensor: ...
def softsign(input: Tensor, *, out: Any = None) -> Tensor: ...
def tanh(input: Tensor, *, out: Any = None) -> Tensor: ...
def tanhshrink(input: Tensor, *, out: Any = None) -> Tensor: ...
def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def threshold_(
    input: Tensor, threshold: float, value: float, inplace: bool = False, *, out: Any = None
) -> Tensor: ...
def triplet_margin_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: str = "mean",
    *,
    out: Any = None,
) -> Tensor: ...
def triplet_margin_with_distance_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    out: Any = None,
) -> Tensor: ...
def unfold(
    input: Tensor,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def upsample_bilinear(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def upsample_nearest(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
