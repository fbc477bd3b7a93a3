import importlib

import pytest

import picograd


@pytest.fixture(autouse=True)
def own_precision():
    """The example chooses one for the process."""
    with picograd.config.override(tf32=picograd.config.tf32):
        yield


@pytest.mark.slow
def test_a_quarter_of_an_epoch_learns(device, capsys):
    example = importlib.import_module("mnist_speedrun")
    arguments = ["--device", device, "--batch-size", "128", "--steps", "117", "--seeds", "1"]
    assert example.main(arguments) > 97.5
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("seconds: set-up ") and " compilation " in lines[-1]


def test_a_jitted_stretch_equals_its_steps(device, capsys):
    """Every seed begins with the same memory, fresh weights and empty averages."""
    example = importlib.import_module("mnist_speedrun")
    arguments = ["--device", device, "--batch-size", "128", "--steps", "6", "--seeds", "2"]
    captured = example.main(arguments)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[-5:-3]] == ["seed 0", "seed 1"]
    assert example.main([*arguments, "--no-jit"]) == pytest.approx(captured, abs=2.0)


def test_rates_rise_and_fall():
    rates = importlib.import_module("mnist_speedrun").rates_of(100)
    assert max(rates) == pytest.approx(rates[24]) == pytest.approx(1e-2)
    assert sorted(rates[:25]) == rates[:25] and sorted(rates[24:], reverse=True) == rates[24:]
