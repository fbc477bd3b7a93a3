"""Settings of the process under PyTorch's names; docs/flags.md lists all there are."""

from typing import Any

from picograd.config import config
from picograd.device_name import device
from picograd.dtype import NEW_FLOATS, to_dtype
from picograd.engine.backends import default_device
from picograd.errors import DTypeError, ValueRangeError
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.autograd import MODE

PRECISIONS = ("highest", "high", "medium")  # of float32 products
WORDS: dict[str, Any] = {"precision": "highest", "deterministic": False, "warns": False}


def set_num_threads(count: int) -> None:
    """Choose how many threads of the CPU kernels run on.

    >>> import picograd
    >>> before = picograd.get_num_threads()
    >>> picograd.set_num_threads(1)
    >>> picograd.get_num_threads()
    1
    >>> picograd.set_num_threads(before)
    """
    config.threads = count


def get_num_threads() -> int:
    """Tell on how many threads of the CPU kernels run."""
    return config.threads


def set_num_interop_threads(count: int) -> None:
    """Accept PyTorch's setting: one thread of a program records, and there is nothing to choose."""


def get_num_interop_threads() -> int:
    """Count the threads that run different operations: one."""
    return 1


def set_default_dtype(d: DTypeLike) -> None:
    """Choose the dtype of new floats: of numbers, `zeros`, `rand`, parameters of layers.

    Raises DTypeError for a dtype that is no float of 16 bits or more.

    >>> import picograd
    >>> picograd.set_default_dtype(picograd.float64)
    >>> picograd.Tensor([1.0]).dtype
    picograd.float64
    >>> picograd.set_default_dtype(picograd.float32)
    """
    wanted = to_dtype(d)
    if wanted.kind != "float":
        raise DTypeError("set_default_dtype", f"{wanted.name} is no float", "use float32")
    if wanted is not NEW_FLOATS[0]:
        NEW_FLOATS[0] = wanted
        config.outdate()


def set_default_tensor_type(t: Any) -> None:
    """Choose the dtype of new floats by PyTorch's old names: "torch.DoubleTensor".

    >>> import picograd
    >>> picograd.set_default_tensor_type(picograd.FloatTensor)
    """
    set_default_dtype(t)


def set_default_device(device: DeviceLike | None) -> None:
    """Choose where new tensors are made; None gives the choice back to picograd.

    >>> import picograd
    >>> picograd.set_default_device("cpu")
    >>> picograd.get_default_device()
    'cpu'
    >>> picograd.set_default_device(None)
    """
    config.device = "" if device is None else str(named(device))


def named(where: DeviceLike) -> device:
    """Read the name, or the number, of a device."""
    return device(where)


def get_default_device() -> device:
    """Tell where new tensors are made."""
    return device(default_device())


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accept PyTorch's setting: results here are the same at every run anyway.

    >>> import picograd
    >>> picograd.use_deterministic_algorithms(True)
    """
    WORDS["deterministic"], WORDS["warns"] = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Tell what `use_deterministic_algorithms` was told."""
    return bool(WORDS["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Tell whether `use_deterministic_algorithms` was to warn only."""
    return bool(WORDS["warns"])


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Accept PyTorch's setting; see `use_deterministic_algorithms`."""
    use_deterministic_algorithms(debug_mode not in (0, "default"))


def get_deterministic_debug_mode() -> int:
    """Tell what `set_deterministic_debug_mode` was told: 0, 1 (warn) or 2 (refuse)."""
    return 0 if not WORDS["deterministic"] else 1 if WORDS["warns"] else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Choose how products, attention and convolutions of float32 are computed on a GPU.

    "highest" (the default): in float32. "high" and "medium": on the tensor cores of Hopper, which
    read 10 of the 23 bits of each mantissa (TF32) and sum in float32; other machines stay at
    float32. Unlike PyTorch's, one setting is for both, `backends.cuda.matmul.allow_tf32` too.
    Raises ValueRangeError for another word.

    >>> import picograd
    >>> picograd.set_float32_matmul_precision("high")
    >>> picograd.get_float32_matmul_precision()
    'high'
    >>> picograd.set_float32_matmul_precision("highest")
    """
    if precision not in PRECISIONS:
        fix = f"use {', '.join(PRECISIONS)}"
        raise ValueRangeError("set_float32_matmul_precision", f"{precision!r} is unknown", fix)
    WORDS["precision"], config.tf32 = precision, int(precision != "highest")


def get_float32_matmul_precision() -> str:
    """Tell what `set_float32_matmul_precision` was told, or the setting PICOGRAD_TF32."""
    if not config.tf32:
        return "highest"
    return "high" if WORDS["precision"] == "highest" else str(WORDS["precision"])


def set_flush_denormal(mode: bool) -> bool:
    """Refuse to flush small numbers to zero: answers False, as PyTorch where it cannot."""
    return False


def is_inference(input: Any) -> bool:
    """Tell whether a tensor was made in inference mode: never, that is `no_grad`."""
    return bool(input.is_inference())


def is_inference_mode_enabled() -> bool:
    """Tell whether an `inference_mode()` block is running: `no_grad()` alone is none."""
    return MODE.is_inference
