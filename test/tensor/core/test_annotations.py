"""What editors and type checkers see: a user's program with its types, and an editable install."""

import os
import runpy
import shutil
import subprocess
import sys
import typing
import zipfile
from pathlib import Path

import pytest

import picograd
from picograd.tensor.core import annotations

ROOT = Path(__file__).parents[3]


def test_the_typed_program_runs() -> None:
    """`mypy` reads it in the step before the tests; what it asserts of types is so of values."""
    program = runpy.run_path(str(ROOT / "test" / "typed_program.py"))
    losses = list(program["epochs"](1))
    program["operations"]()
    assert len(losses) == 1 and losses[0] < 3


def test_signatures_show_the_words() -> None:
    hints = typing.get_type_hints(picograd.nn.functional.cross_entropy)
    assert hints["input"] is hints["return"] is annotations.Tensor
    assert typing.get_type_hints(picograd.asarray)["obj"] is annotations.Data


def test_the_room_called_is_the_function() -> None:
    x = picograd.tensor([1, 2], dtype="float32", requires_grad=True, pin_memory=True)
    assert x.requires_grad and x.dtype is picograd.float32
    assert "from_data" in (picograd.tensor.__call__.__doc__ or "")


def test_an_editable_install_is_a_path(tmp_path: Path) -> None:
    """A finder hook would serve Python alone: editors and checkers read .pth files, not code."""
    pytest.importorskip("setuptools", minversion="77")
    for name in ("pyproject.toml", "requirements.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "picograd").mkdir()
    (tmp_path / "bench").mkdir()  # a folder beside the package, as in the repository
    for name in ("__init__.py", "py.typed"):
        shutil.copy(ROOT / "picograd" / name, tmp_path / "picograd")
    code = "from setuptools import build_meta; print(build_meta.build_editable('wheels'))"
    (tmp_path / "wheels").mkdir()
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        names = [name for name in files.namelist() if ".dist-info/" not in name]
        assert len(names) == 1 and names[0].endswith(".pth"), names
        assert files.read(names[0]).decode().strip() == str(tmp_path)
