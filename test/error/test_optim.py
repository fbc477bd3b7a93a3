"""Optimizers and schedules built or used wrongly."""

from error_support import Case, check, named

import picograd
from picograd import Tensor, nn
from picograd.errors import (
    DeviceError,
    DTypeError,
    GradientError,
    MemberError,
    ShapeError,
    StateError,
    ValueRangeError,
)
from picograd.nn import lr, lr_scheduler, optim

WEIGHT = Tensor.ones(2, requires_grad=True)


def momentum() -> optim.SGD:
    return optim.SGD([Tensor.ones(2, requires_grad=True)], momentum=0.9)


def wrong_gradient() -> None:
    weight = Tensor.ones(2, requires_grad=True)
    optimizer = optim.SGD([weight])
    weight.grad = Tensor.ones(3)
    optimizer.step()


def rate_of_text() -> None:
    momentum().lr = "fast"  # type: ignore[assignment]


def wrong_shape() -> None:
    optimizer = momentum()
    state = {0: {"momentum_buffer": Tensor.ones(3)}}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def too_many_groups() -> None:
    groups = optim.SGD([{"params": [WEIGHT]}, {"params": [Tensor.ones(2)]}])
    momentum().load_state_dict(groups.state_dict())


def too_many_parameters() -> None:
    momentum().load_state_dict(optim.SGD([WEIGHT, Tensor.ones(2)]).state_dict())


CASES = [
    Case(
        "nothing", lambda: optim.SGD([]), ValueRangeError,
        "optim: there are no parameters. Fix: pass model.parameters().",
    ),
    Case(
        "no parameters", lambda: optim.SGD(nn.ReLU().parameters()), ValueRangeError,
        "optim: there are no parameters. Fix: pass model.parameters().",
    ),
    Case(
        "a module", lambda: optim.SGD(nn.Linear(2, 2)), DTypeError,
        "optim: a Linear is no list of parameters. "
        "Fix: pass model.parameters(), or a list of tensors.",
    ),
    Case(
        "a number", lambda: optim.SGD([1.0]), DTypeError,
        "optim: cannot train a float. Fix: pass floating tensors.",
    ),
    Case(
        "ints", lambda: optim.SGD([Tensor([1])]), ValueRangeError,
        "optim: cannot train Tensor([1]). Fix: pass floating "
        "tensors.",
    ),
    Case(
        "twice", lambda: optim.SGD([{"params": [WEIGHT]}] * 2), ValueRangeError,
        "optim: a parameter is in two groups. Fix: pass each one once.",
    ),
    Case(
        "empty group", lambda: optim.SGD([{"params": []}]), ValueRangeError,
        "optim: a parameter group is empty. Fix: pass at least one tensor.",
    ),
    Case(
        "group without params", lambda: optim.SGD([{"lr": 0.1}]), MemberError,
        'optim: a parameter group has no \'params\'. Fix: write {"params": tensors, "lr": '
        "0.1}.",
    ),
    Case(
        "negative rate", lambda: optim.SGD([WEIGHT], lr=-1.0), ValueRangeError,
        "optim: lr=-1.0 is negative. Fix: use 0 or more.",
    ),
    Case(
        "rate not a number", lambda: optim.SGD([WEIGHT], lr=float("nan")), ValueRangeError,
        "optim: lr=nan is not a number. Fix: use 0 or more.",
    ),
    Case(
        "rate of text", lambda: optim.Adam([WEIGHT], lr="fast"), DTypeError,
        "optim: lr must be a number, not str. Fix: pass a float.",
    ),
    Case(
        "rate of text later", rate_of_text, DTypeError,
        "optim: lr must be a number, not str. Fix: pass a float.",
    ),
    Case(
        "Nesterov without momentum", lambda: optim.SGD([WEIGHT], nesterov=True), ValueRangeError,
        "SGD: nesterov needs momentum > 0 and dampening 0. Fix: set momentum=0.9.",
    ),
    Case(
        "betas", lambda: optim.Adam([WEIGHT], betas=(1.0, 0.9)), ValueRangeError,
        "optim: betas=(1.0, 0.9) are not in [0, 1). Fix: use (0.9, 0.999).",
    ),
    Case(
        "one beta", lambda: optim.Adam([WEIGHT], betas=0.9), ValueRangeError,
        "optim: betas=0.9 are not in [0, 1). Fix: use (0.9, 0.999).",
    ),
    Case(
        "eps", lambda: optim.AdamW([WEIGHT], eps=-1.0), ValueRangeError,
        "optim: eps=-1.0 is negative. Fix: use 0 or more.",
    ),
    Case(
        "gradient of another shape", wrong_gradient, ShapeError,
        "grad: value of shape (3,) does not fit a tensor of shape (2,). Fix: reshape or expand the "
        "value.",
    ),
    Case(
        "state of nothing", lambda: momentum().load_state_dict({}), StateError,
        "Optimizer.load_state_dict: a state dict has the keys 'state' and 'param_groups'. Fix: "
        "load a state of the same optimizer over the same parameters.",
    ),
    Case(
        "state of another shape", wrong_shape, StateError,
        "Optimizer.load_state_dict: state 0: momentum_buffer has shape (3,), not (2,). Fix: "
        "load a state of the same optimizer over the same parameters.",
    ),
    Case(
        "state of more groups", too_many_groups, StateError,
        "Optimizer.load_state_dict: 2 groups, not 1. Fix: load a state of the same optimizer "
        "over the same parameters.",
    ),
    Case(
        "state of more parameters", too_many_parameters, StateError,
        "Optimizer.load_state_dict: group 0 has 2 parameters, not 1. Fix: load a state of the "
        "same optimizer over the same parameters.",
    ),
    Case(
        "a set", lambda: optim.SGD([{"params": {WEIGHT}}]), DTypeError,
        "optim: a set of parameters has no order. Fix: pass a list.",
    ),
    Case(
        "computed parameter", lambda: optim.SGD([WEIGHT * 2]), ValueRangeError,
        "optim: a parameter was computed from others. Fix: pass leaf tensors, such as "
        "nn.Parameter.",
    ),
    Case(
        "foreach and fused", lambda: optim.Adam([WEIGHT], foreach=True, fused=True),
        ValueRangeError,
        "optim: foreach and fused cannot both be True. Fix: leave both out: a step is always "
        "fused.",
    ),
    Case(
        "etas", lambda: optim.Rprop([WEIGHT], etas=(1.2, 0.5)), ValueRangeError,
        "optim: etas=(1.2, 0.5) are not 0 < etaminus < 1 < etaplus. Fix: use (0.5, 1.2).",
    ),
    Case(
        "Muon on a vector", lambda: optim.Muon([WEIGHT]), ShapeError,
        "Muon: a parameter of shape (2,) is no matrix. Fix: train it with AdamW.",
    ),
    Case(
        "Muon's adjustment", lambda: optim.Muon([Tensor.ones(2, 2)], adjust_lr_fn="x"),
        ValueRangeError,
        "Muon: adjust_lr_fn='x' is unknown. "
        'Fix: use None, "original" or "match_rms_adamw".',
    ),
    Case(
        "StepLR", lambda: lr.StepLR(momentum(), 0), ValueRangeError,
        "StepLR: step_size=0 is not positive. Fix: count steps from 1.",
    ),
    Case(
        "rates for other groups", lambda: lr.LambdaLR(momentum(), [float, float]), ValueRangeError,
        "LambdaLR: lr_lambda has 2 values for 1 groups. Fix: give one a group.",
    ),
    Case(
        "schedule of a model", lambda: lr.ExponentialLR(nn.ReLU(), 0.9), DTypeError,
        "ExponentialLR: ReLU is no optimizer. Fix: pass an optimizer of nn.optim.",
    ),
    Case(
        "cycle without length", lambda: lr_scheduler.OneCycleLR(momentum(), 0.1), ValueRangeError,
        "OneCycleLR: the length of the cycle is missing. Fix: pass total_steps, or epochs and "
        "steps_per_epoch.",
    ),
    Case(
        "LBFGS without closure", lambda: optim.LBFGS([WEIGHT]).step(), DTypeError,
        "LBFGS.step: the closure is missing. Fix: pass a function that computes the loss.",
    ),
    Case(
        "autocast to integers", lambda: picograd.autocast("cpu", dtype="int8"), DTypeError,
        "autocast: int8 is no dtype of mixed precision. Fix: use bfloat16 or float16.",
    ),
    Case(
        "autocast elsewhere", lambda: picograd.autocast("null"), DeviceError,
        "autocast: 'null' is no device of mixed precision. Fix: use \"cpu\" or \"cuda\".",
    ),
    Case(
        "scaler without gradients", lambda: picograd.GradScaler().step(momentum()), GradientError,
        "GradScaler: no parameter has a gradient. Fix: call scale(loss).backward() before step().",
    ),
    Case(
        "scaler updated first", lambda: picograd.GradScaler().update(), GradientError,
        "GradScaler.update: no optimizer has looked at its gradients. Fix: call step() or "
        "unscale_() first.",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
