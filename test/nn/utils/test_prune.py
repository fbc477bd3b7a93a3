"""Weights behind masks, against PyTorch."""

import importlib
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, ValueRangeError
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
    with pytest.raises(ValueRangeError, match="no mask"):
        prune.remove(ours, "weight")
    with pytest.raises(ValueRangeError, match="amount=1.5"):
        prune.random_unstructured(ours, "weight", amount=1.5)
    pair = [nn.Linear(3, 3), nn.Linear(3, 3)]
    options = dict(pruning_method=prune.L1Unstructured, amount=0.5)
    prune.global_unstructured([(each, "weight") for each in pair], **options)
    assert sum(int((each.weight == 0).sum()) for each in pair) == 9


def derived(lib: Any, tool: Any) -> list[Any]:
    """Weights behind methods of one's own, one after another and over several modules."""

    class EverySecond(tool.BasePruningMethod):  # type: ignore[misc, name-defined]
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t: Any, default_mask: Any) -> Any:
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    class Threshold(tool.BasePruningMethod):  # type: ignore[misc, name-defined]
        PRUNING_TYPE = "unstructured"

        def __init__(self, threshold: float) -> None:
            self.threshold = threshold

        def compute_mask(self, t: Any, default_mask: Any) -> Any:
            return t.abs() > self.threshold

    w = lib.tensor(np.random.default_rng(0).normal(size=(4, 6)))
    layers = [lib.nn.Linear(6, 4).double() for _ in range(3)]
    for factor, layer in enumerate(layers, 1):
        layer.weight = lib.nn.Parameter(w * factor)
    first, second, third = layers
    found = []
    for change in (
        lambda: EverySecond.apply(first, "weight"),
        lambda: tool.l1_unstructured(first, "weight", 3),
        lambda: tool.ln_structured(first, "weight", 0.3, 1, 1),
        lambda: Threshold.apply(first, "weight", 0.5),
        lambda: EverySecond.apply(first, "weight"),
    ):
        change()
        found.append(first.weight)
    pair = [(second, "weight"), (third, "weight")]
    tool.global_unstructured(pair, pruning_method=Threshold, threshold=0.9)
    scores = {(second, "weight"): w.abs() * 9}
    options = dict(pruning_method=tool.L1Unstructured, amount=5, importance_scores=scores)
    tool.global_unstructured(pair, **options)
    alone = tool.LnStructured(2, n=2, dim=-1).prune(w)
    return [*found, second.weight, third.weight, alone]


def test_methods_of_ones_own() -> None:
    theirs = derived(torch, importlib.import_module("torch.nn.utils.prune"))
    for a, b in zip(derived(picograd, prune), theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy())


@pytest.mark.parametrize("wrong", ["prune.L1Unstructured('a')", "prune.remove(layer, 'weight')"])
def test_wrong_calls(wrong: str) -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises((DTypeError, ValueRangeError), match="Fix:"):
        eval(wrong, {"prune": prune, "layer": layer})
