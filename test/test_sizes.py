"""The style guide's limits: file, function and line length, density, no bare assert, docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from code_lines import count_code, docstring_lines

ROOT = Path(__file__).parents[1]
PACKAGE = sorted((ROOT / "picograd").rglob("*.py"))
ALL = PACKAGE + sorted(
    path for room in ("examples", "test", "bench") for path in (ROOT / room).rglob("*.py")
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FILE_LINES, TENSOR_LINES, FUNCTION_LINES, COLUMNS, TOKENS = 400, 800, 40, 100, 11
HELPERS_LINES = 150
DENSE_FILES, MOST_TOKENS = 133, 17  # a ceiling: tables of rows are dense, other files need not be


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def limit(path: Path) -> int:
    if ROOT / "picograd" / "tensor" in path.parents:
        return TENSOR_LINES
    return HELPERS_LINES if path == ROOT / "picograd" / "helpers.py" else FILE_LINES


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def code_length(function: ast.AST, skipped: set[int]) -> int:
    """Lines of a function without its docstring."""
    first, last = function.lineno, function.end_lineno  # type: ignore[attr-defined]
    return sum(line not in skipped for line in range(first, last + 1))


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_lines_are_short(path: Path) -> None:
    lines = path.read_text().splitlines()
    wide = [number for number, line in enumerate(lines, 1) if len(line) > COLUMNS]
    assert not wide, f"{name_of(path)}: lines over {COLUMNS} columns: {wide}"


@pytest.mark.parametrize("path", PACKAGE, ids=name_of)
def test_file_is_short_and_airy(path: Path) -> None:
    lines, tokens = count_code(path.read_text())
    assert lines <= limit(path), f"{lines} code lines, {limit(path)} allowed"
    density = tokens / max(1, lines)
    assert density <= MOST_TOKENS, f"{density:.1f} tokens per code line, {MOST_TOKENS} allowed"


def test_the_package_is_airy() -> None:
    """Count tokens a line as the formatter breaks lines; files over the limit only get fewer."""
    counts = [count_code(path.read_text()) for path in PACKAGE]
    density = sum(tokens for _, tokens in counts) / sum(lines for lines, _ in counts)
    assert density <= TOKENS, f"{density:.1f} tokens per code line, {TOKENS} allowed"
    dense = sum(tokens > TOKENS * lines for lines, tokens in counts)
    assert dense <= DENSE_FILES, f"{dense} files over {TOKENS} tokens a line: name parts of lines"


@pytest.mark.parametrize("path", PACKAGE, ids=name_of)
def test_functions_are_short(path: Path) -> None:
    tree = ast.parse(path.read_text())
    skipped = docstring_lines(tree)
    lengths = {f"{f.name}:{f.lineno}": code_length(f, skipped) for f in functions(tree)}
    long = {name: length for name, length in lengths.items() if length > FUNCTION_LINES}
    assert not long, f"functions over {FUNCTION_LINES} lines: {long}"


@pytest.mark.parametrize("path", PACKAGE, ids=name_of)
def test_there_is_no_bare_assert(path: Path) -> None:
    tree = ast.parse(path.read_text())
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert not lines, f"use picograd.errors.check instead of assert, lines {lines}"


@pytest.mark.parametrize("path", PACKAGE, ids=name_of)
def test_public_things_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree) or not tree.body, "the file has no docstring"
    public = [f for f in functions(tree) if not f.name.startswith("_")]
    overloads = {f.name for f in public if any("overload" in ast.dump(d) for d in f.decorator_list)}
    nested = {g.name for f in functions(tree) for g in functions(f) if g is not f}
    setters = {f.name for f in public if any("setter" in ast.dump(d) for d in f.decorator_list)}
    bare = [f.name for f in public if not ast.get_docstring(f)]
    bare = [name for name in bare if name not in overloads | nested | setters]
    assert not bare, f"no docstring: {bare}"
