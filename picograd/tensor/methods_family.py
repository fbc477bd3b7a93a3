"""Methods of `Tensor` that are functions of the files by family, under the same names.

`x.fmax(y)` is `picograd.fmax(x, y)`: the function's first argument is the tensor. Those that have
no function of their own in `picograd` are written here. The class is a base of `Tensor` alone.
"""

from collections.abc import Sequence
from typing import Any

from picograd.errors import GradientError, ShapeError
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
from picograd.tensor.recording import Other, Recorded, apply, show_memory

Same = Any  # a Tensor


class FamilyMethods(Recorded):
    """This class holds the functions of the files by family as methods of `Tensor`."""

    __slots__ = ()

    positive = arithmetic.positive
    sgn = arithmetic.sgn
    clamp_min = arithmetic.clamp_min
    clamp_max = arithmetic.clamp_max
    fmax = arithmetic.fmax
    fmin = arithmetic.fmin
    float_power = arithmetic.float_power
    logaddexp2 = arithmetic.logaddexp2
    frexp = arithmetic.frexp
    ldexp = arithmetic.ldexp
    nextafter = arithmetic.nextafter
    gcd = arithmetic.gcd
    lcm = arithmetic.lcm
    isposinf = arithmetic.isposinf
    isneginf = arithmetic.isneginf
    isreal = arithmetic.isreal
    is_nonzero = arithmetic.is_nonzero
    is_same_size = arithmetic.is_same_size
    equal = arithmetic.equal

    i0 = special_functions.i0
    igamma = special_functions.gammainc
    igammac = special_functions.gammaincc
    mvlgamma = special_functions.multigammaln

    hsplit = arranging.hsplit
    vsplit = arranging.vsplit
    dsplit = arranging.dsplit
    split_with_sizes = arranging.split_with_sizes
    adjoint = arranging.adjoint
    diagflat = arranging.diagflat
    sum_to_size = arranging.sum_to_size
    as_strided = arranging.as_strided
    meshgrid = arranging.meshgrid
    rearrange = rearranging.rearrange

    select_scatter = placing.select_scatter
    slice_scatter = placing.slice_scatter
    diagonal_scatter = placing.diagonal_scatter
    index_put = placing.index_put
    index_put_ = placing.index_put_
    index_reduce = placing.index_reduce
    fill_diagonal_ = placing.fill_diagonal_
    nonzero_static = placing.nonzero_static
    masked_select = placing.masked_select
    nonzero = placing.nonzero

    mode = statistics.mode
    nanmedian = statistics.nanmedian
    nanquantile = statistics.nanquantile
    unique_consecutive = statistics.unique_consecutive
    histogram = statistics.histogram
    diff = statistics.diff
    cov = statistics.cov
    corrcoef = statistics.corrcoef
    renorm = statistics.renorm

    zeros_like = making.zeros_like
    ones_like = making.ones_like
    empty_like = making.empty_like
    full_like = making.full_like
    rand_like = making.rand_like
    randn_like = making.randn_like
    randint_like = distributions.randint_like
    new_zeros = making.new_zeros
    new_ones = making.new_ones
    new_empty = making.new_empty
    new_full = making.new_full
    new_tensor = making.new_tensor
    is_complex = making.is_complex
    is_signed = making.is_signed
    is_contiguous = making.is_contiguous
    get_device = making.get_device
    type_as = making.type_as

    scaled_uniform = staticmethod(initial.scaled_uniform)
    glorot_uniform = staticmethod(initial.glorot_uniform)
    kaiming_uniform = staticmethod(initial.kaiming_uniform)
    kaiming_normal = staticmethod(initial.kaiming_normal)

    uniform_ = distributions.uniform_
    normal_ = distributions.normal_
    log_normal_ = distributions.log_normal_
    exponential_ = distributions.exponential_
    cauchy_ = distributions.cauchy_
    geometric_ = distributions.geometric_
    bernoulli_ = distributions.bernoulli_
    random_ = distributions.random_
    trunc_normal_ = distributions.trunc_normal_
    bernoulli = distributions.bernoulli
    multinomial = distributions.multinomial

    cholesky = linear_algebra.cholesky
    cholesky_solve = linear_systems.cholesky_solve
    cholesky_inverse = linear_systems.cholesky_inverse
    inverse = linear_algebra.inv
    pinverse = linear_algebra.pinv
    det = linear_algebra.det
    slogdet = linear_algebra.slogdet
    qr = linear_algebra.qr
    matrix_power = linear_algebra.matrix_power
    matrix_exp = linear_systems.matrix_exp
    lu_solve = linear_systems.solve_factored
    stft = fourier.stft
    istft = fourier.istft

    def logdet(self: Same) -> Same:
        """Compute the logarithm of determinants; NaN where one is negative.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [0.0, 1.0]]).logdet().item()
        0.0
        """
        sign, size = linear_algebra.slogdet(self)
        return (sign < 0).where(float("nan"), size)

    def svd(self: Same, some: bool = True, compute_uv: bool = True) -> Any:
        """Write matrices as U diag(S) V^T; gives V, as PyTorch's old name does."""
        u, s, vh = linear_algebra.svd(self, full_matrices=not some)
        return linear_algebra.SVD(u, s, vh.mT)

    def mod(self: Same, other: Other) -> Same:
        """Compute the remainder of a division rounded down: its sign is that of the divisor.

        >>> from picograd import Tensor
        >>> Tensor([7, -7]).mod(3).tolist()
        [1, 2]
        """
        return self.remainder(other)

    def idiv(self: Same, other: Other) -> Same:
        """Divide, rounded towards 0.

        >>> from picograd import Tensor
        >>> Tensor([7, -7]).idiv(2).tolist()
        [3, -3]
        """
        return self.div(other, rounding_mode="trunc")

    def ger(self: Same, vec2: Same) -> Same:
        """Multiply every element of one vector with every element of another.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0]).ger(Tensor([3.0, 4.0])).tolist()
        [[3.0, 4.0], [6.0, 8.0]]
        """
        return self.outer(vec2)

    def addbmm(
        self: Same, batch1: Same, batch2: Same, *, beta: Any = 1, alpha: Any = 1
    ) -> Same:
        """Compute beta * self + alpha * the sum of batch1 @ batch2 over the batch.

        >>> from picograd import Tensor
        >>> Tensor([[1.0]]).addbmm(Tensor([[[1.0, 2.0]]]), Tensor([[[3.0], [4.0]]])).tolist()
        [[12.0]]
        """
        return apply(assembling.addbmm, self, batch1, batch2, beta, alpha)

    def absolute(self: Same) -> Same:
        """Compute |x|.

        >>> from picograd import Tensor
        >>> Tensor([-1.0, 2.0, -3.0]).absolute().tolist()
        [1.0, 2.0, 3.0]
        """
        return self.abs()

    def fix(self: Same) -> Same:
        """Round towards 0.

        >>> from picograd import Tensor
        >>> Tensor([-1.5, 0.2, 2.0]).fix().tolist()
        [-1.0, 0.0, 2.0]
        """
        return self.trunc()

    def char(self: Same) -> Same:
        """Convert to int8.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.5, -3.0]).char().tolist()
        [1, 2, -3]
        """
        return self.cast("int8")

    def byte(self: Same) -> Same:
        """Convert to uint8.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.5, 255.0]).byte().tolist()
        [1, 2, 255]
        """
        return self.cast("uint8")

    def short(self: Same) -> Same:
        """Convert to int16.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.5, -3.0]).short().tolist()
        [1, 2, -3]
        """
        return self.cast("int16")

    def ndimension(self: Same) -> Any:
        """Count the axes.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0]]).ndimension()
        2
        """
        return self.ndim

    def nelement(self: Same) -> Any:
        """Count the elements.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0]]).nelement()
        2
        """
        return self.numel()

    def narrow_copy(self: Same, dim: int, start: int, length: int) -> Same:
        """Take a stretch of an axis, as a copy.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0, 3.0]).narrow_copy(0, 1, 2).tolist()
        [2.0, 3.0]
        """
        return self.narrow(dim, start, length).clone()

    def unsafe_chunk(self: Same, chunks: int, dim: int = 0) -> Any:
        """Cut into pieces: `chunk`.

        >>> from picograd import Tensor
        >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).unsafe_chunk(2)]
        [[1.0, 2.0], [3.0]]
        """
        return self.chunk(chunks, dim)

    def unsafe_split(self: Same, split_size: int, dim: int = 0) -> Any:
        """Cut into pieces of one size: `split`.

        >>> from picograd import Tensor
        >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).unsafe_split(2)]
        [[1.0, 2.0], [3.0]]
        """
        return self.split(split_size, dim)

    def unsafe_split_with_sizes(self: Same, split_sizes: Sequence[int], dim: int = 0) -> Any:
        """Cut into pieces of listed sizes: `split_with_sizes`.

        >>> from picograd import Tensor
        >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).unsafe_split_with_sizes([1, 2])]
        [[1.0], [2.0, 3.0]]
        """
        return self.split_with_sizes(split_sizes, dim)

    def is_inference(self: Same) -> bool:
        """Tell whether it was made in inference mode: never, that is `no_grad`.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_inference()
        False
        """
        return False

    def is_pinned(self: Same) -> bool:
        """Tell whether its memory is pinned: never.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_pinned()
        False
        """
        return False

    def storage_offset(self: Same) -> int:
        """Give the place of the first element in the memory that this tensor shows.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0])[1:].storage_offset()
        1
        """
        return aliasing.offset_of(self) or 0

    @property
    def H(self: Same) -> Same:
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
    def mH(self: Same) -> Same:
        """This tensor with its last two axes swapped.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mH.tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        return self.mT

    @property
    def data(self: Same) -> Same:
        """The same values, cut off from gradients; assigned, it shows that memory from then on.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0], requires_grad=True).data.requires_grad
        False
        """
        return self.detach()

    @data.setter
    def data(self: Same, value: Other) -> None:
        source = value if isinstance(value, Recorded) else self.new_tensor(value)
        if self._tracks and not source.dtype.is_float:
            text = f"a {source.dtype.name} tensor cannot have a gradient"
            raise GradientError("data", text, "use a float dtype")
        if source is not self:
            show_memory(self, source)

    @property
    def is_cuda(self: Same) -> bool:
        """Whether it lives on an NVIDIA GPU.

        >>> from picograd import Tensor
        >>> Tensor([1.0], device="cpu").is_cuda
        False
        """
        return bool(self.device.startswith("cuda"))

    @property
    def is_cpu(self: Same) -> bool:
        """Whether it lives in the host's memory.

        >>> from picograd import Tensor
        >>> Tensor([1.0], device="cpu").is_cpu
        True
        """
        return bool(self.device == "cpu")

    @property
    def is_sparse(self: Same) -> bool:
        """Whether it stores non-zeros only: never.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_sparse
        False
        """
        return False

    @property
    def is_quantized(self: Same) -> bool:
        """Whether it is quantised: never.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_quantized
        False
        """
        return False

    @property
    def is_meta(self: Same) -> bool:
        """Whether it has a shape but no values: never.

        >>> from picograd import Tensor
        >>> Tensor([1.0]).is_meta
        False
        """
        return False

    @property
    def real(self: Same) -> Same:
        """The real part: the tensor itself.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0]).real.tolist()
        [1.0, 2.0]
        """
        return self

    @property
    def retains_grad(self: Same) -> bool:
        """Whether a computed tensor keeps its gradient: `retain_grad` was called."""
        return not self.is_leaf and self._hooks is not None
