"""picograd.special: special functions, as torch.special.

Elementwise, on the device, with gradients; except `gammainc` and `gammaincc`, which NumPy computes
on the host, at once (as many steps as their arguments need).
"""

import math
from typing import Any

from picograd.tensor.core.annotations import Axis, DTypeLike, Tensor, TensorLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.operands import optional_dtype
from picograd.tensor.core.recording import Recorded, apply
from picograd.tensor.core.spelling import spell_functions
from picograd.tensor.math import (
    airy,
    bessel,
    bessel_decay,
    bessel_waves,
    elementwise,
    gamma,
    normal_distribution,
    polynomials,
    transcendental,
)
from picograd.tensor.math.arithmetic import xlog1py
from picograd.tensor.reductions import reduce

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1",
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2",
    "expit", "expm1", "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h",
    "hermite_polynomial_he", "i0", "i0e", "i1", "i1e", "laguerre_polynomial_l",
    "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp",
    "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
    "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax",
    "spherical_bessel_j0", "xlog1py", "xlogy", "zeta",
]  # fmt: skip


@composed(in_place=True)
def i0(input: Tensor) -> Tensor:
    """Compute the modified Bessel function I0.

    >>> picograd.special.i0(picograd.Tensor([0.0])).tolist()
    [1.0]
    """
    return apply(bessel.i0, input)


def i0e(input: Tensor) -> Tensor:
    """Compute exp(-|x|) I0(x).

    >>> picograd.special.i0e(picograd.Tensor([0.0])).tolist()
    [1.0]
    """
    return apply(bessel.i0e, input)


def i1(input: Tensor) -> Tensor:
    """Compute the modified Bessel function I1.

    >>> picograd.special.i1(picograd.Tensor([0.0])).tolist()
    [0.0]
    """
    return apply(bessel.i1, input)


def i1e(input: Tensor) -> Tensor:
    """Compute exp(-|x|) I1(x).

    >>> picograd.special.i1e(picograd.Tensor([0.0])).tolist()
    [0.0]
    """
    return apply(bessel.i1e, input)


def erfcx(input: Tensor) -> Tensor:
    """Compute exp(x^2) erfc(x) without overflow.

    >>> picograd.special.erfcx(picograd.Tensor([0.0])).tolist()
    [1.0]
    """
    return apply(normal_distribution.erfcx, input)


def ndtr(input: Tensor) -> Tensor:
    """Compute the probability that a standard normal number is less than x.

    >>> picograd.special.ndtr(picograd.Tensor([0.0])).tolist()
    [0.5]
    """
    return apply(normal_distribution.ndtr, input)


def log_ndtr(input: Tensor) -> Tensor:
    """Compute log(ndtr(x)) without underflow.

    >>> round(picograd.special.log_ndtr(picograd.Tensor([-10.0])).item(), 2)
    -53.23
    """
    return apply(normal_distribution.log_ndtr, input)


def ndtri(input: Tensor) -> Tensor:
    """Find the x whose ndtr is p.

    >>> picograd.special.ndtri(picograd.Tensor([0.5, 1.0])).tolist()
    [0.0, inf]
    """
    return apply(normal_distribution.ndtri, input)


def entr(input: Tensor) -> Tensor:
    """Compute -x log(x): 0 at 0, -infinity below.

    >>> picograd.special.entr(picograd.Tensor([0.0, -1.0])).tolist()
    [0.0, -inf]
    """
    return apply(normal_distribution.entr, input)


def zeta(input: TensorLike, other: TensorLike) -> Tensor:
    """Compute Hurwitz's zeta function: the sum of (other + k) ** -input over k >= 0.

    Gradients reach `other`. Negative `other` that are no poles give NaN.

    >>> round(picograd.special.zeta(picograd.Tensor([2.0]), 1.0).item(), 4)
    1.6449
    """
    return apply(gamma.zeta, input, other)


def polygamma(n: int, input: Tensor) -> Tensor:
    """Compute the n-th derivative of digamma.

    >>> round(picograd.special.polygamma(1, picograd.Tensor([1.0])).item(), 4)
    1.6449
    """
    need_tensor("polygamma", input)
    return apply(gamma.polygamma, input, n)


@composed("mvlgamma", in_place=True)
def multigammaln(input: Tensor, p: int) -> Tensor:
    """Compute the logarithm of the multivariate gamma function of dimension p.

    >>> round(picograd.special.multigammaln(picograd.Tensor([2.0]), 2).item(), 4)
    0.4516
    """
    return apply(gamma.multigammaln, input, p)


@composed("igamma", in_place=True)
def gammainc(input: TensorLike, other: TensorLike) -> Tensor:
    """Compute the regularised lower incomplete gamma function of a = input and x = other.

    Computed on the host, at once; gradients reach x alone.

    >>> round(picograd.special.gammainc(picograd.Tensor([1.0]), 1.0).item(), 4)
    0.6321
    """
    return apply(gamma.igamma, input, other)


@composed("igammac", in_place=True)
def gammaincc(input: TensorLike, other: TensorLike) -> Tensor:
    """Compute the regularised upper incomplete gamma function of a = input and x = other.

    Computed on the host, at once; gradients reach x alone.

    >>> round(picograd.special.gammaincc(picograd.Tensor([1.0]), 1.0).item(), 4)
    0.3679
    """
    return apply(gamma.igammac, input, other)


def digamma(input: Tensor) -> Tensor:
    """Compute the derivative of log|gamma(x)|.

    >>> picograd.special.digamma(Tensor([1.0, 2.0, 3.0])).tolist()
    [-0.5772..., 0.4227..., 0.9227...]
    """
    return apply(transcendental.digamma, input)


def gammaln(input: Tensor) -> Tensor:
    """Compute log|gamma(x)|.

    >>> picograd.special.gammaln(Tensor([3.0, 4.0, 5.0])).tolist()
    [0.6931..., 1.7917..., 3.1780...]
    """
    return apply(transcendental.lgamma, input)


def erf(input: Tensor) -> Tensor:
    """Compute the error function.

    >>> picograd.special.erf(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.8427..., 0.0, 0.9953...]
    """
    return apply(elementwise.unary, "erf", input)


def erfc(input: Tensor) -> Tensor:
    """Compute 1 - erf(x), accurate where erf is nearly 1.

    >>> picograd.special.erfc(Tensor([-1.0, 0.0, 2.0])).tolist()
    [1.8427..., 1.0, 0.0046...]
    """
    return apply(transcendental.erfc, input)


def erfinv(input: Tensor) -> Tensor:
    """Invert erf.

    >>> picograd.special.erfinv(Tensor([-0.5, 0.0, 0.5])).tolist()
    [-0.4769..., 0.0, 0.4769...]
    """
    return apply(transcendental.erfinv, input)


def exp2(input: Tensor) -> Tensor:
    """Compute 2 ** x.

    >>> picograd.special.exp2(Tensor([0.0, 1.0, 3.0])).tolist()
    [1.0, 2.0, 8.0]
    """
    return apply(elementwise.unary, "exp2", input)


def expm1(input: Tensor) -> Tensor:
    """Compute e ** x - 1, exact near 0.

    >>> picograd.special.expm1(Tensor([0.0, 1.0, 2.0])).tolist()
    [0.0, 1.7182..., 6.3890...]
    """
    return apply(transcendental.expm1, input)


def log1p(input: Tensor) -> Tensor:
    """Compute log(1 + x), exact near 0.

    >>> picograd.special.log1p(Tensor([0.0, 1.0, 3.0])).tolist()
    [0.0, 0.6931..., 1.3862...]
    """
    return apply(transcendental.log1p, input)


def sinc(input: Tensor) -> Tensor:
    """Compute sin(pi x) / (pi x).

    >>> picograd.special.sinc(Tensor([0.0, 0.5, 1.5])).tolist()
    [1.0, 0.6366..., -0.2122...]
    """
    return apply(transcendental.sinc, input)


def xlogy(input: TensorLike, other: TensorLike) -> Tensor:
    """Compute a log(b); 0 where a is 0, unless b is NaN.

    >>> picograd.special.xlogy(Tensor([0.0, 1.0, 2.0]), Tensor([0.0, 2.0, 2.0])).tolist()
    [0.0, 0.6931..., 1.3862...]
    """
    return apply(transcendental.xlogy, input, other)


def expit(input: Tensor) -> Tensor:
    """Compute 1 / (1 + exp(-x)).

    >>> picograd.special.expit(picograd.Tensor([0.0])).tolist()
    [0.5]
    """
    need_tensor("expit", input)
    return input.sigmoid()


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Compute log(x / (1 - x)); with eps, x is limited to [eps, 1 - eps] first.

    >>> picograd.special.logit(Tensor([0.25, 0.5, 0.75])).tolist()
    [-1.0986..., 0.0, 1.0986...]
    """
    need_tensor("logit", input)
    return input.logit(eps)


def logsumexp(input: Tensor, dim: Axis, keepdim: bool = False) -> Tensor:
    """Compute log(sum(exp(x))) along axes without overflow.

    >>> picograd.special.logsumexp(Tensor([[0.0, 0.0], [1.0, 1.0]]), 1).tolist()
    [0.6931..., 1.6931...]
    """
    return apply(reduce.logsumexp, input, dim, keepdim)


def softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Normalise exp(x) to sum 1 along an axis.

    >>> picograd.special.softmax(Tensor([1.0, 1.0, 1.0, 1.0]), 0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return apply(reduce.softmax, input, dim, optional_dtype(dtype))


def log_softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Compute log(softmax(x)) along an axis.

    >>> picograd.special.log_softmax(Tensor([1.0, 1.0, 1.0]), 0).tolist()
    [-1.0986..., -1.0986..., -1.0986...]
    """
    return apply(reduce.log_softmax, input, dim, optional_dtype(dtype))


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to so many decimals, halves to even.

    >>> picograd.special.round(picograd.Tensor([1260.0]), decimals=-2).tolist()
    [1300.0]
    """
    need_tensor("round", input)
    return input.round(decimals=decimals)


def of_degree(input: Any, n: Any, name: str, is_shifted: bool = False) -> Tensor:
    """Compute polynomials whose degree is a number, or the elements of a tensor, which is read."""
    if not isinstance(n, Recorded):
        return apply(polynomials.polynomial, input, name, int(n), is_shifted)
    degrees: Any = n
    total = apply(polynomials.polynomial, input, name, 0, is_shifted) * (degrees * 0)
    for degree in sorted(set(degrees.flatten().tolist())):
        found = apply(polynomials.polynomial, input, name, int(degree), is_shifted)
        total = total + (degrees == degree).where(found, 0)
    return total  # type: ignore[no-any-return]


def chebyshev_polynomial_t(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the first kind: cos(n acos(x)) within [-1, 1].

    >>> picograd.special.chebyshev_polynomial_t(Tensor([0.5, 2.0]), 3).tolist()
    [-1.0, 26.0]
    """
    return of_degree(input, n, "chebyshev_t")


def chebyshev_polynomial_u(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the second kind.

    >>> picograd.special.chebyshev_polynomial_u(Tensor([0.5, 2.0]), 2).tolist()
    [0.0, 15.0]
    """
    return of_degree(input, n, "chebyshev_u")


def chebyshev_polynomial_v(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the third kind.

    >>> picograd.special.chebyshev_polynomial_v(Tensor([0.5, 2.0]), 1).tolist()
    [0.0, 3.0]
    """
    return of_degree(input, n, "chebyshev_v")


def chebyshev_polynomial_w(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the fourth kind.

    >>> picograd.special.chebyshev_polynomial_w(Tensor([0.5, 2.0]), 1).tolist()
    [2.0, 5.0]
    """
    return of_degree(input, n, "chebyshev_w")


def shifted_chebyshev_polynomial_t(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the first kind of 2 x - 1.

    >>> picograd.special.shifted_chebyshev_polynomial_t(Tensor([0.5, 2.0]), 2).tolist()
    [-1.0, 17.0]
    """
    return of_degree(input, n, "chebyshev_t", True)


def shifted_chebyshev_polynomial_u(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the second kind of 2 x - 1.

    >>> picograd.special.shifted_chebyshev_polynomial_u(Tensor([0.5, 2.0]), 2).tolist()
    [-1.0, 35.0]
    """
    return of_degree(input, n, "chebyshev_u", True)


def shifted_chebyshev_polynomial_v(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the third kind of 2 x - 1.

    >>> picograd.special.shifted_chebyshev_polynomial_v(Tensor([0.5, 2.0]), 1).tolist()
    [-1.0, 5.0]
    """
    return of_degree(input, n, "chebyshev_v", True)


def shifted_chebyshev_polynomial_w(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the fourth kind of 2 x - 1.

    >>> picograd.special.shifted_chebyshev_polynomial_w(Tensor([0.5, 2.0]), 1).tolist()
    [1.0, 7.0]
    """
    return of_degree(input, n, "chebyshev_w", True)


def hermite_polynomial_h(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute the physicist's Hermite polynomial.

    >>> picograd.special.hermite_polynomial_h(Tensor([0.5, 2.0]), 2).tolist()
    [-1.0, 14.0]
    """
    return of_degree(input, n, "hermite_h")


def hermite_polynomial_he(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute the probabilist's Hermite polynomial.

    >>> picograd.special.hermite_polynomial_he(Tensor([0.5, 2.0]), 2).tolist()
    [-0.75, 3.0]
    """
    return of_degree(input, n, "hermite_he")


def laguerre_polynomial_l(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Laguerre's polynomial.

    >>> picograd.special.laguerre_polynomial_l(Tensor([0.5, 2.0]), 1).tolist()
    [0.5, -1.0]
    """
    return of_degree(input, n, "laguerre")


def legendre_polynomial_p(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Legendre's polynomial.

    >>> picograd.special.legendre_polynomial_p(Tensor([0.5, 2.0]), 2).tolist()
    [-0.125, 5.5]
    """
    return of_degree(input, n, "legendre")


def spherical_bessel_j0(input: Tensor) -> Tensor:
    """Compute sin(x) / x.

    >>> picograd.special.spherical_bessel_j0(Tensor([0.0, 2.0])).tolist()
    [1.0, 0.4546...]
    """
    need_tensor("spherical_bessel_j0", input)
    return apply(transcendental.sinc, input / math.pi)


def airy_ai(input: Tensor) -> Tensor:
    """Compute Airy's function Ai.

    >>> picograd.special.airy_ai(Tensor([0.0])).tolist()
    [0.355...]
    """
    need_tensor("airy_ai", input)
    return apply(airy.ai, input)


def bessel_j0(input: Tensor) -> Tensor:
    """Compute the Bessel function of the first kind J0.

    >>> picograd.special.bessel_j0(Tensor([0.0])).tolist()
    [1.0]
    """
    need_tensor("bessel_j0", input)
    return apply(bessel_waves.j0, input)


def bessel_j1(input: Tensor) -> Tensor:
    """Compute the Bessel function of the first kind J1.

    >>> picograd.special.bessel_j1(Tensor([0.0])).tolist()
    [0.0]
    """
    need_tensor("bessel_j1", input)
    return apply(bessel_waves.j1, input)


def bessel_y0(input: Tensor) -> Tensor:
    """Compute the Bessel function of the second kind Y0.

    >>> picograd.special.bessel_y0(Tensor([0.0])).tolist()
    [-inf]
    """
    need_tensor("bessel_y0", input)
    return apply(bessel_waves.y0, input)


def bessel_y1(input: Tensor) -> Tensor:
    """Compute the Bessel function of the second kind Y1.

    >>> picograd.special.bessel_y1(Tensor([0.0])).tolist()
    [-inf]
    """
    need_tensor("bessel_y1", input)
    return apply(bessel_waves.y1, input)


def modified_bessel_k0(input: Tensor) -> Tensor:
    """Compute the modified Bessel function of the second kind K0.

    >>> picograd.special.modified_bessel_k0(Tensor([0.0])).tolist()
    [inf]
    """
    need_tensor("modified_bessel_k0", input)
    return apply(bessel_decay.k0, input)


def modified_bessel_k1(input: Tensor) -> Tensor:
    """Compute the modified Bessel function of the second kind K1.

    >>> picograd.special.modified_bessel_k1(Tensor([0.0])).tolist()
    [inf]
    """
    need_tensor("modified_bessel_k1", input)
    return apply(bessel_decay.k1, input)


def scaled_modified_bessel_k0(x: Tensor) -> Tensor:
    """Compute exp(x) K0(x).

    >>> picograd.special.scaled_modified_bessel_k0(Tensor([0.0])).tolist()
    [inf]
    """
    need_tensor("scaled_modified_bessel_k0", x)
    return apply(bessel_decay.k0e, x)


def scaled_modified_bessel_k1(x: Tensor) -> Tensor:
    """Compute exp(x) K1(x).

    >>> picograd.special.scaled_modified_bessel_k1(Tensor([0.0])).tolist()
    [inf]
    """
    need_tensor("scaled_modified_bessel_k1", x)
    return apply(bessel_decay.k1e, x)


psi = digamma
modified_bessel_i0, modified_bessel_i1 = i0, i1

guard_functions(globals(), __all__)
spell_functions(globals(), __all__)
