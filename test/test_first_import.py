"""What the first import makes is left alone by the collector, in a process that has just begun."""

import subprocess
import sys

import pytest

from picograd.first_import import holders_of

PROGRAM = """
import gc
mine = {{}}
kept = [[] for _ in range({made})]
import picograd
from picograd.first_import import FROZEN, holders_of
found = gc.isenabled(), gc.get_freeze_count() > 50_000, bool(FROZEN)
mine["x"] = value = []
found += any(each is mine for each in holders_of([value])), gc.get_freeze_count()
print(*found)
"""


@pytest.mark.parametrize(("made", "is_frozen"), [(0, True), (50_000, False)])
def test_objects_of_a_young_process_are_left_alone(made, is_frozen):
    text = PROGRAM.format(made=made)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", str(is_frozen), str(is_frozen), "True", "0"], done.stderr


@pytest.mark.parametrize("made", ["after", "before"])
def test_globals_of_the_program_are_told_that_python_ends(made, tmp_path):
    text = """
import os
class Told:
    def __del__(self):
        print("told", os.sep, flush=True)
{}
def read():
    return told
"""
    lines = ["import picograd", "told, file = Told(), open('text', 'w'); file.write('all')"]
    text = text.format("\n".join(lines if made == "after" else lines[::-1]))
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("told /\n", "")
    assert (tmp_path / "text").read_text() == "all"


def test_a_file_is_written_where_a_standard_stream_is_of_its_class(tmp_path):
    text = """
import io
import picograd
file = open("text", "w")
file.write("all")
again = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
again.buffer.raw.name = "<stdout>"
def read():
    return file, again
"""
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("", "")
    assert (tmp_path / "text").read_text() == "all"


def test_a_look_at_holders_finds_nothing_of_its_own():
    value: list[object] = []
    mine, values = {"x": value}, [value]
    found = holders_of(values)
    assert len(found) == 2
    assert all(each is mine or each is values for each in found)
