"""The documentation's site: it builds without a warning, and its links lead somewhere."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
pytest.importorskip("mkdocs")

FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Page(HTMLParser):
    """What a page links to, fetches, and offers as places to link to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.fetched, self.places = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        if found.get("href") or found.get("src"):
            self.links.append(found.get("href") or found.get("src"))
        if found.get(FETCHED.get(tag)):
            self.fetched.append(found[FETCHED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path: Page(path) for path in folder.rglob("*.html") if path.name != "404.html"}


def test_links_lead_to_pages_and_places_that_exist(site):
    wrong = []
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            is_there = there.exists() and (
                not parts.fragment or there not in site
                or unquote(parts.fragment) in site[there].places
            )  # fmt: skip
            if not is_there:
                wrong.append(f"{path.name}: {link}")
    assert not wrong, "\n".join(wrong)


def test_nothing_is_fetched_from_elsewhere(site):
    fetched = {link for page in site.values() for link in page.fetched}
    assert [link for link in fetched if urlsplit(link).netloc] == []


def test_every_page_of_the_documentation_is_on_it(site):
    names = {path.name for path in site}
    pages = [path.stem for path in (ROOT / "docs").glob("*.md")]
    notebooks = [path.stem for path in (ROOT / "docs/notebooks").glob("*.ipynb")]
    assert {f"{name}.html" for name in ("index", "CHANGELOG", *pages, *notebooks)} <= names


def test_the_reference_has_signatures_with_defaults_and_notebooks_their_outputs(site):
    by_name = {path.name: path for path in site}
    assert "label_smoothing: float = 0.0" in text(by_name["functional.html"])
    assert "<svg" in by_name["see_inside.html"].read_text()


def text(path):
    page = path.read_text()
    return page.replace("&#x27;", "'").replace("&quot;", '"')
