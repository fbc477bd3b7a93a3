"""Layers that differ in data alone: a class says what is its own in its first line."""

from types import FunctionType
from typing import Any

from picograd.nn.module import Module


class Family(Module):
    """This class is the base of such layers: `class Conv2d(Conv, axes=2)`.

    What is named there becomes an attribute of the class; a function takes no `self`.
    """

    def __init_subclass__(cls, **own: Any) -> None:
        """Take on what the class says of itself."""
        super().__init_subclass__()
        for name, each in own.items():
            setattr(cls, name, staticmethod(each) if isinstance(each, FunctionType) else each)
