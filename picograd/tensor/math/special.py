"""picograd.special: special functions, as torch.special.

Elementwise, on the device, with gradients; except `gammainc` and `gammaincc`, which NumPy computes
on the host, at once (as many steps as their arguments need).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from picograd.errors import DTypeError
from picograd.tensor.core.annotations import Tensor, TensorLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.calling import late_functions
from picograd.tensor.core.function import FUNCTIONS, MODULES, within
from picograd.tensor.core.recording import Recorded, apply
from picograd.tensor.math import airy as airy
from picograd.tensor.math import arithmetic as arithmetic
from picograd.tensor.math import bessel as bessel
from picograd.tensor.math import bessel_decay as bessel_decay
from picograd.tensor.math import bessel_waves as bessel_waves
from picograd.tensor.math import gamma, polynomials, transcendental
from picograd.tensor.math import normal_distribution as normal_distribution
from picograd.tensor.network import activation as activation
from picograd.tensor.reductions import reduce as reduce
from picograd.tensor.shaping import assembling as assembling

# functions of `picograd` that PyTorch has here, too
SHARED = (
    "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "log_softmax", "logit",
    "logsumexp", "round", "sinc", "softmax", "xlogy",
)  # fmt: skip
# other names of functions
SAME = {
    "psi": "digamma", "modified_bessel_i0": "i0", "modified_bessel_i1": "i1",
    "expit": "sigmoid", "gammaln": "lgamma",
}  # fmt: skip


def polygamma(n: int, input: Tensor) -> Tensor:
    """Compute the n-th derivative of digamma.

    >>> round(picograd.special.polygamma(1, picograd.Tensor([1.0])).item(), 4)
    1.6449
    """
    need_tensor("polygamma", input)
    return apply(gamma.polygamma, input, n)


def _of_degree(input: Any, n: Any, name: str, is_shifted: bool = False) -> Tensor:
    """Compute polynomials whose degree is a number, or the elements of a tensor, which is read."""
    if not isinstance(n, Recorded):
        return apply(polynomials.polynomial, input, name, int(n), is_shifted)
    degrees: Any = n
    total = apply(polynomials.polynomial, input, name, 0, is_shifted) * (degrees * 0)
    known = degrees.flatten().numpy()
    if degrees.is_complex() or not np.isfinite(known).all():
        problem = "the degree is infinite, NaN or complex"
        raise DTypeError(name, problem, "pass whole numbers")
    for degree in np.unique(known):
        found = apply(polynomials.polynomial, input, name, int(degree), is_shifted)
        total = total + (degrees == degree).where(found, 0)
    return total  # type: ignore[no-any-return]


def chebyshev_polynomial_t(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the first kind: cos(n acos(x)) within [-1, 1].

    >>> picograd.special.chebyshev_polynomial_t(Tensor([0.5, 2.0]), 3).tolist()
    [-1.0, 26.0]
    """
    return _of_degree(input, n, "chebyshev_t")


def chebyshev_polynomial_u(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the second kind.

    >>> picograd.special.chebyshev_polynomial_u(Tensor([0.5, 2.0]), 2).tolist()
    [0.0, 15.0]
    """
    return _of_degree(input, n, "chebyshev_u")


def chebyshev_polynomial_v(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the third kind.

    >>> picograd.special.chebyshev_polynomial_v(Tensor([0.5, 2.0]), 1).tolist()
    [0.0, 3.0]
    """
    return _of_degree(input, n, "chebyshev_v")


def chebyshev_polynomial_w(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the fourth kind.

    >>> picograd.special.chebyshev_polynomial_w(Tensor([0.5, 2.0]), 1).tolist()
    [2.0, 5.0]
    """
    return _of_degree(input, n, "chebyshev_w")


def shifted_chebyshev_polynomial_t(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the first kind of 2 x - 1.

    >>> picograd.special.shifted_chebyshev_polynomial_t(Tensor([0.5, 2.0]), 2).tolist()
    [-1.0, 17.0]
    """
    return _of_degree(input, n, "chebyshev_t", True)


def shifted_chebyshev_polynomial_u(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the second kind of 2 x - 1.

    >>> picograd.special.shifted_chebyshev_polynomial_u(Tensor([0.5, 2.0]), 2).tolist()
    [-1.0, 35.0]
    """
    return _of_degree(input, n, "chebyshev_u", True)


def shifted_chebyshev_polynomial_v(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the third kind of 2 x - 1.

    >>> picograd.special.shifted_chebyshev_polynomial_v(Tensor([0.5, 2.0]), 1).tolist()
    [-1.0, 5.0]
    """
    return _of_degree(input, n, "chebyshev_v", True)


def shifted_chebyshev_polynomial_w(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Chebyshev's polynomial of the fourth kind of 2 x - 1.

    >>> picograd.special.shifted_chebyshev_polynomial_w(Tensor([0.5, 2.0]), 1).tolist()
    [1.0, 7.0]
    """
    return _of_degree(input, n, "chebyshev_w", True)


def hermite_polynomial_h(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute the physicist's Hermite polynomial.

    >>> picograd.special.hermite_polynomial_h(Tensor([0.5, 2.0]), 2).tolist()
    [-1.0, 14.0]
    """
    return _of_degree(input, n, "hermite_h")


def hermite_polynomial_he(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute the probabilist's Hermite polynomial.

    >>> picograd.special.hermite_polynomial_he(Tensor([0.5, 2.0]), 2).tolist()
    [-0.75, 3.0]
    """
    return _of_degree(input, n, "hermite_he")


def laguerre_polynomial_l(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Laguerre's polynomial.

    >>> picograd.special.laguerre_polynomial_l(Tensor([0.5, 2.0]), 1).tolist()
    [0.5, -1.0]
    """
    return _of_degree(input, n, "laguerre")


def legendre_polynomial_p(input: TensorLike, n: TensorLike) -> Tensor:
    """Compute Legendre's polynomial.

    >>> picograd.special.legendre_polynomial_p(Tensor([0.5, 2.0]), 2).tolist()
    [-0.125, 5.5]
    """
    return _of_degree(input, n, "legendre")


def spherical_bessel_j0(input: Tensor) -> Tensor:
    """Compute sin(x) / x.

    >>> picograd.special.spherical_bessel_j0(Tensor([0.0, 2.0])).tolist()
    [1.0, 0.4546...]
    """
    need_tensor("spherical_bessel_j0", input)
    value = transcendental.sine_over
    return apply(value, input)


# Rows are these, the functions above, and what files of this room show `within("special")`.
for _name, _written in list(globals().items()):
    if getattr(_written, "__module__", "") == __name__ and not _name.startswith("_"):
        within("special")(_written)
ROWS = MODULES["special"] | {name: FUNCTIONS[name] for name in SHARED}
_known = FUNCTIONS | ROWS
ROWS |= {other: replace(_known[name], name=other) for other, name in SAME.items()}
for _name in ROWS:
    globals().pop(_name, None)  # the function is what its row makes of it
__all__ = sorted(ROWS)
__getattr__, __dir__ = late_functions(globals(), ROWS)
