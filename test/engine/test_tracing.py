"""The tracing flag: nested blocks, errors inside, and what is refused meanwhile."""

import pytest

import picograd
from picograd import Tensor
from picograd.engine.tracing import check_not_tracing, is_tracing, tracing
from picograd.errors import TraceError


def test_blocks_nest():
    assert not is_tracing()
    with tracing():
        with tracing():
            assert is_tracing()
        assert is_tracing()
    assert not is_tracing()


def test_an_error_ends_the_trace():
    with pytest.raises(ZeroDivisionError), tracing():
        raise ZeroDivisionError
    assert not is_tracing()


def test_values_are_refused():
    check_not_tracing("item")
    with tracing(), pytest.raises(TraceError, match=r"item: the value of a traced tensor"):
        check_not_tracing("item")


def test_the_error_names_the_line_of_the_program():
    def branch(x):
        return x if x.sum() > 0 else -x

    line = branch.__code__.co_firstlineno + 1
    for traced in (picograd.jit(branch), picograd.vmap(branch)):
        with pytest.raises(TraceError, match=rf"traces, at \S+test_tracing\.py:{line}\. Fix: "):
            traced(Tensor([[1.0, 2.0]]))
