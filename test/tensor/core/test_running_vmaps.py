"""The stack of running vmaps: draws, and what is forgotten afterwards."""

import pytest

from picograd import Tensor
from picograd.dtype import float32
from picograd.engine import pending
from picograd.engine.tracing import is_tracing
from picograd.graph.batch import Batch
from picograd.graph.node import Node, constant
from picograd.tensor.core import running_vmaps
from picograd.tensor.core.recording import wrap


def zeros(shape: tuple[int, ...]) -> Node:
    return constant(0, shape, float32, "cpu")


def test_draw_shapes() -> None:
    shapes = []

    def make(shape: tuple[int, ...]) -> Node:
        shapes.append(shape)
        return zeros(shape)

    assert running_vmaps.draw("rand", (2,), make).shape == (2,)
    with running_vmaps.level(Batch(5), "different"), running_vmaps.level(Batch(7), "same"):
        assert running_vmaps.draw("rand", (2,), make).shape == (2,)
        with running_vmaps.level(Batch(3), "different"):
            assert running_vmaps.draw("rand", (2,), make).shape == (2,)
    assert shapes == [(2,), (5, 2), (5, 3, 2)]


def test_block_traces_and_forgets() -> None:
    batch = Batch(2)
    with running_vmaps.level(batch, "error"):
        assert is_tracing()
        sample = wrap(batch.sample(zeros((2, 3))) + 1, False)
        other = Tensor.ones(3) + 1
    assert not is_tracing() and not running_vmaps.LEVELS
    assert pending.owner(sample.node) is None and pending.owner(other.node) is other


def test_failure_leaves_nothing_behind() -> None:
    with pytest.raises(ZeroDivisionError), running_vmaps.level(Batch(2), "error"):
        raise ZeroDivisionError
    assert not is_tracing() and not running_vmaps.LEVELS
