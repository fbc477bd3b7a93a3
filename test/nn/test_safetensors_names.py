"""The functions of safetensors.torch for our tensors; the package reads what they write."""

import numpy as np
import pytest

import picograd
from picograd import nn
from picograd.nn import safetensors_names as names

package = pytest.importorskip("safetensors.numpy")


def test_the_package_reads_what_was_written_and_the_reverse(tmp_path) -> None:
    import safetensors
    from safetensors.picograd import load_file, save_file  # type: ignore

    path, x = tmp_path / "a.safetensors", np.arange(6, dtype=np.float32).reshape(2, 3)
    save_file({"x": picograd.tensor(x)}, path, metadata={"format": "pt"})
    np.testing.assert_array_equal(package.load_file(path)["x"], x)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["format"] == "pt"
    package.save_file({"y": x}, path)
    np.testing.assert_array_equal(load_file(path)["y"].numpy(), x)
    assert package.load(names.save({"x": picograd.tensor(x)}))["x"].tolist() == x.tolist()


def test_modules_come_back(tmp_path) -> None:
    layer, other = nn.Linear(2, 3), nn.Linear(2, 3)
    names.save_model(layer, tmp_path / "m.safetensors")
    assert names.load_model(other, tmp_path / "m.safetensors") == ([], [])
    assert other.weight.tolist() == layer.weight.tolist()
    assert names.storage_size(layer.weight) == 24 and names.storage_ptr(layer.weight) > 0
