"""A folder that only this user can write: everything else is refused, and nothing waits."""

import os
import stat

import pytest

from picograd.engine.private_folder import NotPrivate, PrivateFolder

OTHER = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


@pytest.fixture
def folder(tmp_path):
    made = PrivateFolder(str(tmp_path / "a" / "b"))
    made.write("entry", b"content")
    return made


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_what_is_made_is_private_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        PrivateFolder(str(tmp_path / "a" / "b")).write("entry", b"content")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700
    assert mode(tmp_path / "a" / "b" / "entry") == 0o600


def test_what_is_above_stays_as_it_is(tmp_path):
    os.chmod(tmp_path, 0o777)
    PrivateFolder(str(tmp_path / "new")).write("entry", b"content")
    assert mode(tmp_path) == 0o777 and mode(tmp_path / "new") == 0o700


def test_our_own_folder_is_closed_to_others(folder):
    os.chmod(folder.path, 0o777)
    assert folder.read("entry", 100) == b"content"
    assert mode(folder.path) == 0o700


@only_root
@pytest.mark.parametrize("permissions", [0o700, 0o755, 0o777])
def test_a_folder_of_another_user_is_refused(folder, permissions):
    os.chmod(folder.path, permissions)
    os.chown(folder.path, OTHER, OTHER)
    for act in (lambda: folder.read("entry", 100), lambda: folder.write("new", b""), folder.list):
        with pytest.raises(NotPrivate, match="belongs to user 65534"):
            act()
    assert os.listdir(folder.path) == ["entry"]


@only_root
def test_a_file_of_another_user_is_refused(folder):
    os.chown(os.path.join(folder.path, "entry"), OTHER, OTHER)
    with pytest.raises(OSError, match="others may write entry"):
        folder.read("entry", 100)
    folder.write("entry", b"ours")
    assert folder.read("entry", 100) == b"ours"


@pytest.mark.parametrize("permissions", [0o666, 0o660, 0o602])
def test_a_file_others_may_write_is_refused(folder, permissions):
    os.chmod(os.path.join(folder.path, "entry"), permissions)
    with pytest.raises(OSError, match="others may write entry"):
        folder.read("entry", 100)


PLACED = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a link": lambda path: os.symlink("/etc/passwd", path),
    "a link to itself": lambda path: os.symlink(path, path),
    "a link to a device": lambda path: os.symlink("/dev/zero", path),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("what", PLACED)
def test_what_is_no_file_is_an_error_and_never_waited_for(folder, what):
    path = os.path.join(folder.path, "entry")
    os.unlink(path)
    PLACED[what](path)
    with pytest.raises(OSError):
        folder.read("entry", 1 << 20)


@pytest.mark.parametrize("what", [name for name in PLACED if name not in ("nothing", "a folder")])
def test_what_is_no_folder_is_refused(tmp_path, what):
    PLACED[what](str(tmp_path / "place"))
    folder = PrivateFolder(str(tmp_path / "place"))
    for act in (lambda: folder.read("entry", 100), lambda: folder.write("new", b""), folder.list):
        with pytest.raises(NotPrivate, match="is no folder, or a link"):
            act()


def test_a_link_to_a_folder_is_refused(folder, tmp_path):
    os.symlink(folder.path, tmp_path / "link")
    with pytest.raises(NotPrivate):
        PrivateFolder(str(tmp_path / "link")).read("entry", 100)


def test_a_file_larger_than_wanted_is_not_read(folder):
    path = os.path.join(folder.path, "entry")
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="too large"):
        folder.read("entry", 1 << 20)


def test_a_full_disk_leaves_nothing_behind(folder, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write("entry", b"new")
    assert os.listdir(folder.path) == ["entry"] and folder.read("entry", 100) == b"content"


def test_a_folder_that_vanished_is_made_again(folder):
    os.unlink(os.path.join(folder.path, "entry"))
    os.rmdir(folder.path)
    with pytest.raises(FileNotFoundError):
        folder.read("entry", 100)
    folder.write("entry", b"again")
    assert folder.read("entry", 100) == b"again"
