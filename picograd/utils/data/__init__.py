"""Data sets, samplers and loaders under torch.utils.data's names: those of `picograd.nn`."""

from picograd.utils.data import dataloader, dataset, sampler
from picograd.utils.data.dataloader import *  # noqa: F403
from picograd.utils.data.dataset import *  # noqa: F403
from picograd.utils.data.distributed import DistributedSampler
from picograd.utils.data.sampler import *  # noqa: F403

__all__ = ["DistributedSampler"]
__all__ += dataset.__all__
__all__ += dataloader.__all__
__all__ += sampler.__all__
