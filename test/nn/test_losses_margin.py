"""Losses that compare distances and scores against PyTorch: value and gradients."""

import numpy as np
import pytest
from nn_support import array, compare_loss, half

from picograd import Tensor, nn
from picograd.errors import DTypeError, ShapeError, ValueRangeError

SIGNS = np.array([1, -1, 1, -1, 1])
LISTED = np.array([[3, 0, -1, 1], [-1, 2, 3, 0], [0, 1, 2, 3]])
CASES = {
    "ranking": ("MarginRankingLoss", {"margin": 0.3}, lambda: [array(5), array(5), SIGNS]),
    "hinge": ("HingeEmbeddingLoss", {}, lambda: [array(5), SIGNS]),
    "ranking_wide": ("MarginRankingLoss", {}, lambda: [array(5, 1), array(1, 4), SIGNS[:, None]]),
    "hinge_wide": ("HingeEmbeddingLoss", {}, lambda: [array(3, 5), SIGNS[None]]),
    "multi_margin_one": ("MultiMarginLoss", {}, lambda: [array(4), np.array([2])]),
    "multi_margin_number": ("MultiMarginLoss", {}, lambda: [array(), np.array(0)]),
    "multilabel_number": ("MultiLabelMarginLoss", {}, lambda: [array(), np.array(0)]),
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


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", CASES)
def test_loss_equals_pytorch(case, reduction, device):
    compare_loss(CASES[case], reduction, device)


def test_wrong_use_is_named():
    x = Tensor.ones(3, 4)
    with pytest.raises(ShapeError, match="cosine_embedding_loss: target of shape"):
        nn.CosineEmbeddingLoss()(x, x, Tensor.ones(4))
    with pytest.raises(ShapeError, match="do not broadcast"):
        nn.HingeEmbeddingLoss()(x, Tensor.ones(4, 4))
    for target in ("1", None, [1.0, 1.0]):
        with pytest.raises(DTypeError, match="hinge_embedding_loss: the target must be a Tensor"):
            nn.functional.hinge_embedding_loss(x, target)
    with pytest.raises(ValueRangeError, match="triplet_margin_loss: margin=0"):
        nn.functional.triplet_margin_loss(x, x, x, margin=0)
    with pytest.raises(ValueRangeError, match="multi_margin_loss: p=3 is neither 1 nor 2"):
        nn.functional.multi_margin_loss(x, Tensor([0, 1, 2]), p=3)
    with pytest.raises(DTypeError, match="multi_margin_loss: target of dtype float32"):
        nn.functional.multi_margin_loss(x, Tensor([0.0, 1.0, 2.0]))
