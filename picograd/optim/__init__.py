"""Optimizers and schedules under torch.optim's names: those of `picograd.nn.optim`."""

from picograd.nn.optim import *  # noqa: F403
from picograd.nn.optim import __all__ as OPTIMIZERS
from picograd.nn.optim import lr as lr
from picograd.optim import lr_scheduler as lr_scheduler  # type: ignore[no-redef]
from picograd.optim import optimizer as optimizer
from picograd.optim import swa_utils as swa_utils

__all__ = list(OPTIMIZERS)
