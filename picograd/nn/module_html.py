"""What a notebook shows of a module: the tree of its parts, which unfolds, with their sizes."""

from typing import Any

from picograd.html import Markup, details, table, written
from picograd.nn.walks import named_lines, once


def module_html(
    module: Any, name: str = "", is_open: bool = True, above: tuple[Any, ...] = ()
) -> str:
    """Write a module, and the modules inside, as HTML."""
    title = type(module).__name__
    if name:
        title = f"{name}: {title}({module.extra_repr()})"
    count = sum(parameter.numel() for parameter in module.parameters())
    if count:
        title = f"{title}, {count:,} parameters"
    rows = []
    for each, parameter in module.named_parameters(recurse=False):
        rows.append([each, parameter.dtype.name, list(parameter.shape), parameter.device])
    parts = [table([], rows)] if rows else []
    above = (*above, module)
    for each, child in once(iter(named_lines(module, above))):
        parts.append(Markup(module_html(child, each, False, above)))
    return details(title, *parts, is_open=is_open) if parts else f"<div>{written(title)}</div>"
