"""Written by docs/stubs.py: the names of picograd.nn."""

from picograd.nn import datasets as datasets
from picograd.nn import functional as functional
from picograd.nn import init as init
from picograd.nn import optim as optim
from picograd.nn import parallel as parallel
from picograd.nn import transforms as transforms
from picograd.nn import utils as utils
from picograd.nn.activations import CELU as CELU
from picograd.nn.activations import ELU as ELU
from picograd.nn.activations import GELU as GELU
from picograd.nn.activations import GLU as GLU
from picograd.nn.activations import SELU as SELU
from picograd.nn.activations import Hardshrink as Hardshrink
from picograd.nn.activations import Hardsigmoid as Hardsigmoid
from picograd.nn.activations import Hardswish as Hardswish
from picograd.nn.activations import Hardtanh as Hardtanh
from picograd.nn.activations import LeakyReLU as LeakyReLU
from picograd.nn.activations import LogSigmoid as LogSigmoid
from picograd.nn.activations import LogSoftmax as LogSoftmax
from picograd.nn.activations import Mish as Mish
from picograd.nn.activations import PReLU as PReLU
from picograd.nn.activations import ReLU as ReLU
from picograd.nn.activations import ReLU6 as ReLU6
from picograd.nn.activations import RReLU as RReLU
from picograd.nn.activations import Sigmoid as Sigmoid
from picograd.nn.activations import SiLU as SiLU
from picograd.nn.activations import Softmax as Softmax
from picograd.nn.activations import Softmax2d as Softmax2d
from picograd.nn.activations import Softmin as Softmin
from picograd.nn.activations import Softplus as Softplus
from picograd.nn.activations import Softshrink as Softshrink
from picograd.nn.activations import Softsign as Softsign
from picograd.nn.activations import Tanh as Tanh
from picograd.nn.activations import Tanhshrink as Tanhshrink
from picograd.nn.activations import Threshold as Threshold
from picograd.nn.adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from picograd.nn.attention import MultiheadAttention as MultiheadAttention
from picograd.nn.collate import default_collate as default_collate
from picograd.nn.containers import ModuleDict as ModuleDict
from picograd.nn.containers import ModuleList as ModuleList
from picograd.nn.containers import Sequential as Sequential
from picograd.nn.conv import Conv1d as Conv1d
from picograd.nn.conv import Conv2d as Conv2d
from picograd.nn.conv import Conv3d as Conv3d
from picograd.nn.conv import ConvTranspose1d as ConvTranspose1d
from picograd.nn.conv import ConvTranspose2d as ConvTranspose2d
from picograd.nn.conv import ConvTranspose3d as ConvTranspose3d
from picograd.nn.dataset_types import ArrayDataset as ArrayDataset
from picograd.nn.dataset_types import BatchSampler as BatchSampler
from picograd.nn.dataset_types import ChainDataset as ChainDataset
from picograd.nn.dataset_types import ConcatDataset as ConcatDataset
from picograd.nn.dataset_types import Dataset as Dataset
from picograd.nn.dataset_types import IterableDataset as IterableDataset
from picograd.nn.dataset_types import RandomSampler as RandomSampler
from picograd.nn.dataset_types import Sampler as Sampler
from picograd.nn.dataset_types import SequentialSampler as SequentialSampler
from picograd.nn.dataset_types import StackDataset as StackDataset
from picograd.nn.dataset_types import Subset as Subset
from picograd.nn.dataset_types import SubsetRandomSampler as SubsetRandomSampler
from picograd.nn.dataset_types import TensorDataset as TensorDataset
from picograd.nn.dataset_types import WeightedRandomSampler as WeightedRandomSampler
from picograd.nn.dataset_types import random_split as random_split
from picograd.nn.distances import CosineSimilarity as CosineSimilarity
from picograd.nn.distances import PairwiseDistance as PairwiseDistance
from picograd.nn.dropout import AlphaDropout as AlphaDropout
from picograd.nn.dropout import Dropout as Dropout
from picograd.nn.dropout import Dropout1d as Dropout1d
from picograd.nn.dropout import Dropout2d as Dropout2d
from picograd.nn.dropout import Dropout3d as Dropout3d
from picograd.nn.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from picograd.nn.embedding import Embedding as Embedding
from picograd.nn.embedding import EmbeddingBag as EmbeddingBag
from picograd.nn.fractional_pooling import FractionalMaxPool2d as FractionalMaxPool2d
from picograd.nn.fractional_pooling import FractionalMaxPool3d as FractionalMaxPool3d
from picograd.nn.functional_losses import l1_loss as l1_loss
from picograd.nn.functional_losses import mse_loss as mse_loss
from picograd.nn.lazy import LazyBatchNorm1d as LazyBatchNorm1d
from picograd.nn.lazy import LazyBatchNorm2d as LazyBatchNorm2d
from picograd.nn.lazy import LazyBatchNorm3d as LazyBatchNorm3d
from picograd.nn.lazy import LazyConv1d as LazyConv1d
from picograd.nn.lazy import LazyConv2d as LazyConv2d
from picograd.nn.lazy import LazyConv3d as LazyConv3d
from picograd.nn.lazy import LazyConvTranspose1d as LazyConvTranspose1d
from picograd.nn.lazy import LazyConvTranspose2d as LazyConvTranspose2d
from picograd.nn.lazy import LazyConvTranspose3d as LazyConvTranspose3d
from picograd.nn.lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from picograd.nn.lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from picograd.nn.lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
from picograd.nn.lazy import LazyLinear as LazyLinear
from picograd.nn.linear import Bilinear as Bilinear
from picograd.nn.linear import Linear as Linear
from picograd.nn.loader import DataLoader as DataLoader
from picograd.nn.loader import WorkerInfo as WorkerInfo
from picograd.nn.loader import get_worker_info as get_worker_info
from picograd.nn.loss_modules import BCELoss as BCELoss
from picograd.nn.loss_modules import BCEWithLogitsLoss as BCEWithLogitsLoss
from picograd.nn.loss_modules import CosineEmbeddingLoss as CosineEmbeddingLoss
from picograd.nn.loss_modules import CrossEntropyLoss as CrossEntropyLoss
from picograd.nn.loss_modules import CTCLoss as CTCLoss
from picograd.nn.loss_modules import GaussianNLLLoss as GaussianNLLLoss
from picograd.nn.loss_modules import HingeEmbeddingLoss as HingeEmbeddingLoss
from picograd.nn.loss_modules import HuberLoss as HuberLoss
from picograd.nn.loss_modules import KLDivLoss as KLDivLoss
from picograd.nn.loss_modules import L1Loss as L1Loss
from picograd.nn.loss_modules import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from picograd.nn.loss_modules import MarginRankingLoss as MarginRankingLoss
from picograd.nn.loss_modules import MSELoss as MSELoss
from picograd.nn.loss_modules import MultiLabelMarginLoss as MultiLabelMarginLoss
from picograd.nn.loss_modules import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from picograd.nn.loss_modules import MultiMarginLoss as MultiMarginLoss
from picograd.nn.loss_modules import NLLLoss as NLLLoss
from picograd.nn.loss_modules import NLLLoss2d as NLLLoss2d
from picograd.nn.loss_modules import PoissonNLLLoss as PoissonNLLLoss
from picograd.nn.loss_modules import SmoothL1Loss as SmoothL1Loss
from picograd.nn.loss_modules import SoftMarginLoss as SoftMarginLoss
from picograd.nn.loss_modules import TripletMarginLoss as TripletMarginLoss
from picograd.nn.loss_modules import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from picograd.nn.module import Module as Module
from picograd.nn.norm import BatchNorm1d as BatchNorm1d
from picograd.nn.norm import BatchNorm2d as BatchNorm2d
from picograd.nn.norm import BatchNorm3d as BatchNorm3d
from picograd.nn.norm import CrossMapLRN2d as CrossMapLRN2d
from picograd.nn.norm import GroupNorm as GroupNorm
from picograd.nn.norm import InstanceNorm1d as InstanceNorm1d
from picograd.nn.norm import InstanceNorm2d as InstanceNorm2d
from picograd.nn.norm import InstanceNorm3d as InstanceNorm3d
from picograd.nn.norm import LayerNorm as LayerNorm
from picograd.nn.norm import LocalResponseNorm as LocalResponseNorm
from picograd.nn.norm import RMSNorm as RMSNorm
from picograd.nn.norm import SyncBatchNorm as SyncBatchNorm
from picograd.nn.optim import lr as lr
from picograd.nn.optim import lr_scheduler as lr_scheduler
from picograd.nn.parallel import DataParallel as DataParallel
from picograd.nn.parameter import Buffer as Buffer
from picograd.nn.parameter import Parameter as Parameter
from picograd.nn.parameter import UninitializedBuffer as UninitializedBuffer
from picograd.nn.parameter import UninitializedParameter as UninitializedParameter
from picograd.nn.parameter_containers import ParameterDict as ParameterDict
from picograd.nn.parameter_containers import ParameterList as ParameterList
from picograd.nn.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from picograd.nn.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from picograd.nn.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from picograd.nn.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from picograd.nn.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from picograd.nn.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from picograd.nn.pooling import AvgPool1d as AvgPool1d
from picograd.nn.pooling import AvgPool2d as AvgPool2d
from picograd.nn.pooling import AvgPool3d as AvgPool3d
from picograd.nn.pooling import LPPool1d as LPPool1d
from picograd.nn.pooling import LPPool2d as LPPool2d
from picograd.nn.pooling import LPPool3d as LPPool3d
from picograd.nn.pooling import MaxPool1d as MaxPool1d
from picograd.nn.pooling import MaxPool2d as MaxPool2d
from picograd.nn.pooling import MaxPool3d as MaxPool3d
from picograd.nn.pooling import MaxUnpool1d as MaxUnpool1d
from picograd.nn.pooling import MaxUnpool2d as MaxUnpool2d
from picograd.nn.pooling import MaxUnpool3d as MaxUnpool3d
from picograd.nn.recurrent import GRU as GRU
from picograd.nn.recurrent import LSTM as LSTM
from picograd.nn.recurrent import RNN as RNN
from picograd.nn.recurrent import GRUCell as GRUCell
from picograd.nn.recurrent import LSTMCell as LSTMCell
from picograd.nn.recurrent import RNNCell as RNNCell
from picograd.nn.shaping import ChannelShuffle as ChannelShuffle
from picograd.nn.shaping import CircularPad1d as CircularPad1d
from picograd.nn.shaping import CircularPad2d as CircularPad2d
from picograd.nn.shaping import CircularPad3d as CircularPad3d
from picograd.nn.shaping import ConstantPad1d as ConstantPad1d
from picograd.nn.shaping import ConstantPad2d as ConstantPad2d
from picograd.nn.shaping import ConstantPad3d as ConstantPad3d
from picograd.nn.shaping import Flatten as Flatten
from picograd.nn.shaping import Fold as Fold
from picograd.nn.shaping import Identity as Identity
from picograd.nn.shaping import PixelShuffle as PixelShuffle
from picograd.nn.shaping import PixelUnshuffle as PixelUnshuffle
from picograd.nn.shaping import ReflectionPad1d as ReflectionPad1d
from picograd.nn.shaping import ReflectionPad2d as ReflectionPad2d
from picograd.nn.shaping import ReflectionPad3d as ReflectionPad3d
from picograd.nn.shaping import ReplicationPad1d as ReplicationPad1d
from picograd.nn.shaping import ReplicationPad2d as ReplicationPad2d
from picograd.nn.shaping import ReplicationPad3d as ReplicationPad3d
from picograd.nn.shaping import Unflatten as Unflatten
from picograd.nn.shaping import Unfold as Unfold
from picograd.nn.shaping import Upsample as Upsample
from picograd.nn.shaping import UpsamplingBilinear2d as UpsamplingBilinear2d
from picograd.nn.shaping import UpsamplingNearest2d as UpsamplingNearest2d
from picograd.nn.shaping import ZeroPad1d as ZeroPad1d
from picograd.nn.shaping import ZeroPad2d as ZeroPad2d
from picograd.nn.shaping import ZeroPad3d as ZeroPad3d
from picograd.nn.state import load as load
from picograd.nn.state import save as save
from picograd.nn.torch_file import load_torch as load_torch
from picograd.nn.transformer import Transformer as Transformer
from picograd.nn.transformer import TransformerDecoder as TransformerDecoder
from picograd.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from picograd.nn.transformer import TransformerEncoder as TransformerEncoder
from picograd.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from picograd.tensor.network.losses import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from picograd.tensor.network.losses import cross_entropy as cross_entropy
from picograd.tensor.network.losses import nll_loss as nll_loss

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveLogSoftmaxWithLoss",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "ArrayDataset",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "BatchSampler",
    "Bilinear",
    "Buffer",
    "CTCLoss",
    "ChainDataset",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConcatDataset",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "CrossMapLRN2d",
    "DataLoader",
    "DataParallel",
    "Dataset",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "Fold",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "GRUCell",
    "GaussianNLLLoss",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "IterableDataset",
    "KLDivLoss",
    "L1Loss",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "LSTMCell",
    "LayerNorm",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LeakyReLU",
    "Linear",
    "LinearCrossEntropyLoss",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultiheadAttention",
    "NLLLoss",
    "NLLLoss2d",
    "PReLU",
    "PairwiseDistance",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "PixelShuffle",
    "PixelUnshuffle",
    "PoissonNLLLoss",
    "RMSNorm",
    "RNNCell",
    "RReLU",
    "RandomSampler",
    "ReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Sampler",
    "Sequential",
    "SequentialSampler",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "SyncBatchNorm",
    "Tanh",
    "Tanhshrink",
    "TensorDataset",
    "Threshold",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "Unflatten",
    "Unfold",
    "UninitializedBuffer",
    "UninitializedParameter",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "WeightedRandomSampler",
    "WorkerInfo",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "datasets",
    "default_collate",
    "functional",
    "get_worker_info",
    "init",
    "l1_loss",
    "load",
    "load_torch",
    "lr",
    "lr_scheduler",
    "mse_loss",
    "nll_loss",
    "optim",
    "parallel",
    "random_split",
    "save",
    "transforms",
    "utils",
]
