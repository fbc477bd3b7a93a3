"""One line, when the level is high enough, and none while Python shuts down."""

import gc
import io
import sys

import pytest
from tqdm import tqdm

from picograd.config import config
from picograd.runtime import log as logging
from picograd.runtime.log import log, log_action


@pytest.mark.parametrize("level", [1, 2, 3])
def test_levels(level, capsys):
    with config.override(debug=2):
        log(level, "text")
    assert capsys.readouterr().err == ("text\n" if level <= 2 else "")


def test_actions_are_level_two(capsys):
    gc.collect()  # else memory of other tests is freed, and told, in between
    for level in (1, 2):
        with config.override(debug=level):
            log_action("copy", "here -> there")
    assert capsys.readouterr().err == "       copy      here -> there\n"


def test_silent_at_the_end(capsys, monkeypatch):
    monkeypatch.setattr(logging.sys, "is_finalizing", lambda: True)
    with config.override(debug=2):
        log(1, "text")
    assert capsys.readouterr().err == ""


def test_a_line_makes_room_for_progress_bars(monkeypatch):
    """Every line begins where a line begins: nothing of a bar stands before it."""
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with config.override(debug=1):
        for number in tqdm(range(3), file=screen, mininterval=0, ncols=60):
            log(1, f"text {number}")
    lines = [part.split("\r")[-1] for part in screen.getvalue().split("\n")]
    assert [line for line in lines if "text" in line] == ["text 0", "text 1", "text 2"]
