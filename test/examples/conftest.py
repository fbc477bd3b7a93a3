import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def examples_on_the_path(monkeypatch, tmp_path):
    """Examples import `common` from their own folder and write below the current one."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)
    for name in [name for name, module in sys.modules.items() if is_example(module)]:
        monkeypatch.delitem(sys.modules, name)


def is_example(module):
    return EXAMPLES.as_posix() in str(getattr(module, "__file__", "") or "")
