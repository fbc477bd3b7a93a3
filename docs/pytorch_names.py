"""Compare PyTorch's public names with picograd's, and write docs/pytorch_names.md.

    python docs/pytorch_names.py

`docs/pytorch_names.txt` says what to write for a name that is spelled differently, and why one is
not offered; its head describes the lines. PyTorch must be installed.
"""

import importlib
import sys
import types
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE, DATA = HERE / "pytorch_names.md", HERE / "pytorch_names.txt"
SECTIONS = {
    "torch": "picograd",
    "torch.Tensor": "picograd.Tensor",
    "torch.nn.functional": "picograd.nn.functional",
    "torch.linalg": "picograd.linalg",
    "torch.fft": "picograd.fft",
    "torch.special": "picograd.special",
}
HEAD = """# PyTorch's names

Every public name of `torch`, `torch.Tensor`, `torch.nn.functional`, `torch.linalg`, `torch.fft` and
`torch.special` (PyTorch {version}), and what picograd has of it. A name listed as *the same* takes
the same arguments and means the same; `python docs/regenerate.py` rewrites this page from
`docs/pytorch_names.txt` and both libraries.
"""


@dataclass
class Section:
    """What the data file says of one namespace."""

    different: dict[str, str] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)  # reason -> patterns


def read_data(text: str) -> dict[str, Section]:
    """Read the data file."""
    sections: dict[str, Section] = {}
    current = Section()
    for line in text.splitlines():
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), Section())
        elif line.startswith("- "):
            reason, _, names = line[2:].partition(": ")
            current.refused.setdefault(reason, []).extend(names.split())
        elif line and not line.startswith("#"):
            name, _, meaning = line.partition(" = ")
            current.different[name] = meaning
    return sections


def find(path: str) -> Any:
    """Import `torch.nn.functional`, or an attribute of a module such as `torch.Tensor`."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


def public_names(namespace: Any) -> list[str]:
    """List the public names of a namespace, modules left out."""
    found = []
    for name in dir(namespace):
        is_module = isinstance(getattr(namespace, name, None), types.ModuleType)
        if not name.startswith("_") and not is_module:
            found.append(name)
    return found


def has(namespace: Any, name: str) -> bool:
    """Tell whether a namespace has a name; rooms that are imported late count."""
    try:
        getattr(namespace, name)
    except (AttributeError, ImportError):
        return False
    return True


def reason_of(name: str, sections: list[Section]) -> str | None:
    """Find why a name is not offered."""
    for section in sections:
        for reason, patterns in section.refused.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                return reason
    return None


@dataclass
class Comparison:
    """How one namespace compares: names by kind; `unknown` has neither name nor explanation."""

    same: list[str] = field(default_factory=list)
    different: dict[str, str] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)  # classified, but PyTorch has no such name


def compare(theirs: str, ours: str, data: dict[str, Section]) -> Comparison:
    """Sort the names of a namespace."""
    result, own = Comparison(), find(ours)
    section = data.get(theirs, Section())
    names = public_names(find(theirs))
    result.stale = [name for name in section.different if name not in names]
    for name in names:
        reason = reason_of(name, [section, data["everywhere"]])
        if name in section.different:
            result.different[name] = section.different[name]
        elif has(own, name):
            result.same.append(name)
        elif reason is not None:
            result.refused.setdefault(reason, []).append(name)
        else:
            result.unknown.append(name)
    return result


def code(names: list[str]) -> str:
    """Write names as code."""
    return ", ".join(f"`{name}`" for name in names)


def section_text(theirs: str, ours: str, found: Comparison) -> str:
    """Write one namespace."""
    lines = [f"## {theirs} -> {ours}", "", f"The same ({len(found.same)}): {code(found.same)}.", ""]
    if found.different:
        lines += ["| PyTorch | picograd |", "|---|---|"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in found.different.items()]
        lines += [""]
    if found.refused:
        lines += ["| not offered, because of | names |", "|---|---|"]
        lines += [f"| {reason} | {code(names)} |" for reason, names in found.refused.items()]
        lines += [""]
    return "\n".join(lines)


def comparisons() -> dict[str, Comparison]:
    """Compare every namespace."""
    data = read_data(DATA.read_text())
    return {theirs: compare(theirs, ours, data) for theirs, ours in SECTIONS.items()}


def page() -> str:
    """Write the page."""
    version = find("torch").__version__.partition("+")[0]
    texts = [section_text(name, SECTIONS[name], each) for name, each in comparisons().items()]
    return "\n".join([HEAD.format(version=version), *texts])


def main() -> int:
    """Write the page; the number of names nobody has classified."""
    unknown = [f"{name}.{each}" for name, c in comparisons().items() for each in c.unknown]
    PAGE.write_text(page())
    print("\n".join(unknown), end="\n" if unknown else "")
    return len(unknown)


if __name__ == "__main__":
    sys.exit(main())
