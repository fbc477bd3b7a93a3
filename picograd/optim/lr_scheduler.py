"""Learning-rate schedules, where PyTorch's programs import them from."""

from picograd.nn.optim.lr_scheduler import *  # noqa: F403
from picograd.nn.optim.lr_scheduler import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from picograd.nn.optim.lr_scheduler import __all__ as SCHEDULES
from picograd.nn.optim.lr_scheduler import _LRScheduler as _LRScheduler

__all__ = list(SCHEDULES)
