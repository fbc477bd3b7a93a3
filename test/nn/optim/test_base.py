"""What all optimizers share: groups, steps, gradients, `jit` and state dicts."""

from typing import Any

import numpy as np
import pytest
from optim_support import array, compare, compare_states, set_gradients, start, torch

import picograd
from picograd import Tensor, nn
from picograd.engine import pending, quick
from picograd.errors import GradientError, StateError, ValueRangeError
from picograd.nn.optim.group import FORMULAS

JITTED = {
    "sgd": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    "adam": ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    "nadam": ("NAdam", {"lr": 0.01}),
    "rprop": ("Rprop", {"lr": 0.01}),
}


def test_groups_have_their_own_options(device):
    ours, theirs = start(device)
    groups = lambda p: [{"params": p[:1], "lr": 0.5, "name": "a"}, {"params": p[1:2]}]  # noqa: E731
    mine = nn.optim.SGD(groups(ours), lr=0.1)
    reference = torch.optim.SGD(groups(theirs), lr=0.1)
    mine.add_param_group({"params": ours[2], "lr": 0.3, "momentum": 0.9})
    reference.add_param_group({"params": theirs[2], "lr": 0.3, "momentum": 0.9})
    for _ in range(3):
        set_gradients(ours, theirs, device)
        mine.step()
        reference.step()
    compare(ours, theirs)
    mine.param_groups[1]["lr"] = 0.25
    assert [group["lr"] for group in mine.param_groups] == [0.5, 0.25, 0.3]
    assert mine.param_groups[0]["name"] == "a" and len(mine.param_groups[2]["params"]) == 1


def test_named_parameters(device):
    layer = nn.Linear(2, 3)
    optimizer = nn.optim.SGD(layer.named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueRangeError, match="some parameters have names and some have not"):
        nn.optim.SGD([("weight", layer.weight), layer.bias])


def test_parameters_without_gradient_stay(device):
    ours, _ = start(device)
    ours[0].grad = Tensor.ones(3, 4, device=device)
    before = ours[1].numpy()
    nn.optim.Adam(ours).step()
    np.testing.assert_array_equal(ours[1].numpy(), before)


def test_every_option_is_a_number_on_the_device(device):
    """New values neither compile nor trace again, and a jitted step follows them."""
    ours, theirs = start(device, [(3,)])
    mine = nn.optim.AdamW(ours, lr=0.1, weight_decay=0.1)
    reference = torch.optim.AdamW(theirs, lr=0.1, weight_decay=0.1)

    @picograd.jit
    def step(gradient):
        ours[0].grad = gradient
        mine.step()

    for number in range(6):
        gradient = array(3)
        theirs[0].grad = torch.tensor(gradient)
        changes = dict(lr=0.1 / (number + 1), betas=(0.9 - 0.1 * number, 0.99), eps=1e-3 * number)
        mine.param_groups[0].update({**changes, "weight_decay": 0.1 + number})
        reference.param_groups[0].update({**changes, "weight_decay": 0.1 + number})
        step(Tensor(gradient, device=device))
        reference.step()
        compare(ours, theirs)
    assert step.traces == 1
    compare_states(mine, reference)


@pytest.mark.parametrize("case", JITTED)
def test_jitted_training_equals_pytorchs(case, device):
    """State made inside a trace is captured by reference; the loss is that of eager steps."""
    name, options = JITTED[case]
    value = array(4, 3)
    ours, theirs = nn.Parameter(Tensor(value, device=device)), torch.tensor(value)
    theirs.requires_grad = True
    mine = getattr(nn.optim, name)([ours], **options)
    reference = getattr(torch.optim, name)([theirs], **options)

    @picograd.jit
    def step(x):
        loss = ((x @ ours) ** 2).mean()
        loss.backward()
        mine.step()
        mine.zero_grad()
        return loss

    for _ in range(5):
        batch = array(5, 4)
        reference.zero_grad()
        expected = ((torch.tensor(batch) @ theirs) ** 2).mean()
        expected.backward()
        reference.step()
        assert step(Tensor(batch, device=device)).item() == pytest.approx(expected.item(), rel=1e-4)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)
    compare_states(mine, reference)


def no_gradient(optimizer, weights):
    weights[1].grad = None


def fresh_step(optimizer, weights):
    step = optimizer.state[weights[0]]["step"]  # that others have, too
    optimizer.state[weights[0]]["step"] = step * 0


def fresh_state(optimizer, weights):
    optimizer.state[weights[2]].update(exp_avg=optimizer.state[weights[2]]["exp_avg"] * 0)


def fewer(optimizer, weights):
    optimizer.param_groups[0]["params"].pop()


CHANGES = no_gradient, fresh_step, fresh_state, fewer


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("late", [1, 2, 30])
def test_jitted_steps_see_what_changed_between_them(change, late, device):
    """Counts of steps that parameters share are one tensor, until one of them steps alone."""
    ours, theirs = start(device, [(3,), (2, 2), (4,)])
    mine, reference = nn.optim.Adam(ours, lr=0.1), torch.optim.Adam(theirs, lr=0.1)
    step, held = picograd.jit(lambda: mine.step()), []
    for number in range(34):
        set_gradients(ours, theirs, device)
        if number == late:
            held = [dict(mine.state[each]) for each in ours]  # keeps what is replaced
            change(mine, ours)
            change(reference, theirs)
        step()
        reference.step()
    assert len(held) == 3
    compare(ours, theirs)


def test_gradients_accumulate_and_reset(device):
    weight = nn.Parameter(Tensor([1.0, 2.0], device=device))
    optimizer = nn.optim.SGD([weight], lr=1.0)
    for _ in range(2):
        (weight * 3.0).sum().backward()
    assert weight.grad.tolist() == [6.0, 6.0]
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_closure_computes_the_loss_again(device):
    weight = nn.Parameter(Tensor([3.0], device=device))
    optimizer = nn.optim.SGD([weight], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    with picograd.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 9.0 and weight.tolist() == [0.0]


def converted(state, function):
    """Apply a function to every tensor of a state dict."""
    entries = {n: {k: function(v) for k, v in s.items()} for n, s in state["state"].items()}
    return {**state, "state": entries}


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "ASGD"])
def test_state_dicts_are_interchangeable(name, device):
    """PyTorch continues from ours, and ours from PyTorch's."""
    options = {"momentum": 0.9} if name == "SGD" else {}
    ours, theirs = start(device)
    mine = getattr(nn.optim, name)(ours, lr=0.01, **options)
    reference = getattr(torch.optim, name)(theirs, lr=0.01, **options)
    for step in range(3):
        set_gradients(ours, theirs, device, absent={2} if step else ())
        mine.step()
        reference.step()
    given, wanted = mine.state_dict(), reference.state_dict()
    there = getattr(torch.optim, name)(theirs, lr=0.5, **options)
    there.load_state_dict(converted(given, lambda tensor: torch.tensor(tensor.numpy())))
    here = getattr(nn.optim, name)(ours, lr=0.5, **options)
    here.load_state_dict(converted(wanted, lambda tensor: tensor.numpy()))
    assert here.lr == 0.01
    for _ in range(2):
        set_gradients(ours, theirs, device)
        here.step()
        there.step()
        compare(ours, theirs)
    compare_states(here, there)


def test_loading_keeps_a_jitted_step_right(device):
    ours, theirs = start(device, [(3,)])
    mine, reference = nn.optim.Adam(ours, lr=0.1), torch.optim.Adam(theirs, lr=0.1)

    @picograd.jit
    def step(gradient):
        ours[0].grad = gradient
        mine.step()

    step(Tensor(array(3), device=device))
    with picograd.no_grad():
        ours[0].copy_(Tensor(theirs[0].detach().numpy(), device=device))
    theirs[0].grad = torch.ones(3)
    reference.step()
    state = reference.state_dict()
    mine.load_state_dict(state)
    with picograd.no_grad():
        ours[0].copy_(Tensor(theirs[0].detach().numpy(), device=device))
    for _ in range(2):
        gradient = array(3)
        theirs[0].grad = torch.tensor(gradient)
        step(Tensor(gradient, device=device))
        reference.step()
    compare(ours, theirs)


def test_float64_parameters_keep_their_digits(device):
    value = np.random.randn(4)
    ours = nn.Parameter(Tensor(value, device=device))
    theirs = torch.tensor(value, requires_grad=True)
    mine, reference = nn.optim.Adam([ours], lr=0.1), torch.optim.Adam([theirs], lr=0.1)
    for _ in range(5):
        gradient = np.random.randn(4)
        ours.grad, theirs.grad = Tensor(gradient, device=device), torch.tensor(gradient)
        mine.step()
        reference.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-12)


def test_a_step_stores_parameters_and_state_only(device, monkeypatch):
    """A value still held by a tensor when it is computed would be stored beside its target."""
    ours, _ = start(device)
    optimizer, stored = nn.optim.Adam(ours), []
    run = quick.run

    def watch(updates, roots, *rest):
        stored.append([node.op for node in roots])
        return run(updates, roots, *rest)

    monkeypatch.setattr(quick, "run", watch)
    for parameter in ours:
        parameter.grad = Tensor(array(*parameter.shape), device=device).realize()
    for _ in range(2):  # the first gives parameters and state their buffers
        optimizer.step()
    assert stored == [[], []]


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Muon"])
def test_a_step_without_gradients_does_nothing(name, device):
    weight = nn.Parameter(Tensor([[1.0]], device=device))
    optimizer = getattr(nn.optim, name)([weight])
    assert optimizer.step() is None and optimizer.step(lambda: 3) == 3
    assert weight.tolist() == [[1.0]] and not optimizer.state


def own_class(lib, base):
    """An optimizer as PyTorch's users write one."""

    class Own(base):
        def __init__(self, params, lr=0.1, mode="fast"):
            super().__init__(params, dict(lr=lr, mode=mode, extra=None))

        def step(self, closure=None):
            loss = None
            if closure is not None:
                with lib.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                group["count"] = group.get("count", 0) + 1
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = 0
                        state["mean"] = lib.zeros_like(p)
                    state["step"] += 1
                    state["mean"].mul_(0.5).add_(p.grad, alpha=0.5)
                    with lib.no_grad():
                        p.add_(state["mean"], alpha=-group["lr"])
            return loss

    return Own


def run_own(lib, base):
    """Train, save, load into a new optimizer, and train on."""
    own = own_class(lib, base)
    weight = lib.nn.Parameter(lib.tensor([1.0, 2.0]))
    frozen = lib.nn.Parameter(lib.tensor([5.0]), requires_grad=False)

    def make():
        return own([{"params": [weight]}, {"params": [frozen], "lr": 1.0}])

    optimizer, seen = make(), []

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight * frozen).sum()
        loss.backward()
        return loss

    for turn in range(4):
        if turn == 2:
            saved, optimizer = optimizer.state_dict(), make()
            optimizer.load_state_dict(saved)
        seen.append(optimizer.step(closure).item())
    state = optimizer.state[weight]
    assert frozen not in optimizer.state and optimizer.param_groups[1]["count"] == 4
    return [*seen, *weight.tolist(), *state["mean"].tolist(), state["step"], *frozen.tolist()]


def test_an_optimizer_with_a_step_of_its_own_is_pytorchs():
    wanted = run_own(torch, torch.optim.Optimizer)
    np.testing.assert_allclose(run_own(picograd, nn.optim.Optimizer), wanted, rtol=1e-6, atol=1e-6)


def test_groups_have_names_or_have_not(device):
    first, second = (nn.Parameter(Tensor([1.0], device=device)) for _ in range(2))
    with pytest.raises(ValueRangeError, match="some groups have names"):
        nn.optim.SGD([{"params": [first]}, {"params": [("weight", second)]}], lr=0.1)


def test_wrong_use_is_named(device):
    weight = nn.Parameter(Tensor([1.0]))
    with pytest.raises(ValueRangeError, match="there are no parameters"):
        nn.optim.SGD([])
    with pytest.raises(ValueRangeError, match="lr=-1.0 is negative"):
        nn.optim.Adam([weight], lr=-1.0)
    with pytest.raises(ValueRangeError, match="a parameter is in two groups"):
        nn.optim.SGD([{"params": [weight]}, {"params": [weight]}])
    with pytest.raises(ValueRangeError, match="computed from others"):
        nn.optim.SGD([weight * 2])
    weight.grad = Tensor([1.0])
    with pytest.raises(GradientError, match="a leaf that requires gradients"):
        nn.optim.SGD([weight], differentiable=True).step()
    with pytest.raises(ValueRangeError, match="foreach and fused"):
        nn.optim.SGD([weight], foreach=True, fused=True)
    with pytest.raises(StateError, match="0 parameters, not 1|groups, not 1"):
        nn.optim.SGD([weight]).load_state_dict({"state": {}, "param_groups": []})


@pytest.mark.parametrize("name", ["ASGD", "Adadelta", "Adagrad", "Adam", "LBFGS", "RMSprop", "SGD"])
def test_repr_lists_the_options(name):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.optim, name)([torch.nn.Parameter(torch.ones(1))])
    ours = getattr(nn.optim, name)([nn.Parameter(Tensor([1.0]))])
    assert repr(ours) == repr(theirs) and "    lr: " in repr(ours)


def run_inside(make, jit, steps):
    """An optimizer that the function makes: every call begins with fresh state."""
    picograd.manual_seed(0)
    weight, kept = nn.Parameter(Tensor([1.0, -2.0])), {}
    step = jit(make(weight, kept))
    return [np.array(step(Tensor([1.0, 0.5]), 0.1 * (k + 1)).tolist()) for k in range(steps)], step


def momentum(weight, kept):
    def step(x, lr):
        optimizer = nn.optim.SGD([weight], lr=lr, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            (weight * x).sum().backward()
            optimizer.step()
        return weight.detach().clone()

    return step


def whole_fit(weight, kept):
    def step(x, lr):
        model = nn.Linear(2, 1)
        optimizer = nn.optim.AdamW(model.parameters(), lr=lr)
        schedule = nn.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for _ in range(2):
            optimizer.zero_grad()
            loss = ((model(x) + weight.sum()) ** 2).sum()
            loss.backward()
            optimizer.step()
            schedule.step()
        return loss

    return step


def made_at_the_first_call(weight, kept):
    def step(x, lr):
        if "optimizer" not in kept:
            kept["optimizer"] = nn.optim.Adam([weight], lr=0.1)
        kept["optimizer"].zero_grad()
        (weight * x).sum().backward()
        kept["optimizer"].step()
        return weight.detach().clone()

    return step


@pytest.mark.parametrize(
    ("make", "most"), [(momentum, 1), (whole_fit, 2), (made_at_the_first_call, 2)]
)
def test_an_optimizer_made_in_a_jitted_function(make, most):
    plain, _ = run_inside(make, lambda f: f, 4)
    jitted, f = run_inside(make, picograd.jit, 4)
    for a, b in zip(plain, jitted):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert f.count <= most


def train(kind, steps, **options):
    """Train two layers that share a shape; other options, and a missing gradient, on the way."""
    picograd.manual_seed(0)
    layers = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    x = Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    optimizer = kind(layers.parameters(), **options)
    for number in range(steps):
        optimizer.zero_grad()
        layers(x).square().mean().backward()
        if number == 2:
            layers[0].bias.grad = None
        if number == 3:
            optimizer.param_groups[0]["weight_decay"] = 0.1
        if number == 4:
            optimizer.param_groups[0]["lr"] = 0.05
        optimizer.step()
    return [parameter.numpy() for parameter in layers.parameters()]


@pytest.mark.parametrize(
    ("name", "options"),
    [("Adam", {"lr": 0.1}), ("AdamW", {"amsgrad": True}), ("SGD", {"lr": 0.1, "momentum": 0.9})],
)
def test_steps_that_are_stamped_out_equal_recorded_ones(name, options):
    """A class of the user's is recorded at every step; those of picograd only at the first."""
    ours = getattr(nn.optim, name)
    users = type("Users", (ours,), {"__module__": "elsewhere"})
    for a, b in zip(train(ours, 7, **options), train(users, 7, **options), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_update_of_the_users_runs_at_every_step():
    """It may do what no graph shows."""
    weight, seen = nn.Parameter(Tensor([1.0])), []

    class Noted(nn.optim.SGD):
        def update(self, value, gradient, state, n, options):
            seen.append(len(seen))
            return value - gradient * len(seen), {}

    optimizer = Noted([weight], lr=1.0)
    for _ in range(3):
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
    assert seen == [0, 1, 2] and weight.tolist() == [1.0 - 6.0]


def test_a_step_is_recorded_once(monkeypatch):
    """And again where a flag or which parameters have gradients changed, not for another rate.

    A parameter that was left out once counts its own steps: it is recorded beside the others.
    """
    calls = []
    record = nn.optim.Adam.prepare
    monkeypatch.setattr(nn.optim.Adam, "prepare", lambda *args: (calls.append(1), record(*args))[1])
    train(nn.optim.Adam, 5)
    assert len(calls) == 4


@pytest.mark.parametrize("make", [nn.optim.SGD, nn.optim.Adam])
def test_a_step_that_goes_over_the_budget_of_pending_work_is_computed_as_one(make):
    results = []
    for is_over in (False, True):
        weights = [nn.Parameter(Tensor([1.0, 2.0]) * number) for number in (1, 2, 3)]
        optimizer = make(weights, lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            sum((weight * weight).sum() for weight in weights).backward()
            if is_over:
                pending.RECORDED[0] = 2 * pending.BUDGET - 3
            optimizer.step()
        results.append([weight.tolist() for weight in weights])
    assert results[0] == results[1]


def test_an_update_of_known_gradients_is_kept() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = nn.optim.Adam(model.parameters())
    FORMULAS.clear()
    for _ in range(3):  # gradients come by a formula from the second step on
        optimizer.zero_grad()
        (model(Tensor([[1.0, 2.0, 3.0]])) ** 2).mean().backward()
        optimizer.step()
    assert len(FORMULAS) == 1


def test_a_new_optimizer_finds_what_another_recorded(monkeypatch):
    """Cross-validation makes a network and an optimizer for each part."""
    calls = []
    record = nn.optim.Adam.prepare
    monkeypatch.setattr(nn.optim.Adam, "prepare", lambda *args: (calls.append(1), record(*args))[1])
    results = []
    for rate in (0.1, 0.2, 0.1):
        weight = nn.Parameter(Tensor([1.0, 2.0]))
        optimizer = nn.optim.Adam([weight], lr=rate)
        for _ in range(2):
            optimizer.zero_grad()
            (weight * weight).sum().backward()
            optimizer.step()
        results.append(weight.tolist())
    assert len(calls) == 1 and results[0] == results[2] != results[1]


COMPLEX = {
    "SGD": dict(lr=0.1, momentum=0.9, weight_decay=0.01), "Adam": dict(lr=0.1, amsgrad=True),
    "AdamW": dict(lr=0.1), "Adagrad": dict(lr=0.1), "Adadelta": dict(lr=0.1),
    "RMSprop": dict(lr=0.01, momentum=0.5, centered=True), "Adamax": dict(lr=0.1),
    "NAdam": dict(lr=0.1), "RAdam": dict(lr=0.1), "Rprop": dict(lr=0.1), "ASGD": dict(lr=0.1),
    "LBFGS": dict(lr=0.5, max_iter=3),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_parameters_are_trained_as_pairs(name: str) -> None:
    start = np.array([[1 + 2j, -0.5j], [0.3 - 1j, 2]])
    goal = np.array([[1 - 1j, 0.5], [2j, -1]])

    def trained(library: Any, tensor: Any) -> Any:
        w = library.nn.Parameter(tensor(start))
        optimizer = getattr(library.optim, name)([w], **COMPLEX[name])

        def loss() -> Any:
            optimizer.zero_grad()
            value = ((w - tensor(goal)).abs() ** 2).sum()
            value.backward()
            return value

        for _ in range(4):
            optimizer.step(loss)
        return w.detach().numpy()

    wanted = trained(torch, torch.tensor)
    np.testing.assert_allclose(trained(picograd, Tensor), wanted, 1e-7, 1e-7)


@pytest.mark.parametrize("name", ["whole", "data", "slice", "other group", "jitted"])
def test_parameters_of_one_memory_each_add_their_update(name: str) -> None:
    first = nn.Parameter(Tensor([1.0, 2.0]))
    second = nn.Parameter(first.data if name == "data" else first)
    if name == "slice":
        second.data = first.data[:]
    groups = [{"params": [first]}, {"params": [second]}] if name == "other group" else None
    optimizer = nn.optim.SGD(groups or [first, second], lr=0.125, momentum=0.5)

    def step() -> None:
        optimizer.zero_grad()
        (first * 2 + second * 4).sum().backward()
        optimizer.step()

    run = picograd.jit(step) if name == "jitted" else step
    for _ in range(3):
        run()
    steps = 0.125 * 6 * (1 + 1.5 + 1.75)
    assert first.tolist() == second.tolist() == [1 - steps, 2 - steps]


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "RAdam"])
def test_a_parameter_that_a_group_lists_twice_is_updated_twice(name: str) -> None:
    """As in PyTorch, which warns: the second update is of what the first one made."""

    def trained(library: Any) -> Any:
        first, second = (library.nn.Parameter(library.tensor([1.0, x])) for x in (2.0, 3.0))
        with pytest.warns(UserWarning, match="optim"):
            optimizer = getattr(library.optim, name)([second, first, second], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (first**2 * second**2).sum().backward()
            optimizer.step()
        return first.tolist() + second.tolist()

    np.testing.assert_allclose(trained(picograd), trained(torch), 1e-5)


DIFFERENTIABLE = {
    "SGD": dict(lr=0.1, weight_decay=0.01),
    "Adam": dict(lr=0.1, amsgrad=True, weight_decay=0.01),
    "AdamW": dict(lr=0.1),
    "RMSprop": dict(lr=0.1, momentum=0.5, centered=True),
    "Adagrad": dict(lr=0.1, weight_decay=0.01),
    "Adadelta": dict(lr=0.1),
    "Adamax": dict(lr=0.1),
    "NAdam": dict(lr=0.1),
    "RAdam": dict(lr=0.1),
    "ASGD": dict(lr=0.1),
    "Rprop": dict(lr=0.1),
}


def through_a_step(framework, name, options):
    """A step of what is computed, and the gradients of its square by start and gradient."""
    start, slope = (
        framework.tensor(values, dtype=framework.float64, requires_grad=True)
        for values in ([1.0, -2.0], [0.3, 0.4])
    )
    moved = start * 1.0
    optimizer = getattr(framework.optim, name)([moved], differentiable=True, **options)
    moved.grad = slope
    optimizer.step()
    loss = (moved * moved).sum()
    found = framework.autograd.grad(loss, [start, slope], allow_unused=True)
    return [moved.detach(), *found]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_pass_through_a_differentiable_step(name, device):
    ours, theirs = (through_a_step(f, name, DIFFERENTIABLE[name]) for f in (picograd, torch))
    for own, other in zip(ours, theirs, strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            np.testing.assert_allclose(own.numpy(), other.numpy(), rtol=1e-6, atol=1e-9)


def test_groups_are_printed_apart():
    groups = [{"params": [picograd.ones(1)]}, {"params": [picograd.ones(2)], "lr": 0.5}]
    lines = repr(picograd.optim.SGD(groups, lr=0.1)).splitlines()
    assert lines[1] == "Parameter Group 0" and lines[lines.index("Parameter Group 1") - 1] == ""
