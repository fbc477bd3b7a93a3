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


class _DatasetKind:
    """This class names data sets that have an index, and those that are walked."""

    Map = 0
    Iterable = 1


class _BaseDataLoaderIter:
    """This class walks a loader, or what a program has made with the attributes of one.

    Of the latter each item of `dataset` goes through `collate_fn`, in the caller's thread.
    """

    def __init__(self, loader: Any) -> None:
        is_ours = isinstance(loader, DataLoader)
        self._walked = iter(loader if is_ours else map(loader.collate_fn, loader.dataset))

    def __iter__(self) -> "_BaseDataLoaderIter":
        return self

    def __next__(self) -> Any:
        return next(self._walked)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """This class stands for iterators without workers."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """This class stands for iterators with workers."""
