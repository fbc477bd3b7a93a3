"""Losses of numbers and distributions against PyTorch: value and gradients, every reduction."""

import pytest
from nn_support import array, compare, compare_loss, counts, half, torch, unit

from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

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
