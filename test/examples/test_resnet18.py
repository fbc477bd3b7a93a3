import importlib
import math

import pytest


@pytest.mark.slow
def test_some_steps_learn(device, capsys):
    losses = importlib.import_module("resnet18").main(["--device", device, "--steps", "3"])
    assert len(losses) == 3 and all(map(math.isfinite, losses)) and losses[-1] < losses[0]
    assert "step 3: loss" in capsys.readouterr().out
