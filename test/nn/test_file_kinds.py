"""Files of other formats are called by their names, with what to do."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import tarfile
import zipfile

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import StateError


def zipped(**records):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    return buffer.getvalue()


def written(write, value):
    buffer = io.BytesIO()
    write(buffer, value)
    return buffer.getvalue()


def arrays(save):
    buffer = io.BytesIO()
    save(buffer, a=np.ones(3))
    return buffer.getvalue()


ONNX = b"\x08\x08\x12\x07pytorch\x1a\x032.1:\x10" + bytes(40)
KERAS = {"metadata.json": "{}", "config.json": "{}", "model.weights.h5": "x"}
SCRIPT = {"m/data.pkl": "x", "m/constants.pkl": "x", "m/code/__torch__.py": "x", "m/version": "3"}
FILES = {
    "model.onnx": (ONNX, "an ONNX model", "use picograd.onnx.load"),
    "unnamed onnx": (ONNX, "an ONNX model", "use picograd.onnx.load"),
    "model.gguf": (b"GGUF\x03" + bytes(60), "a GGUF model", "export the weights as .safetensors"),
    "script.pt": (zipped(**SCRIPT), "a TorchScript archive", r"torch.jit.load\(path\).state_dict"),
    "model.h5": (b"\x89HDF\r\n\x1a\n" + bytes(90), "an HDF5 file", "h5py"),
    "model.keras": (zipped(**KERAS), "a Keras model", "h5py"),
    "a.npy": (written(np.save, np.ones(3)), r"a NumPy array \(.npy\)", "use numpy.load"),
    "a.npz": (arrays(np.savez), r"NumPy arrays \(.npz\)", "use numpy.load"),
    "b.npz": (arrays(np.savez_compressed), r"NumPy arrays \(.npz\)", "use numpy.load"),
    "model.tflite": (b"\x1c\0\0\0TFL3" + bytes(60), "a TensorFlow Lite model", "TensorFlow"),
    "saved_model.pb": (b"\x08\x01\x12" + bytes(60), "a TensorFlow model", "TensorFlow"),
    "m.ckpt.index": (bytes(60), "part of a TensorFlow checkpoint", "TensorFlow"),
    "m.data-00000-of-00001": (bytes(60), "part of a TensorFlow checkpoint", "TensorFlow"),
    "a.pt.gz": (gzip.compress(b"x" * 99), "compressed with gzip", "decompress it"),
    "a.bz2": (bz2.compress(b"x" * 99), "compressed with bzip2", "decompress it"),
    "a.xz": (lzma.compress(b"x" * 99), "compressed with xz", "decompress it"),
    "a.tar": (tarred(), "a tar archive", "unpack it"),
    "old.pkl": (pickle.dumps({"a": 1}, 0), "a pickle that torch.save did not", "runs no pickles"),
    "a.pkl": (pickle.dumps({"a": 1}, 4), "a pickle that torch.save did not", "runs no pickles"),
    "lfs": (
        b"version https://git-lfs.github.com/spec/v1\n",
        "a pointer of Git LFS",
        "git lfs pull",
    ),
    "page": (b"<!DOCTYPE html><html>", "a web page", "download the file itself"),
    "index.json": (json.dumps({"weight_map": {}}).encode(), "a JSON file", "it names"),
    "document": (zipped(**{"word/document.xml": "x"}), "a zip archive without a data.pkl", "use"),
}


@pytest.mark.parametrize("load", [nn.load, nn.load_torch])
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_called_by_its_name(name, load, tmp_path):
    content, what, fix = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StateError, match=rf"(?s)load: .*{name} is {what}.* Fix: .*{fix}"):
        load(tmp_path / name)


@pytest.mark.parametrize("name", ["a.onnx", "a.pb", "a.h5", "GGUF", "a.index"])
def test_names_do_not_matter_for_a_state(name, tmp_path):
    nn.save({"a": Tensor([1.0])}, tmp_path / name)
    assert nn.load(tmp_path / name)["a"].tolist() == [1.0]
