"""docs/ancestors.md names a file for each row, and the file names the row."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (M\d+) \|.*\| (.*) \|$", re.MULTILINE)
ROWS = dict(ROW.findall((ROOT / "docs/ancestors.md").read_text()))


def test_every_row_is_there():
    assert list(ROWS) == [f"M{number}" for number in range(1, 60)]


@pytest.mark.parametrize("row", ROWS)
def test_the_file_names_the_row(row):
    files = [ROOT / name for name in re.findall(r"`([\w/.]+)`", ROWS[row])]
    missing = [str(file) for file in files if not file.exists()]
    assert not missing
    modules = [file for file in files if file.suffix == ".py"]
    named = [file for file in modules if re.search(rf"\b{row}\b", file.read_text())]
    assert named or not modules, f"no file of {row} names it"
