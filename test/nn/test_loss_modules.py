"""Losses as modules: options by name and position, weights as buffers, what they print."""

import inspect

import pytest

from picograd import Tensor, nn
from picograd.errors import DTypeError


def test_options_are_those_of_the_function():
    assert str(inspect.signature(nn.HuberLoss)).startswith("(reduction")
    assert "weight" not in inspect.signature(nn.MSELoss).parameters  # the function's alone
    loss = nn.HuberLoss("sum", 0.5)
    assert (loss.reduction, loss.delta, nn.HuberLoss(delta=2.0).reduction) == ("sum", 0.5, "mean")


def test_options_reach_the_function():
    a, b = Tensor([1.0, 5.0]), Tensor([1.0, 2.0])
    assert nn.L1Loss(reduction="none")(a, b).tolist() == [0.0, 3.0]
    loss = nn.L1Loss()
    loss.reduction = "sum"
    assert loss(a, b).item() == 3.0


def test_weights_are_buffers():
    loss = nn.CrossEntropyLoss(Tensor([1.0, 3.0]))
    assert list(loss.state_dict()) == ["weight"] and not list(loss.parameters())
    assert loss.double().weight.dtype.name == "float64"


def test_options_are_not_printed():
    assert repr(nn.SmoothL1Loss(beta=0.5)) == "SmoothL1Loss()"


def test_wrong_options_are_named():
    with pytest.raises(DTypeError, match="HuberLoss: no option 'beta'"):
        nn.HuberLoss(beta=1.0)
    with pytest.raises(DTypeError, match="L1Loss: 3 options, at most 1 are known"):
        nn.L1Loss("mean", 1, 2)


def test_programs_derive_their_losses():
    from picograd.nn.modules.loss import _Loss, _WeightedLoss

    class Own(_Loss):
        def __init__(self, power, reduction="sum"):
            super().__init__(reduction=reduction)
            self.power = power

        def forward(self, x, y):
            return nn.functional.mse_loss(x, y, reduction=self.reduction) ** self.power

    assert Own(1)(Tensor([1.0, 2.0]), Tensor([0.0, 0.0])).item() == 5.0
    assert isinstance(nn.MSELoss(), _Loss) and _Loss(None, False).reduction == "none"
    assert list(_WeightedLoss(Tensor([1.0])).state_dict()) == ["weight"]


def test_older_words_for_the_reduction() -> None:
    x = Tensor([1.0, 3.0])
    assert nn.MSELoss(size_average=False)(x, x * 2).item() == 10.0
    assert nn.L1Loss(reduce=False)(x, x * 2).tolist() == [1.0, 3.0]
    assert nn.MSELoss(size_average=True).reduction == "mean"
