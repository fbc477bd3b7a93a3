"""Losses against PyTorch: value and gradients, every reduction."""

import numpy as np
import pytest
from nn_support import array, compare, torch

from picograd import Tensor, nn
from picograd.errors import DTypeError, ShapeError

SIGNS = np.array([1, -1, 1, -1, 1])
LISTED = np.array([[3, 0, -1, 1], [-1, 2, 3, 0], [0, 1, 2, 3]])
CASES = {
    "bce": ("BCELoss", {}, lambda: [unit(5, 4), half(5, 4)]),
    "smooth_l1": ("SmoothL1Loss", {"beta": 0.5}, lambda: [array(5, 4), array(5, 4)]),
    "huber": ("HuberLoss", {"delta": 0.7}, lambda: [array(5, 4), array(5, 4)]),
    "kl": ("KLDivLoss", {}, lambda: [array(5, 4), half(5, 4)]),
    "kl_log": ("KLDivLoss", {"log_target": True}, lambda: [array(5, 4), array(5, 4)]),
    "poisson": ("PoissonNLLLoss", {"full": True}, lambda: [array(5, 4), counts(5, 4)]),
    "poisson_plain": ("PoissonNLLLoss", {"log_input": False}, lambda: [unit(5, 4), counts(5, 4)]),
    "gaussian": ("GaussianNLLLoss", {"full": True}, lambda: [array(5, 4), array(5, 4), unit(5, 4)]),
    "gaussian_row": ("GaussianNLLLoss", {}, lambda: [array(5, 4), array(5, 4), unit(5, 1)]),
    "ranking": ("MarginRankingLoss", {"margin": 0.3}, lambda: [array(5), array(5), SIGNS]),
    "hinge": ("HingeEmbeddingLoss", {}, lambda: [array(5), SIGNS]),
    "soft_margin": ("SoftMarginLoss", {}, lambda: [array(5), SIGNS]),
    "multi_soft": ("MultiLabelSoftMarginLoss", {}, lambda: [array(5, 4), half(5, 4)]),
    "multi_margin": ("MultiMarginLoss", {"p": 2}, lambda: [array(5, 4), np.arange(5) % 4]),
    "cosine": ("CosineEmbeddingLoss", {"margin": 0.1}, lambda: [array(5, 4), array(5, 4), SIGNS]),
    "triplet": ("TripletMarginLoss", {}, lambda: [array(5, 4), array(5, 4), array(5, 4)]),
    "multilabel_margin": ("MultiLabelMarginLoss", {}, lambda: [array(3, 4), LISTED]),
    "multilabel_margin_one": ("MultiLabelMarginLoss", {}, lambda: [array(4), LISTED[1]]),
    "triplet_distance": (
        "TripletMarginWithDistanceLoss",
        {"swap": True, "margin": 0.5},
        lambda: [array(5, 4) for _ in range(3)],
    ),
    "triplet_swap": ("TripletMarginLoss", {"swap": True}, lambda: [array(5, 4) for _ in range(3)]),
}


def unit(*shape):
    return np.random.uniform(0.05, 0.95, shape).astype(np.float32)


def half(*shape):
    """Probabilities, exact zeros and ones among them; float64 so that no gradient is asked."""
    values = np.random.rand(*shape)
    values[0] = np.round(values[0])
    return Fixed(values.astype(np.float32))


def counts(*shape):
    return Fixed(np.random.poisson(2.0, shape).astype(np.float32))


class Fixed:
    """An array that no gradient is wanted for."""

    def __init__(self, values):
        self.values = values


def bind(loss, make, data):
    """Fix the arguments that want no gradient."""
    fixed = [make(item.values) if isinstance(item, Fixed) else None for item in data]

    def call(*given):
        rest = iter(given)
        return loss(*[next(rest) if item is None else item for item in fixed])

    return call


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", CASES)
def test_loss_equals_pytorch(case, reduction, device):
    name, options, make = CASES[case]
    data = make()
    ours = getattr(nn, name)(**options, reduction=reduction)
    reference = getattr(torch.nn, name)(**options, reduction=reduction)
    varying = [item for item in data if not isinstance(item, Fixed)]
    mine = bind(ours, lambda value: Tensor(value, device=device), data)
    compare(mine, bind(reference, torch.tensor, data), varying, device)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [None, 2])
def test_cross_entropy_with_weight_and_smoothing(reduction, ignored, device):
    weight = unit(4)
    more = {} if ignored is None else {"ignore_index": ignored}
    options = dict(label_smoothing=0.2, reduction=reduction, **more)
    ours = nn.CrossEntropyLoss(Tensor(weight, device=device), **options)
    reference = torch.nn.CrossEntropyLoss(torch.tensor(weight), **options)
    compare(ours, reference, [array(5, 4, 2), np.arange(10).reshape(5, 2) % 4], device)
    assert list(ours.state_dict()) == list(reference.state_dict()) == ["weight"]


def test_batchmean(device):
    data = [array(5, 4), array(5, 4)]
    options = dict(reduction="batchmean", log_target=True)
    compare(nn.KLDivLoss(**options), torch.nn.KLDivLoss(**options), data, device)


def test_binary_cross_entropy_is_finite_at_the_ends(device):
    x = Tensor([0.0, 1.0, 0.0], device=device, requires_grad=True)
    loss = nn.BCELoss(reduction="none")(x, Tensor([1.0, 0.0, 0.0], device=device))
    loss.sum().backward()
    assert loss.tolist() == [100.0, 100.0, 0.0] and np.isfinite(x.grad.numpy()).all()


def test_wrong_use_is_named():
    x = Tensor.ones(3, 4)
    with pytest.raises(ShapeError, match="cosine_embedding_loss: target of shape"):
        nn.CosineEmbeddingLoss()(x, x, Tensor.ones(4))
    with pytest.raises(DTypeError, match="HuberLoss: no option 'beta'"):
        nn.HuberLoss(beta=1.0)
