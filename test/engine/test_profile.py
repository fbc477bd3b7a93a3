"""picograd.profile: the table and the trace."""

import io
import json
import re
import sys
from itertools import pairwise

import numpy as np
import pytest
from debug_tools import fresh_engine, small_network
from tqdm import tqdm

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
    assert "\nhost: 1 schedules " in table and "1 compilations" in table and "2 plans" in table
    assert table.splitlines()[-1].startswith("held back by the host, which schedules")
    assert re.search(r"^ *\d+\.\d % .* ms  \S+\.py:\d+$", table, re.MULTILINE)
    trace = json.loads(path.read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = {e["args"]["name"]: e["tid"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert set(names) == {"cpu", "host", "schedule", "compile", "copy"}
    kernels = [event for event in spans if event["tid"] == names["cpu"]]
    plans = [event for event in spans if event["tid"] == names["host"]]
    assert len(kernels) == 4 == run.totals.launches and len(plans) == 2
    assert sum(event["dur"] for event in kernels) == pytest.approx(run.totals.seconds * 1e6)
    for before, after in pairwise(kernels):
        assert after["ts"] >= before["ts"] + before["dur"] * 0.999
    for kernel in kernels[:2]:
        assert plans[0]["ts"] <= kernel["ts"] <= plans[0]["ts"] + plans[0]["dur"]
    assert kernels[0]["args"]["bytes"] == 4 * (12 + 20 + 15)


def test_kernels_of_one_name_have_rows_of_their_own(capsys):
    """A product that is 8 deep and one that is 64 deep are both `contract_4x4`."""
    with fresh_engine(cache=""), picograd.profile(None) as run:
        for depth in (8, 64, 64):
            a = Tensor(np.ones((4, depth), np.float32), device="cpu")
            (a @ a.T.contiguous().realize()).realize()
    rows = {row.name: row for row in run.totals.rows.values() if "contract" in row.name}
    assert {name: row.launches for name, row in rows.items()} == {
        "contract_4x4 on cpu": 1, "contract_4x4 #2 on cpu": 2,
    }  # fmt: skip
    assert [row.flops for row in rows.values()] == [2 * 16 * 8, 2 * 2 * 16 * 64]
    assert "contract_4x4 #2 on cpu" in capsys.readouterr().err


def test_kernels_loaded_from_disk_have_rows_of_their_own(capsys, tmp_path):
    """They come without their source."""
    for _ in range(2):
        with fresh_engine(cache=str(tmp_path)), picograd.profile(None) as run:
            for depth in (8, 64):
                a = Tensor(np.ones((4, depth), np.float32), device="cpu").realize()
                (a @ a.T).realize()
        assert len({row.flops for row in run.totals.rows.values() if row.flops}) == 2
    capsys.readouterr()


def test_every_step_of_a_loop_counts(capsys):
    x = Tensor(np.ones((20, 8, 8), np.float32), device="cpu")

    def step(state, x):
        return state @ x, state

    with fresh_engine(cache=""), picograd.profile(None) as run:
        last, _ = picograd.scan(step, Tensor(np.ones((8, 8), np.float32), device="cpu"), x)
        last.realize()
    products = [row for row in run.totals.rows.values() if row.flops]
    assert sum(row.flops for row in products) == 20 * 2 * 8**3
    events = [event["args"] for event in run.events if "flops" in event["args"]]
    assert sum(event["flops"] for event in events) == 20 * 2 * 8**3
    capsys.readouterr()


def test_the_table_makes_room_for_a_progress_bar(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with tqdm(total=3, file=screen, desc="epochs", mininterval=0, ncols=60) as bar:
        bar.update()
        with picograd.profile(None):
            pass
        bar.update()
    line = next(line for line in screen.getvalue().split("\n") if "0 kernels" in line)
    assert line.split("\r")[-1].startswith("0 kernels")


def test_a_folder_that_is_not_there(tmp_path, capsys):
    missing = tmp_path / "no" / "t.json"
    with pytest.raises(DataError, match="profile: cannot write"), picograd.profile(missing):
        pass
    capsys.readouterr()
