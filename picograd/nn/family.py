"""Layers that differ in data alone: a class says what is its own in its first line."""

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from picograd.nn.module import Module
from picograd.tensor.core.subclasses import Public


class Looked:
    """This class finds a function at each call, in nn.functional if it is there.

    A program may replace it, and classes of users that derive from Tensor are asked there.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, module: Any, kind: Any = None) -> Any:
        function = self.function
        own = getattr(sys.modules[function.__module__], function.__name__, function)
        return getattr(sys.modules["picograd.nn.functional"], function.__name__, own)


class Family(Module):
    """This class is the base of such layers: `class Conv2d(Conv, axes=2)`.

    What is named there becomes an attribute of the class; a function takes no `self`.
    """

    def __init_subclass__(cls, **own: Any) -> None:
        """Take on what the class says of itself."""
        super().__init_subclass__()
        for name, each in own.items():
            setattr(cls, name, Looked(each) if isinstance(each, (FunctionType, Public)) else each)
