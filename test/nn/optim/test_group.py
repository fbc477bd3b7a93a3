"""Parameter groups: a mapping of options, some of which are numbers on the device."""

import gc
import io
import pickle
import weakref

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, ValueRangeError
from picograd.nn.optim.group import Expanded

KEPT = []  # numbers follow the options while the optimizer is there


def group(**options):
    KEPT[:] = [nn.optim.AdamW([nn.Parameter(Tensor([1.0]))], **options)]
    return KEPT[0].param_groups[0]


def numbers(found):
    tensors = found.numbers_beside(found["params"][0])
    return {name: tensor.item() for name, tensor in tensors.items()}


def test_a_group_is_a_mapping():
    found = group(lr=0.5)
    assert found["lr"] == 0.5 and "betas" in found and found.get("nesterov") is None
    assert next(iter(found)) == "params" and len(found) == len(dict(found))


def test_numbers_follow_the_options():
    found = group(lr=0.5, weight_decay=0.5)
    assert numbers(found)["keep"] == 0.75
    found.update(lr=0.25, betas=(0.5, 0.75))
    after = numbers(found)
    assert (after["lr"], after["keep"], after["beta1"], after["rest2"]) == (0.25, 0.875, 0.5, 0.25)


def test_numbers_are_expanded_once_a_shape():
    expanded = Expanded({"lr": Tensor(0.5)}, (2, 3))
    assert expanded["lr"].shape == (2, 3) and expanded["lr"] is expanded["lr"]


def test_a_rate_may_be_a_tensor():
    assert group(lr=Tensor(0.5))["lr"] == 0.5
    rate, weight = Tensor(0.5), nn.Parameter(Tensor([8.0]))
    optimizer, seen = nn.optim.SGD([weight], lr=rate), []
    for step in range(12):  # from the third on steps come as the last time
        if step in (4, 9):
            rate.mul_(0.5)
        weight.grad = None
        weight.sum().backward()
        optimizer.step()
        seen.append(weight.item())
    assert seen == [7.5, 7, 6.5, 6, 5.75, 5.5, 5.25, 5, 4.75, 4.625, 4.5, 4.375]
    assert optimizer.param_groups[0]["lr"] is rate
    optimizer.param_groups[0]["lr"] = 0.25
    rate.fill_(3.0)
    optimizer.step()
    assert weight.item() == 4.125 and optimizer.param_groups[0]["lr"] == 0.25


def test_wrong_options_change_nothing():
    found = group(lr=0.5)
    with pytest.raises(ValueRangeError, match="lr=-1.0 is negative"):
        found.set_options({"lr": -1.0, "eps": 1.0})
    with pytest.raises(DTypeError, match="lr must be a number, not bool"):
        found["lr"] = True
    with pytest.raises(ValueRangeError, match="'lr' cannot be deleted"):
        del found["lr"]
    assert found["lr"] == 0.5 and found["eps"] == 1e-8
    found["initial_lr"] = 0.5  # a schedule's
    assert found.pop("initial_lr") == 0.5 and "initial_lr" not in found
    with pytest.raises(TypeError, match="a Tensor is no list of parameters"):
        nn.optim.SGD(Tensor([1.0], requires_grad=True), lr=0.1)  # type: ignore[arg-type]


def test_what_wraps_an_optimizer_keeps_numbers_of_its_own():
    found = group(lr=0.5)
    found["counter"] = 3
    assert found["counter"] == 3 and dict(found)["counter"] == 3


SET = {
    "sgd": ("SGD", {"momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.5, "weight_decay": 0.2}),
    "adam": ("Adam", {}, {"betas": (0.5, 0.75), "eps": 0.001}),
    "rprop": ("Rprop", {}, {}),
    "nadam": ("NAdam", {}, {"momentum_decay": 0.01}),
    "lion": ("Lion", {}, {"betas": (0.5, 0.25)}),
}


def run_setting(name, options, changed, jit, in_property):
    weight = nn.Parameter(Tensor([1.0, -2.0]))
    optimizer = getattr(nn.optim, name)([weight], lr=0.1, **options)
    found = []

    def step(x, lr):
        if in_property:
            optimizer.lr = lr
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] if in_property else lr
            for key, value in changed.items():
                is_pair = isinstance(value, tuple)
                group[key] = tuple(lr * v for v in value) if is_pair else lr * value
        optimizer.zero_grad()
        ((weight * x) ** 2).sum().backward()
        optimizer.step()

    f = jit(step)
    for k in range(6):
        f(Tensor([1.0, 0.5]), 0.25 / (k + 1))
        found.append((weight.tolist(), dict(optimizer.param_groups[0].options)))
    optimizer.zero_grad()  # what was set holds outside of the function too
    (weight * 2.0).sum().backward()
    optimizer.step()
    return [*found, weight.tolist()], f


@pytest.mark.parametrize("case", SET)
def test_options_set_in_a_jitted_step_are_traced_once(case):
    in_property = case == "sgd"
    plain, _ = run_setting(*SET[case], lambda f: f, in_property)
    seen, f = run_setting(*SET[case], picograd.jit, in_property)
    assert [each[1] for each in plain[:-1]] == [each[1] for each in seen[:-1]]
    for a, b in zip([each[0] for each in plain[:-1]], [each[0] for each in seen[:-1]]):
        assert a == pytest.approx(b, rel=1e-6)
    assert plain[-1] == pytest.approx(seen[-1], rel=1e-6)
    assert f.count == 1


def test_options_read_in_a_jitted_function_are_followed():
    weight = nn.Parameter(Tensor([1.0]))
    optimizer = nn.optim.SGD([weight], lr=1.0)
    f = picograd.jit(lambda x: x * optimizer.param_groups[0]["lr"] + optimizer.lr)
    for lr in (1.0, 2.0, 3.0):
        optimizer.param_groups[0]["lr"] = lr
        assert f(Tensor([1.0])).item() == 2 * lr
    assert f.count == 1


def test_wrong_options_in_a_jitted_step_change_nothing():
    weight = nn.Parameter(Tensor([1.0]))
    optimizer = nn.optim.SGD([weight], lr=1.0)

    @picograd.jit
    def step(lr):
        optimizer.param_groups[0]["lr"] = lr
        optimizer.zero_grad()
        (weight * 1.0).sum().backward()
        optimizer.step()

    step(0.5)
    with pytest.raises(ValueRangeError, match="lr=-1.0 is negative"):
        step(-1.0)
    assert optimizer.lr == 0.5 and weight.item() == 0.5
    step(0.25)
    assert optimizer.lr == 0.25 and step.traces == 1


def test_an_optimizer_that_nobody_holds_is_gone_at_once():
    optimizer = nn.optim.Adam([nn.Parameter(Tensor([1.0]))])
    copied = pickle.loads(pickle.dumps(optimizer))
    copied.param_groups[0]["lr"] = 0.5
    assert copied.param_groups[0].host["lr"] == 0.5
    group, seen = optimizer.param_groups[0], weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer
        assert seen() is None
    finally:
        gc.enable()
    group["lr"] = 0.25
    assert group["lr"] == 0.25


def test_a_parameter_of_several_groups_has_one_number():
    optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0])), nn.Parameter(Tensor([2.0]))], lr=0.1)
    optimizer.param_groups.extend(optimizer.param_groups)
    assert [each["params"] for each in optimizer.state_dict()["param_groups"]] == [[0, 1]] * 2


def test_numbers_of_numpy_are_options_and_can_be_loaded():
    half, tenth = np.float32(0.5), np.float64(0.1)
    weights = [nn.Parameter(Tensor([1.0, 2.0])) for _ in range(2)]
    given = nn.optim.AdamW(weights[:1], lr=half, betas=(half, tenth), weight_decay=tenth)
    plain = nn.optim.AdamW(weights[1:], lr=0.5, betas=(0.5, 0.1), weight_decay=0.1)
    for rate in (half, np.int64(1), tenth):
        given.param_groups[0]["lr"], plain.param_groups[0]["lr"] = rate, float(rate)
        sum((each**2).sum() for each in weights).backward()
        given.step(), plain.step()
        assert weights[0].tolist() == weights[1].tolist()
    file = io.BytesIO()
    picograd.save(given.state_dict(), file)
    file.seek(0)
    assert picograd.load(file)["param_groups"] == plain.state_dict()["param_groups"]
    assert list(nn.DataLoader(range(2), num_workers=np.int64(1)))
