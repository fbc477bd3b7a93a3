"""Weights from an address: a file of this machine stands for one."""

import hashlib
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
