import importlib

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn

pytest.importorskip("onnx")


def test_it_runs_a_network_of_its_own(device, capsys):
    example = importlib.import_module("onnx_run")
    found = example.main(["--device", device, "--size", "batch=3"])
    (scores,) = found.values()
    assert scores.shape == (3, 10)
    assert "small.onnx" in capsys.readouterr().out


def test_arrays_and_pictures_go_in_and_names_come_out(device, capsys, tmp_path):
    image = pytest.importorskip("PIL.Image")
    example = importlib.import_module("onnx_run")
    picograd.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 6)).to(device)
    path = tmp_path / "model.onnx"
    picograd.onnx.export(model, Tensor.zeros(1, 3, 8, 8, device=device), path)
    colours = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    image.fromarray(colours).save(tmp_path / "cat.png")
    (tmp_path / "names.txt").write_text("\n".join(f"name {number}" for number in range(6)))
    given = [str(path), "--device", device, "--labels", str(tmp_path / "names.txt")]
    found = example.main([*given, "--picture", str(tmp_path / "cat.png")])
    x = ((colours / 255 - example.MEAN) / example.SPREAD).transpose(2, 0, 1)[None]
    x = x.astype(np.float32)
    wanted = model(Tensor(x, device=device)).numpy()
    np.testing.assert_allclose(found["output"], wanted, rtol=1e-4, atol=1e-5)
    assert f"name {wanted[0].argmax()}" in capsys.readouterr().out

    np.savez(tmp_path / "given.npz", input=x)
    files = ["--inputs", str(tmp_path / "given.npz"), "--outputs", str(tmp_path / "found.npz")]
    example.main([str(path), "--device", device, *files])
    with np.load(tmp_path / "found.npz") as written:
        np.testing.assert_allclose(written["output"], wanted, rtol=1e-4, atol=1e-5)
