"""zeta and incomplete gamma functions: values, derivatives that there are no formulas for."""

import numpy as np
import pytest
from op_support import Case, compare, numbers

import picograd
from picograd import Tensor
from picograd.errors import PicogradError

mpmath = pytest.importorskip("mpmath")
torch = pytest.importorskip("torch")
GAMMA = numbers((3, 5), 0.1, 9)


def test_incomplete_gamma(device: str) -> None:
    a = np.array([0.0, 0, 1, np.inf, 1, -1, 1, np.nan, 1e4, 0.3, 7.0, 20.0])
    x = np.array([0.0, 1, 0, 1, np.inf, 1, -1, 1, 1.01e4, 0.1, 30.0, 18.0])
    for name in ("gammainc", "gammaincc"):
        found = getattr(picograd.special, name)(Tensor(a, device=device), Tensor(x, device=device))
        want = getattr(torch.special, name)(torch.tensor(a), torch.tensor(x))
        np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-9)

    def of_x(name: str) -> Case:
        order = numbers((3, 5), 0.5, 8, seed=5)
        return Case(
            name, lambda x: getattr(picograd.special, name)(Tensor(order, device=device), x),
            [GAMMA], lambda x: getattr(torch.special, name)(torch.tensor(order), x),
            dtype="float64")  # fmt: skip

    compare([of_x("gammainc"), of_x("gammaincc")], device)


@pytest.mark.parametrize("name", ["zeta", "gammainc", "gammaincc"])
def test_a_derivative_there_is_no_formula_for_is_refused(name: str) -> None:
    a, x = (Tensor([2.0], requires_grad=True) for _ in range(2))
    result = getattr(picograd.special, name)(a, x)
    assert picograd.grad(result, x)[0].item() != 0
    with pytest.raises(PicogradError, match="no derivative with respect to its first argument"):
        picograd.grad(result, a)
    assert picograd.grad(getattr(picograd.special, name)(a.detach(), x), x)[0].item() != 0
