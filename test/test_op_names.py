"""An op's row is the op: how often other code tests a node's op by name may only shrink.

A place is a comparison of `.op` with a name, or a set, tuple or table of names beside the rows.
Who removes some lowers the ceiling.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from picograd.graph.ops import OPS

PACKAGE = Path(__file__).parents[1] / "picograd"
CEILING = {"graph": 3, "schedule": 14, "tensor": 1, "engine": 31, "codegen": 43}
COLLECTIONS = (ast.Set, ast.Tuple, ast.List, ast.Dict)


def names_in(node: ast.AST) -> list[str]:
    """List the strings of a constant, or the elements or keys of a collection."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


def is_op(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "op"


def places(tree: ast.Module) -> Iterator[int]:
    """Yield the lines where names of ops are tested or listed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(is_op, sides)) and any(n in OPS for s in sides for n in names_in(s)):
                yield node.lineno
    for statement in tree.body:
        value = getattr(statement, "value", None)
        for node in ast.walk(value) if value is not None else ():
            names = names_in(node) if isinstance(node, COLLECTIONS) else []
            if names and all(name in OPS for name in names):
                yield node.lineno


def count(room: str) -> int:
    files = sorted((PACKAGE / room).rglob("*.py"))
    return sum(len(list(places(ast.parse(path.read_text())))) for path in files)


@pytest.mark.parametrize("room", CEILING)
def test_ops_are_tested_by_name_no_more_often(room: str) -> None:
    found = count(room)
    assert found <= CEILING[room], "make it a column of the row (picograd/graph/row.py)"


def test_what_counts_as_a_place() -> None:
    text = 'A = {"exp", "log"}\nB = ("mean", "sum")\nif x.op == "exp" or x.op in ("log", A): pass'
    assert list(places(ast.parse(text))) == [3, 3, 1]
