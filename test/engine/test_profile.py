"""picograd.profile: the table and the trace."""

import json
from itertools import pairwise

import numpy as np
import pytest
from debug_tools import fresh_engine, small_network

import picograd
from picograd import Tensor
from picograd.errors import DataError


def test_trace_and_table(tmp_path, capsys):
    path = tmp_path / "trace.json"
    with fresh_engine(cache=""), picograd.profile(path) as run:
        small_network("cpu").realize()
        small_network("cpu").realize()
    table = capsys.readouterr().err
    assert table.startswith("4 kernels, ") and "reduce_row_div_3x5 on cpu" in table
    trace = json.loads(path.read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = {e["args"]["name"]: e["tid"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert set(names) == {"cpu", "host"}
    kernels = [event for event in spans if event["tid"] == names["cpu"]]
    plans = [event for event in spans if event["tid"] == names["host"]]
    assert len(kernels) == 4 == run.totals.launches and len(plans) == 2
    assert sum(event["dur"] for event in kernels) == pytest.approx(run.totals.seconds * 1e6)
    for before, after in pairwise(kernels):
        assert after["ts"] >= before["ts"] + before["dur"] * 0.999
    for kernel in kernels[:2]:
        assert plans[0]["ts"] <= kernel["ts"] <= plans[0]["ts"] + plans[0]["dur"]
    assert kernels[0]["args"]["bytes"] == 4 * (12 + 20 + 15)


def test_nothing_is_watched_afterwards(tmp_path, capsys):
    with picograd.profile(None) as run:
        pass
    (Tensor(np.ones(3, np.float32), device="cpu") + 1).realize()
    assert run.totals.launches == 0 and not run.events
    assert "kernels" in capsys.readouterr().err


def test_an_error_inside_passes(tmp_path, capsys):
    with pytest.raises(ZeroDivisionError), picograd.profile(tmp_path / "t.json"):
        raise ZeroDivisionError
    assert (tmp_path / "t.json").is_file()
    capsys.readouterr()


def test_a_folder_that_is_not_there(tmp_path, capsys):
    missing = tmp_path / "no" / "t.json"
    with pytest.raises(DataError, match="profile: cannot write"), picograd.profile(missing):
        pass
    capsys.readouterr()
