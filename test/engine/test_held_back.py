"""The last line of a profile: what holds the program back."""

import pytest

from picograd.code import Code
from picograd.engine.debug import Row
from picograd.engine.held_back import held_back
from picograd.runtime.device import Executable


@pytest.mark.parametrize(
    ("flops", "device", "spans", "words"),
    [
        (10**9, 0.9, {"host": 0.95}, "arithmetic"),
        (10**6, 0.9, {"host": 0.95}, "memory"),
        (10**6, 0.1, {"host": 0.7}, "launches"),
        (10**6, 0.1, {"host": 0.2, "schedule": 0.2, "compile": 0.3}, "the host, which schedules"),
        (10**6, 0.1, {"host": 0.2, "copy": 0.6}, "the host, which copies"),
        (10**6, 0.1, {"host": 0.2, "copy": 0.1}, "the host, between computations"),
    ],
)
def test_last_line_says_what_holds_the_program_back(flops, device, spans, words):
    row = Row(Executable(Code("f", "llvm", "f", "", 1), None), "f", 1, device, flops, 10**6)
    line = held_back([row], spans, 1.0)
    assert line.startswith(f"held back by {words}"), line
    assert f"the device worked {device * 1e3:.2f} of 1000.00 ms" in line
