"""L-BFGS against PyTorch's, in double precision so that both take the same decisions."""

import importlib

import numpy as np
import pytest
from optim_support import torch

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, StateError, ValueRangeError

CASES = {
    "plain": {"lr": 0.1, "max_iter": 7},
    "short_memory": {"lr": 0.2, "history_size": 2},
    "wolfe": {"line_search_fn": "strong_wolfe"},
    "wolfe_long": {"line_search_fn": "strong_wolfe", "max_iter": 40, "lr": 0.5},
    "wolfe_few": {"line_search_fn": "strong_wolfe", "max_iter": 5, "max_eval": 9},
}


def rosenbrock(x, y):
    """Rosenbrock's banana valley, in four variables."""
    return ((1.0 - x) ** 2).sum() + 100.0 * ((y - x * x) ** 2).sum()


def closure_of(optimizer, x, y):
    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(x, y)
        loss.backward()
        return loss

    return closure


def start(dtype=np.float64, device="cpu"):
    values = np.asarray([[-1.2, 0.5]], dtype), np.asarray([[1.0, -0.7]], dtype)
    ours = [nn.Parameter(Tensor(value, device=device)) for value in values]
    return ours, [torch.tensor(value, requires_grad=True) for value in values]


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    ours, theirs = start(device=device)
    mine, reference = nn.optim.LBFGS(ours, **CASES[case]), torch.optim.LBFGS(theirs, **CASES[case])
    for _ in range(3):
        found = mine.step(closure_of(mine, *ours))
        wanted = reference.step(closure_of(reference, *theirs))
        assert found.item() == pytest.approx(wanted.item(), rel=1e-6, abs=1e-12)
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-9)
    entries = mine.state_dict()["state"][0], reference.state_dict()["state"][0]
    assert entries[0].keys() == entries[1].keys() - {"al"}
    for name in ("func_evals", "n_iter"):
        assert entries[0][name] == entries[1][name]


@pytest.mark.parametrize("case", ["plain", "wolfe_few"])
def test_a_closure_may_clamp(case):
    """A picture stays within its range: steps go on from what the closure left."""
    ours, theirs = start()
    made = nn.optim.LBFGS(ours, **CASES[case]), torch.optim.LBFGS(theirs, **CASES[case])
    for optimizer, (x, y), library in zip(made, (ours, theirs), (picograd, torch)):

        def closure(optimizer=optimizer, x=x, y=y, library=library):
            with library.no_grad():
                y.clamp_(-0.2, 0.5)
            return closure_of(optimizer, x, y)()

        optimizer.step(closure)
        optimizer.step(closure)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-9)


def test_float32_finds_the_minimum(device):
    ours, _ = start(np.float32, device)
    optimizer = nn.optim.LBFGS(ours, max_iter=100, line_search_fn="strong_wolfe")
    optimizer.step(closure_of(optimizer, *ours))
    assert rosenbrock(*ours).item() < 1e-8
    assert ours[0].dtype.name == "float32"


@pytest.mark.parametrize("is_ours", [True, False])
def test_state_continues(is_ours):
    """From a state of ours, or of PyTorch's."""
    ours, theirs = start()
    options = {"lr": 0.1, "max_iter": 4}
    first, reference = nn.optim.LBFGS(ours, **options), torch.optim.LBFGS(theirs, **options)
    first.step(closure_of(first, *ours))
    reference.step(closure_of(reference, *theirs))
    second = nn.optim.LBFGS(ours, lr=1.0)
    second.load_state_dict((first if is_ours else reference).state_dict())
    second.step(closure_of(second, *ours))
    reference.step(closure_of(reference, *theirs))
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-9)


def test_a_minimum_is_left_alone():
    weight = nn.Parameter(Tensor([0.0, 1.0]))
    optimizer = nn.optim.LBFGS([weight])
    loss = optimizer.step(closure_of(optimizer, Tensor([1.0]), Tensor([1.0]) + weight.sum() * 0.0))
    assert loss.item() == 0.0 and weight.tolist() == [0.0, 1.0]


def test_wrong_use_is_named():
    ours, _ = start()
    with pytest.raises(DTypeError, match="the closure is missing"):
        nn.optim.LBFGS(ours).step()
    with pytest.raises(ValueRangeError, match="line_search_fn='x' is unknown"):
        nn.optim.LBFGS(ours, line_search_fn="x")
    with pytest.raises(ValueRangeError, match="there is a second group"):
        nn.optim.LBFGS([{"params": ours[:1]}, {"params": ours[1:]}])
    optimizer = nn.optim.LBFGS(ours)
    optimizer.step(closure_of(optimizer, *ours))
    with pytest.raises(StateError, match="the direction does not have 2 elements"):
        nn.optim.LBFGS(ours[:1]).load_state_dict(optimizer.state_dict())


def test_line_searches_of_other_programs():
    """Programs import the search along a line: it takes the same steps on both sides."""
    found = []
    for framework in (picograd, torch):
        lines = importlib.import_module(f"{framework.__name__}.optim.lbfgs")
        x, d = (framework.tensor(each, dtype=framework.float64) for each in ([3.0], [-1.0]))

        def at(x, t, d):
            point = x + t * d
            return float((point**4).sum()), 4 * point**3

        loss, gradient = at(x, 0.0, d)
        loss, end, length, count = lines._strong_wolfe(at, x, 0.1, d, loss, gradient, gradient @ d)
        ends = [framework.tensor(each) for each in (0.0, 1.0, -1.0, 2.0, 3.0, 2.0)]
        between = lines._cubic_interpolate(*ends)
        found.append([loss, end.item(), float(length), count, float(between)])
    np.testing.assert_allclose(*found, rtol=1e-6)
    with pytest.raises(ValueRangeError, match="leave them out"):
        picograd.optim.lbfgs._strong_wolfe(at, x, 1.0, d, loss, end, -1.0, c1=0.5)
