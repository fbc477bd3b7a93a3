"""Losses of numbers and distributions against PyTorch: value and gradients, every reduction."""

import warnings

import numpy as np
import pytest
from nn_support import array, compare, compare_loss, counts, half, torch, unit

from picograd import Tensor, nn
from picograd.errors import DTypeError, ShapeError, ValueRangeError

CASES = {
    "smooth_l1": ("SmoothL1Loss", {"beta": 0.5}, lambda: [array(5, 4), array(5, 4)]),
    "huber": ("HuberLoss", {"delta": 0.7}, lambda: [array(5, 4), array(5, 4)]),
    "kl": ("KLDivLoss", {}, lambda: [array(5, 4), half(5, 4)]),
    "kl_log": ("KLDivLoss", {"log_target": True}, lambda: [array(5, 4), array(5, 4)]),
    "poisson": ("PoissonNLLLoss", {"full": True}, lambda: [array(5, 4), counts(5, 4)]),
    "poisson_plain": ("PoissonNLLLoss", {"log_input": False}, lambda: [unit(5, 4), counts(5, 4)]),
    "gaussian": ("GaussianNLLLoss", {"full": True}, lambda: [array(5, 4), array(5, 4), unit(5, 4)]),
    "gaussian_column": ("GaussianNLLLoss", {}, lambda: [array(5, 4), array(5, 4), unit(1, 4)]),
    "kl_number": ("KLDivLoss", {"log_target": True}, lambda: [array(), array()]),
    "gaussian_row": ("GaussianNLLLoss", {}, lambda: [array(5, 4), array(5, 4), unit(5, 1)]),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", CASES)
def test_loss_equals_pytorch(case, reduction, device):
    compare_loss(CASES[case], reduction, device)


def test_batchmean(device):
    data = [array(5, 4), array(5, 4)]
    options = dict(reduction="batchmean", log_target=True)
    compare(nn.KLDivLoss(**options), torch.nn.KLDivLoss(**options), data, device)


def test_wrong_use_is_named():
    x = Tensor.ones(3, 4)
    with pytest.raises(ShapeError, match="mse_loss"):
        nn.functional.mse_loss(x, Tensor.ones(3, 5))
    with pytest.raises(ValueRangeError, match="huber_loss"):
        nn.functional.huber_loss(x, x, delta=0.0)
    with pytest.raises(ShapeError, match="gaussian_nll_loss"):
        nn.functional.gaussian_nll_loss(x, x, Tensor.ones(2))


@pytest.mark.parametrize("name", ["kl_div", "soft_margin_loss", "poisson_nll_loss"])
def test_targets_broadcast(name):
    results, data = [], (array(5, 4), array(4))
    for library in (torch, Tensor):
        loss = getattr(torch.nn.functional if library is torch else nn.functional, name)
        make = torch.from_numpy if library is torch else Tensor
        x, y = (make(each) for each in data)
        with pytest.warns(UserWarning):
            results.append(loss(x, y.abs(), reduction="none" if name != "kl_div" else "batchmean"))
            warnings.warn("PyTorch is silent", stacklevel=1)
    np.testing.assert_allclose(results[1].numpy(), results[0].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_flags_are_targets(name):
    x, flags = Tensor([0.5, 2.0]), Tensor([True, False])
    loss = getattr(nn.functional, name)
    assert loss(x, flags).item() == loss(x, flags.float()).item()


def test_entropy_of_integers_is_refused():
    with pytest.raises(DTypeError, match="binary_cross_entropy: is not defined for int64"):
        nn.functional.binary_cross_entropy(Tensor([1]), Tensor([1]))
