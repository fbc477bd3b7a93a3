from pathlib import Path

import pytest

from picograd.config import FLAGS, Config, format_flags
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


def test_override_restores():
    config = Config({})
    with pytest.raises(KeyError), config.override(debug=3, device="null"):
        assert config.debug == 3
        raise KeyError
    assert config.debug == 0 and config.device == ""


def test_flags_are_few_and_documented():
    assert len(FLAGS) <= 12
    text = format_flags()
    for flag in FLAGS:
        assert flag.affects in ("semantics", "codegen", "debug")
        assert f"`{flag.variable}`" in text and flag.meaning in text
    page = Path(__file__).parents[1] / "docs" / "flags.md"
    assert page.read_text() == text, "write format_flags() to docs/flags.md"
