"""Weights from an address: a file of this machine stands for one."""

import hashlib
import sys
from pathlib import Path

import pytest

import picograd
from picograd import hub
from picograd.errors import DataError, StateError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hub, "FOLDER", {})
    hub.set_dir(tmp_path / "hub")
    return tmp_path


def published(folder: Path) -> Path:
    path = folder / "net.pt"
    picograd.save({"w": picograd.tensor([1.0, 2.0])}, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return path.rename(folder / f"net-{digest[:8]}.pt")


def test_weights_are_loaded_and_kept(folder: Path) -> None:
    path = published(folder)
    for _ in range(2):
        state = hub.load_state_dict_from_url(path.as_uri(), check_hash=True)
        assert state["w"].tolist() == [1.0, 2.0]
        path.unlink(missing_ok=True)  # the second time nothing is read
    assert [each.name for each in (folder / "hub/checkpoints").iterdir()] == [path.name]


def test_another_file_is_refused(folder: Path) -> None:
    path = published(folder).rename(folder / "net-00000000.pt")
    with pytest.raises(DataError, match="has SHA-256"):
        hub.load_state_dict_from_url(path.as_uri(), check_hash=True)
    assert not list((folder / "hub/checkpoints").iterdir())


def test_what_is_not_there_says_where_to_put_it(folder: Path) -> None:
    address = (folder / "nothing.pt").as_uri()
    with pytest.raises(DataError, match="put the file there by hand"):
        hub.load_state_dict_from_url(address, model_dir=folder)
    with pytest.raises(StateError, match="load_state_dict_from_url"):
        hub.load("someone/repository", "model")


def test_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "FOLDER", {})
    assert hub.get_dir().endswith("hub")


PROGRAM = """
dependencies = ["json"]
from beside import width
from picograd import nn

def net(outputs, bias=True):
    return nn.Linear(width, outputs, bias=bias)

number = 3
"""


def test_models_of_a_local_folder(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("width = 4")
    (tmp_path / "hubconf.py").write_text(PROGRAM)
    before = list(sys.path)
    found = hub.load(str(tmp_path), "net", 2, bias=False, source="local", trust_repo=True)
    assert found.weight.shape == (2, 4) and found.bias is None
    assert sys.path == before and "hubconf" not in sys.modules
    for name in ("number", "nothing"):
        with pytest.raises(DataError, match=f"has no function '{name}'. Fix: use one of net"):
            hub.load(tmp_path, name, source="local")
    with pytest.raises(DataError, match="is not there"):
        hub.load(tmp_path / "other", "net", source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['json', 'nothing_at_all']")
    with pytest.raises(DataError, match="needs nothing_at_all"):
        hub.load(tmp_path, "net", source="local")
    sys.modules.pop("beside")
