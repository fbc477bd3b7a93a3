"""Optimizers and schedules built or used wrongly."""

from error_support import Case, check, named

from picograd import Tensor, nn
from picograd.errors import DTypeError, GradientError, ShapeError, StateError, ValueRangeError
from picograd.nn import lr, optim

WEIGHT = Tensor.ones(2, requires_grad=True)


def momentum() -> optim.SGD:
    return optim.SGD([Tensor.ones(2, requires_grad=True)], momentum=0.9)


def wrong_gradient() -> None:
    weight = Tensor.ones(2, requires_grad=True)
    optimizer = optim.SGD([weight])
    weight.grad = Tensor.ones(3)
    optimizer.step()


def unknown_option() -> None:
    momentum().param_groups[0]["foo"] = 1


def rate_of_text() -> None:
    momentum().lr = "fast"  # type: ignore[assignment]


def wrong_shape() -> None:
    optimizer = momentum()
    optimizer.load_state_dict(optimizer.state_dict() | {"0.momentum_buffer.0": Tensor.ones(3)})


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
        "optim: Linear is no list of parameters. Fix: pass model.parameters().",
    ),
    Case(
        "a number", lambda: optim.SGD([1.0]), ValueRangeError,
        "optim: cannot train 1.0. Fix: pass floating tensors.",
    ),
    Case(
        "ints", lambda: optim.SGD([Tensor([1])]), ValueRangeError,
        "optim: cannot train Tensor([1], dtype=int64, device='cpu'). Fix: pass floating "
        "tensors.",
    ),
    Case(
        "twice", lambda: optim.SGD([WEIGHT, WEIGHT]), ValueRangeError,
        "optim: a parameter appears twice. Fix: pass each one once.",
    ),
    Case(
        "empty group", lambda: optim.SGD([{"params": []}]), ValueRangeError,
        "optim: a parameter group is empty. Fix: pass at least one tensor.",
    ),
    Case(
        "group without params", lambda: optim.SGD([{"lr": 0.1}]), ValueRangeError,
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
        "step without gradients", lambda: momentum().step(), GradientError,
        "SGD: no parameter has a gradient. Fix: call loss.backward() before step().",
    ),
    Case(
        "gradient of another shape", wrong_gradient, ShapeError,
        "optim: gradient (3,) does not fit its parameter (2,). Fix: give them the same shape.",
    ),
    Case(
        "unknown option", unknown_option, ValueRangeError,
        "optim: no option 'foo'. Fix: use lr, momentum, dampening, weight_decay, nesterov.",
    ),
    Case(
        "state of nothing", lambda: momentum().load_state_dict({}), StateError,
        "Optimizer.load_state_dict: names differ: 0.lr, 0.momentum_buffer.0. Fix: load a "
        "state of the same optimizer over the same parameters.",
    ),
    Case(
        "state of another shape", wrong_shape, StateError,
        "Optimizer.load_state_dict: 0.momentum_buffer.0 has shape (3,), not (2,). Fix: "
        "load a state of the same optimizer over the same parameters.",
    ),
    Case(
        "StepLR", lambda: lr.StepLR(momentum(), 0), ValueRangeError,
        "StepLR: step_size=0 is not positive. Fix: count steps from 1.",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
