"""The collector of garbage waits while a function runs, and is as it was afterwards."""

import gc
import subprocess
import sys

import pytest

from picograd import Tensor
from picograd.engine import collector
from picograd.engine.collector import undisturbed


def is_paused():
    return gc.get_threshold()[0] == collector.PAUSED


def test_it_waits_and_goes_on():
    before = gc.get_threshold()
    assert undisturbed(is_paused)() and gc.get_threshold() == before

    @undisturbed
    def failing():
        raise ValueError

    with pytest.raises(ValueError):
        failing()
    assert gc.get_threshold() == before and gc.isenabled()


def test_who_paused_it_finds_it_paused():
    gc.disable()
    try:
        assert undisturbed(gc.isenabled)() is False and not gc.isenabled()
    finally:
        gc.enable()


def test_a_step_is_undisturbed():
    x = Tensor([1.0, 2.0], requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(is_paused()))
    (x * x).sum().backward()
    assert seen == [True] and not is_paused() and x.grad.tolist() == [2.0, 4.0]


def test_what_a_hook_asks_of_the_collector_stays():
    x = Tensor([1.0, 2.0], requires_grad=True)
    before = gc.get_threshold()
    x.register_hook(lambda grad: gc.disable())
    try:
        (x * x).sum().backward()
        assert not gc.isenabled() and gc.get_threshold() == before
        gc.enable()
        undisturbed(gc.set_threshold)(300, 4, 5)
        assert gc.isenabled() and gc.get_threshold() == (300, 4, 5)
    finally:
        gc.enable()
        gc.set_threshold(*before)


@pytest.mark.parametrize("name", ["set_threshold", "get_count"])
def test_an_interrupt_beside_the_pause_ends_it(monkeypatch, name):
    plain, before = getattr(gc, name), gc.get_threshold()

    def interrupted(*given):
        plain(*given)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(gc, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        undisturbed(list)()
    assert gc.get_threshold() == before


@pytest.fixture
def look(monkeypatch):
    """A pace, and what lets it see a look at all objects: after some seconds, for some."""
    gc.set_threshold(700, 10, 10)
    clock, counts = [0.0], [0, 0, 11]
    monkeypatch.setattr(collector.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(collector.gc, "get_count", lambda: tuple(counts))
    pace = collector.Pace()

    def pass_by(seconds, taken, is_due=True):
        counts[2] = gc.get_threshold()[2] + is_due
        clock[0] += seconds
        pace("start", {"generation": 2})
        clock[0] += taken
        pace("stop", {"generation": 2})
        return gc.get_threshold()

    yield pass_by
    gc.set_threshold(700, 10, 10)


def test_looks_at_all_objects_take_a_share_of_the_time(look):
    assert look(0.75, 0.25) == (700, 10, 125)
    assert look(6.0, 0.25) == (700, 10, 250)
    assert look(12.25, 0.25) == (700, 10, 250)
    assert look(1023.75, 0.25) == (700, 10, 10)  # never more often than Python
    assert look(0.0, 5.0) == (700, 10, 500)
    assert look(0.0, 5.0) == (700, 10, collector.RAREST)


def test_a_look_that_was_asked_for_changes_no_pace(look):
    assert look(0.0, 9.0, is_due=False) == (700, 10, 10)
    assert look(9.0, 1.0) == (700, 10, 26)  # of 19 seconds


def test_a_threshold_that_was_set_is_kept(look):
    gc.set_threshold(500, 5, 5)
    assert look(0.0, 9.0) == (500, 5, 5)


def test_young_objects_of_a_step_are_looked_at_once(look, monkeypatch):
    pace = collector.Pace()
    pace.make_room(4000)
    pace.make_room(6000)
    assert gc.get_threshold() == (7500, 10, 10)
    pace.make_room(60_000)
    pace.make_room(60_000)
    assert gc.get_threshold() == (collector.YOUNGEST, 10, 10)
    gc.set_threshold(800, 9, 8)
    pace.make_room(4000)
    assert gc.get_threshold() == (800, 9, 8)


def test_many_objects_that_a_function_made_make_room(look, monkeypatch):
    monkeypatch.setattr(collector, "PACE", [collector.Pace()])
    monkeypatch.setattr(collector.gc, "get_count", lambda: (2000, 0, 0))
    assert undisturbed(lambda: 3)() == 3 and gc.get_threshold()[0] == 2500


def test_thresholds_that_were_set_before_are_kept(look):
    gc.set_threshold(123, 5, 7)
    pace = collector.Pace()
    pace.make_room(4000)
    assert gc.get_threshold() == (123, 5, 7)
    pace("start", {"generation": 2})
    pace("stop", {"generation": 2})
    assert gc.get_threshold() == (123, 5, 7)


INTERRUPTED = """
import gc, signal, time
import picograd

class Alarm(Exception):
    pass

def alarm(*_):
    raise Alarm("late")

picograd.ones(2).tolist()
held = [[each] for each in range(1_000_000)]
signal.signal(signal.SIGALRM, alarm)
for number, kind, error in ((signal.SIGALRM, "real", Alarm), (signal.SIGINT, "int", BaseException)):
    for _ in range(3):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            if number == signal.SIGINT:
                signal.signal(signal.SIGALRM, signal.default_int_handler)
            gc.collect()  # the signal comes meanwhile
            end = time.monotonic() + 5
            while time.monotonic() < end:
                pass
            print("lost")
        except error as caught:
            print(type(caught).__name__, *caught.args)
"""


def test_what_a_signal_raises_while_the_collector_looks_is_raised() -> None:
    """Ctrl-C, and the alarms of those who limit time."""
    command = [sys.executable, "-c", INTERRUPTED]
    found = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert found.stdout.split() == ["Alarm", "late"] * 3 + ["KeyboardInterrupt"] * 3, found.stderr
    assert "Exception ignored" not in found.stderr
