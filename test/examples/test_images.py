import importlib

import numpy as np
import pytest

from picograd import nn

pytest.importorskip("PIL")


def test_it_tells_shapes_apart(device, capsys, tmp_path, monkeypatch):
    example = importlib.import_module("images")
    monkeypatch.setattr(importlib.import_module("common"), "OUTPUT", tmp_path)
    options = ["--device", device, "--pixels", "32", "--epochs", "8", "--plot"]
    percent = example.main(options)
    assert percent > 60  # a guess is right for a third
    text = capsys.readouterr().out
    assert "no folder of pictures" in text and "600 pictures of 3 classes, 150 held out" in text
    assert (tmp_path / "images_mistakes.png").exists()


def test_given_weights_and_folders(device, tmp_path):
    example = importlib.import_module("images")
    example.draw_pictures(tmp_path, count=5)
    names, learned, held = example.read_folder(tmp_path, 16)
    assert names == ["bar", "cross", "ring"] and learned[0].shape == (12, 3, 16, 16)
    assert held[1].tolist() == [0, 1, 2] and learned[0].dtype == np.uint8
    network = importlib.import_module("resnet18").ResNet18(7)
    nn.save(network.state_dict(), tmp_path / "weights.safetensors")
    more = ["--weights", str(tmp_path / "weights.safetensors"), "--steps", "1", "--pixels", "32"]
    assert 0 <= example.main([str(tmp_path), "--device", device, *more]) <= 100
    empty = tmp_path / "bar"
    with pytest.raises(SystemExit, match="two folders"):
        example.read_folder(empty, 16)
