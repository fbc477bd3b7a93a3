"""picograd.view, and its command line."""

import subprocess
import sys

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.view import __main__ as command
from picograd.view import show

pytestmark = pytest.mark.usefixtures("cpu_by_default")


@pytest.fixture(autouse=True)
def closed():
    yield
    while show.SERVERS:
        show.SERVERS.pop().close()


def pending():
    return Tensor(np.ones((4, 4), np.float32)).softmax(1)


def test_calls_add_runs_to_one_page(monkeypatch):
    opened = []
    monkeypatch.setattr(show, "open_browser", opened.append)
    first = picograd.view(pending())
    second = picograd.view(pending(), browser=False)
    assert opened == [first] and first.endswith("#run=0") and second.endswith("#run=1")
    assert first.partition("#")[0] == second.partition("#")[0] == show.SERVERS[0].url
    assert f'<a href="{first}"' in first._repr_html_()
    second.close()
    assert not show.SERVERS


def test_it_is_the_function_whatever_is_imported():
    assert callable(picograd.view) and picograd.view.__name__ == "view"


def test_importing_picograd_starts_and_imports_nothing_for_it():
    code = (
        "import picograd, sys; rooms = ('http.server', 'webbrowser', 'picograd.view.server',"
        " 'picograd.view.gather'); print([name for name in rooms if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_save(tmp_path):
    picograd.view(pending(), save=tmp_path / "a.json", browser=False)
    assert picograd.view(tmp_path / "a.json", browser=False).endswith("#run=1")


def test_command_line(tmp_path, monkeypatch, capsys):
    script = tmp_path / "script.py"
    script.write_text("import picograd\n(picograd.ones(3) + 1).realize()\n")
    for name in ("a", "b"):
        path = str(tmp_path / f"{name}.json")
        assert command.main(["--save", path, "--no-page", str(script)]) == 0
    assert not show.SERVERS
    waited = []
    monkeypatch.setattr(show.Viewer, "wait", lambda page: waited.append(page))
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert command.main([*files, "--no-browser"]) == 0
    assert [run.title for run in show.SERVERS[0].runs] == ["a", "b"]
    assert waited[0].endswith("#run=1")
    assert command.main([str(tmp_path / "none.py")]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_waiting_ends_when_the_user_interrupts(monkeypatch, capsys):
    page = picograd.view(pending(), browser=False)
    monkeypatch.setattr(show, "Event", lambda: Interrupted())
    page.wait()
    assert not show.SERVERS and page in capsys.readouterr().err


class Interrupted:
    def wait(self):
        raise KeyboardInterrupt
