"""Every public name of PyTorch is there, or docs/pytorch_names.txt says why not."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SPELLING = re.compile(r"^picograd((?:\.\w+)+)")


def load_tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location(
        "pytorch_names", ROOT / "docs/pytorch_names.py"
    )
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    sys.modules["pytorch_names"] = module
    specification.loader.exec_module(module)
    return module


TOOL = load_tool()


@pytest.mark.parametrize("namespace", TOOL.SECTIONS)
def test_every_name_is_classified(namespace: str) -> None:
    pytest.importorskip("torch")
    found = TOOL.comparisons()[namespace]
    assert found.unknown == [], "build it, or say in docs/pytorch_names.txt why it is not there"
    assert found.stale == [], "PyTorch has no such name: take it off docs/pytorch_names.txt"


def test_the_page_is_up_to_date(update_golden: bool) -> None:
    pytest.importorskip("torch")
    if update_golden:
        TOOL.main()
    assert TOOL.PAGE.read_text() == TOOL.page(), "run python docs/pytorch_names.py"


def test_a_name_that_is_neither_is_found() -> None:
    data = {"everywhere": TOOL.Section(), "math": TOOL.Section({"sin": "picograd.sin", "no": "x"})}
    data["math"].refused["of a test"] = ["c*", "sqrt"]
    found = TOOL.compare("math", "picograd", data)
    assert found.different == {"sin": "picograd.sin"} and found.stale == ["no"]
    assert "sqrt" in found.same and "ceil" in found.same  # patterns are for what is missing
    assert "cbrt" in found.refused["of a test"] and "fsum" in found.unknown


def test_spellings_resolve() -> None:
    """A line `name = picograd.x.y ...` names something that exists."""
    for section in TOOL.read_data(TOOL.DATA.read_text()).values():
        for name, meaning in section.different.items():
            match = SPELLING.match(meaning)
            if match and "operations" not in meaning:
                value = importlib.import_module("picograd")
                for part in match[1].split(".")[1:]:
                    value = getattr(value, part)
                assert value is not None, name
