"""Memory whose content is undefined holds NaN or large numbers: reading it gives wrong values."""

from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.dtype import DType, uint8
from picograd.engine import sizes
from picograd.helpers import product
from picograd.runtime.device import Device


def poison(monkeypatch: Any, device: Device) -> None:
    """Fill all memory that is allocated, and what lies beyond a size."""
    lay_out, allocate = sizes.laid_out, device.allocate

    def laid_out(buffer: Any, pair: Any, origin: str) -> Any:
        made = lay_out(buffer, pair, origin)
        is_longer = pair is not None and product(pair[0]) < product(pair[1])
        if is_longer and made.device == device.name:
            array = device.copy_out(made).view(made.dtype.storage)[: product(pair[1])]
            beyond = np.ones(pair[1], bool)
            beyond[tuple(slice(size) for size in pair[0])] = False
            wrong = np.nan if array.dtype.kind == "f" else wrong_number(made.dtype)
            array[beyond.reshape(-1)] = wrong
            device.copy_in(made, array)
        return made

    def allocate_poisoned(nbytes: int) -> Any:
        block = allocate(nbytes)  # NaN, -1: of results, temporaries and parts
        buffer = Buffer(device.name, uint8, nbytes, block.address, block)
        device.copy_in(buffer, np.full(nbytes, 0xFF, np.uint8))
        return block

    monkeypatch.setattr(device, "allocate", allocate_poisoned)
    monkeypatch.setattr(sizes, "laid_out", laid_out)


def wrong_number(dtype: DType) -> int:
    """A number that no test computes; an index that exists in no array."""
    return 1 if dtype.kind == "bool" or dtype.bits < 32 else 1 << 30
