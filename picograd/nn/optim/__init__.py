"""Optimizers with PyTorch's arithmetic, options and state dicts; one file a family.

base: steps and state dicts; group: options, what of them lives on the device, and the
layout of a state dict; lr, lr_cyclic: schedules, all of them in `lr_scheduler`; the
other files: formulas.
"""

from picograd.nn.optim import lr, lr_scheduler
from picograd.nn.optim.adam import LAMB, Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from picograd.nn.optim.adaptive import Adadelta, Adafactor, Adagrad, RMSprop
from picograd.nn.optim.base import Optimizer
from picograd.nn.optim.group import ParameterGroup
from picograd.nn.optim.lbfgs import LBFGS
from picograd.nn.optim.muon import Muon
from picograd.nn.optim.sgd import ASGD, SGD, Lion, Rprop

__all__ = [
    "ASGD", "LAMB", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad",
    "Adam", "AdamW", "Adamax", "Lion", "Muon", "NAdam", "Optimizer",
    "ParameterGroup", "RAdam", "RMSprop", "Rprop", "SparseAdam",
    "lr", "lr_scheduler",
]  # fmt: skip
