"""The style guide's limits: file, function and line length, density, no bare assert, docstrings."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

from code_lines import count_code, docstring_lines

ROOT = Path(__file__).parents[1]
PACKAGE = sorted((ROOT / "picograd").rglob("*.py"))
ALL = PACKAGE + sorted(
    path for room in ("examples", "test", "bench") for path in (ROOT / room).rglob("*.py")
)
Function = ast.FunctionDef | ast.AsyncFunctionDef
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


def code_length(function: ast.AST, skipped: set[int]) -> int:
    """Lines of a function without its docstring."""
    first, last = function.lineno, function.end_lineno  # type: ignore[attr-defined]
    return sum(line not in skipped for line in range(first, last + 1))


def without_docstring(tree: ast.Module, functions: list[Function]) -> list[str]:
    """Public functions that have none, but for inner ones, and the file itself."""

    def is_inside(function: Function, outer: Function) -> bool:
        return outer.lineno < function.lineno <= (outer.end_lineno or 0)

    public = [f for f in functions if not f.name.startswith("_")]
    marked = [(f.name, ast.dump(each)) for f in public for each in f.decorator_list]
    excused = {name for name, mark in marked if "overload" in mark or "setter" in mark}
    bare = [f for f in public if not ast.get_docstring(f) and f.name not in excused]
    bare = [f for f in bare if not any(is_inside(f, each) for each in functions)]
    is_told = ast.get_docstring(tree) or not tree.body
    return [f.name for f in bare] + ([] if is_told else ["the file"])


class Source:
    """What the tests ask of one file of the package: its tree is not kept."""

    def __init__(self, path: Path) -> None:
        self.path, text = path, path.read_text()
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
        skipped = docstring_lines(nodes)
        self.lines, self.tokens = count_code(text, skipped)
        lengths = {f"{f.name}:{f.lineno}": code_length(f, skipped) for f in functions}
        self.long = {name: length for name, length in lengths.items() if length > FUNCTION_LINES}
        self.asserts = [node.lineno for node in nodes if isinstance(node, ast.Assert)]
        self.bare = without_docstring(tree, functions)


@cache
def sources() -> list[Source]:
    return [Source(path) for path in PACKAGE]


def complaints(find: Callable[[Source], object]) -> dict[str, object]:
    """What is wrong in each file of the package where anything is."""
    found = {name_of(source.path): find(source) for source in sources()}
    return {name: wrong for name, wrong in found.items() if wrong}


def test_lines_are_short() -> None:
    texts = ((path, enumerate(path.read_text().splitlines(), 1)) for path in ALL)
    wide = {name_of(p): [n for n, line in lines if len(line) > COLUMNS] for p, lines in texts}
    wide = {name: lines for name, lines in wide.items() if lines}
    assert not wide, f"lines over {COLUMNS} columns: {wide}"


def test_files_are_short_and_airy() -> None:
    def wrong(source: Source) -> str:
        density = source.tokens / max(1, source.lines)
        is_wrong = source.lines > limit(source.path) or density > MOST_TOKENS
        return f"{source.lines} code lines, {density:.1f} tokens a line" if is_wrong else ""

    found = complaints(wrong)
    assert not found, f"{FILE_LINES} code lines, {MOST_TOKENS} tokens a line allowed: {found}"


def test_the_package_is_airy() -> None:
    """Count tokens a line as the formatter breaks lines; files over the limit only get fewer."""
    tokens, lines = sum(s.tokens for s in sources()), sum(s.lines for s in sources())
    density = tokens / lines
    assert density <= TOKENS, f"{density:.1f} tokens per code line, {TOKENS} allowed"
    dense = sum(s.tokens > TOKENS * s.lines for s in sources())
    assert dense <= DENSE_FILES, f"{dense} files over {TOKENS} tokens a line: name parts of lines"


def test_functions_are_short() -> None:
    long = complaints(lambda source: source.long)
    assert not long, f"functions over {FUNCTION_LINES} lines: {long}"


def test_there_is_no_bare_assert() -> None:
    found = complaints(lambda source: source.asserts)
    assert not found, f"use picograd.errors.check instead of assert, lines {found}"


def test_public_things_have_docstrings() -> None:
    bare = complaints(lambda source: source.bare)
    assert not bare, f"no docstring: {bare}"
