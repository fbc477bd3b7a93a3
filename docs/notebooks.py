"""Run the notebooks of docs/notebooks and store what they show: `python docs/notebooks.py`.

    python docs/notebooks.py [--check] [notebook ...]

Each runs in a fresh kernel, in an empty folder, on the CPU. With `--check` nothing is written, and
texts that differ from those stored are printed; times may differ, and so may pictures and tables,
which show the same as their texts.
"""

import argparse
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/notebooks"
SECONDS = 300  # for a cell
VARYING = "varies"  # a tag of cells whose output is another in every run


def regenerate() -> ModuleType:
    """Load the tool of the pages, whose rules for comparing outputs hold here too."""
    specification = importlib.util.spec_from_file_location(
        "regenerate", ROOT / "docs/regenerate.py"
    )
    if specification is None or specification.loader is None:
        raise SystemExit("docs/regenerate.py is missing")
    module = importlib.util.module_from_spec(specification)
    sys.modules["regenerate"] = module
    specification.loader.exec_module(module)
    return module


TOOL = regenerate()


def notebooks() -> list[Path]:
    """List the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path) -> Any:
    """Run a notebook; returns it with its outputs. Raises where a cell does."""
    notebook = nbformat.read(path, as_version=4)
    before = dict(os.environ)
    os.environ.update(TOOL.environment())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYTHONDIR"] = folder  # nobody's settings
        client = NotebookClient(notebook, kernel_name="python3", timeout=SECONDS)
        client.resources = {"metadata": {"path": folder}}
        try:
            client.execute()
        finally:
            os.environ.clear()
            os.environ.update(before)
    return plain(notebook)


def plain(notebook: Any) -> Any:
    """Leave out what depends on the machine: times of cells, versions, identities."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "name": "python3"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":  # what Graphviz says on the error stream is the machine's
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    return notebook


def texts(cell: Any) -> list[str]:
    """List the texts that a cell shows."""
    if cell.cell_type != "code" or VARYING in cell.metadata.get("tags", ()):
        return []
    found = []
    for output in cell.outputs:
        data = output.get("data", {})
        found.append(output.get("text") or data.get("text/plain", ""))
    return found


def differences(stored: Any, found: Any) -> list[str]:
    """Describe the cells that show something else than what is stored."""
    wrong = []
    for before, after in zip(stored.cells, found.cells, strict=True):
        shown, made = texts(before), texts(after)
        is_same = len(shown) == len(made) and all(map(TOOL.matches, shown, made))
        if not is_same:
            wrong.append(f"{before.source}\nshows\n{shown}\nbut gives\n{made}")
    return wrong


def main() -> int:
    """Run notebooks; the number of cells that differ with `--check`."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    wrong = []
    for path in options.notebooks or notebooks():
        stored = nbformat.read(path, as_version=4)
        found = execute(path)
        if options.check:
            wrong += differences(stored, found)
        else:
            nbformat.write(found, path)
        print(f"{path.name}: {len(found.cells)} cells, {path.stat().st_size} bytes")
    print("\n\n".join(wrong), end="\n" if wrong else "")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
