"""What a notebook shows of a tensor: a table of its numbers where it has one or two dimensions."""

from typing import Any

import numpy as np

from picograd.html import heading, preformatted, table
from picograd.tensor.core import printing

MOST = 12  # rows and columns; of more, the first and the last ones are shown
EDGE = 5
MIDDLE = slice(EDGE, -EDGE)
LEFT_OUT = "…"

Array = Any


def tensor_html(values: Array | None, text: str, facts: str) -> str:
    """Write a tensor as HTML: the facts, and a table, or its text, as without values."""
    if values is None or values.ndim not in (1, 2) or values.size == 0:
        return heading(facts) + preformatted(text)
    height, width = values.shape if values.ndim == 2 else (1, values.size)
    rows = values.reshape(height, width)
    if height > MOST:
        rows = np.delete(rows, MIDDLE, 0)
    if width > MOST:
        rows = np.delete(rows, MIDDLE, 1)
    write = printing.formatter(rows)
    lines = []
    for row in rows.tolist():
        texts = [write(value).strip() for value in row]
        if width > MOST:
            texts.insert(EDGE, LEFT_OUT)
        lines.append(texts)
    if height > MOST:
        lines.insert(EDGE, [LEFT_OUT] * len(lines[0]))
    return heading(facts) + table([], lines)
