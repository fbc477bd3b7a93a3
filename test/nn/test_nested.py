"""Nested states in files: checkpoints of a model and its optimizer."""

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import DTypeError
from picograd.nn.nested import flatten, is_nested, unflatten


def test_kinds_come_back():
    state = {"a": {0: Tensor([1.0]), "b": [1, (2.5, None)]}, "a.0": Tensor([2.0]), "c": {}}
    tensors, text = flatten(state)
    found = unflatten(tensors, text)
    assert list(tensors) == ["a.0", "a.0_"] and is_nested(state)
    assert found["a"]["b"] == [1, (2.5, None)] and found["c"] == {}
    assert found["a"][0].tolist() == [1.0] and found["a.0"].tolist() == [2.0]


def test_checkpoint_continues_training(device, tmp_path):
    def start():
        model = nn.Linear(3, 2, device=device)
        return model, nn.optim.Adam(model.parameters(), lr=0.1, betas=(0.8, 0.9))

    def step(model, optimizer, x):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()

    data = [Tensor(np.random.randn(4, 3).astype(np.float32), device=device) for _ in range(4)]
    first, second = start(), start()
    for x in data[:2]:
        step(*first, x)
    states = {"model": first[0].state_dict(), "optimizer": first[1].state_dict(), "epoch": 2}
    nn.save(states, tmp_path / "checkpoint.safetensors")
    nn.save(first[1].state_dict(), tmp_path / "optimizer.safetensors")
    loaded = nn.load(tmp_path / "checkpoint.safetensors", device)
    second[0].load_state_dict(loaded["model"])
    second[1].load_state_dict(loaded["optimizer"])
    assert loaded["epoch"] == 2 and loaded["optimizer"]["param_groups"][0]["betas"] == (0.8, 0.9)
    assert list(nn.load(tmp_path / "optimizer.safetensors")["state"]) == [0, 1]
    for x in data[2:]:
        step(*first, x)
        step(*second, x)
    np.testing.assert_array_equal(first[0].weight.numpy(), second[0].weight.numpy())


def test_what_a_file_cannot_hold():
    with pytest.raises(DTypeError, match="save: a.b is a set"):
        flatten({"a": {"b": {1}}})
    with pytest.raises(DTypeError, match=r"a has the key \(1, 2\)"):
        flatten({"a": {(1, 2): 3}})
