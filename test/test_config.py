import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from picograd.config import FLAGS, Config, drop_wrong
from picograd.cores import usable_cores
from picograd.errors import ValueRangeError


def test_environment_gives_first_values():
    config = Config({"DEBUG": "2", "PICOGRAD_DEVICE": "cpu", "PICOGRAD_THREADS": "3"})
    assert (config.debug, config.device, config.threads) == (2, "cpu", 3)
    assert Config({}).threads == usable_cores()


def test_epoch_and_key_follow_declarations():
    config = Config({})
    key = config.key()
    config.debug = 4
    assert config.epoch == 0 and config.key() == key
    config.threads = 1
    assert config.epoch == 1 and config.key() != key
    config.threads = 1
    assert config.epoch == 1
    assert [name for name, _ in key] == [f.name for f in FLAGS if f.affects != "debug"]


def test_wrong_settings_are_refused():
    config = Config({})
    with pytest.raises(ValueRangeError, match="no setting 'debgu'. Fix: use debug, device"):
        config.debgu = 1
    with pytest.raises(ValueRangeError, match="DEBUG is an integer, not 'high'"):
        config.debug = "high"
    with pytest.raises(ValueRangeError, match="PICOGRAD_THREADS is 0"):
        config.threads = 0
    with pytest.raises(ValueRangeError, match="no setting"), config.override(nothing=1):
        pass


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.variable)
@pytest.mark.parametrize("empty", ["", " "])
def test_empty_is_the_default(flag, empty, capsys):
    config = Config(drop_wrong({flag.variable: empty}))
    assert getattr(config, flag.name) == flag.default
    assert capsys.readouterr().err == ""


WRONG = ["true", "yes", "-2", "1.5", "1e3", "0x10", "nan", "*", "9" * 5000, "\x00"]


@pytest.mark.parametrize("flag", [f for f in FLAGS if f.type is int], ids=lambda f: f.variable)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_environment_is_one_line_and_the_default(flag, wrong, capsys):
    config = Config(drop_wrong({flag.variable: wrong}))
    assert getattr(config, flag.name) == flag.default
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"picograd: {flag.variable} is ") and "ignored" in line
    assert len(line) < 250


@pytest.mark.parametrize(
    ("variable", "value"),
    [("DEBUG", ""), ("DEBUG", "true"), ("VERIFY", "2"), ("PICOGRAD_THREADS", "1000000")],
)
def test_import_with_any_environment(variable, value):
    command = [sys.executable, "-c", "import picograd; print(picograd.config.debug)"]
    environment = {**os.environ, variable: value}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert len(done.stderr.splitlines()) == bool(value) and "Traceback" not in done.stderr


def test_numbers_are_not_rounded():
    config = Config({})
    for wrong in (2.7, float("nan"), float("inf"), None, [1]):
        with pytest.raises(ValueRangeError, match="DEBUG is an integer"):
            config.debug = wrong
    config.debug = 2.0
    assert config.debug == 2


def test_override_restores():
    config = Config({})
    with pytest.raises(KeyError), config.override(debug=3, device="null"):
        assert config.debug == 3
        raise KeyError
    assert config.debug == 0 and config.device == ""


def test_flags_are_few_and_documented():
    assert len(FLAGS) <= 12
    text = (Path(__file__).parents[1] / "docs" / "flags.md").read_text()
    for flag in FLAGS:
        assert flag.affects in ("semantics", "codegen", "debug")
        assert f"`{flag.variable}`" in text and flag.meaning in text


def test_settings_are_called_by_their_names():
    root = Path(__file__).parents[1]
    known = {flag.variable for flag in FLAGS}
    for path in [*root.glob("docs/**/*.md"), *root.glob("picograd/**/*.py")]:
        named = set(re.findall(r"\bPICOGRAD_[A-Z_0-9]+", path.read_text(encoding="utf-8")))
        assert named <= known, (path, named - known)
