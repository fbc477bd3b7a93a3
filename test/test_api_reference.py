"""docs/api: every public name is described, has an example, and its page is up to date.

`missing_examples.txt` lists the names that have no example. It may only shrink: a name that has one
must leave it, a new name may not join it. `--update-golden`, or `python docs/regenerate.py`, writes
the pages.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
MISSING = set((ROOT / "test/missing_examples.txt").read_text().split())


def load_tool() -> ModuleType:
    path = ROOT / "docs/api_reference.py"
    specification = importlib.util.spec_from_file_location("api_reference", path)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    sys.modules["api_reference"] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool()


def test_every_public_name_has_a_docstring(tool: ModuleType) -> None:
    assert tool.lacks_docstring() == []


def test_every_public_name_has_an_example(tool: ModuleType) -> None:
    bare = set(tool.lacks_example())
    assert bare - MISSING == set(), "write an example: `>>> ` in the docstring"
    assert MISSING - bare == set(), "these have an example or are gone: take them off the list"


def test_pages_are_up_to_date(tool: ModuleType, update_golden: bool) -> None:
    if update_golden:
        tool.main()
    pages = tool.write_pages()
    shown = {path.name: path.read_text() for path in tool.FOLDER.glob("*.md")}
    stale = [name for name in {*pages, *shown} if pages.get(name) != shown.get(name)]
    assert stale == [], "run python docs/regenerate.py"


def test_an_example_counts_for_all_spellings(tool: ModuleType) -> None:
    found = {entry.name: entry for entry in tool.entries() if entry.page.name == "elementwise"}
    assert found["exp"].spellings == ["picograd.exp", "Tensor.exp"]
    text = tool.describe(found["exp"])
    assert "```pycon\n>>> Tensor(" in text
    assert "`picograd.exp`, `Tensor.exp`" in text


def test_signatures_have_short_names(tool: ModuleType) -> None:
    def function(x: "ModuleType", *, y: Path | None = None) -> list[Path]:
        return []

    assert tool.signature(function) == "(x: ModuleType, *, y: Path | None = None) -> list[Path]"


def test_strings_keep_their_quotes(tool: ModuleType) -> None:
    def function(x: "Path", mode: str = "a.b", path: str | None = "file.json") -> "Path":
        return Path()

    wanted = "(x: Path, mode: str = 'a.b', path: str | None = 'file.json') -> Path"
    assert tool.signature(function) == wanted


def test_tables_of_parameters(tool: ModuleType) -> None:
    def function(a: int | None, *rest: float, b: str = "x", c=3, **more) -> None: ...

    rows = tool.parameter_table(function)
    assert rows[2:-1] == [
        "| `a` | `int or None` |  |", "| `*rest` | `float` |  |", "| `b` | `str` | `'x'` |",
        "| `c` |  | `3` |", "| `**more` |  |  |",
    ]  # fmt: skip
    assert tool.parameter_table(lambda a, b: a) == []
