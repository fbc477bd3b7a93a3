"""Neural networks: modules, losses, optimizers, schedules, state files, data.

module, hooks, parameter, containers, parameter_containers: how a model holds its tensors. linear,
conv, pooling, norm, embedding, dropout, activations, shaping,
attention, transformer, recurrent: layers. functional*: functions; loss_modules: losses as modules.
init: initial values. optim, clip, grad_scaler, utils: training.
state, nested, torch_file: files. datasets: data. dataset_types, collate, loader: batches.
"""

from picograd.late_names import ELSEWHERE_IN_NN, find_in_nn, gather
from picograd.nn import functional, init, optim
from picograd.nn.optim import lr, lr_scheduler
from picograd.tensor.network.losses import binary_cross_entropy_with_logits, cross_entropy, nll_loss

# What this package shows, by the module that has it. Type checkers read `__init__.pyi`.
_NAMES = {
    "activations": (
        "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
        "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU",
        "Sigmoid", "SiLU", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign",
        "Tanh", "Tanhshrink", "Threshold",
    ),
    "adaptive_softmax": ("AdaptiveLogSoftmaxWithLoss",),
    "attention": ("MultiheadAttention",),
    "containers": ("ModuleDict", "ModuleList", "Sequential"),
    "conv": (
        "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    ),
    "distances": ("CosineSimilarity", "PairwiseDistance"),
    "dropout": (
        "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
    ),
    "embedding": ("Embedding", "EmbeddingBag"),
    "fractional_pooling": ("FractionalMaxPool2d", "FractionalMaxPool3d"),
    "functional_losses": ("l1_loss", "mse_loss"),
    "lazy": (
        "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d",
        "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
        "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
    ),
    "linear": ("Bilinear", "Linear"),
    "loss_modules": (
        "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "CTCLoss",
        "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss",
        "LinearCrossEntropyLoss", "MarginRankingLoss", "MSELoss", "MultiLabelMarginLoss",
        "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
        "SmoothL1Loss", "SoftMarginLoss",
        "TripletMarginLoss", "TripletMarginWithDistanceLoss",
    ),
    "module": ("Module",),
    "norm": (
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CrossMapLRN2d", "GroupNorm", "InstanceNorm1d",
        "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm",
        "SyncBatchNorm",
    ),
    "parameter": ("Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"),
    "parameter_containers": ("ParameterDict", "ParameterList"),
    "pooling": (
        "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d",
        "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
        "MaxUnpool3d",
    ),
    "recurrent": ("GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"),
    "shaping": (
        "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d",
        "ConstantPad2d", "ConstantPad3d", "Flatten", "Fold", "Identity", "PixelShuffle",
        "PixelUnshuffle", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
        "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Unflatten", "Unfold",
        "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d",
        "ZeroPad3d",
    ),
    "transformer": (
        "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
        "TransformerEncoderLayer",
    ),
}  # fmt: skip

globals().update(gather(__name__, _NAMES))
__all__ = [
    "binary_cross_entropy_with_logits", "cross_entropy", "datasets", "functional", "init", "lr",
    "lr_scheduler", "nll_loss", "optim", "parallel", "transforms", "utils",
]  # fmt: skip
for _module, _names in (_NAMES | ELSEWHERE_IN_NN).items():
    __all__ += _names if _module != "torch_names" else ()


def __getattr__(name: str) -> object:
    """Import what is for data, files and several devices at its first use."""
    found = globals()[name] = find_in_nn(name)
    return found


def __dir__() -> list[str]:
    """List all names, those too that are imported at their first use."""
    return sorted({*globals(), *__all__})
