"""Names by the module that has them: what is imported at its first use keeps `import` quick."""

import importlib
from collections.abc import Collection, Mapping

from picograd.torch_paths import PATHS

# rooms that import those below
ROOMS_ABOVE = (
    "accelerator", "amp", "array_api", "autograd", "backends", "cpu", "cuda", "distributed",
    "distributions", "export", "func", "futures", "fx", "hub", "library", "masked", "mps",
    "nested", "nn", "onnx", "optim", "profiler", "quasirandom", "return_types", "sparse",
    "testing", "utils",
)  # fmt: skip
# names by the module that has them
ELSEWHERE = {
    "absent": (
        "DeviceObjType", "PyTorchFileReader", "PyTorchFileWriter", "SymBool", "SymFloat",
        "SymInt", "TensorType", "TypedStorage", "_has_compatible_shallow_copy_type", "chalf",
        "complex32", "float8_e8m0fnu", "qint32", "qint8", "quint2x4", "quint4x2", "quint8",
        "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7",
    ),
    "amp": (
        "GradScaler", "clear_autocast_cache", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype",
        "is_autocast_cache_enabled", "is_autocast_cpu_enabled",
    ),
    "aten": (
        "_assert_async", "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo",
        "_grouped_mm", "_int_mm", "_safe_softmax", "_scaled_mm", "_shape_as_tensor",
        "_softmax_backward_data", "alias_copy", "as_strided_copy", "as_strided_scatter",
        "batch_norm", "binary_cross_entropy_with_logits", "constant_pad_nd", "convolution",
        "cosine_embedding_loss", "ctc_loss", "detach_copy", "diagonal_copy", "embedding",
        "empty_permuted", "empty_strided", "expand_copy", "fill", "grid_sampler",
        "grid_sampler_2d", "grid_sampler_3d", "gru_cell",
        "hinge_embedding_loss", "instance_norm", "kl_div", "lstm_cell", "margin_ranking_loss",
        "permute_copy", "poisson_nll_loss", "rnn_relu_cell", "rnn_tanh_cell", "select_copy",
        "slice_copy", "split_copy", "split_with_sizes_copy", "squeeze_copy", "t_copy",
        "transpose_copy", "triplet_margin_loss", "unbind_copy", "unfold_copy", "unsqueeze_copy",
        "view_as_complex_copy", "view_as_real_copy", "view_copy",
    ),
    "autograd.anomaly": ("is_anomaly_enabled",),
    "cuda": ("Event", "Stream"),
    "distributions.gamma_family": ("_standard_gamma",),
    "in_place": (
        "abs_", "acos_", "acosh_", "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_",
        "arctan_", "arctanh_", "as_strided_", "asin_", "asinh_", "atan_", "atanh_", "ceil_",
        "clamp_", "clamp_max_", "clamp_min_", "clip_", "cos_", "cosh_", "deg2rad_", "detach_",
        "erf_", "erfc_", "exp2_", "exp_", "expm1_", "fill_", "fix_", "floor_", "frac_", "gcd_",
        "i0_", "lcm_", "ldexp_", "log10_", "log1p_", "log2_", "log_", "logit_", "nan_to_num_",
        "neg_", "negative_", "rad2deg_", "reciprocal_", "resize_as_", "round_", "rsqrt_",
        "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_", "square_", "tan_", "tanh_",
        "trunc_", "xlogy_", "zero_",
    ),
    "library": ("ops",),
    "nn.files_of_objects": ("load", "save"),
    "nn.functional": (
        "alpha_dropout", "bilinear", "celu", "celu_", "channel_shuffle", "cosine_similarity",
        "dropout", "feature_alpha_dropout", "group_norm", "hardshrink", "layer_norm",
        "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_", "rms_norm",
        "rrelu", "rrelu_", "selu", "selu_", "threshold", "threshold_",
    ),
    "errors": ("OutOfMemoryError",),
    "futures": ("Future",),
    "tensor.core.methods_family": ("UntypedStorage",),
    "scripting": (
        "ScriptFunction", "ScriptModule", "_assert", "_check", "_check_index",
        "_check_is_size", "_check_tensor_all", "_check_type", "_check_value", "_check_with",
        "_disable_dynamo", "compile", "cond", "sym_float", "sym_int", "sym_ite", "sym_max",
        "sym_min", "sym_not", "sym_sum", "typename",
    ),
    "settings": (
        "are_deterministic_algorithms_enabled", "get_default_device",
        "get_deterministic_debug_mode", "get_float32_matmul_precision", "get_num_interop_threads",
        "get_num_threads", "is_deterministic_algorithms_warn_only_enabled",
        "is_inference", "is_inference_mode_enabled", "set_default_device", "set_default_dtype",
        "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
        "set_flush_denormal", "set_num_interop_threads", "set_num_threads",
        "use_deterministic_algorithms",
    ),
    "sparse": (
        "dsmm", "hsmm", "hspmm", "smm", "sparse_coo_tensor", "sparse_csr_tensor", "spmm",
    ),
    "tensor.linalg.low_rank": ("lobpcg", "pca_lowrank", "svd_lowrank"),
    "nn.quantization_names": (
        "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine",
    ),
    "tensor.making.random": ("default_generator",),
    "typed": (
        "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
        "HalfTensor", "IntTensor", "LongTensor", "ShortTensor", "Size", "channels_last",
        "channels_last_3d", "contiguous_format", "jagged", "layout", "legacy_contiguous_format",
        "memory_format",
        "preserve_format", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr",
        "strided",
    ),
}  # fmt: skip
PLACES = {name: room for room, names in ELSEWHERE.items() for name in names}
# rooms and modules of `picograd.nn`: data, files, several devices
ROOMS_OF_NN = (
    "clip", "collate", "dataset_types", "datasets", "file_kinds",
    "files_of_objects", "grad", "grad_scaler", "loader", "members", "nested", "parallel",
    "safetensors_file", "state", "stateless", "torch_file", "torch_pickle",
    "torch_writer", "transforms", "utils",
)  # fmt: skip
# names of `picograd.nn` by the module that has them
ELSEWHERE_IN_NN = {
    "collate": ("default_collate",),
    "dataset_types": (
        "ArrayDataset", "BatchSampler", "ChainDataset", "ConcatDataset", "Dataset",
        "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset",
        "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "random_split",
    ),
    "loader": ("DataLoader", "WorkerInfo", "get_worker_info"),
    "parallel": ("DataParallel",),
    "state": ("load", "save"),
    "torch_file": ("load_torch",),
    "torch_names": ("RNNBase", "RNNCellBase"),
}  # fmt: skip
PATHS_IN_NN = [path[3:] for path in PATHS if path.startswith("nn.") and path.count(".") == 1]
PLACES_IN_NN = {name: room for room, names in ELSEWHERE_IN_NN.items() for name in names}


def find(name: str) -> object:
    """Import a room, or what is in one. Raises AttributeError for what is not there."""
    if name.startswith("_foreach_"):
        return importlib.import_module("picograd.foreach").find_foreach(name)
    rooms = PATHS if name in PATHS else ROOMS_ABOVE
    return found_in("picograd", name, rooms, PLACES)


def find_in_nn(name: str) -> object:
    """Import a module of `picograd.nn`, or what is in one. Raises AttributeError for others."""
    rooms = PATHS_IN_NN if name in PATHS_IN_NN else ROOMS_OF_NN
    return found_in("picograd.nn", name, rooms, PLACES_IN_NN)


def gather(package: str, names: Mapping[str, Collection[str]]) -> dict[str, object]:
    """Import what a package shows: its names, by the module that has them."""
    modules = {module: importlib.import_module(f"{package}.{module}") for module in names}
    return {name: getattr(modules[module], name) for module in names for name in names[module]}


def found_in(package: str, name: str, rooms: Collection[str], places: Mapping[str, str]) -> object:
    """Import one of the rooms of a package, or what `places` says is in one."""
    if name in rooms:
        return importlib.import_module(f"{package}.{name}")
    if name in places:
        return getattr(importlib.import_module(f"{package}.{places[name]}"), name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
