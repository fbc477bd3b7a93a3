"""Methods of `Tensor` that are functions of the files by family, under the same names.

`x.fmax(y)` is `picograd.fmax(x, y)`: the function's first argument is the tensor. Those that have
no function of their own in `picograd` are written here. The class is a base of `Tensor` alone.
"""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from picograd.buffer import Storage
from picograd.dtype import complex64, complex128, uint8
from picograd.engine.plan_key import leaf_buffer
from picograd.errors import DTypeError, GradientError, ShapeError
from picograd.graph import build
from picograd.late_names import find
from picograd.target import is_gpu, is_host
from picograd.tensor.core import aliasing, between_processes
from picograd.tensor.core.annotations import Scalar, Tensor, TensorLike
from picograd.tensor.core.function import composed
from picograd.tensor.core.recording import (
    Recorded,
    Same,
    apply,
    root_of,
    show_memory,
    showing,
    start,
)
from picograd.tensor.core.subclasses import not_asking
from picograd.tensor.linalg import decompositions
from picograd.tensor.math import complex_functions
from picograd.tensor.shaping import assembling


def instance_of(cls: Any) -> Any:
    """Make an empty tensor of a class of the user's."""
    if not isinstance(cls, type) or not issubclass(cls, Recorded):
        raise DTypeError("as_subclass", f"{cls!r} is no class of tensors", "derive it from Tensor")
    return Recorded.__new__(cls)


def mapped(tensor: Any, function: Callable[..., Any], *others: Tensor) -> Any:
    """Write over a tensor what a Python function makes of its elements and those of others."""
    if tensor.requires_grad:
        text = "a Python function of elements has no gradient"
        raise GradientError("apply_", text, "call it on tensor.detach()")
    lists = [each.reshape(-1).tolist() for each in (tensor, *others)]
    values = [function(*elements) for elements in zip(*lists)]
    made = Recorded.kind.of(values, dtype=tensor.dtype, device=tensor.device)
    return tensor.copy_(made.reshape(tensor.shape))


showing(always=(complex_functions.real_part, complex_functions.imaginary_part))


RELEASED: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()  # see `resize_`


class UntypedStorage:
    """This class describes the memory behind tensors, as programs ask that count it.

    Its elements have `unit` bytes: those of the tensor for `storage()`.
    """

    def __init__(self, base: Any, unit: int) -> None:
        self.base: Any = base
        self.device: Any = base.device
        self.unit: int = unit

    def data_ptr(self) -> int:
        """Give the address, computed first."""
        node = self.base.realize().node
        buffer = leaf_buffer(node)
        if type(node.arg) is Storage:
            node.arg.answers = False  # whoever has the address may write
        return 0 if buffer is None else buffer.address

    def nbytes(self) -> int:
        """Give its bytes."""
        return 0 if id(self.base) in RELEASED else self.base.nbytes

    def size(self) -> int:
        """Count its elements."""
        return self.nbytes() // self.unit

    __len__ = size

    def element_size(self) -> int:
        """Give the bytes of an element."""
        return self.unit

    def tolist(self) -> list[Any]:
        """List the elements."""
        flat = self.base.detach().reshape(-1)
        return (flat if self.unit == flat.element_size() else flat.view(uint8)).tolist()

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> "UntypedStorage":
        """Map the bytes of a file, as readers of safetensors do; writes stay here."""
        held = np.memmap(filename, np.uint8, "c", shape=(nbytes,) if nbytes else None)
        return cls(Recorded.kind.from_numpy(held), 1)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return UntypedStorage(self.base.reshape(-1)[at], self.unit)
        return self.tolist()[at]

    def untyped(self) -> "UntypedStorage":
        """Give the memory in bytes."""
        return UntypedStorage(self.base, 1)

    _untyped = untyped

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.base.detach().reshape(-1).numpy()

    def resize_(self, size: int) -> "UntypedStorage":
        """Say that the contents are not needed (0), or are again (the size of before).

        Memory goes when no tensor shows it, and no gradient reads it: that is not changed.
        """
        if size * self.unit not in (0, self.base.nbytes):
            text = f"{self.base.nbytes} bytes cannot become {size * self.unit}"
            raise ShapeError("resize_", text, "use resize_ of the tensor")
        RELEASED.pop(id(self.base), None)
        if size == 0:
            RELEASED[id(self.base)] = self.base
        return self


class FamilyMethods(Recorded):
    """This class holds the functions of the files by family as methods of `Tensor`."""

    __slots__ = ()

    @composed(method=False)
    def logdet(self: Any) -> Tensor:
        """Compute the logarithm of determinants; NaN where one is negative, if they are real.

        >>> Tensor([[1.0, 2.0], [0.0, 1.0]]).logdet().item()
        0.0
        """
        sign, size = decompositions.slogdet(self)
        if sign.is_complex():
            return size + sign.log()
        return (sign < 0).where(float("nan"), size)

    def cfloat(self: Any, memory_format: Any = None) -> Tensor:
        """Convert to complex64.

        >>> Tensor([1.0]).cfloat().tolist()
        [(1+0j)]
        """
        return self.cast(complex64)

    def cdouble(self: Any, memory_format: Any = None) -> Tensor:
        """Convert to complex128.

        >>> Tensor([1.0]).cdouble().dtype
        picograd.complex128
        """
        return self.cast(complex128)

    @composed(method=False)
    def svd(self: Any, some: bool = True, compute_uv: bool = True) -> decompositions.SVD:
        """Write matrices as U diag(S) V^T; gives V, as PyTorch's old name does."""
        u, s, vh = decompositions.svd(self, full_matrices=not some)
        return decompositions.SVD(u, s, vh.mT)

    def mod(self: Any, other: TensorLike) -> Tensor:
        """Compute the remainder of a division rounded down: its sign is that of the divisor.

        >>> Tensor([7, -7]).mod(3).tolist()
        [1, 2]
        """
        return self.remainder(other)

    def idiv(self: Any, other: TensorLike) -> Tensor:
        """Divide, rounded towards 0.

        >>> Tensor([7, -7]).idiv(2).tolist()
        [3, -3]
        """
        return self.div(other, rounding_mode="trunc")

    @composed(method=False, in_place=True)
    def addbmm(
        self: Any, batch1: Same, batch2: Same, *, beta: Scalar = 1, alpha: Scalar = 1
    ) -> Tensor:
        """Compute beta * self + alpha * the sum of batch1 @ batch2 over the batch.

        >>> Tensor([[1.0]]).addbmm(Tensor([[[1.0, 2.0]]]), Tensor([[[3.0], [4.0]]])).tolist()
        [[12.0]]
        """
        return apply(assembling.addbmm, self, batch1, batch2, beta, alpha)

    def char(self: Any) -> Tensor:
        """Convert to int8.

        >>> Tensor([1.0, 2.5, -3.0]).char().tolist()
        [1, 2, -3]
        """
        return self.cast("int8")

    def byte(self: Any) -> Tensor:
        """Convert to uint8.

        >>> Tensor([1.0, 2.5, 255.0]).byte().tolist()
        [1, 2, 255]
        """
        return self.cast("uint8")

    def short(self: Any) -> Tensor:
        """Convert to int16.

        >>> Tensor([1.0, 2.5, -3.0]).short().tolist()
        [1, 2, -3]
        """
        return self.cast("int16")

    def ndimension(self: Any) -> int:
        """Count the axes.

        >>> Tensor([[1.0, 2.0]]).ndimension()
        2
        """
        return self.ndim

    def nelement(self: Any) -> int:
        """Count the elements.

        >>> Tensor([[1.0, 2.0]]).nelement()
        2
        """
        return self.numel()

    @composed(method=False)
    def narrow_copy(self: Any, dim: int, start: int, length: int) -> Tensor:
        """Take a stretch of an axis, as a copy.

        >>> Tensor([1.0, 2.0, 3.0]).narrow_copy(0, 1, 2).tolist()
        [2.0, 3.0]
        """
        return self.narrow(dim, start, length).clone()

    def is_inference(self: Any) -> bool:
        """Tell whether it was made in inference mode: never, that is `no_grad`.

        >>> Tensor([1.0]).is_inference()
        False
        """
        return False

    def is_pinned(self: Any) -> bool:
        """Tell whether its memory is pinned: never.

        >>> Tensor([1.0]).is_pinned()
        False
        """
        return False

    def pin_memory(self: Any, device: Any = None) -> Any:
        """Give the tensor: copies to a GPU are staged through pinned memory anyway.

        >>> Tensor([1.0]).pin_memory().tolist()
        [1.0]
        """
        return self

    def record_stream(self: Any, s: Any) -> None:
        """Do nothing: memory is given to what is launched after all that reads it.

        >>> Tensor([1.0]).record_stream(None)
        """

    def share_memory_(self: Same) -> Same:
        """Move its memory to where processes see it that are started later: forked, or given it.

        Writes of each process show in all, in no order. Raises ExportError on a GPU.

        >>> Tensor([1.0]).share_memory_().is_shared()
        True
        """
        between_processes.move(self)
        return self

    def is_shared(self: Any) -> bool:
        """Tell whether other processes may see its memory: after `share_memory_`.

        >>> Tensor([1.0]).is_shared()
        False
        """
        return between_processes.is_moved(self)

    def data_ptr(self: Any) -> int:
        """Give the address of the first element, computed first; views show their base's memory.

        >>> x = Tensor([1.0, 2.0])
        >>> x[1:].data_ptr() - x.data_ptr()
        4
        """
        start = self.untyped_storage().data_ptr()
        return start + (aliasing.offset_of(self) or 0) * self.element_size()

    def is_set_to(self: Any, tensor: Any) -> bool:
        """Tell whether it shows the same memory as another tensor, element for element.

        >>> x = Tensor([1.0, 2.0])
        >>> x[:].is_set_to(x), x[1:].is_set_to(x)
        (True, False)
        """
        looks = [(each.shape, each.stride(), each.storage_offset()) for each in (self, tensor)]
        return root_of(self) is root_of(tensor) and looks[0] == looks[1]

    def untyped_storage(self: Any) -> "UntypedStorage":
        """Describe the memory it shows: its address and size; views share their base's.

        >>> x = Tensor([1.0, 2.0])
        >>> x[1:].untyped_storage().nbytes()
        8
        """
        return UntypedStorage(root_of(self), 1)

    def storage(self: Any) -> "UntypedStorage":
        """Describe the memory it shows, in elements.

        >>> len(Tensor([1.0, 2.0])[1:].storage())
        2
        """
        return UntypedStorage(root_of(self), self.element_size())

    def storage_offset(self: Any) -> int:
        """Give the place of the first element in the memory that this tensor shows.

        >>> Tensor([1.0, 2.0])[1:].storage_offset()
        1
        """
        return aliasing.offset_of(aliasing.as_passed(self, "offset")) or 0

    @property
    def H(self: Any) -> Tensor:
        """This matrix transposed, and conjugated.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).H.tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        if self.ndim not in (0, 2):
            text = f"{tuple(self.shape)} is not a matrix"
            raise ShapeError("H", text, "use .mH for stacks of matrices")
        return self.mH

    @property
    def mH(self: Any) -> Tensor:
        """This tensor with its last two axes swapped, and conjugated.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mH.tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        return self.mT.conj()

    @property
    def real(self: Any) -> Tensor:
        """The real parts, a view; a real tensor is its own. Assigned, they are written.

        >>> Tensor([1 + 2j]).real.tolist()
        [1.0]
        """
        return apply(complex_functions.real_part, self) if self.dtype.is_complex else self

    @real.setter
    def real(self: Any, value: TensorLike) -> None:
        self.real.copy_(value)

    @property
    def imag(self: Any) -> Tensor:
        """The imaginary parts, a view. Assigned, they are written.

        >>> Tensor([1 + 2j]).imag.tolist()
        [2.0]
        """
        return apply(complex_functions.imaginary_part, self)

    @imag.setter
    def imag(self: Any, value: TensorLike) -> None:
        self.imag.copy_(value)

    @property
    def data(self: Any) -> Tensor:
        """The same values, cut off from gradients; assigned, it shows that memory from then on.

        >>> Tensor([1.0, 2.0], requires_grad=True).data.requires_grad
        False
        """
        return self.detach()

    @data.setter
    def data(self: Any, value: TensorLike) -> None:
        if not isinstance(value, Recorded):
            text = f"data must be a tensor, not {type(value).__name__}"
            raise DTypeError("data", text, "wrap it in picograd.Tensor(...), or use copy_")
        source = value
        if self._tracks and not source.dtype.is_differentiable:
            text = f"a {source.dtype.name} tensor cannot have a gradient"
            raise GradientError("data", text, "use a float dtype")
        if source is not self:
            show_memory(self, source)

    @property
    def is_cuda(self: Any) -> bool:
        """Whether it lives on an NVIDIA GPU.

        >>> Tensor([1.0], device="cpu").is_cuda
        False
        """
        return is_gpu(self.device)

    @property
    def is_cpu(self: Any) -> bool:
        """Whether it lives in the host's memory.

        >>> Tensor([1.0], device="cpu").is_cpu
        True
        """
        return is_host(self.device)

    @property
    def is_mps(self: Any) -> bool:
        """Whether it lives on one of Apple's GPUs: never.

        >>> Tensor([1.0]).is_mps
        False
        """
        return False

    is_xpu = is_mps

    @property
    def is_sparse(self: Any) -> bool:
        """Whether it stores non-zeros only: never.

        >>> Tensor([1.0]).is_sparse
        False
        """
        return False

    is_nested = is_sparse
    is_sparse_csr = is_sparse

    @property
    def layout(self: Any) -> Any:
        """How elements lie in memory: all are there.

        >>> Tensor([1.0]).layout
        picograd.strided
        """
        return find("strided")

    @staticmethod
    def _make_subclass(cls: Any, data: Any, require_grad: bool = False) -> Any:
        """Make a tensor of a class of the user's, whose `__new__` calls this."""
        result = instance_of(cls)
        start(result, build.detach(data.node), False)
        result._node.leaf = weakref.ref(result)
        result.requires_grad = require_grad
        return result

    def as_subclass(self: Any, cls: Any) -> Any:
        """Make a tensor of another class of the same value; gradients pass.

        >>> picograd.ones(2).as_subclass(nn.Buffer).tolist()
        [1.0, 1.0]
        """
        instance_of(cls)
        with not_asking():  # a class that is left shall add nothing
            result = self.view(self.shape)
        result.__class__ = cls
        return result

    @composed(function=False)
    def apply_(self: Any, callable: Callable[[Any], Any]) -> Tensor:
        """Write what a Python function makes of each element, computed one by one on the host.

        >>> Tensor([1.0, 2.0]).apply_(lambda x: x + 1).tolist()
        [2.0, 3.0]
        """
        return mapped(self, callable)

    @composed(function=False)
    def map_(self: Any, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Write what a Python function makes of each element and that of another tensor.

        >>> Tensor([1.0, 2.0]).map_(Tensor([3.0, 4.0]), lambda x, y: x * y).tolist()
        [3.0, 8.0]
        """
        return mapped(self, callable, tensor.expand(self.shape))

    @property
    def is_quantized(self: Any) -> bool:
        """Whether it is quantised: never.

        >>> Tensor([1.0]).is_quantized
        False
        """
        return False

    @property
    def is_meta(self: Any) -> bool:
        """Whether it has a shape but no values.

        >>> picograd.empty(2, device="meta").is_meta
        True
        """
        return bool(self.device == "meta")
