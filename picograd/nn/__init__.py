"""Neural networks: modules, losses, optimizers, schedules, state files, data.

module, parameter, containers: how a model holds its tensors. linear, conv, pooling, norm,
embedding, dropout, activations: layers. losses, functional: the same as functions. init: initial
values. optim, lr: training. state: files. datasets, loader: MNIST and batches.
"""

from picograd.nn import datasets, functional, init, lr, optim
from picograd.nn.activations import (
    GELU,
    Flatten,
    Identity,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)
from picograd.nn.containers import ModuleDict, ModuleList, Sequential
from picograd.nn.conv import Conv1d, Conv2d
from picograd.nn.dropout import Dropout
from picograd.nn.embedding import Embedding
from picograd.nn.linear import Linear
from picograd.nn.loader import DataLoader
from picograd.nn.losses import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    binary_cross_entropy_with_logits,
    cross_entropy,
    l1_loss,
    mse_loss,
    nll_loss,
)
from picograd.nn.module import Module
from picograd.nn.norm import BatchNorm1d, BatchNorm2d, LayerNorm
from picograd.nn.parameter import Parameter
from picograd.nn.pooling import AvgPool2d, MaxPool2d
from picograd.nn.state import load, save

__all__ = [
    "GELU",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "DataLoader",
    "Dropout",
    "Embedding",
    "Flatten",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "datasets",
    "functional",
    "init",
    "l1_loss",
    "load",
    "lr",
    "mse_loss",
    "nll_loss",
    "optim",
    "save",
]
