import importlib

import numpy as np
import pytest

from picograd import nn


@pytest.mark.slow
def test_some_steps_learn_and_the_saved_network_predicts(device, capsys, monkeypatch, tmp_path):
    example = importlib.import_module("mnist_cnn")
    monkeypatch.setattr(example, "OUTPUT", tmp_path)
    percent = example.main(["--device", device, "--epochs", "1", "--steps", "60"])
    assert percent > 80.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == f"test accuracy: {percent:.2f} %" and lines[-1].startswith("seconds: ")
    assert any(line.startswith("predicted: ") for line in lines)
    assert (tmp_path / "mnist_cnn.safetensors").is_file()


def test_network_has_the_recipes_size():
    network = importlib.import_module("mnist_cnn").Network()
    sizes = [int(np.prod(parameter.shape)) for parameter in network.parameters()]
    assert sum(sizes) == 458890
    assert isinstance(network, nn.Module)
