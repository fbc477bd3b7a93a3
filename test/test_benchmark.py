"""Timers of statements: what they compute, and what measurements tell."""

import pytest

import picograd
from picograd.benchmark import Compare, Measurement, TaskSpec, Timer
from picograd.errors import ValueRangeError
from picograd.utils import benchmark


@pytest.mark.parametrize("statement", ["x.add_(1)", "y = x.add_(1)", "change()"])
def test_every_run_is_computed(statement: str) -> None:
    x = picograd.zeros(3)
    names = {"x": x, "change": lambda: x.add_(1).sum() and None}
    found = Timer(statement, setup="import math; math.pi", globals=names).timeit(5)
    assert found.number_per_run == 5 and len(found.raw_times) == 1 and found.median > 0
    assert x.tolist() == [6.0] * 3


def test_statistics_are_those_of_pytorch() -> None:
    torch_benchmark = pytest.importorskip("torch.utils.benchmark")
    times = [0.004, 0.001, 0.002, 0.007, 0.003]
    ours = Measurement(2, times, TaskSpec("f(x)", label="f", sub_label="small"))
    spec = torch_benchmark.utils.common.TaskSpec("f(x)", "pass", label="f", sub_label="small")
    theirs = torch_benchmark.Measurement(2, times, spec)
    for name in ("median", "mean", "iqr"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name))
    assert ours.times == theirs.times and ours.title == theirs.title
    assert "  Median: 1.50 ms\n" in repr(ours) and "5 measurements, 2 runs" in repr(ours)


def test_runs_until_the_time_is_up() -> None:
    found = Timer("1 + 1").blocked_autorange(min_run_time=0.002)
    assert sum(found.raw_times) >= 0.002
    table = str(Compare([found, Timer("2", sub_label="two", description="b").timeit(1)]))
    assert table.splitlines()[0] == "[1 + 1]" and "two (1)" in table
    with pytest.raises(ValueRangeError, match="Python"):
        benchmark.Timer("x", language="c++")
