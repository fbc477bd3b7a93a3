"""One line, when the level is high enough, and none while Python shuts down."""

import pytest

from picograd.config import config
from picograd.runtime import log as logging
from picograd.runtime.log import log, log_action


@pytest.mark.parametrize("level", [1, 2, 3])
def test_levels(level, capsys):
    with config.override(debug=2):
        log(level, "text")
    assert capsys.readouterr().err == ("text\n" if level <= 2 else "")


def test_actions_are_level_two(capsys):
    for level in (1, 2):
        with config.override(debug=level):
            log_action("copy", "here -> there")
    assert capsys.readouterr().err == "       copy      here -> there\n"


def test_silent_at_the_end(capsys, monkeypatch):
    monkeypatch.setattr(logging.sys, "is_finalizing", lambda: True)
    with config.override(debug=2):
        log(1, "text")
    assert capsys.readouterr().err == ""
