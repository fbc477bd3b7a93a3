"""The documentation: every example runs and prints what its page shows; links lead somewhere.

`--update-golden`, or `python docs/regenerate.py`, refreshes the pages.

Ancestors' list: M10.
"""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from picograd import Tensor
from picograd.config import config
from picograd.engine import compile, realize, small
from picograd.engine.plan_cache import PlanCache
from picograd.schedule import rewrites

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)#]+?)(?:#[^)]*)?\)")
NAMED_FILE = re.compile(r"\b[\w-]+\.(?:py|md)\b(?!\.)")
SOMEBODYS = {"hubconf.py", "script.py"}  # files that a reader has
PATH = re.compile(r"`((?:picograd|docs|examples|bench|test)/[\w./]+\.(?:py|md))`")


def load_tool() -> ModuleType:
    tool = ROOT / "docs/regenerate.py"
    specification = importlib.util.spec_from_file_location("regenerate", tool)
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


def test_files_that_the_package_names_exist() -> None:
    rooms = [ROOT / room for room in ("picograd", "docs", "test", "bench", "examples")]
    known = {path.name for room in rooms for path in room.rglob("*")}
    sources = {path: path.read_text() for path in (ROOT / "picograd").rglob("*.py")}
    named = {name_of(path): NAMED_FILE.findall(text) for path, text in sources.items()}
    wrong = {path: {*names} - known - SOMEBODYS for path, names in named.items()}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_every_page_is_linked_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    docs = [f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")]
    assert [page for page in docs if page not in text] == []


def test_settings_page_is_up_to_date(update_golden: bool) -> None:
    path = ROOT / "docs/flags.md"
    if update_golden:
        path.write_text(TOOL.format_flags())
    assert path.read_text() == TOOL.format_flags()


def test_outputs_are_compared_without_times() -> None:
    assert TOOL.matches("a  1.5 us\n...\nz\n", "a    20.0 us\nb\nc\nz\n")
    assert not TOOL.matches("a\n...\nz\n", "a\nb\n")
    assert not TOOL.matches("a 1\n", "a 2\n")


def test_an_op_is_three_files() -> None:
    """docs/add_an_op.md: nothing else has to know `erf`; these use it, for speed or convenience."""
    needed = re.findall(r"^\| .+? \| `(picograd/\S+)` \|", page_text("add_an_op.md"), re.MULTILINE)
    optional = {"graph/composites.py", "codegen/templates/rows.py"}
    optional |= {"tensor/math/transcendental.py", "__init__.py"}
    optional |= {"tensor/math/special.py", "distributions/univariate.py"}  # picograd.special.erf
    optional |= {"distributions/kl.py"}
    optional |= {
        "tensor/transforms/masked_choice.py",
        "codegen/templates/threads.py",
    }  # elementwise, and its cost
    # float64 faster and more exact than the function of the C library, which it has without them
    optional |= {"codegen/decompose.py", "codegen/error_function.py"}
    optional |= {"onnx/export_elementwise.py"}  # a model with the op is written as ONNX
    files, name = (ROOT / "picograd").rglob("*.py"), re.compile(r"\"erf\"|\.erf\b|def erf\b")
    knowing = {str(p.relative_to(ROOT)) for p in files if name.search(p.read_text())}
    assert len(needed) == 3
    assert knowing - {f"picograd/{path}" for path in optional} == set(needed)


def test_the_map_has_the_rewrites_in_order() -> None:
    rows = re.findall(
        r"^\| (`.+?`) \| `picograd/\S+` \| ", page_text("architecture.md"), re.MULTILINE
    )
    named = re.findall(r"`(\w+)`", " ".join(rows))
    assert named == [rewrite.__name__ for rewrite in rewrites.REWRITES]


def test_the_walkthrough_takes_eight_files() -> None:
    steps = re.findall(r"^\| (\d) \| `(picograd/\S+)`", page_text("walkthrough.md"), re.MULTILINE)
    assert [int(number) for number, _ in steps] == list(range(1, 9))


def test_the_walkthrough_is_the_real_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file of the steps runs; the device of step 8 is the CPU here."""
    # as in a process that has not seen this graph
    monkeypatch.setattr(realize, "PLANS", PlanCache())
    monkeypatch.setattr(small, "KNOWN", {})
    monkeypatch.setattr(compile, "LOADED", {})
    monkeypatch.setitem(config.__dict__, "cache", "")  # nor found its kernels on disk
    seen: set[str] = set()
    sys.setprofile(lambda frame, *_: seen.add(frame.f_code.co_filename))
    try:
        values = Tensor([-1.0, 2.0, 0.5], device="cpu").relu().numpy()
    finally:
        sys.setprofile(None)
    steps = re.findall(r"^\| \d \| `(picograd/\S+)`", page_text("walkthrough.md"), re.MULTILINE)
    assert values.tolist() == [0.0, 2.0, 0.5]
    assert [path for path in steps if str(ROOT / path) not in seen] == []


def page_text(name: str) -> str:
    return (ROOT / "docs" / name).read_text()
