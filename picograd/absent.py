"""Names of PyTorch whose subject is not here: programs import them, derive from them and ask.

Modes that watch each operator of PyTorch, its compiler's symbols, storages without tensors,
graphs of the driver that a program captures by itself. What cannot be answered raises.
"""

import warnings
from contextlib import ContextDecorator, nullcontext
from functools import cache
from typing import Any, NoReturn

from picograd.errors import StateError
from picograd.tensor.core.subclasses import (
    MODES,
    TorchFunctionMode,
    ask,
    ask_mode,
    asked_kinds,
    kinds_to_ask,
    not_asking,
)
from picograd.tensor.tensor import Tensor

__all__: list[str] = []


class TorchDispatchMode(ContextDecorator):
    """This class watches the operators that functions of PyTorch call: here it is never asked."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        """End the block."""


BaseTorchFunctionMode = TorchFunctionMode
DisableTorchFunction = DisableTorchFunctionSubclass = not_asking
TransformGetItemToIndex = nullcontext
unset_fake_temporarily = _ExcludeDispatchKeyGuard = nullcontext


def has_torch_function(*operands: Any) -> bool:
    """Tell whether an operand, one of a list, or a mode has a `__torch_function__` to ask."""
    return bool(MODES.get() or kinds_to_ask(operands))


has_torch_function_unary = has_torch_function_variadic = has_torch_function


def is_fake(*operands: Any) -> bool:
    """Tell that no operand stands for others."""
    return False


_has_compatible_shallow_copy_type = is_compile_supported = _is_tracing = (
    _are_functorch_transforms_active
) = _is_torch_function_mode_enabled = is_fake


class BroadcastingList:
    """This class names a list that one number may stand for, for PyTorch's script compiler."""

    def __class_getitem__(cls, item: Any) -> Any:
        """Give the type of an entry back."""
        return item


class TensorType:
    """This class names the type of a tensor for PyTorch's script compiler."""


Value = Graph = TensorType


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList


def is_tensor_like(value: Any) -> bool:
    """Tell whether a value is a tensor, or is asked as one."""
    return isinstance(value, Tensor) or bool(asked_kinds([value]))


def handle_torch_function(function: Any, operands: Any, *args: Any, **options: Any) -> Any:
    """Ask the mode, or the classes of operands, what a function gives."""
    kinds = kinds_to_ask(operands)
    return (ask_mode if MODES.get() else ask)(function, kinds, args, options)


def _get_current_function_mode_stack() -> list[Any]:
    """List the open modes, the innermost last."""
    return list(MODES.get())


def _get_current_function_mode() -> Any:
    """Find the innermost open mode, or None."""
    return MODES.get()[-1] if MODES.get() else None


def _disabled_torch_function_impl(
    function: Any, kinds: Any, args: Any = (), options: Any = None
) -> Any:
    """Call a function as it is: what a class is set to that is not to be asked."""
    with not_asking():
        return function(*args, **(options or {}))


class FakeTensor:
    """This class stands for tensors without values: there are none."""


class SymInt:
    """This class stands for sizes that PyTorch's compiler does not know: there are none."""


SymFloat = SymBool = FakeTensorMode = TypedStorage = FakeTensor
PyTorchFileReader = PyTorchFileWriter = DeviceObjType = FakeTensor


class AbsentDType:
    """This class names a dtype of PyTorch that tensors do not have: programs compare with it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


complex32 = chalf = AbsentDType("complex32")
qint8, quint8, qint32 = AbsentDType("qint8"), AbsentDType("quint8"), AbsentDType("qint32")
quint4x2, quint2x4 = AbsentDType("quint4x2"), AbsentDType("quint2x4")
float8_e8m0fnu = AbsentDType("float8_e8m0fnu")
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (AbsentDType(f"uint{n}") for n in range(1, 8))


def refuse_capture(*given: Any, **options: Any) -> NoReturn:
    """Raise: `picograd.jit` captures."""
    raise StateError("cuda.graph", "graphs are not captured by hand", "use picograd.jit(step)")


def refuse_compiling(*given: Any, **options: Any) -> NoReturn:
    """Raise: code in C++ is compiled against PyTorch."""
    fix = "use what the package has in Python, or picograd.autograd.Function"
    raise StateError("cpp_extension", "extensions of PyTorch are not compiled", fix)


load = load_inline = CppExtension = CUDAExtension = BuildExtension = refuse_compiling
CUDA_HOME = None


class FlopCounterMode:
    """This class counts multiplications as PyTorch's operators run: a profile knows the costs."""

    def __init__(self, *given: Any, **options: Any) -> None:
        """Raise StateError."""
        fix = "use picograd.profile(), whose table has the operations of each kernel"
        raise StateError("FlopCounterMode", "operators are not watched one by one", fix)


class CUDAGraph:
    """This class is a graph of launches, which `picograd.jit` makes by itself."""

    replay = reset = capture_begin = capture_end = refuse_capture


def _get_tracing_state() -> None:
    """Tell that PyTorch's tracer does not run."""


get_proxy_mode = _get_tracing_state
_TensorMeta = type(Tensor)


def _log_api_usage_once(*event: Any) -> None:
    """Note nothing."""


def __getattr__(name: str) -> Any:
    """Give a function that changes nothing for the settings of PyTorch's script compiler."""
    if name.startswith(("_jit_set_", "_jit_override_")):
        return _log_api_usage_once
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_gradtrackingtensor(tensor: object) -> bool:
    """Tell that a tensor is not wrapped: inside `picograd.func.grad` it requires gradients."""
    return False


def is_batchedtensor(tensor: object) -> bool:
    """Tell that a tensor is not wrapped: inside `picograd.vmap` it stands for one sample."""
    return False


def get_unwrapped(tensor: Any) -> Any:
    """Give what a tensor wraps: itself."""
    return tensor


def _is_alias_of(tensor: Any, other: Any) -> bool:
    """Tell whether two tensors have one memory."""
    addresses = [each.untyped_storage().data_ptr() for each in (tensor, other)]
    return bool(addresses[0] == addresses[1])


def refuse_levels(*given: Any, **options: Any) -> NoReturn:
    """Raise: `picograd.vmap` counts the levels itself."""
    raise StateError("vmap", "levels of batches are not entered by hand", "use picograd.vmap")


_add_batch_dim = _remove_batch_dim = _maybe_remove_batch_dim = refuse_levels
_create_batched_inputs = _unwrap_batched = _process_batched_inputs = refuse_levels
_broadcast_to_and_flatten = _get_name = refuse_levels


class DispatchKeySet:
    """This class names kinds of tensors among which PyTorch's operators choose: there is one."""

    def __init__(self, *keys: Any) -> None:
        """Take any."""

    def __or__(self, other: Any) -> Any:
        return self


class EveryName:
    """This class has every name that it is asked for."""

    def __getattr__(self, name: str) -> str:
        return name


DispatchKey = EveryName()


class ScriptMethod:
    """This class stands for methods that PyTorch's script compiler made: there are none."""


class Unsupported(RuntimeError):
    """This class is an error of PyTorch's compiler, which programs expect: it is never raised."""


BackendCompilerFailed = InternalTorchDynamoError = TorchDynamoException = Unsupported


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Tell whether a tensor is of a class that says, as PyTorch asks, which tensors it wraps."""
    wraps = ("__tensor_flatten__", "__tensor_unflatten__")
    return isinstance(t, Tensor) and all(hasattr(t, name) for name in wraps)


def has_triton() -> bool:
    """Tell that there is no Triton: kernels are picograd's own."""
    return False


@cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn of something the first time only."""
    warnings.warn(msg, stacklevel=stacklevel + 2)
