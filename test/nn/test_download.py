"""Downloads, against a server of this machine that can be slow, short, wrong or without ranges."""

import hashlib
import http.server
import io
import tarfile
import threading
from pathlib import Path

import pytest
from thread_support import run_in_threads

from picograd.config import config
from picograd.errors import DataError
from picograd.nn.datasets import Published, data_folder, download, read_tar

CONTENT = bytes(range(256)) * 700  # three pieces


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT below a folder that names how."""

    def do_GET(self):
        server, given = self.server, self.headers.get("Range")
        server.asked.append((self.path, given))
        kind = self.path.split("/")[1]
        if kind == "absent":
            self.send_error(404)
            return
        start = int(given.split("=")[1].strip("-")) if given and kind != "whole" else 0
        body = {"wrong": CONTENT[::-1], "long": CONTENT * 2}.get(kind, CONTENT)[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.end_headers()
        if kind == "slow":
            self.wfile.write(body[:100])
            server.released.wait(5)
        if kind == "breaks" and len(server.asked) < 3:
            body = body[:50_000]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.asked, served.released = [], threading.Event()
    thread = threading.Thread(target=served.serve_forever, args=(0.01,))
    thread.start()
    yield served
    served.released.set()
    served.shutdown()
    served.server_close()
    thread.join()


def published(server, *kinds, **changes):
    base = f"http://127.0.0.1:{server.server_address[1]}"
    facts = {"size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest(), **changes}
    return Published("some.bin", tuple(f"{base}/{kind}/" for kind in kinds), **facts)


def part_of(target: Path) -> Path:
    return target.with_name("some.bin.part")


def test_a_file_arrives_whole(server, tmp_path):
    target = tmp_path / "deep" / "some.bin"
    download("test", published(server, "good"), target)
    assert target.read_bytes() == CONTENT and not part_of(target).exists()
    assert server.asked == [("/good/some.bin", None)]


def test_a_broken_connection_is_resumed(server, tmp_path):
    target = tmp_path / "some.bin"
    download("test", published(server, "breaks"), target)
    assert target.read_bytes() == CONTENT
    assert [given for _, given in server.asked] == [None, "bytes=50000-", "bytes=100000-"]


def test_what_an_earlier_program_fetched_is_kept(server, tmp_path):
    target = tmp_path / "some.bin"
    part_of(target).write_bytes(CONTENT[:1234])
    download("test", published(server, "good"), target)
    assert target.read_bytes() == CONTENT and server.asked[0][1] == "bytes=1234-"


def test_a_server_without_ranges_sends_everything_again(server, tmp_path):
    target = tmp_path / "some.bin"
    part_of(target).write_bytes(CONTENT[:1234])
    download("test", published(server, "whole"), target)
    assert target.read_bytes() == CONTENT and len(server.asked) == 1


@pytest.mark.parametrize(
    "stale", [b"other", CONTENT[::-1], CONTENT * 2], ids=["part", "same", "long"]
)
def test_a_stale_part_is_thrown_away(server, tmp_path, stale):
    target = tmp_path / "some.bin"
    part_of(target).write_bytes(stale)
    download("test", published(server, "good"), target)
    assert target.read_bytes() == CONTENT and server.asked[-1][1] is None


def test_mirrors_are_tried_in_turn(server, tmp_path):
    target = tmp_path / "some.bin"
    file = published(server, "absent", "wrong", "long", "good")
    dead = Published(file.name, ("http://127.0.0.1:9/", *file.mirrors), file.size, file.sha256)
    download("test", dead, target)
    assert target.read_bytes() == CONTENT
    assert [path.split("/")[1] for path, _ in server.asked] == ["absent", "wrong", "long", "good"]


def test_no_mirror_is_one_error_with_all_problems(server, tmp_path):
    target = tmp_path / "some.bin"
    with pytest.raises(DataError) as error:
        download("test", published(server, "absent", "wrong", "long"), target)
    base = f"http://127.0.0.1:{server.server_address[1]}"
    assert str(error.value) == (
        f"test: cannot fetch some.bin, 0.2 MB ({base}/absent/some.bin: Not Found; "
        f"{base}/wrong/some.bin: wrong SHA-256; "
        f"{base}/long/some.bin: longer than the 179200 bytes published). Fix: connect to the "
        f"internet, or put some.bin into {tmp_path}."
    )
    assert not target.exists() and part_of(target).stat().st_size == 0


def test_a_silent_mirror_is_left(server, tmp_path):
    target = tmp_path / "some.bin"
    download("test", published(server, "slow", "good"), target, timeout=0.2)
    assert target.read_bytes() == CONTENT
    # connections to the slow mirror brought some bytes each; the good one sends the rest
    assert server.asked[-1][0] == "/good/some.bin" and server.asked[-1][1]


def test_two_programs_fetch_once(server, tmp_path):
    target, file = tmp_path / "some.bin", published(server, "good")
    run_in_threads(lambda _: download("test", file, target), 3)
    assert target.read_bytes() == CONTENT and len(server.asked) == 1


def test_a_folder_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write .*File exists.*set PICOGRAD_DATA"):
        download("test", published(server, "good"), tmp_path / "file" / "some.bin")


def test_data_folder(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert data_folder("x") == Path("/elsewhere/picograd/datasets/x")
    with config.override(data="/mine"):
        assert data_folder("x") == Path("/mine/x")


def pack(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def test_archives_are_read_and_never_unpacked(tmp_path):
    path = tmp_path / "a.tar.gz"
    pack(path, {"a/x": b"123", "../evil": b"!", "/etc/evil": b"!", "a/y": b"45"})
    assert read_tar("test", path, {"a/x": 3, "a/y": 0}) == {"a/x": b"123", "a/y": b"45"}
    assert [p.name for p in tmp_path.iterdir()] == ["a.tar.gz"]
    with pytest.raises(DataError, match=r"has no a/z of 9 bytes\. Fix: delete the file"):
        read_tar("test", path, {"a/z": 9})
    with pytest.raises(DataError, match="has no a/x of 4 bytes"):
        read_tar("test", path, {"a/x": 4})
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match="cannot read"):
        read_tar("test", path, {"a/x": 3})


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("a/x")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(DataError, match="has no a/x"):
        read_tar("test", path, {"a/x": 0})
