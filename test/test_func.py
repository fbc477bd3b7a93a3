"""The names of picograd.func are those of torch.func."""

import pytest

import picograd
from picograd import func


def test_names() -> None:
    torch = pytest.importorskip("torch")
    assert all(hasattr(torch.func, name) for name in func.__all__)
    assert all(hasattr(func, name) for name in func.__all__)
    assert picograd.vmap is func.vmap and picograd.func is func
