"""python -m picograd.cache: what is on disk, and taking it away."""

from debug_tools import fresh_engine, small_network

from picograd.cache import main as command_line


def test_command_line_shows_and_clears(tmp_path, capsys):
    folder = str(tmp_path / "cache")
    with fresh_engine(cache=folder, verify=0):
        small_network("cpu").realize()
        before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*.kernel"))
        assert command_line([]) == 0
    text = capsys.readouterr().out
    assert "1 plans" in text and "2 descriptions of kernels" in text and folder in text
    assert any(
        line.split()[1:2] == ["kernels"] and int(line.split()[0]) >= 2 for line in text.split("\n")
    )
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*.kernel")) == before
    assert command_line(["--clear", "--folder", folder]) == 0
    assert f"removed {len(before)} entries" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*.kernel"))
    assert command_line(["--folder", "0"]) == 1
    assert "no cache" in capsys.readouterr().out
