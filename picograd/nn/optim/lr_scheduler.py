"""All learning-rate schedules under the name PyTorch's users look for."""

from picograd.nn.optim import lr, lr_cyclic
from picograd.nn.optim.lr import *  # noqa: F403
from picograd.nn.optim.lr import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from picograd.nn.optim.lr import LRScheduler
from picograd.nn.optim.lr_cyclic import *  # noqa: F403

__all__ = sorted([*lr.__all__, *lr_cyclic.__all__])
_LRScheduler = LRScheduler  # the name that older programs derive from
