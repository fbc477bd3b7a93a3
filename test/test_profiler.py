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


def test_nothing_watched_is_an_error() -> None:
    with pytest.raises(StateError, match="nothing was watched"):
        profile().key_averages().table()


def test_names_of_pytorchs_recorder() -> None:
    assert not picograd.profiler.kineto_available()
    assert picograd.profiler.ProfilerAction.NONE is not picograd.profiler.ProfilerAction.RECORD
    with picograd.autograd.profiler.emit_nvtx():
        pass
