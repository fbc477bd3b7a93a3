"""Futures: what a thread sets, others wait for."""

from threading import Thread

import pytest

import picograd
from picograd.errors import StateError
from picograd.futures import Future, collect_all, wait_all


def test_wait_waits_for_a_thread() -> None:
    future: Future[int] = Future()
    doubled = future.then(lambda done: done.value() * 2)
    assert not future.done() and not doubled.done()
    thread = Thread(target=future.set_result, args=(4,))
    thread.start()
    assert doubled.wait() == 8 and future.wait() == 4 and future.done()
    thread.join()


def test_error_is_raised_where_it_is_read() -> None:
    future: Future[int] = Future()
    after = future.then(lambda done: done.value() + 1)
    future.set_exception(KeyError("lost"))
    for each in (future, after):
        with pytest.raises(KeyError, match="lost"):
            each.wait()


def test_value_is_set_once() -> None:
    future: Future[int] = Future()
    with pytest.raises(StateError, match="not set yet"):
        future.value()
    future.set_result(1)
    with pytest.raises(StateError, match="set already"):
        future.set_result(2)


def test_forked_calls_are_done() -> None:
    x = picograd.ones(2, requires_grad=True)
    forked = [picograd.jit.fork(lambda a, by: a * by, x, by=2.0) for _ in range(2)]
    assert [each.done() for each in forked] == [True, True]
    sum(picograd.jit.wait(each) for each in forked).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    assert [each.wait() is each.value() for each in collect_all(forked).wait()] == [True, True]
    assert len(wait_all(forked)) == 2
