"""One definition: the method, the function, the form in place, and what type checkers read."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]


def load_tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location("stubs", ROOT / "docs/stubs.py")
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    sys.modules["stubs"] = module
    specification.loader.exec_module(module)
    return module


def test_stubs_are_up_to_date(update_golden: bool) -> None:
    tool = load_tool()
    if update_golden:
        tool.main()
    for name, text in tool.write_stubs().items():
        assert (tool.FOLDER / name).read_text() == text, "run python docs/stubs.py"
