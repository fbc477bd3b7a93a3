"""Schedules against PyTorch's, over 60 steps and two groups."""

import warnings

import pytest
from lr_support import follow, optimizers, torch

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, StateError, ValueRangeError
from picograd.nn.optim import lr

CASES = {
    "lambda": ("LambdaLR", {"lr_lambda": lambda epoch: 0.95**epoch}),
    "lambdas": ("LambdaLR", {"lr_lambda": [lambda e: 1 / (e + 1), lambda e: 0.9**e]}),
    "multiplicative": ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.95 + 0.001 * epoch}),
    "step": ("StepLR", {"step_size": 7, "gamma": 0.5}),
    "multi_step": ("MultiStepLR", {"milestones": [20, 5, 5], "gamma": 0.5}),
    "constant": ("ConstantLR", {"factor": 0.25, "total_iters": 10}),
    "linear": ("LinearLR", {"start_factor": 0.2, "end_factor": 0.9, "total_iters": 13}),
    "exponential": ("ExponentialLR", {"gamma": 0.9}),
    "polynomial": ("PolynomialLR", {"total_iters": 30, "power": 2.5}),
    "cosine": ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.01}),
}


@pytest.mark.parametrize("case", CASES)
def test_schedules_equal_pytorchs(case):
    name, options = CASES[case]
    follow(lambda room, optimizer: getattr(room, name)(optimizer, **options))


@pytest.mark.parametrize("case", [case for case in CASES if case != "multiplicative"])
def test_jumps_and_resumption_equal_pytorchs(case):
    """`step(epoch)` uses the closed formula; `last_epoch` continues without the first step."""
    name, options = CASES[case]

    def jump(room, optimizer):
        schedule = getattr(room, name)(optimizer, **options)
        schedule.step(9)
        return getattr(room, name)(optimizer, last_epoch=9, **options)

    follow(jump, 20)


def test_schedules_add_up():
    """A rate that was changed by hand is what the next one is computed from."""

    def lower(room, optimizer):
        schedule = room.ExponentialLR(optimizer, 0.9)
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] / 10
        return schedule

    follow(lower, 20)


def rates(make, steps, rate=1.0):
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=rate)
    schedule = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.lr)
        schedule.step()
    return found


def test_triangle_rises_then_falls_to_zero():
    found = rates(lambda o: nn.lr.TriangleLR(o, 10, 0.2), 11)
    assert found == pytest.approx([0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0])


def test_rate_reaches_the_device():
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    schedule = nn.lr.StepLR(optimizer, 1, 0.5)
    schedule.step()
    (numbers,) = optimizer.param_groups[0].numbers.values()
    assert numbers["lr"].item() == 0.5 and schedule.get_last_lr() == [0.5]


def test_state_continues():
    """Optimizer and schedule together continue where another pair stopped, ours or PyTorch's."""
    make = lambda room, optimizer: room.CosineAnnealingLR(optimizer, 20, 0.01)  # noqa: E731
    pairs = follow(make, 7)
    saved = [(each.state_dict(), each.optimizer.state_dict()) for each in pairs]
    pairs[0].step()
    for state, options in saved:
        fresh, _ = optimizers()
        schedule = make(nn.lr_scheduler, fresh)
        fresh.load_state_dict(options)
        schedule.load_state_dict(dict(state))
        schedule.step()
        assert schedule.last_epoch == 8
        assert schedule.get_last_lr() == pytest.approx(pairs[0].get_last_lr(), rel=1e-12)


def test_wrong_use_is_named():
    with pytest.raises(ValueRangeError, match="StepLR: step_size=0 is not positive"):
        rates(lambda o: nn.lr.StepLR(o, 0), 1)
    with pytest.raises(ValueRangeError, match=r"lr_lambda has 1 values for 2 groups"):
        nn.lr.LambdaLR(optimizers()[0], [lambda epoch: 1.0])
    with pytest.raises(ValueRangeError, match=r"start_factor=0.0 is not in \(0, 1\]"):
        nn.lr.LinearLR(optimizers()[0], 0.0)
    with pytest.raises(DTypeError, match="list is no optimizer"):
        nn.lr.ExponentialLR([], 0.9)
    with pytest.raises(KeyError, match="a group has no 'initial_lr'"):
        nn.lr.ExponentialLR(optimizers()[0], 0.9, last_epoch=3)
    with pytest.raises(StateError, match="has the key 'last_epoch'"):
        nn.lr.ExponentialLR(optimizers()[0], 0.9).load_state_dict({})


INSIDE = {
    "step": (lambda o: nn.lr_scheduler.StepLR(o, 3, 0.5), 2),
    "multi_step": (lambda o: nn.lr_scheduler.MultiStepLR(o, [2, 6, 6], 0.5), 3),
    "cosine": (lambda o: nn.lr_scheduler.CosineAnnealingLR(o, 5), 2),
    "lambda": (lambda o: nn.lr_scheduler.LambdaLR(o, lambda e: min(1.0, (e + 1) / 4)), 2),
    "restarts": (lambda o: nn.lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2), 2),
    "cycle": (lambda o: nn.lr_scheduler.OneCycleLR(o, 0.1, 12), 3),
    "chain": (
        lambda o: nn.lr_scheduler.SequentialLR(
            o, [nn.lr_scheduler.LinearLR(o, 0.1, total_iters=4),
                nn.lr_scheduler.ExponentialLR(o, 0.9)], [4]),
        4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", INSIDE)
def test_a_schedule_may_step_in_a_jitted_function(case):
    make, most = INSIDE[case]
    found = []
    for jit in (lambda f: f, picograd.jit):
        weight = nn.Parameter(Tensor([1.0, 2.0]))
        optimizer = nn.optim.Adam([weight], lr=0.1)
        schedule, seen = make(optimizer), []

        def step(x):
            optimizer.zero_grad()  # noqa: B023
            (weight * x).sum().backward()  # noqa: B023
            optimizer.step()  # noqa: B023
            schedule.step()  # noqa: B023

        f = jit(step)
        for _ in range(11):
            f(Tensor([1.0, 2.0]))
            group = optimizer.param_groups[0]
            seen.append((group["lr"], group["betas"], schedule.last_epoch, weight.tolist()))
        found.append(seen)
    for plain, jitted in zip(*found):
        assert plain[:3] == jitted[:3] and plain[3] == pytest.approx(jitted[3], rel=1e-5)
    assert f.count <= most


def test_a_schedule_that_is_changed_is_traced_again():
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    factor = 0.5
    schedule = nn.lr_scheduler.LambdaLR(optimizer, lambda epoch: factor)
    f = picograd.jit(lambda: schedule.step())
    f()
    assert optimizer.lr == 0.5
    factor = 0.25
    f()
    assert optimizer.lr == 0.25
    schedule.base_lrs[0] = 2.0
    f()
    assert optimizer.lr == 0.5
    schedule.lr_lambdas = [lambda epoch: 3.0]
    f()
    assert optimizer.lr == 6.0 and schedule.last_epoch == 4


def test_a_state_of_pytorchs_leaves_functions_as_they_are():
    make = lambda room, optimizer: room.LambdaLR(optimizer, lambda e: 0.9**e)  # noqa: E731
    ours, theirs = follow(make, 3)
    ours.load_state_dict(theirs.state_dict())
    ours.step()
    assert ours.get_last_lr()[0] == pytest.approx(0.3 * 0.9**4)


def test_a_schedule_of_the_users_says_what_it_set() -> None:
    """PyTorch's keep the rates in `_last_lr`, and copies of them assign it."""

    class Halving(nn.optim.lr_scheduler.LRScheduler):
        def get_lr(self) -> list[float]:
            return [0.125]

        def step(self, epoch: int | None = None) -> None:
            for group in self.optimizer.param_groups:
                group["lr"] /= 2
            self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    optimizer._cuda_graph_capture_health_check()
    schedule = Halving(optimizer)
    assert schedule.get_last_lr() == [0.5]
    schedule.move(None)  # sets them itself
    assert schedule.get_last_lr() == [0.125]


SCHEDULES = {
    "LambdaLR": lambda room, o: room.LambdaLR(o, lambda epoch: 0.9**epoch),
    "StepLR": lambda room, o: room.StepLR(o, 2),
    "CosineAnnealingLR": lambda room, o: room.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda room, o: room.CosineAnnealingWarmRestarts(o, 3),
    "CyclicLR": lambda room, o: room.CyclicLR(o, 0.1, 1.0, scale_fn=lambda cycle: 0.5),
    "OneCycleLR": lambda room, o: room.OneCycleLR(o, 1.0, 10),
    "ReduceLROnPlateau": lambda room, o: room.ReduceLROnPlateau(o),
}


@pytest.mark.parametrize("make", SCHEDULES.values(), ids=SCHEDULES)
def test_a_state_has_pytorchs_names_and_is_read_on_both_sides(make):
    is_of_losses = make is SCHEDULES["ReduceLROnPlateau"]
    options = {"argument": lambda step: 1.0} if is_of_losses else {}
    ours, theirs = follow(make, 3, momentum=0.9, **options)
    found, wanted = ours.state_dict(), theirs.state_dict()
    assert wanted.keys() <= found.keys() and found["_last_lr"] == pytest.approx(wanted["_last_lr"])
    for group in ours.optimizer.param_groups:
        group["lr"] *= 0.1
    assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, reference = optimizers(momentum=0.9)
        again, reloaded = make(nn.lr_scheduler, mine), make(torch.optim.lr_scheduler, reference)
    again.load_state_dict(wanted)
    reloaded.load_state_dict(found)
    assert again.get_last_lr() == pytest.approx(reloaded.get_last_lr())
    assert again.last_epoch == reloaded.last_epoch == 3


def test_the_attributes_of_a_callable_object_are_state():
    class Factor:
        rate = 0.5

        def __call__(self, epoch):
            return self.rate**epoch

    first, second = Factor(), Factor()
    first.rate = 0.25
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    state = nn.lr_scheduler.LambdaLR(optimizer, first).state_dict()
    assert state["lr_lambdas"] == [{"rate": 0.25}]
    nn.lr_scheduler.LambdaLR(optimizer, second).load_state_dict(state)
    assert second.rate == 0.25


def test_an_epoch_that_is_given_is_warned_of_as_in_pytorch():
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    schedule = nn.lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning) as told:
        schedule.step(2)
    assert str(told[0].message) == picograd.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING


IN_PLACE = {
    "formula": lambda lib, o: lib.optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.5**epoch),
    "cyclic": lambda lib, o: lib.optim.lr_scheduler.OneCycleLR(o, 1.0, 10, cycle_momentum=False),
    "plateau": lambda lib, o: lib.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0),
    "in_turn": lambda lib, o: lib.optim.lr_scheduler.SequentialLR(
        o,
        [
            lib.optim.lr_scheduler.ConstantLR(o, 0.1, 2),
            lib.optim.lr_scheduler.ExponentialLR(o, 0.9),
        ],
        [1],
    ),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_rate_that_is_a_tensor_is_written_in_place(name):
    """It is the rate of both groups, and is lowered once a step."""

    def run(lib):
        weights = [lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2)]
        rate = lib.tensor(0.1)
        optimizer = lib.optim.SGD([{"params": [weight]} for weight in weights], lr=rate)
        schedule = IN_PLACE[name](lib, optimizer)
        for _ in range(4):
            optimizer.zero_grad()
            sum((weight**2).sum() for weight in weights).backward()
            optimizer.step()
            schedule.step(*([1.0] if name == "plateau" else []))
            assert optimizer.param_groups[1]["lr"] is rate
        return [rate.item(), *weights[0].tolist(), *weights[1].tolist()]

    assert run(picograd) == pytest.approx(run(torch), rel=1e-6)


def test_a_schedule_that_steps_before_its_optimizer_warns_as_in_pytorch():
    counts = []
    for room in (nn.optim, torch.optim):
        weight = Tensor([1.0]) if room is nn.optim else torch.ones(1)
        optimizer = room.SGD([weight.requires_grad_()], lr=1.0)
        schedule = room.lr_scheduler.StepLR(optimizer, 2)
        with warnings.catch_warnings(record=True) as early:
            warnings.simplefilter("always")
            schedule.step()
            schedule.step()
        late = room.lr_scheduler.StepLR(optimizer, 2)
        with warnings.catch_warnings(record=True) as usual:
            warnings.simplefilter("always")
            optimizer.step()
            late.step()
        counts.append((len(early), len(usual)))
    assert counts == [(1, 0), (1, 0)]
    assert "Fix: call optimizer.step() first" in lr.EARLY_WARNING


def test_a_jitted_step_counts_as_a_step_of_the_optimizer():
    weight = nn.Parameter(Tensor([1.0]))
    optimizer = nn.optim.SGD([weight], lr=1.0)
    schedule = nn.lr_scheduler.ExponentialLR(optimizer, 0.5)

    @picograd.jit
    def step():
        (weight * 1).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            step()
            schedule.step()
    assert weight.item() == 1 - 1.75 and step.traces == 1
