"""The collector of garbage waits while a function runs, and is as it was afterwards."""

import gc

import pytest

from picograd import Tensor
from picograd.engine.collector import undisturbed


def test_it_waits_and_goes_on():
    assert undisturbed(lambda: gc.isenabled())() is False and gc.isenabled()

    @undisturbed
    def failing():
        raise ValueError

    with pytest.raises(ValueError):
        failing()
    assert gc.isenabled()


def test_who_paused_it_finds_it_paused():
    gc.disable()
    try:
        assert undisturbed(lambda: gc.isenabled())() is False and not gc.isenabled()
    finally:
        gc.enable()


def test_a_step_is_undisturbed():
    x = Tensor([1.0, 2.0], requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(gc.isenabled()))
    (x * x).sum().backward()
    assert seen == [False] and gc.isenabled() and x.grad.tolist() == [2.0, 4.0]


def test_an_interrupt_behind_the_pause_ends_it(monkeypatch):
    plain = gc.disable

    def interrupted():
        plain()
        raise KeyboardInterrupt

    monkeypatch.setattr(gc, "disable", interrupted)
    with pytest.raises(KeyboardInterrupt):
        undisturbed(list)()
    assert gc.isenabled()
