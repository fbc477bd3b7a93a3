"""What the site needs beside the pages of docs/ (a hook of `mkdocs.yml`).

The README is its first page, and whatever else of the repository a page links to is on it too.
Notebooks become pages, and folders that are linked to lists of what is in them.
"""

import json
import re
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
LISTED = {"docs/design": "Design notes"}  # folders without a page of their own
BLANK = re.compile(r"\n\s*\n")
ORIGINS: dict[str, str] = {}  # by page of the site: the file it is made of, if not of docs/


def on_files(files: Files, config: Any) -> Files:
    """Add pages and files from outside docs/, to the last that a page links to."""
    for path in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        text = notebook_page(json.loads(path.read_text()))
        files.append(generated(config, f"notebooks/{path.stem}.md", text))
    for folder, title in LISTED.items():
        files.append(generated(config, place_of(folder), list_page(ROOT / folder, title)))
    wanted = ["README.md"]
    for page in files.documentation_pages():
        wanted += outside(f"docs/{page.src_uri}", page.content_string)
    while wanted:
        path = wanted.pop()
        place = place_of(path)
        if files.get_file_from_path(place) is None and (ROOT / path).is_file():
            text = (ROOT / path).read_text()
            ORIGINS[place] = path
            files.append(generated(config, place, text))
            wanted += outside(path, text) if path.endswith(".md") else []
    return files


def generated(config: Any, place: str, text: str) -> File:
    """Make a file of the site."""
    return File.generated(config, place, content=text)


def outside(path: str, text: str) -> list[str]:
    """List the files outside docs/ that a page of the repository links to."""
    found = [target(path, match[2]) for match in LINK.finditer(text)]
    return [each for each in found if not each.startswith("docs/") and (ROOT / each).is_file()]


def target(path: str, link: str) -> str:
    """Find what a link on a page leads to, from the root of the repository."""
    return normpath(str(PurePosixPath(path).parent / link))


def place_of(path: str) -> str:
    """Find where a file of the repository is on the site."""
    if path in LISTED:
        path = f"{path}/index.md"
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/").replace(".ipynb", ".md")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links of a page lead to where their targets are on the site."""
    place = page.file.src_uri
    home = ORIGINS.get(place, f"docs/{place}")

    def moved(match: re.Match[str]) -> str:
        start, link, part, end = match.groups()
        path = target(home, link)
        if not (ROOT / path).exists():
            return match[0]
        found = relpath(place_of(path), str(PurePosixPath(place).parent))
        return f"{start}{found}{part or ''}{end}"

    return LINK.sub(moved, markdown)


def list_page(folder: Path, title: str) -> str:
    """Write a page that lists those of a folder by their titles."""
    lines = [f"# {title}", ""]
    for path in sorted(folder.glob("*.md")):
        head = path.read_text().partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{head}]({path.name})")
    return "\n".join([*lines, ""])


def notebook_page(notebook: dict[str, Any]) -> str:
    """Write a notebook as a page: code, and what it showed."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [shown(output) for output in cell["outputs"]]
    return "\n\n".join([*parts, ""])


def shown(output: dict[str, Any]) -> str:
    """Write what a cell showed: markup as it is, without blank lines, which would end it."""
    data = output.get("data", {})
    if "text/html" in data:
        markup = "".join(data["text/html"])
        markup = "\n".join(line for line in markup.splitlines() if line.strip())
        return f'<div style="overflow-x:auto;margin-bottom:1em">{markup}</div>'
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return f"<pre>{escape(BLANK.sub(chr(10), text.rstrip()))}</pre>"
