"""State dicts of optimizers: PyTorch's layout, and what does not fit is said before a change."""

import io

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import StateError


def trained():
    weights = [nn.Parameter(Tensor([1.0, 2.0])), nn.Parameter(Tensor([3.0]))]
    optimizer = nn.optim.Adam(weights, lr=0.1)
    weights[1].grad = Tensor([1.0])
    optimizer.step()
    return optimizer


def test_layout():
    state = trained().state_dict()
    assert list(state) == ["state", "param_groups"] and list(state["state"]) == [1]
    assert state["state"][1]["step"].item() == 1.0 and state["param_groups"][0]["params"] == [0, 1]
    assert list(state["state"][1]) == ["step", "exp_avg", "exp_avg_sq"]


def test_each_parameter_has_a_step_of_its_own():
    """In a file: PyTorch's add to each in place, and counted threefold what was one."""
    weights = [nn.Parameter(Tensor([float(i)])) for i in range(3)]
    optimizer = nn.optim.Adam(weights)
    for weight in weights:
        weight.grad = Tensor([1.0])
    for _ in range(2):
        optimizer.step()
    file = io.BytesIO()
    saved = {"optimizer": optimizer.state_dict()}
    saved["itself"] = saved
    picograd.save(saved, file)
    file.seek(0)
    found = picograd.load(file)
    steps = [entry["step"] for entry in found["optimizer"]["state"].values()]
    for step in steps:
        step.add_(1)
    assert [step.item() for step in steps] == [3.0, 3.0, 3.0]


def test_parameters_without_state_start_anew():
    first, second = trained(), trained()
    empty = {**second.state_dict(), "state": {}}
    first.load_state_dict(empty)
    assert first.state_dict()["state"][1]["step"].item() == 0.0
    assert first.state_dict()["state"][1]["exp_avg"].tolist() == [0.0]


def test_keys_may_be_text_and_values_arrays():
    optimizer = trained()
    values = {"step": 5, "exp_avg": np.asarray([0.5]), "exp_avg_sq": [0.25]}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": {"0": None, "1": values}})
    found = optimizer.state_dict()["state"][1]
    assert [found[name].tolist() for name in values] == [5.0, [0.5], [0.25]]


def test_what_does_not_fit_changes_nothing():
    optimizer = trained()
    wrong = {**optimizer.state_dict(), "state": {1: {"exp_avg": Tensor([1.0, 2.0])}}}
    wrong["param_groups"][0]["lr"] = 0.7
    with pytest.raises(StateError, match=r"state 1: exp_avg has shape \(2,\), not \(1,\)"):
        optimizer.load_state_dict(wrong)
    with pytest.raises(StateError, match="the keys 'state' and 'param_groups'"):
        optimizer.load_state_dict({})
    assert optimizer.lr == 0.1 and optimizer.state_dict()["state"][1]["step"].item() == 1.0
