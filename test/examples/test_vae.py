import importlib
from pathlib import Path

import numpy as np

import picograd
from picograd import Tensor


def test_it_learns_to_draw_digits(device, capsys, tmp_path, monkeypatch):
    example = importlib.import_module("vae")
    monkeypatch.setattr(importlib.import_module("common"), "OUTPUT", tmp_path)
    monkeypatch.setattr(example, "INSIDE", 64)
    loss = example.main(["--device", device, "--steps", "100", "--epochs", "1", "--plot"])
    assert loss < 260  # nats; 784 bits of a coin are 543, the mean digit gives about 206
    assert "nats a digit" in capsys.readouterr().out
    pictures = {path.name for path in Path(tmp_path).iterdir()}
    assert {"vae_digits.png", "vae_again.png"} <= pictures


def test_the_bound_is_that_of_the_paper(device):
    """The second part is the divergence of two normal distributions, from its formula."""
    example = importlib.import_module("vae")
    picograd.manual_seed(0)
    model = example.Network().to(device)
    x = Tensor.rand(3, example.PIXELS, device=device)
    wrong, far = example.bound(model, x)
    h = model.encoder(x)
    mean, variance = model.mean(h).numpy(), np.exp(model.log_variance(h).numpy())
    wanted = 0.5 * (mean**2 + variance - 1 - np.log(variance)).sum() / 3
    np.testing.assert_allclose(far.item(), wanted, rtol=1e-4)
    assert wrong.item() > 400 and example.draw(model, 2).shape == (2, example.PIXELS)
