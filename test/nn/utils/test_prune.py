"""Weights behind masks, against PyTorch."""

import importlib

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import MemberError, ValueRangeError
from picograd.nn.utils import prune

torch = pytest.importorskip("torch")


def test_pruning() -> None:
    w = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    ours, theirs = nn.Linear(6, 4), torch.nn.Linear(6, 4)
    ours.weight = nn.Parameter(Tensor(w))
    theirs.weight = torch.nn.Parameter(torch.from_numpy(w.copy()))
    other = importlib.import_module("torch.nn.utils.prune")
    for tool, layer in ((prune, ours), (other, theirs)):
        tool.l1_unstructured(layer, "weight", amount=0.25)
        tool.ln_structured(layer, "weight", amount=1, n=2, dim=1)
        tool.l1_unstructured(layer, name="weight", amount=3)
    np.testing.assert_array_equal(ours.weight.detach().numpy(), theirs.weight.detach().numpy())
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict()) and prune.is_pruned(ours)
    ours(picograd.rand(2, 6)).sum().backward()
    zeros = int((ours.weight == 0).sum())
    assert int((ours.weight_orig.grad == 0).sum()) == zeros
    prune.remove(ours, "weight")
    assert int((ours.weight == 0).sum()) == zeros and not prune.is_pruned(ours)
    with pytest.raises(MemberError, match="no mask"):
        prune.remove(ours, "weight")
    with pytest.raises(ValueRangeError, match="amount=1.5"):
        prune.random_unstructured(ours, "weight", amount=1.5)
    pair = [nn.Linear(3, 3), nn.Linear(3, 3)]
    options = dict(pruning_method=prune.L1Unstructured, amount=0.5)
    prune.global_unstructured([(each, "weight") for each in pair], **options)
    assert sum(int((each.weight == 0).sum()) for each in pair) == 9
