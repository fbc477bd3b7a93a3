"""Methods of `Tensor` by kind. Python's protocols, NumPy's and DLPack's.

What Python asks of an object by a method with underscores: its length, its truth, its text, how to
copy and pickle it, and how other libraries get at its memory.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from picograd.engine import foreign, pending
from picograd.engine.foreign import hand_out
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_view
from picograd.engine.tracing import check_not_tracing, is_tracing
from picograd.errors import DTypeError, ExportError, GradientError, ShapeError, ValueRangeError
from picograd.graph.room import check_pieces
from picograd.late_names import find
from picograd.number import VALUES_AS_CODE
from picograd.runtime.dlpack import device_pair
from picograd.target import is_host
from picograd.tensor.core import autograd, between_processes, copying, exchange, printing
from picograd.tensor.core.annotations import DeviceLike, DTypeLike, TensorLike
from picograd.tensor.core.printing import MOST, tensor_html
from picograd.tensor.core.recording import (
    NUMBERS,
    Recorded,
    Same,
    as_tensor,
    is_view,
    restored,
    root_of,
)

READ = 1 << 24  # elements that are copied to print some: a kernel for the ends takes longer


class ProtocolMethods(Recorded):
    """This class holds methods of `Tensor`. Python's protocols, NumPy's and DLPack's."""

    __slots__ = ()
    __array_priority__ = 1000

    def __len__(self) -> int:
        if not self.shape:
            raise DTypeError("len()", "a zero-dim tensor has no length", "use .numel()")
        return self.shape[0]

    def __iter__(self: Same) -> Iterator[Same]:
        if not self.shape:
            raise DTypeError("iter()", "a zero-dim tensor has no elements to visit", "use .item()")
        tensor: Any = self
        count = self.shape[0]
        check_pieces("iter()", count)
        # q, k, v = x: on a GPU, kernels of known places are faster.
        if count <= VALUES_AS_CODE and not is_host(self.device):
            return iter(tensor.unbind(0))
        return iter([tensor[at] for at in range(count)])

    def __reversed__(self: Same) -> Same:
        """Give the tensor from its last entry to its first."""
        tensor: Any = self
        return tensor.flip(0) if self.shape else tensor

    def __contains__(self, value: TensorLike) -> bool:
        if not isinstance(value, (Recorded, *NUMBERS)):
            text = f"a {type(value).__name__} is not an element of a tensor"
            raise DTypeError("in", text, "look for a number or a tensor")
        found: Any = self == value
        return found.any().item()

    def __bool__(self) -> bool:
        if self._node.size != 1:
            text = f"the truth value of a tensor of shape {self.shape} is ambiguous"
            raise ShapeError("bool()", text, "use .any() or .all()")
        check_not_tracing("bool()")
        return bool(only(self))

    def __float__(self) -> float:
        return float(real_of("float()", self))

    def __int__(self) -> int:
        return int(real_of("int()", self))

    def __complex__(self) -> complex:
        return complex(only(self))

    def __index__(self) -> int:
        if self.dtype.is_differentiable or self._node.size != 1:
            text = f"a {self.dtype.name} tensor of shape {self.shape} is not an index"
            raise DTypeError("index()", text, "use a whole number")
        return int(only(self))

    def __format__(self, spec: str) -> str:
        if is_tracing():
            check_not_tracing("format()")
        if not spec and (self.shape or self._node.device == "meta"):
            return repr(self)
        if self._node.size != 1:
            text = f"a tensor of shape {self.shape} has no format {spec!r}"
            raise DTypeError("format()", text, "format its elements, or use .item()")
        return format(only(self), spec)

    def __str__(self) -> str:
        check_not_tracing("str()")
        return repr(self)

    def __repr__(self) -> str:
        if is_tracing():
            return printing.format_traced(self.shape, self.dtype.name, self.device)
        function = autograd.function_of(self._node) if self._tracks and not self.is_leaf else None
        values = None if self.device == "meta" else to_print(self, printing.OPTIONS.edgeitems)
        return printing.format_tensor(
            values, self.shape, self.dtype, self.device, self._tracks, function, shown_kind(self)
        )

    def _repr_html_(self) -> str:
        kind = f"{self.dtype.name}{list(self.shape)} on {self.device}"
        values = None if self._node.device == "meta" else to_print(self, MOST // 2)
        return tensor_html(values, repr(self), f"{self.name or 'Tensor'} {kind}")

    # copies

    def __copy__(self: Same) -> Same:
        return copying.shallow(self)  # type: ignore[no-any-return]

    def __deepcopy__(self: Same, memo: Any) -> Same:
        if not self.is_leaf:
            text = "only tensors that the user made can be copied deeply, not computed ones"
            raise GradientError("deepcopy", text, "copy .detach() instead")
        result = copying.deep(self, memo)
        grad = self.grad
        if grad is not None:  # it may be among what is copied, too
            if id(grad) not in memo:
                memo[id(grad)] = copying.copied(grad, True)
            result.grad = memo[id(grad)]
        return result  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        more = getattr(self, "__dict__", None)
        asked = True if self._tracks else False if self._is_frozen else None
        if (handed := between_processes.handed(self, asked)) is not None:
            return *handed, more or None
        state = (to_host(self), self.dtype.name, self.device, asked)
        return restored, (type(self), *state), more or None

    # other libraries

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> "np.ndarray[Any, Any]":
        if copy is False:
            return shared_array(self, dtype)
        array = to_host(self)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """Compute a function of NumPy: recorded by ours of that name, else on the values.

        An array as `out` takes the values, as in `array += tensor`.
        """
        plain = method == "__call__" and out is None and not options
        ours = recording(ufunc.__name__, inputs, self) if plain else None
        return on_values(ufunc, method, inputs, out, options) if ours is None else ours

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """Share the memory with another library: a capsule of the DLPack protocol.

        `stream` is the consumer's CUDA stream, which waits for the values: None for the legacy
        default stream, -1 for no waiting. `dl_device` (1, 0) asks for a copy on the CPU. Raises
        ExportError (a BufferError) for a tensor that asks for gradients: export its detach().

        >>> numpy.from_dlpack(picograd.Tensor([1.0, 2.0])).tolist()
        [1.0, 2.0]
        """
        if self._tracks:
            text = "a tensor that asks for gradients cannot be shared"
            raise ExportError("dlpack", text, "share .detach()")
        if not copy:
            check_not_tracing("dlpack")
            copying.lay_open(self)
        return exchange.export(self._node, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_pair(self.device)

    @property
    def _base(self) -> "Recorded | None":
        """The tensor whose memory this one shows; None of one with memory of its own."""
        return root_of(self) if is_view(self) else None

    def _is_view(self) -> bool:
        """Tell whether it shows another tensor's memory."""
        return is_view(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Give the functions of the Python array API standard, by their names there.

        >>> picograd.Tensor([1.0]).__array_namespace__().__name__
        'picograd.array_api'
        """
        namespace: Any = find("array_api")
        if api_version not in (None, *namespace.VERSIONS):
            text = f"version {api_version} of the array API is not there"
            raise ValueRangeError("__array_namespace__", text, f"ask for {namespace.VERSIONS[-1]}")
        return namespace

    def to_device(self: Same, device: DeviceLike, /, *, stream: Any = None) -> Same:
        """Move to a device: `to`, as the array API calls it; `stream` changes nothing.

        >>> picograd.Tensor([1.0]).to_device("cpu").device
        'cpu'
        """
        tensor: Any = self
        return tensor.to(device)  # type: ignore[no-any-return]


def real_of(op: str, tensor: Any) -> Any:
    """Read the one element of a tensor of real numbers."""
    if tensor.dtype.is_complex:
        raise DTypeError(op, f"a {tensor.dtype.name} is no real number", "take .real, or complex()")
    return only(tensor)


def only(tensor: Any) -> Any:
    """Read the one element of a tensor."""
    return tensor.item()


def shown_kind(tensor: Any) -> str:
    """Name the class of a tensor where it is printed: one of a program's, or Tensor."""
    kind = type(tensor)
    return "Tensor" if kind.__module__.startswith("picograd.") else kind.__name__


def to_host(tensor: Any) -> "np.ndarray[Any, Any]":
    """Compute a tensor and copy its values to the host."""
    return tensor.numpy()


def to_print(tensor: Any, edge: int) -> "np.ndarray[Any, Any]":
    """Copy what is printed of a tensor to the host: of a large one its ends alone.

    It is computed before, unless it shows other memory: that may be far smaller, as of `expand`.
    """
    if tensor._node.size <= max(READ, printing.OPTIONS.threshold):
        return to_host(tensor)
    if foreign.behind_views(tensor._node) is tensor._node:
        pending.compute([tensor._node])
    return to_host(printing.ends(tensor.detach(), edge))


@pending.locked
def shared_array(tensor: Any, dtype: DTypeLike | None) -> "np.ndarray[Any, Any]":
    """Show a CPU tensor's own memory as an array; ValueRangeError if that needs a copy."""
    check_not_tracing("numpy()")
    copying.lay_open(tensor)
    if leaf_buffer(tensor._node) is None:
        pending.compute([tensor._node])
    buffer = leaf_buffer(tensor._node)
    is_same = dtype is None or np.dtype(dtype) == tensor.dtype.numpy
    is_plain = is_host(tensor.device) and tensor.dtype.numpy == np.dtype(tensor.dtype.storage)
    if buffer is None or not (is_same and is_plain):
        text = f"a {tensor.dtype.name} tensor on {tensor.device} needs a copy"
        raise ValueRangeError("numpy.asarray", text, "leave out copy=False")
    hand_out(tensor._node)
    return buffer_view(buffer, tensor.shape)


# NumPy's name -> that of the method, where they differ
METHODS = {
    "absolute": "abs", "conjugate": "conj", "equal": "eq", "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift", "negative": "neg", "power": "pow",
    "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip
# what an operator of Python does: the method of the second operand
REFLECTED = {
    "add": "__radd__", "bitwise_and": "__rand__", "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__", "divide": "__rtruediv__", "equal": "__eq__",
    "floor_divide": "__rfloordiv__", "greater": "__lt__", "greater_equal": "__le__",
    "less": "__gt__", "less_equal": "__ge__", "matmul": "__rmatmul__",
    "multiply": "__rmul__", "not_equal": "__ne__", "power": "__rpow__", "remainder": "__rmod__",
    "subtract": "__rsub__",
}  # fmt: skip


def recording(name: str, inputs: Sequence[Any], like: Recorded) -> Any:
    """Record a function of NumPy's, `numpy.sqrt(tensor)` or `array * tensor`, by ours of that name.

    None if there is none: others compute on the values, and have no gradients.
    """
    first, *rest = inputs
    if not isinstance(first, Recorded) and name in REFLECTED:
        return getattr(rest[0], REFLECTED[name])(first)
    method = getattr(Recorded.kind, METHODS.get(name, name), None)
    if method is None:
        return None
    return method(as_tensor(first, like), *(as_tensor(each, like) for each in rest))


def on_values(
    ufunc: Any, method: str, inputs: Sequence[Any], out: Any, options: dict[str, Any]
) -> Any:
    """Compute a function with NumPy, and make tensors of new arrays."""
    for each in inputs:
        if isinstance(each, Recorded) and each.requires_grad:
            text = "NumPy computes on values, which have no gradient"
            raise GradientError(f"numpy.{ufunc.__name__}", text, "pass tensor.detach()")
    values = [np.asarray(each) if isinstance(each, Recorded) else each for each in inputs]
    if out is not None:
        options["out"] = out
    result = getattr(ufunc, method)(*values, **options)
    made: Any = Recorded.kind.of
    if isinstance(result, tuple):
        return tuple(map(made, result))
    return made(result) if out is None else result
