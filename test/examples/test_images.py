import importlib
from functools import partial

import numpy as np
import pytest

from picograd import nn

pytest.importorskip("PIL")


SIZE = ["--pixels", "24", "--batch-size", "30"]  # no batch is shorter, and both tests share kernels


def test_it_tells_shapes_apart(device, capsys, tmp_path, monkeypatch):
    example = importlib.import_module("images")
    monkeypatch.setattr(importlib.import_module("common"), "OUTPUT", tmp_path)
    options = ["--device", device, *SIZE, "--epochs", "8", "--plot"]
    percent = example.main(options)
    assert percent > 60  # a guess is right for a third
    text = capsys.readouterr().out
    assert "no folder of pictures" in text and "600 pictures of 3 classes, 150 held out" in text
    assert (tmp_path / "images_mistakes.png").exists()


def test_given_weights_and_folders(device, tmp_path, monkeypatch):
    example, network = (importlib.import_module(name) for name in ("images", "resnet18"))
    narrow = partial(network.ResNet18, width=16)
    monkeypatch.setattr(example, "ResNet18", lambda classes, width=16: narrow(classes))
    example.draw_pictures(tmp_path, count=50)
    names, learned, held = example.read_folder(tmp_path, 16)
    assert names == ["bar", "cross", "ring"] and learned[0].shape == (120, 3, 16, 16)
    assert held[1].tolist() == [0] * 10 + [1] * 10 + [2] * 10 and learned[0].dtype == np.uint8
    nn.save(narrow(7).state_dict(), tmp_path / "weights.safetensors")
    more = ["--weights", str(tmp_path / "weights.safetensors"), "--steps", "1", *SIZE]
    assert 0 <= example.main([str(tmp_path), "--device", device, *more]) <= 100
    empty = tmp_path / "bar"
    with pytest.raises(SystemExit, match="two folders"):
        example.read_folder(empty, 16)
