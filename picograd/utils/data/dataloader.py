"""Loaders, where PyTorch's programs import them from."""

from collections.abc import Callable
from typing import Any

from picograd.nn.collate import default_collate, default_convert
from picograd.nn.loader import DataLoader, get_worker_info

# What PyTorch's file of this name imports, and programs import from it.
from picograd.utils.data.dataset import *  # noqa: F403
from picograd.utils.data.sampler import *  # noqa: F403

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_collate_fn_t = _worker_init_fn_t = Callable[..., Any]  # annotations of PyTorch's programs


class _BaseDataLoaderIter:
    """This class stands for PyTorch's iterators of loaders, which programs extend: none is one."""


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """This class stands for iterators without workers."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """This class stands for iterators with workers."""
