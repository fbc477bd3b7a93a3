"""One of everything that a checkpoint holds."""

from collections import Counter, OrderedDict

import numpy as np

import picograd
from picograd import Tensor, nn


def objects() -> dict:
    """Make one of everything a checkpoint holds."""
    transposed = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).T
    return {
        "dtypes": [Tensor([1, 0]).to(name) for name in ("bool", "int8", "uint16", "bfloat16")],
        "shapes": (transposed, Tensor(2.5), Tensor.zeros(0, 3)),
        "parameter": nn.Parameter(Tensor([1.0, 2.0])),
        "others": OrderedDict(epoch=3, name="a", none=None, rate=0.5, flag=True),
        "counts": Counter({2: 1}),
        "dtype": picograd.float16,
        "device": picograd.device("cpu"),
    }
