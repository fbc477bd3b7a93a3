import importlib
import math

import pytest


def test_captured_and_uncaptured_steps_agree(device, capsys):
    example = importlib.import_module("micrograd_mlp")
    first = example.main(["--device", device])
    assert math.isfinite(first)
    assert example.main(["--device", device, "--no-jit"]) == pytest.approx(first, abs=5e-4)
    assert "seconds: set-up" in capsys.readouterr().out
