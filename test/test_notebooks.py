"""The notebooks run, and show what they showed when they were stored."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def load_tool():
    place = ROOT / "docs/notebooks.py"
    specification = importlib.util.spec_from_file_location("notebooks_tool", place)
    module = importlib.util.module_from_spec(specification)
    sys.modules["notebooks_tool"] = module
    specification.loader.exec_module(module)
    return module


TOOL = load_tool()
LINK = re.compile(r"\]\(([^)#]+?)\)")


def test_there_are_three():
    assert [path.stem for path in TOOL.notebooks()] == ["see_inside", "start", "train"]


@pytest.mark.parametrize("path", TOOL.notebooks(), ids=lambda path: path.stem)
def test_they_run_and_show_the_same(path):
    stored = nbformat.read(path, as_version=4)
    wrong = TOOL.differences(stored, TOOL.execute(path))
    assert not wrong, "run python docs/notebooks.py\n" + "\n\n".join(wrong)


@pytest.mark.parametrize("path", TOOL.notebooks(), ids=lambda path: path.stem)
def test_they_are_stored_with_outputs_and_links_that_lead_somewhere(path):
    notebook = nbformat.read(path, as_version=4)
    kinds = {kind for cell in notebook.cells for output in cell.get("outputs", ())
             for kind in output.get("data", {})}  # fmt: skip
    assert "text/html" in kinds
    assert not any(o.output_type == "error" for c in notebook.cells for o in c.get("outputs", ()))
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert [link for link in LINK.findall(text) if not (path.parent / link).exists()] == []


def test_differences_name_the_cell():
    cell = nbformat.v4.new_code_cell("1 + 1", outputs=[nbformat.v4.new_output("stream", text="2")])
    other = nbformat.v4.new_code_cell("1 + 1", outputs=[nbformat.v4.new_output("stream", text="3")])
    before, after = (nbformat.v4.new_notebook(cells=[each]) for each in (cell, other))
    (wrong,) = TOOL.differences(before, after)
    assert "1 + 1" in wrong and not TOOL.differences(before, before)
    cell.metadata["tags"] = other.metadata["tags"] = [TOOL.VARYING]
    assert not TOOL.differences(before, after)
