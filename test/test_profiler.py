"""PyTorch's profiler shows the tables and writes the trace of picograd.profile."""

import json

import pytest

import picograd
from picograd.errors import StateError
from picograd.profiler import profile, record_function, schedule, tensorboard_trace_handler


def test_a_stretch_is_watched_and_handed_over(tmp_path) -> None:
    handler = tensorboard_trace_handler(tmp_path / "log")
    with profile(schedule=schedule(wait=1, active=1), on_trace_ready=handler) as run:
        with record_function("a name"):
            (picograd.ones(4) + 1.0).numpy()
        run.step()
    assert run.step_num == 1 and "map_" in run.key_averages().table(row_limit=10)
    (trace,) = (tmp_path / "log").iterdir()
    assert json.loads(trace.read_text())["traceEvents"]
    run.export_chrome_trace(tmp_path / "other.json")
    assert (tmp_path / "other.json").exists()


def test_stretches_have_names() -> None:
    @record_function("a function")
    def two() -> float:
        return (picograd.ones(2) + 1.0).sum().item()

    with profile() as run:
        for _ in range(3):
            two()
        with record_function("a block"):
            pass
    rows = [line.split(maxsplit=2) for line in str(run).splitlines()[-3:]]
    assert [row[1:] for row in rows] == [
        ["ms", "calls  stretch"], ["3", "a function"], ["1", "a block"],
    ]  # fmt: skip
    assert float(rows[1][0]) > float(rows[2][0]) >= 0
    events = run.run.trace()["traceEvents"]
    assert sum(each["name"] == "a function" for each in events) == 3
    with record_function("outside"):  # nobody watches
        pass
    assert "outside" not in run.table() and "profile object" in str(profile())


def test_nothing_watched_is_an_error() -> None:
    with pytest.raises(StateError, match="nothing was watched"):
        profile().key_averages().table()


def test_names_of_pytorchs_recorder() -> None:
    assert not picograd.profiler.kineto_available()
    assert picograd.profiler.ProfilerAction.NONE is not picograd.profiler.ProfilerAction.RECORD
    with picograd.autograd.profiler.emit_nvtx():
        pass
