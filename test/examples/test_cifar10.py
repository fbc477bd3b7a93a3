import importlib

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.nn import datasets


def colours(count, device):
    """Images whose class is how red they are: learnable within a few steps."""
    random = np.random.default_rng(0)
    labels = np.arange(count) % 10
    images = random.integers(0, 20, (count, 3, 32, 32))
    images[:, 0] += 23 * labels[:, None, None]
    return Tensor(images.astype(np.uint8), device=device), Tensor(labels, device=device)


def test_the_program_runs_with_a_small_network(device, capsys, monkeypatch):
    example = importlib.import_module("cifar10")
    made = datasets.Cifar(*colours(60, device), *colours(10, device), tuple("0123456789"))
    monkeypatch.setattr(datasets, "cifar10", lambda device: made)
    small = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(48, 10))
    monkeypatch.setattr(example, "Network", lambda: small)
    monkeypatch.setattr(example, "PEAK_RATE", 0.1)
    percent = example.main(["--device", device, "--epochs", "6", "--batch-size", "10"])
    assert percent >= 30.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == f"test accuracy: {percent:.2f} %" and lines[-1].startswith("seconds: ")


def test_the_network_has_ten_outputs():
    network = importlib.import_module("cifar10").Network()
    assert network(Tensor.zeros(2, 3, 32, 32)).shape == (2, 10)  # recorded, not computed


def test_without_the_data_set_it_says_where_to_put_it(monkeypatch, tmp_path):
    example = importlib.import_module("cifar10")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    offline = datasets.Published("cifar-10-binary.tar.gz", ("file:///nowhere/",), 170052171, "")
    monkeypatch.setattr(datasets, "CIFAR10", offline)
    with pytest.raises(SystemExit, match="put cifar-10-binary.tar.gz into .*datasets/cifar10"):
        example.main([])
