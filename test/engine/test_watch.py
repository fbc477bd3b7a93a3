"""What profiles are told, and only while they watch."""

import gc

import numpy as np
import pytest
from debug_tools import fresh_engine

import picograd
from picograd import Tensor
from picograd.engine.watch import PROFILES
from picograd.errors import DataError
from picograd.runtime.memory import WATCHERS


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


def test_copies_lines_and_memory(tmp_path, capsys):
    gc.collect()  # what tests before left on other devices would be freed while it watches
    with fresh_engine(cache=""), picograd.profile(None) as run:
        x = Tensor(np.ones(100_000, np.float32), device="cpu").realize()
        total = (x * 2).sum().item()
        del x
    assert total == 200_000 and "copies" in capsys.readouterr().err
    assert run.counts["copy"] >= 1 and not PROFILES and not WATCHERS
    (line,) = run.lines
    assert "test_watch.py" in line
    assert max(size for _, size in run.memory["cpu"]) >= 400_000
    counters = [event for event in run.trace()["traceEvents"] if event["ph"] == "C"]
    assert {event["name"] for event in counters} == {"memory cpu"}
    picture = run.draw_memory(tmp_path / "memory.svg").read_text()
    assert picture.startswith("<svg") and "cpu: peak" in picture
    with pytest.raises(DataError, match="cannot write"):
        run.draw_memory(tmp_path / "no" / "memory.svg")
