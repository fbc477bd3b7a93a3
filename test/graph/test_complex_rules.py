"""Complex arithmetic against PyTorch and C: values, branch cuts, gradients."""

import cmath

import numpy as np
import pytest
from complex_support import W, Z, both, check

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")


UNARY = """
    abs acos acosh angle asin asinh atan atanh conj cos cosh exp exp2 expm1 isfinite
    isinf isnan isreal log log10 log1p log2 logical_not nan_to_num neg positive
    reciprocal rsqrt sgn sigmoid sin sinh sqrt square tan tanh
"""
BINARY = """
    add atan2 div dot eq isclose logical_and logical_or matmul mul ne pow sub
"""
GRADIENTS = [
    lambda m, z, w: (z * w).abs().sum(),
    lambda m, z, w: (z @ w.mT).real.sum() + (z @ w.mT).imag.sum() * 2,
    lambda m, z, w: (z.exp() / (w + 3)).abs().sum(),
    lambda m, z, w: (z.tanh() * w.sin()).imag.sum() + z.mean().abs() + w.var(),
    lambda m, z, w: (z.cumprod(1) + w.cumsum(0)).abs().sum() + z.prod().abs(),
    lambda m, z, w: (z[1:, ::2] * w.T[:2, :2]).abs().sum() + m.view_as_real(z).sum(),
    lambda m, z, w: m.view_as_complex(m.view_as_real(z) * 2).abs().sum() + w.reshape(-1)[3].real,
    lambda m, z, w: (m.polar(z.abs(), w.angle()) * m.complex(z.imag, w.real)).abs().sum(),
    lambda m, z, w: m.where(z.real > 0, z * w, w.sgn()).imag.sum() + (z**2 * w**0.5).real.sum(),
]


@pytest.mark.parametrize("name", UNARY.split())
def test_elementwise(name: str) -> None:
    check(*both(name, Z))


@pytest.mark.parametrize(
    "name", [each for each in BINARY.split() if each not in ("dot", "matmul", "atan2")]
)
def test_two_operands(name: str) -> None:
    check(*both(name, Z, W))
    if name != "isclose":  # which takes one dtype in PyTorch
        check(*both(name, Z, W.real.copy()))
    if name in ("mul", "pow"):
        check(*both(name, Z[:, :1], W.astype(np.complex64)[0]))
        check(*both(name, Z.astype(np.complex64), 2 - 0.5j), rtol=1e-5)
        check(*both(name, Z.real.astype(np.float32), 1j), rtol=1e-5)
        check(*both(name, np.arange(1, 4), 0.5j), rtol=1e-5)


@pytest.mark.parametrize("name", ["acos", "asinh", "exp", "sqrt", "tan", "tanh"])
def test_special_points(name: str) -> None:
    points = np.array([0j, 1, -1, 1j, -1j, 1e-8 + 1e-8j, 100 + 3j, -100 - 3j, complex(-2, -0.0)])
    if name in ("acosh", "atanh", "log", "log1p", "log2", "log10", "atan", "rsqrt", "reciprocal"):
        points = points[5:]
    found, wanted = both(name, points)
    check(found, wanted, rtol=1e-8)


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "acosh", "atanh", "atan", "asinh"])
def test_branch_cuts_are_those_of_c(name: str) -> None:
    points = [complex(a, b) for a in (-2.0, -0.5, 0.5, 2.0) for b in (0.0, -0.0)]
    points += [complex(b, a) for a in (-2.0, -0.5, 0.5, 2.0) for b in (0.0, -0.0)]
    found = getattr(picograd, name)(Tensor(np.array(points))).tolist()
    np.testing.assert_allclose(found, [getattr(cmath, name)(z) for z in points], 1e-12, 1e-12)


def test_large_and_small_divisors() -> None:
    divisors = np.array([1e300 + 1e300j, 1e-300 - 1e-300j, 3j, 2.0])
    np.testing.assert_allclose((Tensor(divisors) / Tensor(divisors)).numpy(), np.ones(4))
    assert np.isnan((Tensor([0j]) / 0).numpy()).all()


@pytest.mark.parametrize("number", range(len(GRADIENTS)))
def test_gradients_are_pytorchs(number: int) -> None:
    function = GRADIENTS[number]
    ours = [Tensor(x, requires_grad=True) for x in (Z, W)]
    theirs = [torch.tensor(x, requires_grad=True) for x in (Z, W)]
    function(picograd, *ours).backward()
    function(torch, *theirs).backward()
    for found, wanted in zip(ours, theirs):
        if wanted.grad is not None:
            check(found.grad, wanted.grad)


def test_gradient_of_abs_at_0_is_0() -> None:
    z = Tensor([0j, 1j], requires_grad=True)
    z.abs().sum().backward()
    assert z.grad is not None and z.grad.tolist() == [0, 1j]


def test_parameters_train() -> None:
    w = picograd.nn.Parameter(Tensor([1 + 1j]))
    for _ in range(60):
        w.grad = None
        ((w - (2 - 3j)).abs() ** 2).sum().backward()
        with picograd.no_grad():
            w -= 0.1 * w.grad
    np.testing.assert_allclose(w.detach().numpy(), [2 - 3j], 1e-4)
    with pytest.raises(ValueError):  # their steps square gradients
        picograd.optim.Adam([w])
