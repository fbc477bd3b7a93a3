import importlib

import pytest


@pytest.mark.slow
def test_one_epoch_learns(device, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.import_module("common"), "OUTPUT", tmp_path)
    percent = importlib.import_module("mnist_mlp").main(["--device", device, "--epochs", "1"])
    assert percent > 92.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == f"test accuracy: {percent:.2f} %"
    assert lines[-1].startswith("seconds: set-up ") and " compilation " in lines[-1]


def test_three_steps_without_capture_equal_three_with(device, capsys):
    example = importlib.import_module("mnist_mlp")
    arguments = ["--device", device, "--epochs", "1", "--steps", "3"]
    captured = example.main(arguments)
    assert example.main([*arguments, "--no-jit"]) == pytest.approx(captured, abs=0.1)
