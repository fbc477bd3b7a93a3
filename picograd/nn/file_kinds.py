"""What a file is that holds no tensors picograd reads, and what to do with it.

Told by its first bytes (the formats' own magic numbers), the names in an archive, or, where a
format has no mark, by the name of the file.
"""

import os
import re
from collections.abc import Collection

OURS = "picograd reads .safetensors files and state dicts of torch.save"
AS_TORCH = "torch.save(model.state_dict(), path)"
UNPACK = "decompress it first"
CONVERT = f"export the weights as .safetensors; {OURS}"
NUMPY = "use numpy.load, then picograd.Tensor(array)"
KERAS = f"read the arrays with h5py, then picograd.Tensor(array); {OURS}"
TENSORFLOW = f"read the arrays with TensorFlow, then picograd.Tensor(array); {OURS}"
JIT = "save its weights: torch.save(torch.jit.load(path).state_dict(), new_path)"
LONGEST = 262  # bytes of the beginning that tell

# pattern at the start of the file -> what it is, what to do
MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (rb"GGUF|FUGG|ggml|lmgg|tjgg", "a GGUF model", CONVERT),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes", KERAS),
    (rb"\x93NUMPY", "a NumPy array (.npy)", NUMPY),
    (rb"....TFL3", "a TensorFlow Lite model", TENSORFLOW),
    (rb"\x1f\x8b", "compressed with gzip", UNPACK),
    (rb"BZh[1-9]1AY&SY", "compressed with bzip2", UNPACK),
    (rb"\xfd7zXZ\x00", "compressed with xz", UNPACK),
    (rb"\x28\xb5\x2f\xfd", "compressed with Zstandard", UNPACK),
    (rb"\x04\x22\x4d\x18", "compressed with LZ4", UNPACK),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (rb"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (rb".{257}ustar", "a tar archive", f"unpack it; if PyTorch wrote it, save anew: {AS_TORCH}"),
    (rb"version https://git-lfs", "a pointer of Git LFS, not the file", "run `git lfs pull`"),
    (rb"\s*<(!doctype|!DOCTYPE|html|HTML|\?xml)", "a web page", "download the file itself"),
    (rb"\s*[\[{](?!\"__metadata__)", "a JSON file", "load the .safetensors files it names"),
    (rb'model_checkpoint_path: "', "an index of TensorFlow checkpoints", TENSORFLOW),
    (rb"\x80[\x02-\x05]", "a pickle that torch.save did not write",
     f"picograd runs no pickles: load it where it was made, then {AS_TORCH}"),
    (rb"\(dp|\(lp|c[a-zA-Z_.]+\n\w+\n", "a pickle that torch.save did not write",
     f"picograd runs no pickles: load it where it was made, then {AS_TORCH}"),
    (rb"\x08[\x01-\x20][\x12\x1a\x22\x28\x32\x3a\x42\x72]", "an ONNX model, or another protobuf",
     "use picograd.onnx.load, if it is an ONNX model"),
)  # fmt: skip
# pattern of the file's name, for formats without a mark
NAMES: tuple[tuple[str, str, str], ...] = (
    (r".*\.onnx$", "an ONNX model", "use picograd.onnx.load"),
    (r"(.*\.)?saved_model\.pb$|.*\.pb$", "a TensorFlow model", TENSORFLOW),
    (r".*\.ckpt(-\d+)?\.(index|meta)$|.*\.data-\d+-of-\d+$", "part of a TensorFlow checkpoint",
     TENSORFLOW),
    (r".*\.index$", "part of a TensorFlow checkpoint", TENSORFLOW),
    (r".*\.(h5|hdf5)$", "an HDF5 file", KERAS),
    (r".*\.msgpack$", "a Flax checkpoint", CONVERT),
)  # fmt: skip


def kind_of(head: bytes, path: str) -> tuple[str, str] | None:
    """Tell what a file is and what to do, by its first LONGEST bytes or its name; None: unknown."""
    name = os.path.basename(path)
    for pattern, what, fix in NAMES:
        if re.match(pattern, name):
            return what, fix
    for magic, what, fix in MAGIC:
        if re.match(magic, head, re.DOTALL):
            return what, fix
    return None


def archive_kind(names: Collection[str]) -> tuple[str, str] | None:
    """Tell what a zip archive is that holds no state dict; None for one of torch.save."""
    ends = {name.partition("/")[2] for name in names}
    if "constants.pkl" in ends or "bytecode.pkl" in ends:
        return "a TorchScript archive", JIT
    if (
        any(end.startswith("models/") for end in ends)
        or "serialized_exported_program.json" in names
    ):
        return "a program of torch.export", f"save its weights: {AS_TORCH}"
    if names and all(name.endswith(".npy") for name in names):
        return "NumPy arrays (.npz)", "use numpy.load, then picograd.Tensor(array)"
    if "model.weights.h5" in names:
        return "a Keras model", KERAS
    if "data.pkl" not in ends:
        return "a zip archive without a data.pkl", "use a file that torch.save wrote"
    return None
