"""Calls in PyTorch's older order, numbers before tensors: `x.add_(0.9, y)`, `addmm(1, x, 1, a, b)`.

Optimizers written for it call so, and PyTorch still takes it. A call is in that order if its last
argument is a tensor and there are more arguments than tensors wanted.
"""

import functools
from collections.abc import Callable
from typing import Any

from picograd.tensor.core.recording import Recorded

PRODUCT = (3, ("beta", "alpha"))
# the tensors of a function, with the one it is a method of, and the names of the numbers
OLDER = {
    "add": (2, ("alpha",)),
    "add_": (2, ("alpha",)),
    "addbmm": PRODUCT,
    "addcdiv": (3, ("value",)),
    "addcmul": (3, ("value",)),
    "addmm": PRODUCT,
    "addmv": PRODUCT,
    "addr": PRODUCT,
    "baddbmm": PRODUCT,
    "sub": (2, ("alpha",)),
    "sub_": (2, ("alpha",)),
}


def taking_older(function: Callable[..., Any], name: str) -> Any:
    """Make a function that takes the older order too, if its name has one."""
    if name not in OLDER:
        return function
    count, words = OLDER[name]

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if len(args) > count and isinstance(args[-1], Recorded):
            numbers = [each for each in args if not isinstance(each, Recorded)]
            options = dict(zip(words, numbers)) | options
            args = tuple(each for each in args if isinstance(each, Recorded))
        return function(*args, **options)

    return call
