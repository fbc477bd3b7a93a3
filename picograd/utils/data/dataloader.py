"""Loaders, where PyTorch's programs import them from."""

from collections.abc import Callable
from typing import Any

from picograd.nn.collate import default_collate
from picograd.nn.loader import DataLoader

__all__ = ["DataLoader", "default_collate"]

_collate_fn_t = _worker_init_fn_t = Callable[..., Any]  # annotations of PyTorch's programs


class _BaseDataLoaderIter:
    """This class stands for PyTorch's iterators of loaders, which programs extend: none is one."""


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """This class stands for iterators without workers."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """This class stands for iterators with workers."""
