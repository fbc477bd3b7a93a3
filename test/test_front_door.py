"""What a newcomer meets first: the commands that install and test, with and without PyTorch."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTALL = re.compile(r"\b(?:pip3?|uv|conda|apt(?:-get)?)\s.*\binstall\b.*")
TEST_FILES = sorted((ROOT / "test").rglob("*.py"))


def commands(text: str) -> set[str]:
    """Find what stands in blocks of commands, one command an item, without comments."""
    blocks = re.findall(r"^```(?:sh)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).splitlines()
    return {part.split("  #")[0].strip() for line in lines for part in line.split("&&")}


def test_ci_installs_by_documented_commands_only() -> None:
    script = (ROOT / ".ci/run").read_text().replace("\\\n", " ")
    code = [line.strip() for line in script.splitlines() if not line.lstrip().startswith("#")]
    lines = [line for line in code if INSTALL.search(line)]
    readme = commands((ROOT / "README.md").read_text())
    assert "python -m pip install -e '.[test]'" in readme and "python -m pytest" in readme
    documented = commands((ROOT / "CONTRIBUTING.md").read_text())
    extras = ("test", "dev", "browser")
    wanted = [f"python -m pip install -e '.[{extra}]'" for extra in extras]
    wanted.append("apt-get install -y --no-install-recommends chromium")
    assert lines == wanted and set(wanted) <= documented
    tests = next(i for i, line in enumerate(code) if line.startswith("python -m pytest "))
    assert code.index(wanted[0]) < tests < code.index(wanted[1]), "extras hide a missing one"


def test_an_install_line_is_found() -> None:
    for line in ("python -m pip install x", "pip3 -q install y", "uv pip install z"):
        assert INSTALL.search(line)
    assert not INSTALL.search('step "install, exactly as in the README"')


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pytorch_may_be_missing(path: Path) -> None:
    """No test module imports PyTorch: `pytest.importorskip` skips it in one line instead."""
    for node in ast.parse(path.read_text()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found = [name for name in names if name.split(".")[0] == "torch"]
        assert not found, 'write torch = pytest.importorskip("torch") below the imports'
