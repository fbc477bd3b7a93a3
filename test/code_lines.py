"""Code lines: those with code on them, comments and docstrings left out."""

import ast
import io
import tokenize

CODE_TOKENS = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}


def docstring_lines(tree: ast.AST) -> set[int]:
    """Lines of docstrings and other bare strings, which are not code."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        is_string = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_string and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def count_code(text: str) -> tuple[int, int]:
    """(code lines, code tokens), comments and docstrings left out."""
    skipped = docstring_lines(ast.parse(text))
    everything = tokenize.generate_tokens(io.StringIO(text).readline)
    tokens = [t for t in everything if t.type in CODE_TOKENS and t.start[0] not in skipped]
    lines = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    return len(lines), len(tokens)
