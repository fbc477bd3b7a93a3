"""Lets the tests of this room import the tools beside them; fixtures of the room."""

import sys
from pathlib import Path

import pytest

from picograd.codegen.templates import map as map_template
from picograd.codegen.templates import reduce, rows, scatter

sys.path.insert(0, str(Path(__file__).parents[1] / "schedule"))
sys.path.insert(0, str(Path(__file__).parent / "templates"))
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut kernels into many tasks and pieces although they are small."""
    monkeypatch.setattr(map_template, "SMALL_POINTS", 50)
    monkeypatch.setattr(map_template, "TASK_POINTS", 70)
    monkeypatch.setattr(reduce, "TASK_POINTS", 90)
    monkeypatch.setattr(reduce, "COLUMNS", 24)
    monkeypatch.setattr(rows, "ROW_PIECE", 13)
    monkeypatch.setattr(rows, "COLUMN_PIECE", 7)
    monkeypatch.setattr(reduce, "GRAND_PIECE", 5)
    monkeypatch.setattr(scatter, "CPU_POINTS", 100)
    monkeypatch.setattr(scatter, "MINIMUM_COLUMNS", 3)
