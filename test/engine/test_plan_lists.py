"""A program makes the same plans in every process, whatever addresses its objects get."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("plan_lists.py")


def start(junk: int) -> "subprocess.Popen[str]":
    """Train in a process of its own."""
    settings = {"PICOGRAD_DEVICE": "null", "VERIFY": "0", "PYTHONHASHSEED": str(junk + 1)}
    root = str(SCRIPT.parents[2])
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(junk)], env=os.environ | settings, cwd=root,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_processes_make_the_same_plans_in_the_same_order() -> None:
    children = [start(junk) for junk in (0, 3)]
    texts, errors = zip(*(child.communicate(timeout=120) for child in children))
    assert [child.returncode for child in children] == [0, 0], errors
    assert texts[0] == texts[1]
    names = [line.split()[0] for line in texts[0].splitlines()]
    assert names.count("convolutions") <= 4 and names.count("recurrent") >= 2
