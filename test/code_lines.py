"""Code lines: those with code on them, comments and docstrings left out."""

import ast
import io
import tokenize
from collections.abc import Iterable

CODE_TOKENS = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}


def docstring_lines(nodes: Iterable[ast.AST]) -> set[int]:
    """Lines of docstrings and other bare strings, which are not code."""
    lines: set[int] = set()
    for node in nodes:
        is_string = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_string and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def count_code(text: str, skipped: set[int]) -> tuple[int, int]:
    """(code lines, code tokens), comments and the docstrings on these lines left out."""
    everything = tokenize.generate_tokens(io.StringIO(text).readline)
    tokens = [t for t in everything if t.type in CODE_TOKENS and t.start[0] not in skipped]
    lines = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    return len(lines), len(tokens)
