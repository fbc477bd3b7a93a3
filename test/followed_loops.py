"""Loops of a program without an optimizer, which tests let machine code follow."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from picograd import Tensor
from picograd.engine.native_calls import CODED
from picograd.tensor.core import following

Loop = Callable[[int, list[Any]], Any]


def start() -> list[Any]:
    drawn = np.random.default_rng(2)
    return [
        Tensor(drawn.standard_normal(shape).astype(np.float32)).realize()
        for shape in ((6, 6), (6,), (3, 6))
    ]


def carried_on(step: int, state: list[Any]) -> Any:
    """Values that live on, are read later, and are dropped in the middle."""
    vector = state[0] @ state[1]
    state[1] = vector / vector.norm()
    older = state[3] if len(state) > 3 else state[1]
    state[3:] = [state[1] * 2.0] if step % 3 else []
    first = (state[1] @ state[0] @ state[1]).item()
    return [first, older.sum().item(), (state[1] - older).abs().max().item()]


def reads(step: int, state: list[Any]) -> Any:
    """What is read decides what comes next."""
    x, found = state[0], []
    for number in range(4):
        x = (x @ state[0]).tanh() + 0.1 * number
        size = x.norm()
        found.append(size.item())
        if found[-1] > 2.0 + step % 2:
            x = x / size
    return [*found, x.mean().item()]


def pieces(step: int, state: list[Any]) -> Any:
    """Rows, columns and ranges that begin elsewhere each time, of memory and of what is made."""
    at = step % 5
    matrix = state[0] * 0.5
    row = state[0][at] + state[0][:, at] * state[0][-1 - at]
    part = state[0][at : at + 2].sum(0) + matrix[at] + matrix[at : at + 1, 1:].sum()
    last = state[2][..., 1:][step % 3]
    return [(row * part).tolist(), last.sum().item(), (matrix[1] + row).sum().item()]


def counted(name: str, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether machine code did what it was asked for."""
    native, found = getattr(CODED, name), []

    def noted(*given: Any) -> Any:
        result = native(*given)
        found.append(result is not None)
        return result

    inside = noted.__code__.replace(co_filename=following.__file__)  # no line of the program's
    noted.__code__ = inside
    monkeypatch.setattr(CODED, name, noted)
    return found
