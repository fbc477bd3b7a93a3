"""Adafactor against PyTorch's."""

import pytest
from optim_support import check_steps

from picograd import Tensor, nn
from picograd.errors import ValueRangeError

CASES = {
    "plain": {},
    "decayed": {"lr": 0.1, "weight_decay": 0.1, "d": 1.5},
    "all": {"lr": 0.3, "maximize": True, "beta2_decay": -0.6, "eps": (1e-5, 1e-2)},
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    check_steps("Adafactor", CASES[case], device, shapes=[(3, 4), (5,), (2, 3, 2)])


def test_a_rate_in_a_tensor_and_numbers(device):
    x = nn.Parameter(Tensor(2.0, device=device))
    optimizer = nn.optim.Adafactor([x], lr=Tensor(0.5, device=device))

    def closure():
        optimizer.zero_grad()
        loss = x * x
        loss.backward()
        return loss

    assert [round(optimizer.step(closure).item(), 4) for _ in range(2)] == [4.0, 1.0]


def test_wrong_options_are_named():
    x = nn.Parameter(Tensor([1.0]))
    for name, value in dict(lr=-1, beta2_decay=0.5, d=0.5, weight_decay=-1).items():
        with pytest.raises(ValueRangeError, match=f"{name}={value} is out of range"):
            nn.optim.Adafactor([x], **{name: value})
    for eps in ((-1.0, 0.1), (None, -0.1)):
        with pytest.raises(ValueRangeError, match="eps"):
            nn.optim.Adafactor([x], eps=eps)
