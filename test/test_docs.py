"""The documentation: every example runs and prints what its page shows; links lead somewhere.

`--update-golden`, or `python docs/regenerate.py`, refreshes the pages.
"""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from picograd.config import format_flags

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)#]+?)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:picograd|docs|examples|bench|test)/[\w./]+\.(?:py|md))`")


def load_tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location("regenerate", ROOT / "docs/regenerate.py")
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


TOOL = load_tool()
PAGES = TOOL.pages()
WITH_CODE = [p for p in PAGES if re.search(r"^```(python|console)$", p.read_text(), re.MULTILINE)]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_examples_print_what_is_shown(page: Path, update_golden: bool) -> None:
    wrong = [finding for finding in TOOL.findings(page) if not finding.is_right]
    if update_golden:
        wrong = TOOL.update(page, wrong)
        assert not wrong, "\n".join(wrong)
    for finding in wrong:
        assert TOOL.normal(finding.block.text) == TOOL.normal(finding.found), (
            "the page is out of date: run python docs/regenerate.py"
        )
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_files_exist(page: Path) -> None:
    text = page.read_text()
    links = [link for link in LINK.findall(text) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    assert not missing


def test_every_page_is_linked_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    docs = [f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")]
    assert [page for page in docs if page not in text] == []


def test_settings_page_is_up_to_date(update_golden: bool) -> None:
    path = ROOT / "docs/flags.md"
    if update_golden:
        path.write_text(format_flags())
    assert path.read_text() == format_flags()


def test_outputs_are_compared_without_times() -> None:
    assert TOOL.matches("a  1.5 us\n...\nz\n", "a    20.0 us\nb\nc\nz\n")
    assert not TOOL.matches("a\n...\nz\n", "a\nb\n")
    assert not TOOL.matches("a 1\n", "a 2\n")
