import math

import pytest

from picograd import Tensor, nn
from picograd.errors import ValueRangeError


def rates(make, steps, rate=1.0):
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=rate)
    schedule = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.lr)
        schedule.step()
    return found


def test_step_lr():
    assert rates(lambda o: nn.lr.StepLR(o, 2, 0.5), 5) == [1.0, 1.0, 0.5, 0.5, 0.25]


def test_lambda_lr():
    assert rates(lambda o: nn.lr.LambdaLR(o, lambda step: 1 / (step + 1)), 2) == [1.0, 0.5]


def test_linear_lr():
    found = rates(lambda o: nn.lr.LinearLR(o, 0.5, 1.0, 2), 4, 2.0)
    assert found == [1.0, 1.5, 2.0, 2.0]


def test_cosine():
    found = rates(lambda o: nn.lr.CosineAnnealingLR(o, 4, 0.2), 5)
    wanted = [0.2 + 0.4 * (1 + math.cos(math.pi * step / 4)) for step in range(5)]
    assert found == pytest.approx(wanted)


def test_triangle_rises_then_falls_to_zero():
    found = rates(lambda o: nn.lr.TriangleLR(o, 10, 0.2), 11)
    assert found == pytest.approx([0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0])


def test_rate_reaches_the_device():
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    schedule = nn.lr.StepLR(optimizer, 1, 0.5)
    schedule.step()
    assert optimizer.param_groups[0].rate.item() == 0.5 and schedule.get_last_lr() == [0.5]


def test_state_continues():
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    schedule = nn.lr.StepLR(optimizer, 1, 0.5)
    schedule.load_state_dict({"last_step": 3, "base_rates": [1.0]})
    assert optimizer.lr == 0.125 and schedule.state_dict()["last_step"] == 3


def test_bad_length_is_named():
    with pytest.raises(ValueRangeError, match="StepLR: step_size=0 is not positive"):
        rates(lambda o: nn.lr.StepLR(o, 0), 1)


@pytest.mark.parametrize(
    "name, options",
    [
        ("MultiStepLR", {"milestones": [5, 2], "gamma": 0.5}),
        ("ExponentialLR", {"gamma": 0.9}),
        ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
        ("PolynomialLR", {"total_iters": 4, "power": 2.0}),
    ],
)
def test_schedules_equal_pytorchs(name, options):
    torch = pytest.importorskip("torch")
    reference = torch.optim.SGD([torch.zeros(1)], lr=0.3)
    schedule = getattr(torch.optim.lr_scheduler, name)(reference, **options)
    wanted = []
    for _ in range(8):
        wanted.append(schedule.get_last_lr()[0])
        reference.step()
        schedule.step()
    found = rates(lambda o: getattr(nn.lr, name)(o, **options), 8, 0.3)
    assert found == pytest.approx(wanted, abs=1e-12)
