"""PyTorch's names for rewriting programs that concern programs which are not rewritten."""

from typing import TypeVar

T = TypeVar("T")


def wrap(fn_or_name: T) -> T:
    """Give a function back: nothing looks into it.

    >>> import picograd.fx
    >>> picograd.fx.wrap("len")
    'len'
    """
    return fn_or_name


class Proxy:
    """This class stands for values of programs that are rewritten: there are none."""
