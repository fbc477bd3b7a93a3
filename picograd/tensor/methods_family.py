"""Methods of `Tensor` that are functions of the files by family, under the same names.

`x.fmax(y)` is `picograd.fmax(x, y)`: the function's first argument is the tensor. Those that have
no function of their own in `picograd` are written here. The class is a base of `Tensor` alone.
"""

from collections.abc import Sequence
from typing import Any, Final

from picograd.errors import DTypeError, GradientError, ShapeError
from picograd.target import is_gpu, is_host
from picograd.tensor import (
    aliasing,
    arithmetic,
    arranging,
    assembling,
    distributions,
    fourier,
    initial,
    linear_algebra,
    linear_systems,
    making,
    placing,
    rearranging,
    special_functions,
    statistics,
)
from picograd.tensor.annotations import Scalar, Tensor, TensorLike
from picograd.tensor.recording import Recorded, Same, apply, show_memory


class FamilyMethods(Recorded):
    """This class holds the functions of the files by family as methods of `Tensor`."""

    __slots__ = ()

    positive: Final = arithmetic.positive
    sgn: Final = arithmetic.sgn
    clamp_min: Final = arithmetic.clamp_min
    clamp_max: Final = arithmetic.clamp_max
    fmax: Final = arithmetic.fmax
    fmin: Final = arithmetic.fmin
    float_power: Final = arithmetic.float_power
    logaddexp2: Final = arithmetic.logaddexp2
    frexp: Final = arithmetic.frexp
    ldexp: Final = arithmetic.ldexp
    nextafter: Final = arithmetic.nextafter
    gcd: Final = arithmetic.gcd
    lcm: Final = arithmetic.lcm
    isposinf: Final = arithmetic.isposinf
    isneginf: Final = arithmetic.isneginf
    isreal: Final = arithmetic.isreal
    is_nonzero: Final = arithmetic.is_nonzero
    is_same_size: Final = arithmetic.is_same_size
    equal: Final = arithmetic.equal

    i0: Final = special_functions.i0
    igamma: Final = special_functions.gammainc
    igammac: Final = special_functions.gammaincc
    mvlgamma: Final = special_functions.multigammaln

    hsplit: Final = arranging.hsplit
    vsplit: Final = arranging.vsplit
    dsplit: Final = arranging.dsplit
    split_with_sizes: Final = arranging.split_with_sizes
    adjoint: Final = arranging.adjoint
    diagflat: Final = arranging.diagflat
    sum_to_size: Final = arranging.sum_to_size
    as_strided: Final = arranging.as_strided
    meshgrid: Final = arranging.meshgrid
    rearrange: Final = rearranging.rearrange

    select_scatter: Final = placing.select_scatter
    slice_scatter: Final = placing.slice_scatter
    diagonal_scatter: Final = placing.diagonal_scatter
    index_put: Final = placing.index_put
    index_put_: Final = placing.index_put_
    index_reduce: Final = placing.index_reduce
    fill_diagonal_: Final = placing.fill_diagonal_
    nonzero_static: Final = placing.nonzero_static
    masked_select: Final = placing.masked_select
    nonzero: Final = placing.nonzero

    mode: Final = statistics.mode
    nanmedian: Final = statistics.nanmedian
    nanquantile: Final = statistics.nanquantile
    unique_consecutive: Final = statistics.unique_consecutive
    histogram: Final = statistics.histogram
    diff: Final = statistics.diff
    cov: Final = statistics.cov
    corrcoef: Final = statistics.corrcoef
    renorm: Final = statistics.renorm

    zeros_like: Final = making.zeros_like
    ones_like: Final = making.ones_like
    empty_like: Final = making.empty_like
    full_like: Final = making.full_like
    rand_like: Final = making.rand_like
    randn_like: Final = making.randn_like
    randint_like: Final = distributions.randint_like
    new_zeros: Final = making.new_zeros
    new_ones: Final = making.new_ones
    new_empty: Final = making.new_empty
    new_full: Final = making.new_full
    new_tensor: Final = making.new_tensor
    is_complex: Final = making.is_complex
    is_conj: Final = making.is_conj
    conj: Final = making.conj
    is_signed: Final = making.is_signed
    is_contiguous: Final = making.is_contiguous
    get_device: Final = making.get_device
    type_as: Final = making.type_as

    scaled_uniform: Final = staticmethod(initial.scaled_uniform)
    glorot_uniform: Final = staticmethod(initial.glorot_uniform)
    kaiming_uniform: Final = staticmethod(initial.kaiming_uniform)
    kaiming_normal: Final = staticmethod(initial.kaiming_normal)

    uniform_: Final = distributions.uniform_
    normal_: Final = distributions.normal_
    log_normal_: Final = distributions.log_normal_
    exponential_: Final = distributions.exponential_
    cauchy_: Final = distributions.cauchy_
    geometric_: Final = distributions.geometric_
    bernoulli_: Final = distributions.bernoulli_
    random_: Final = distributions.random_
    trunc_normal_: Final = distributions.trunc_normal_
    bernoulli: Final = distributions.bernoulli
    multinomial: Final = distributions.multinomial

    cholesky: Final = linear_algebra.cholesky
    cholesky_solve: Final = linear_systems.cholesky_solve
    cholesky_inverse: Final = linear_systems.cholesky_inverse
    inverse: Final = linear_algebra.inv
    pinverse: Final = linear_algebra.pinv
    det: Final = linear_algebra.det
    slogdet: Final = linear_algebra.slogdet
    qr: Final = linear_algebra.qr
    matrix_power: Final = linear_algebra.matrix_power
    matrix_exp: Final = linear_systems.matrix_exp
    lu_solve: Final = linear_systems.solve_factored
    stft: Final = fourier.stft
    istft: Final = fourier.istft

    def logdet(self: Any) -> Tensor:
        """Compute the logarithm of determinants; NaN where one is negative.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [0.0, 1.0]]).logdet().item()
        0.0
        """
        sign, size = linear_algebra.slogdet(self)
        return (sign < 0).where(float("nan"), size)

    def svd(self: Any, some: bool = True, compute_uv: bool = True) -> linear_algebra.SVD:
        """Write matrices as U diag(S) V^T; gives V, as PyTorch's old name does."""
        u, s, vh = linear_algebra.svd(self, full_matrices=not some)
        return linear_algebra.SVD(u, s, vh.mT)

    def mod(self: Any, other: TensorLike) -> Tensor:
        """Compute the remainder of a division rounded down: its sign is that of the divisor.

        >>> from picograd import Tensor
        >>> Tensor([7, -7]).mod(3).tolist()
        [1, 2]
        """
        return self.remainder(other)

    def idiv(self: Any, other: TensorLike) -> Tensor:
        """Divide, rounded towards 0.

        >>> from picograd import Tensor
        >>> Tensor([7, -7]).idiv(2).tolist()
        [3, -3]
        """
        return self.div(other, rounding_mode="trunc")

    def ger(self: Any, vec2: Same) -> Tensor:
        """Multiply every element of one vector with every element of another.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0]).ger(Tensor([3.0, 4.0])).tolist()
        [[3.0, 4.0], [6.0, 8.0]]
        """
        return self.outer(vec2)

    def addbmm(
        self: Any, batch1: Same, batch2: Same, *, beta: Scalar = 1, alpha: Scalar = 1
    ) -> Tensor:
        """Compute beta * self + alpha * the sum of batch1 @ batch2 over the batch.

        >>> from picograd import Tensor
        >>> Tensor([[1.0]]).addbmm(Tensor([[[1.0, 2.0]]]), Tensor([[[3.0], [4.0]]])).tolist()
        [[12.0]]
        """
        return apply(assembling.addbmm, self, batch1, batch2, beta, alpha)

    def absolute(self: Any) -> Tensor:
        """Compute |x|.

        >>> from picograd import Tensor
        >>> Tensor([-1.0, 2.0, -3.0]).absolute().tolist()
        [1.0, 2.0, 3.0]
        """
        return self.abs()

    def fix(self: Any) -> Tensor:
        """Round towards 0.

        >>> from picograd import Tensor
        >>> Tensor([-1.5, 0.2, 2.0]).fix().tolist()
        [-1.0, 0.0, 2.0]
        """
        return self.trunc()

    def char(self: Any) -> Tensor:
        """Convert to int8.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.5, -3.0]).char().tolist()
        [1, 2, -3]
        """
        return self.cast("int8")

    def byte(self: Any) -> Tensor:
        """Convert to uint8.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.5, 255.0]).byte().tolist()
        [1, 2, 255]
        """
        return self.cast("uint8")

    def short(self: Any) -> Tensor:
        """Convert to int16.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.5, -3.0]).short().tolist()
        [1, 2, -3]
        """
        return self.cast("int16")

    def ndimension(self: Any) -> int:
        """Count the axes.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0]]).ndimension()
        2
        """
        return self.ndim

    def nelement(self: Any) -> int:
        """Count the elements.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0]]).nelement()
        2
        """
        return self.numel()

    def narrow_copy(self: Any, dim: int, start: int, length: int) -> Tensor:
        """Take a stretch of an axis, as a copy.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0, 3.0]).narrow_copy(0, 1, 2).tolist()
        [2.0, 3.0]
        """
        return self.narrow(dim, start, length).clone()

    def unsafe_chunk(self: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Cut into pieces: `chunk`.

        >>> from picograd import Tensor
        >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).unsafe_chunk(2)]
        [[1.0, 2.0], [3.0]]
        """
        return self.chunk(chunks, dim)

    def unsafe_split(self: Any, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Cut into pieces of one size: `split`.

        >>> from picograd import Tensor
        >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).unsafe_split(2)]
        [[1.0, 2.0], [3.0]]
        """
        return self.split(split_size, dim)

    def unsafe_split_with_sizes(
        self: Any, split_sizes: Sequence[int], dim: int = 0
    ) -> tuple[Tensor, ...]:
        """Cut into pieces of listed sizes: `split_with_sizes`.

        >>> from picograd import Tensor
        >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).unsafe_split_with_sizes([1, 2])]
        [[1.0], [2.0, 3.0]]
        """
        return self.split_with_sizes(split_sizes, dim)

    def is_inference(self: Any) -> bool:
        """Tell whether it was made in inference mode: never, that is `no_grad`.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_inference()
        False
        """
        return False

    def is_pinned(self: Any) -> bool:
        """Tell whether its memory is pinned: never.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_pinned()
        False
        """
        return False

    def storage_offset(self: Any) -> int:
        """Give the place of the first element in the memory that this tensor shows.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0])[1:].storage_offset()
        1
        """
        return aliasing.offset_of(self) or 0

    @property
    def H(self: Any) -> Tensor:
        """This matrix transposed.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).H.tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        if self.ndim not in (0, 2):
            text = f"{tuple(self.shape)} is not a matrix"
            raise ShapeError("H", text, "use .mH for stacks of matrices")
        return self.mT

    @property
    def mH(self: Any) -> Tensor:
        """This tensor with its last two axes swapped.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mH.tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        return self.mT

    @property
    def data(self: Any) -> Tensor:
        """The same values, cut off from gradients; assigned, it shows that memory from then on.

        >>> from picograd import Tensor
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
        if self._tracks and not source.dtype.is_float:
            text = f"a {source.dtype.name} tensor cannot have a gradient"
            raise GradientError("data", text, "use a float dtype")
        if source is not self:
            show_memory(self, source)

    @property
    def is_cuda(self: Any) -> bool:
        """Whether it lives on an NVIDIA GPU.

        >>> from picograd import Tensor
        >>> Tensor([1.0], device="cpu").is_cuda
        False
        """
        return is_gpu(self.device)

    @property
    def is_cpu(self: Any) -> bool:
        """Whether it lives in the host's memory.

        >>> from picograd import Tensor
        >>> Tensor([1.0], device="cpu").is_cpu
        True
        """
        return is_host(self.device)

    @property
    def is_sparse(self: Any) -> bool:
        """Whether it stores non-zeros only: never.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_sparse
        False
        """
        return False

    @property
    def is_quantized(self: Any) -> bool:
        """Whether it is quantised: never.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_quantized
        False
        """
        return False

    @property
    def is_meta(self: Any) -> bool:
        """Whether it has a shape but no values: never.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_meta
        False
        """
        return False

    @property
    def real(self: Any) -> Tensor:
        """The real part: the tensor itself.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0]).real.tolist()
        [1.0, 2.0]
        """
        return self

    @property
    def retains_grad(self: Any) -> bool:
        """Whether a computed tensor keeps its gradient: `retain_grad` was called."""
        return not self.is_leaf and self._hooks is not None
