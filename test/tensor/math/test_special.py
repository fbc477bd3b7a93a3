"""picograd.special: values and gradients equal PyTorch's, far out and at the edges too."""

import math
from typing import Any

import numpy as np
import pytest
from op_support import numbers
from special_support import call, check_functions

import picograd
from picograd import Tensor
from picograd.errors import PicogradError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients(dtype: str, device: str) -> None:
    check_functions({"entr": np.array([-1.0, 0.25, 0.5, 3.0])}, dtype, device)


def test_other_names(device: str) -> None:
    x = numbers((4,), 0.1, 0.9)
    for name in ("digamma", "psi", "gammaln", "erf", "erfc", "erfinv", "exp2", "expm1", "log1p",
                 "sinc", "expit", "logit"):  # fmt: skip
        found, want = call(name)(Tensor(x, device=device)), call(name)(torch.tensor(x))
        np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-12)
    y = Tensor([[-1234.5675, 2.5, 0.125]], device=device)
    for decimals in (-2, 0, 2):
        found = picograd.special.round(y, decimals=decimals)
        want = torch.special.round(torch.tensor(y.numpy()), decimals=decimals)
        np.testing.assert_array_equal(found.numpy(), want.numpy())
    for name in ("softmax", "log_softmax", "logsumexp"):
        found, want = call(name, 1)(y), call(name, 1)(torch.tensor(y.numpy()))
        np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-6)
    ones = np.array([0.0, 1.0, 0.0, np.nan])
    others = np.array([-1.0, 3.0, np.nan, 0.0])
    for name in ("xlogy", "xlog1py"):
        found = getattr(picograd.special, name)(Tensor(ones), Tensor(others)).numpy()
        want = getattr(torch.special, name)(torch.tensor(ones), torch.tensor(others)).numpy()
        np.testing.assert_allclose(found, want)


def test_gradients_of_products_with_logarithms_that_nobody_reads(device: str) -> None:
    read = np.array([0.0, 1.0])  # the first has no logarithm
    for name in ("xlogy", "xlog1py"):
        x = Tensor([-1.5, 2.0], device=device, requires_grad=True)
        result = getattr(picograd.special, name)(x, x) * Tensor(read, device=device)
        result.sum().backward()
        assert x.grad.tolist()[0] == 0.0
        y = Tensor([3.0, 2.0], device=device)

        def twice(x: Tensor, y: Tensor = y, name: str = name) -> Tensor:
            return getattr(picograd.special, name)(x, y).square().sum()

        found = picograd.func.hessian(twice)(Tensor([0.0, 1.0], device=device)).numpy()
        logs = np.log(y.numpy() + (name == "xlog1py"))
        np.testing.assert_allclose(found, np.diag(2 * logs**2), rtol=1e-5)


def test_mistakes(device: str) -> None:
    x = Tensor([1.0], device=device)
    for wrong in (
        lambda: picograd.special.polygamma(-1, x),
        lambda: picograd.special.multigammaln(x, 0),
        lambda: picograd.special.i0(3.0),
        lambda: picograd.special.polygamma(1, 3.0),
    ):
        with pytest.raises(PicogradError):
            wrong()


def test_spherical_bessel(device: str) -> None:
    x = np.array([-20.0, -0.1, 0.0, 1e-3, 0.4, 3.0])
    found = picograd.special.spherical_bessel_j0(Tensor(x, device=device)).numpy()
    want = torch.special.spherical_bessel_j0(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, want, 1e-9, 1e-12)
    wide = np.array([745.0, 1e4, 65504.0, 1e5, 2.0**31, math.inf, -math.inf], np.float32)
    found = picograd.special.spherical_bessel_j0(Tensor(wide, device=device)).numpy()
    exact = torch.special.spherical_bessel_j0(torch.from_numpy(wide).double()).numpy()
    np.testing.assert_allclose(found, exact, 1e-6, 1e-30)
    for name in ("modified_bessel_i0", "modified_bessel_i1"):
        found, want = call(name)(Tensor(x, device=device)), call(name)(torch.from_numpy(x))
        np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-12)


def test_second_derivatives_where_a_smooth_function_is_made_of_others_with_corners() -> None:
    def curvature(m: Any, of: Any) -> Any:
        x = m.tensor([0.0, 1.0], dtype=m.float64).requires_grad_()
        weights = m.tensor([1.0, 2.0], dtype=m.float64)
        (first,) = m.autograd.grad((of(m, x) * weights).sum(), x, create_graph=True)
        (second,) = m.autograd.grad((first * weights).sum(), x)
        return second.numpy()

    functions: list[Any] = [
        lambda m, x: m.nn.functional.softplus(x),
        lambda m, x: m.nn.functional.logsigmoid(x),
        lambda m, x: m.nn.functional.binary_cross_entropy_with_logits(x, x.detach()),
        lambda m, x: m.nn.functional.smooth_l1_loss(x, x.detach() * 0.5),
        lambda m, x: m.nn.functional.huber_loss(x, x.detach()),
        lambda m, x: m.logaddexp(x, x.detach()),
    ]
    for of in functions:
        np.testing.assert_allclose(curvature(picograd, of), curvature(torch, of), 1e-7)
    np.testing.assert_allclose(curvature(picograd, lambda m, x: m.sinc(x))[0], -(np.pi**2) / 3)
    assert picograd.tensor([math.inf, -math.inf]).angle().tolist() == [0.0, pytest.approx(math.pi)]
