"""Learning-rate schedules, where PyTorch's programs import them from."""

from picograd.nn.optim.lr_scheduler import *  # noqa: F403
from picograd.nn.optim.lr_scheduler import LRScheduler
from picograd.nn.optim.lr_scheduler import __all__ as SCHEDULES

__all__ = list(SCHEDULES)
_LRScheduler = LRScheduler  # the name that older programs derive from
