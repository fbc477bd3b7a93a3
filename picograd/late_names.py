"""Names of `picograd` that are imported at their first use, so that importing it stays quick."""

import importlib
from collections.abc import Collection, Mapping

# rooms that import those below
ROOMS_ABOVE = (
    "accelerator", "amp", "array_api", "autograd", "backends", "cuda", "distributed",
    "distributions", "func", "fx", "mps", "nn", "onnx", "optim", "utils",
)  # fmt: skip
# names by the module that has them
ELSEWHERE = {
    "amp": ("GradScaler",),
    "autograd.anomaly": ("is_anomaly_enabled",),
    "nn.files_of_objects": ("load", "save"),
    "scripting": ("_assert", "compile"),
    "settings": (
        "are_deterministic_algorithms_enabled", "get_default_device",
        "get_deterministic_debug_mode", "get_float32_matmul_precision", "get_num_interop_threads",
        "get_num_threads", "is_deterministic_algorithms_warn_only_enabled",
        "is_inference_mode_enabled", "set_default_device", "set_default_dtype",
        "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
        "set_flush_denormal", "set_num_interop_threads", "set_num_threads",
        "use_deterministic_algorithms",
    ),
    "typed": (
        "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
        "HalfTensor", "IntTensor", "LongTensor", "ShortTensor", "Size", "channels_last",
        "channels_last_3d", "contiguous_format", "layout", "memory_format", "preserve_format",
        "strided",
    ),
}  # fmt: skip
PLACES = {name: room for room, names in ELSEWHERE.items() for name in names}
# rooms and modules of `picograd.nn`: data, files, several devices
ROOMS_OF_NN = (
    "clip", "collate", "dataset_types", "datasets", "download", "file_kinds", "files",
    "files_of_objects", "grad_scaler", "loader", "loader_workers", "members", "nested", "parallel",
    "safetensors_file", "samplers", "state", "stateless", "torch_file", "torch_pickle",
    "torch_writer", "transforms", "utils",
)  # fmt: skip
# names of `picograd.nn` by the module that has them
ELSEWHERE_IN_NN = {
    "collate": ("default_collate",),
    "dataset_types": (
        "ArrayDataset", "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset",
        "StackDataset", "Subset", "TensorDataset", "random_split",
    ),
    "loader": ("DataLoader",),
    "loader_workers": ("WorkerInfo", "get_worker_info"),
    "parallel": ("DataParallel",),
    "samplers": (
        "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
        "WeightedRandomSampler",
    ),
    "state": ("load", "save"),
    "torch_file": ("load_torch",),
}  # fmt: skip
PLACES_IN_NN = {name: room for room, names in ELSEWHERE_IN_NN.items() for name in names}
# PyTorch's modules that are not there, and why
REFUSED = {
    "hub": "models are not downloaded: build one, and load its weights with picograd.load",
    "multiprocessing": "tensors are not shared between processes: use threads, or num_workers",
    "quantization": "there are no quantised tensors",
    "sparse": "there are no sparse tensors",
}


def find(name: str) -> object:
    """Import a room, or what is in one. Raises AttributeError for what is not there."""
    return found_in("picograd", name, ROOMS_ABOVE, PLACES)


def find_in_nn(name: str) -> object:
    """Import a module of `picograd.nn`, or what is in one. Raises AttributeError for others."""
    return found_in("picograd.nn", name, ROOMS_OF_NN, PLACES_IN_NN, {})


def found_in(
    package: str,
    name: str,
    rooms: Collection[str],
    places: Mapping[str, str],
    refused: Mapping[str, str] = REFUSED,
) -> object:
    """Import one of the rooms of a package, or what `places` says is in one."""
    if name in rooms:
        return importlib.import_module(f"{package}.{name}")
    if name in places:
        found: object = getattr(importlib.import_module(f"{package}.{places[name]}"), name)
        return found
    reason = f": {refused[name]}" if name in refused else ""
    raise AttributeError(f"module {package!r} has no attribute {name!r}{reason}")
