"""Complex arithmetic against PyTorch and C: values, branch cuts, gradients."""

import cmath
from typing import Any

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


# On the axes and on their bisectors, where real arithmetic has corners.
CORNERS = np.array([1j, -2j, -1.5 + 0.5j, 1 + 1j, 1 - 1j, 0.25, 0.5, -2 - 2j])
ANALYTIC = "sqrt rsqrt reciprocal log log2 log10 log1p asin acos atan asinh acosh atanh"


@pytest.mark.parametrize("name", ANALYTIC.split())
def test_derivatives_at_corners(name: str) -> None:
    found = [slopes(m, lambda m, z: getattr(m, name)(z)) for m in (picograd, torch)]
    np.testing.assert_allclose(*found, 1e-7, 1e-9)


@pytest.mark.parametrize("exponent", [1, 2, 0.5, -1, 1j])
def test_derivatives_of_powers_at_corners(exponent: complex) -> None:
    found = [slopes(m, lambda m, z: z**exponent) for m in (picograd, torch)]
    np.testing.assert_allclose(*found, 1e-7, 1e-9)


def slopes(m: Any, function: Any) -> Any:
    """Derive twice, for each number."""
    z = m.tensor(CORNERS).requires_grad_()
    ones = m.ones(8, dtype=m.complex128)
    (first,) = m.autograd.grad(function(m, z), z, ones, create_graph=True)
    (second,) = m.autograd.grad(first, z, ones, allow_unused=True)
    second = first * 0 if second is None else second
    return m.stack([first, second]).detach().resolve_conj().numpy()


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


def test_gradient_of_a_power_of_0_is_0() -> None:
    z = Tensor([0j, 2 + 1j], requires_grad=True)
    (z ** Tensor([0j, 0j])).real.sum().backward()
    assert z.grad is not None and z.grad.tolist() == [0j, 0j]


def test_gradient_of_abs_at_0_is_0() -> None:
    z = Tensor([0j, 1j], requires_grad=True)
    z.abs().sum().backward()
    assert z.grad is not None and z.grad.tolist() == [0, 1j]


def test_gradients_of_what_was_computed() -> None:
    """A tensor of parts may be asked for itself: by `grad`, `retain_grad`, a hook, a clone."""
    for library, tensor in ((torch, torch.tensor), (picograd, Tensor)):
        z = tensor(Z).requires_grad_(True)
        y, hooked = z * 2, []
        y.retain_grad()
        y.register_hook(lambda g, seen=hooked: seen.append(g))  # type: ignore[misc]
        (y * y).real.sum().backward()
        check_known = [y.grad, z.grad, hooked[0]]
        x = z * (1 + 1j)
        check_known += library.autograd.grad((x * x).real.sum(), [x, z])
        given = z.reshape(z.shape) * 1
        check_known += library.autograd.grad(given.reshape(z.shape).abs().sum(), [z])
        if library is torch:
            wanted = check_known
    for found, want in zip(check_known, wanted, strict=True):
        check(found, want)


SPECIAL = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]
# of expm1, log1p, rsqrt PyTorch gives NaN where C99 says more; it knows no sign of an infinite sinh
LIKE_C = "exp sinh cosh tanh cos tan asin acos atan asinh acosh atanh log sqrt log10 log2"


@pytest.mark.parametrize("name", LIKE_C.split())
def test_zeros_infinities_and_nan(name: str) -> None:
    points = np.array([complex(a, b) for a in SPECIAL for b in SPECIAL])
    found, wanted = (each.numpy() for each in both(name, points))
    if name == "sinh":
        found, wanted = found[points.real > -np.inf], wanted[points.real > -np.inf]
    np.testing.assert_allclose(found.real, wanted.real, 1e-12, 1e-12)
    np.testing.assert_allclose(found.imag, wanted.imag, 1e-12, 1e-12)


def test_division_by_infinity() -> None:
    for divisor in (complex(np.inf, 1), complex(-2, -np.inf), complex(np.inf, np.inf)):
        assert (Tensor([1 + 2j]) / Tensor([divisor])).abs().tolist() == [0]


def test_parameters_train() -> None:
    w = picograd.nn.Parameter(Tensor([1 + 1j]))
    for _ in range(60):
        w.grad = None
        ((w - (2 - 3j)).abs() ** 2).sum().backward()
        with picograd.no_grad():
            w -= 0.1 * w.grad
    np.testing.assert_allclose(w.detach().numpy(), [2 - 3j], 1e-4)


FUNCTIONS = {
    "prod": lambda m, z, w: z.prod(1), "cumprod": lambda m, z, w: z.cumprod(0),
    "einsum": lambda m, z, w: m.einsum("ij,kj->ik", z, w.conj()),
    "addmm": lambda m, z, w: m.addmm(z[:, :3], z, w.mT, alpha=2j, beta=0.5),
    "addcmul": lambda m, z, w: m.addcmul(z, z, w, value=1 + 1j),
    "lerp": lambda m, z, w: m.lerp(z, w, 0.3), "kron": lambda m, z, w: m.kron(z, w),
    "vdot": lambda m, z, w: m.vdot(z[0], w[0]), "inner": lambda m, z, w: m.inner(z, w),
    "cat with real": lambda m, z, w: m.cat([z, w.real.clone()]), "tril": lambda m, z, w: m.tril(z),
    "index_add": lambda m, z, w: z.index_add(0, m.tensor([0, 0, 2]), w),
    "gather": lambda m, z, w: m.gather(z, 0, m.tensor([[0, 1, 2, 0]])),
    "masked_fill": lambda m, z, w: z.masked_fill(w.real > 0, 1j),
    "pad": lambda m, z, w: m.nn.functional.pad(z, (1, 2)), "diff": lambda m, z, w: m.diff(z),
    "linear": lambda m, z, w: m.nn.functional.linear(z, w), "cov": lambda m, z, w: m.cov(z),
    "conv1d": lambda m, z, w: m.nn.functional.conv1d(z[None], w[None, :, :2]),
    "dist": lambda m, z, w: m.dist(z, w), "std": lambda m, z, w: m.std(z, 1),
    "corrcoef": lambda m, z, w: m.corrcoef(z), "norm": lambda m, z, w: m.norm(z),
    "l1_loss": lambda m, z, w: m.nn.functional.l1_loss(z, w), "mv": lambda m, z, w: z @ w[0],
    "fft": lambda m, z, w: m.fft.fft(z) * w, "diag_embed": lambda m, z, w: m.diag_embed(z),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_gradients_are_pytorchs(name: str) -> None:
    ours = [Tensor(x, requires_grad=True) for x in (Z, W)]
    theirs = [torch.tensor(x, requires_grad=True) for x in (Z, W)]
    found, wanted = FUNCTIONS[name](picograd, *ours), FUNCTIONS[name](torch, *theirs)
    check(found, wanted)
    found.abs().sum().backward()
    wanted.abs().sum().backward()
    for each, other in zip(ours, theirs):
        assert (each.grad is None) == (other.grad is None)
        if other.grad is not None:
            check(each.grad, other.grad)
