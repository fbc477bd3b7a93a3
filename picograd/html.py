"""html: what notebooks show of tensors, plans, modules and profiles; texts are escaped here."""

from collections.abc import Iterable, Sequence

CELL = "text-align:right;padding:1px 8px"
HEAD = "text-align:left;padding:1px 8px;font-weight:bold"


class Markup(str):
    """This class is text that is HTML already."""

    __slots__ = ()


def written(value: object) -> str:
    """Write a value as HTML."""
    from html import escape  # here, as most runs show nothing in a notebook

    return value if isinstance(value, Markup) else escape(str(value))


def heading(text: object) -> Markup:
    """Write a line that stands above the rest.

    >>> heading("a < b")
    '<div><b>a &lt; b</b></div>'
    """
    return Markup(f"<div><b>{written(text)}</b></div>")


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """Write a table; without heads it has none.

    >>> "<td" in table(["kernel"], [["map_add_4"]])
    True
    """
    lines = ["<tr>" + "".join(cell("th", HEAD, head) for head in heads) + "</tr>"] if heads else []
    for row in rows:
        lines.append("<tr>" + "".join(cell("td", CELL, value) for value in row) + "</tr>")
    return Markup("<table>" + "".join(lines) + "</table>")


def cell(tag: str, style: str, value: object) -> str:
    """Write one cell of a table."""
    return f'<{tag} style="{style}">{written(value)}</{tag}>'


def details(summary: object, *inside: object, is_open: bool = False) -> Markup:
    """Write a part that unfolds.

    >>> details("reasons", "none").startswith("<details>")
    True
    """
    state = " open" if is_open else ""
    head = f"<summary>{written(summary)}</summary>"
    body = "".join(map(written, inside))
    body = f'<div style="margin-left:1.2em">{body}</div>'
    return Markup(f"<details{state}>{head}{body}</details>")


def preformatted(text: object) -> Markup:
    """Write lines as they are."""
    return Markup(f"<pre>{written(text)}</pre>")
