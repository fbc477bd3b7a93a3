"""Examples in docstrings print what they show."""

import builtins
import doctest
import importlib
from pathlib import Path

import numpy
import pytest

import picograd

ROOT = Path(__file__).parents[1]
FILES = [p for p in sorted((ROOT / "picograd").rglob("*.py")) if "\n    >>> " in p.read_text()]


KNOWN = {"picograd": picograd, "Tensor": picograd.Tensor, "nn": picograd.nn, "numpy": numpy}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_examples(path: Path) -> None:
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    module = importlib.import_module(name_of(path))
    # `round` is Python's, whatever the file imports
    names = {**vars(module), **vars(builtins), **KNOWN}
    result = doctest.testmod(module, optionflags=options, globs=names)
    assert result.attempted and not result.failed
