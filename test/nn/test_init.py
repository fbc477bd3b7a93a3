import math

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

SHAPE = (64, 32, 3, 3)
FAN_IN, FAN_OUT = 32 * 9, 64 * 9
UNIFORM = {
    "xavier_uniform_": math.sqrt(6 / (FAN_IN + FAN_OUT)),
    "kaiming_uniform_": math.sqrt(6 / FAN_IN),
}
NORMAL = {
    "xavier_normal_": math.sqrt(2 / (FAN_IN + FAN_OUT)),
    "kaiming_normal_": math.sqrt(2 / FAN_IN),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_schemes(name):
    values = getattr(nn.init, name)(Tensor.zeros(*SHAPE)).numpy()
    assert abs(values).max() <= UNIFORM[name] and abs(values).max() > 0.99 * UNIFORM[name]
    assert abs(values.mean()) < 0.02 * UNIFORM[name]


@pytest.mark.parametrize("name", NORMAL)
def test_normal_schemes(name):
    values = getattr(nn.init, name)(Tensor.zeros(*SHAPE)).numpy()
    assert values.std() == pytest.approx(NORMAL[name], rel=0.02)


def test_fan_out_and_gain():
    values = nn.init.kaiming_normal_(Tensor.zeros(*SHAPE), mode="fan_out", nonlinearity="linear")
    assert values.numpy().std() == pytest.approx(1 / math.sqrt(FAN_OUT), rel=0.02)
    assert nn.init.calculate_gain("tanh") == 5 / 3


def test_plain_fills():
    x = Tensor.zeros(2, 3)
    assert nn.init.ones_(x).tolist() == [[1.0] * 3] * 2
    assert nn.init.constant_(x, 2.5).numpy().max() == 2.5
    assert nn.init.zeros_(x).numpy().any() == np.False_
    assert 2 <= nn.init.uniform_(x, 2, 3).numpy().min() <= nn.init.normal_(x, 9, 0).numpy().min()


def test_seed_decides_the_values():
    picograd.manual_seed(7)
    first = nn.Linear(4, 4).weight.numpy()
    picograd.manual_seed(7)
    np.testing.assert_array_equal(nn.Linear(4, 4).weight.numpy(), first)
    assert (nn.Linear(4, 4).weight.numpy() != first).all()


def test_wrong_use_is_named():
    with pytest.raises(ShapeError, match=r"fans of shape \(3,\) are not defined"):
        nn.init.xavier_uniform_(Tensor.zeros(3))
    with pytest.raises(ValueRangeError, match="mode='in' is unknown"):
        nn.init.kaiming_normal_(Tensor.zeros(3, 3), mode="in")
    with pytest.raises(ValueRangeError, match="nonlinearity 'swish' is unknown"):
        nn.init.calculate_gain("swish")


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [("eye_", (2, 3), {}), ("dirac_", (4, 2, 3), {}), ("dirac_", (4, 2, 3, 4), {"groups": 2}),
     ("dirac_", (3, 5, 2, 2, 2), {"groups": 3})],
)  # fmt: skip
def test_identities_equal_pytorch(name, shape, options):
    torch = pytest.importorskip("torch")
    mine, theirs = picograd.full(shape, 7.0), torch.full(shape, 7.0)
    assert getattr(nn.init, name)(mine, **options) is mine
    getattr(torch.nn.init, name)(theirs, **options)
    assert mine.tolist() == theirs.tolist()


def test_wrong_identities_are_named():
    with pytest.raises(ValueError, match="no matrix"):
        nn.init.eye_(picograd.zeros(2, 2, 2))
    with pytest.raises(ValueError, match="no weight"):
        nn.init.dirac_(picograd.zeros(2, 2))
    with pytest.raises(ValueError, match="multiple of 2 groups"):
        nn.init.dirac_(picograd.zeros(3, 2, 2), 2)


def test_names_of_older_programs() -> None:
    weight = nn.Parameter(Tensor.zeros(3, 4))
    assert nn.init.constant(weight, 2.0) is weight and weight.tolist()[0] == [2.0] * 4
    assert nn.init.uniform(weight, 5.0, 6.0) is weight and weight.min().item() >= 5.0
    assert nn.init.normal(weight, mean=50.0, std=0.1) is weight and weight.min().item() > 40.0
