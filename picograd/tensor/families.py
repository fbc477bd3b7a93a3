"""PyTorch's function spelling of the files by family; `picograd` exports all of `__all__`.

`functions.py` has those of single methods and older ones.
"""

# ruff: noqa: I001 (several names a line)

import math
from typing import Final

from picograd.dtype import float16, float32, float64, int16, int32, int64
from picograd.tensor.math.arithmetic import (
    clamp_max, clamp_min, equal, float_power, fmax, fmin, frexp, gcd, is_nonzero, is_same_size,
    isneginf, isposinf, isreal, lcm, ldexp, logaddexp2, nextafter, positive, rsub, sgn,
)  # fmt: skip
from picograd.tensor.shaping.joining import (
    adjoint, as_strided, atleast_1d, atleast_2d, atleast_3d, broadcast_shapes, cartesian_prod,
    column_stack, combinations, diagflat, dsplit, hsplit, split_with_sizes, unravel_index, vander,
    vsplit,
)  # fmt: skip
from picograd.tensor.making.from_data import as_tensor, asarray
from picograd.tensor.making.distributions import (
    bernoulli, binomial, exponential, fork_rng, get_rng_state, initial_seed, multinomial, normal,
    poisson, randint_like, seed, set_rng_state, truncated_normal,
)  # fmt: skip
from picograd.tensor.linalg.fourier import istft, stft
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.linalg.decompositions import (
    cholesky, det, inv, matrix_power, pinv, qr, slogdet,
)  # fmt: skip
from picograd.tensor.linalg.systems import (
    chain_matmul, cholesky_inverse, cholesky_solve, lu_unpack, matrix_exp, solve_factored,
)  # fmt: skip
from picograd.tensor.core.arguments import is_tensor
from picograd.tensor.making.tensors_like import (
    bartlett_window, blackman_window, conj, frombuffer, get_device, hamming_window,
    hann_window, imag, is_complex, is_conj, is_floating_point, is_signed, kaiser_window,
    linear_range, logspace, numel, real, scalar_tensor,
)  # fmt: skip
from picograd.tensor.indexing.partial_writes import (
    diagonal_scatter, index_put, index_put_, index_reduce, nonzero_static, select_scatter,
    slice_scatter,
)  # fmt: skip
from picograd.tensor.math.special import gammainc, gammaincc, i0, multigammaln
from picograd.tensor.reductions.statistics import (
    bucketize, cumulative_trapezoid, gradient, histogram, isin, mode, nanmedian,
    nanquantile, pdist, renorm, trapezoid, unique_consecutive,
)  # fmt: skip
from picograd.tensor.core.spelling import spell_functions
from picograd.tensor.tensor import Tensor
from picograd.tensor.core.type_info import (
    can_cast, finfo, get_default_dtype, iinfo, promote_types, result_type,
)  # fmt: skip

double: Final = float64
float: Final = float32
half: Final = float16
long: Final = int64
int: Final = int32
short: Final = int16
e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
pi: Final = math.pi
newaxis = None

absolute: Final = Tensor.absolute
addbmm: Final = Tensor.addbmm
broadcast_to: Final = Tensor.broadcast_to
clone: Final = Tensor.clone
detach: Final = Tensor.detach
fix: Final = Tensor.fix
ger: Final = Tensor.ger
logdet: Final = Tensor.logdet
narrow_copy: Final = Tensor.narrow_copy
svd: Final = Tensor.svd
t: Final = Tensor.t
unsafe_chunk: Final = Tensor.unsafe_chunk
unsafe_split: Final = Tensor.unsafe_split
unsafe_split_with_sizes: Final = Tensor.unsafe_split_with_sizes

igamma: Final = gammainc
igammac: Final = gammaincc
mvlgamma: Final = multigammaln
inverse: Final = inv
pinverse: Final = pinv
lu_solve: Final = solve_factored
range: Final = linear_range
trapz: Final = trapezoid

__all__ = [
    "absolute", "addbmm", "adjoint", "as_strided", "as_tensor", "asarray", "atleast_1d",
    "atleast_2d", "atleast_3d", "bartlett_window", "bernoulli", "binomial", "blackman_window",
    "broadcast_shapes", "broadcast_to", "bucketize", "can_cast", "cartesian_prod", "chain_matmul",
    "cholesky", "cholesky_inverse", "cholesky_solve", "clamp_max", "clamp_min", "clone",
    "column_stack", "combinations", "conj", "cumulative_trapezoid", "det", "detach", "diagflat",
    "diagonal_scatter", "double", "dsplit", "e", "equal", "exponential", "finfo", "fix", "float",
    "float_power", "fmax", "fmin", "fork_rng", "frexp", "frombuffer", "gcd", "ger",
    "get_default_dtype", "get_device", "get_rng_state", "gradient", "half", "hamming_window",
    "hann_window", "histogram", "hsplit", "i0", "igamma", "igammac", "iinfo", "imag", "index_put",
    "index_put_", "index_reduce", "inf", "initial_seed", "int", "inverse", "is_complex", "is_conj",
    "is_floating_point", "is_nonzero", "is_same_size", "is_signed", "is_tensor", "isin",
    "isneginf", "isposinf", "isreal", "istft", "kaiser_window", "lcm", "ldexp", "logaddexp2",
    "logdet", "logspace", "long", "lu_solve", "lu_unpack", "matrix_exp", "matrix_power", "mode",
    "multinomial", "mvlgamma", "nan", "nanmedian", "nanquantile", "narrow_copy", "newaxis",
    "nextafter", "nonzero_static", "normal", "numel", "pdist", "pi", "pinverse", "poisson",
    "positive", "promote_types", "qr", "randint_like", "range", "real", "renorm", "result_type",
    "rsub", "scalar_tensor", "seed", "select_scatter", "set_rng_state", "sgn", "short",
    "slice_scatter", "slogdet", "split_with_sizes", "stft", "svd", "t", "trapezoid", "trapz",
    "truncated_normal", "unique_consecutive", "unravel_index", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes", "vander", "vsplit",
]  # fmt: skip

guard_functions(globals(), __all__)
spell_functions(globals(), __all__)
