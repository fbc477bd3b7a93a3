import importlib
import math

import pytest


def test_captured_and_uncaptured_steps_agree(device, capsys):
    example = importlib.import_module("micrograd_mlp")
    arguments = ["--device", device, "--epochs", "1"]
    first = example.main(arguments)
    assert math.isfinite(first)
    assert example.main([*arguments, "--no-jit"]) == pytest.approx(first, abs=5e-4)
    assert "seconds: set-up" in capsys.readouterr().out


def test_the_loss_falls_by_default(device, capsys):
    last = importlib.import_module("micrograd_mlp").main(["--device", device])
    losses = [line.split()[-1] for line in capsys.readouterr().out.splitlines() if "loss" in line]
    assert len(losses) >= 20 and last < 0.01 * float(losses[0])


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_plot_shows_the_loss(epochs, device, capsys, monkeypatch, tmp_path):
    """Also one of a single step: something is drawn inside the axes."""
    pytest.importorskip("matplotlib")
    common = importlib.import_module("common")
    shown = []
    monkeypatch.setattr(common, "write", lambda figure, name: shown.append(figure))
    importlib.import_module("micrograd_mlp").main(
        ["--device", device, "--epochs", str(epochs), "--plot"]
    )
    (axes,) = shown[0].axes
    drawn = [line for line in axes.lines if len(line.get_xdata()) > 1 or line.get_marker() == "o"]
    assert drawn and len(drawn[-1].get_xdata()) == epochs
    shown[0].canvas.draw()
    picture = shown[0].canvas.buffer_rgba()
    colours = {bytes(pixel) for row in memoryview(picture).tolist() for pixel in row}
    assert bytes((0, 0x55, 0xAA, 255)) in colours  # the colour of the curve
