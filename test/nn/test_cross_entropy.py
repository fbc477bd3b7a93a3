"""Cross-entropy beside PyTorch's: every combination of its options, values and gradients.

The labels are known on the host, where a label to ignore that does not occur costs nothing, or are
inputs of a captured function, where nothing is known of them.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from nn_support import torch

import picograd
from picograd import Tensor
from picograd.errors import ValueRangeError
from picograd.nn.functional import cross_entropy

SHAPES = {"NC": (4, 3), "C": (3,), "NCdd": (2, 3, 2, 2)}
REDUCTIONS = ("mean", "sum", "none")
WEIGHT = np.array([0.5, 2.0, 1.5], np.float32)
OPTIONS = [
    {"weight": weight, "ignore_index": ignored, "label_smoothing": smoothing}
    for weight, ignored, smoothing in product((None, WEIGHT), (-100, 1), (0.0, 0.2))
]


def scores_of(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def labels_of(shape: tuple[int, ...], ignored: int) -> Any:
    """Draw class numbers; with several, the first is one to ignore."""
    rest = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    labels = np.array(np.random.default_rng(1).integers(0, 3, rest))
    if labels.ndim:
        labels.flat[0], labels.flat[1] = ignored, 2
    return labels


def shares_of(shape: tuple[int, ...]) -> Any:
    """Draw probabilities of the classes, axis 1."""
    shares = np.exp(scores_of(shape))
    return shares / shares.sum(axis=1 if len(shape) > 1 else 0, keepdims=True)


def losses(scores: Any, target: Any, options: dict[str, Any]) -> list[Any]:
    """Compute the losses of all reductions, then their gradients together, and so on."""
    found = [cross_entropy(scores, target, reduction=kind, **options) for kind in REDUCTIONS]
    return found + [part.sum().gradient(scores)[0] for part in found]


def check(shape: tuple[int, ...], target: Any, options: dict[str, Any], device: str) -> None:
    data = scores_of(shape)
    theirs = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    wanted, gradients = [], []
    for kind in REDUCTIONS:
        scores = torch.tensor(data, requires_grad=True)
        loss = torch.nn.functional.cross_entropy(
            scores, torch.tensor(target), reduction=kind, **theirs
        )
        wanted.append(loss.detach().numpy())
        gradients.append(torch.autograd.grad(loss.sum(), scores)[0].numpy())
    mine = {
        k: Tensor(v, device=device) if isinstance(v, np.ndarray) else v for k, v in options.items()
    }

    @picograd.jit
    def captured(scores: Tensor, target: Tensor) -> list[Any]:
        scores = scores.detach()
        scores.requires_grad = True
        return losses(scores, target, mine)

    known = losses(
        Tensor(data, device=device, requires_grad=True), Tensor(target, device=device), mine
    )
    known[0].realize(*known[1:])
    unknown = captured(Tensor(data, device=device), Tensor(target, device=device))
    for found in (known, unknown):
        for a, b in zip(found, [*wanted, *gradients], strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_class_numbers(shape: str, options: dict[str, Any], device: str) -> None:
    check(SHAPES[shape], labels_of(SHAPES[shape], options["ignore_index"]), options, device)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
@pytest.mark.parametrize("shape", SHAPES)
def test_class_probabilities(shape: str, weight: Any, smoothing: float, device: str) -> None:
    """The mean divides by the number of samples, not by their weights."""
    options = {"weight": weight, "label_smoothing": smoothing}
    check(SHAPES[shape], shares_of(SHAPES[shape]), options, device)


def test_all_labels_ignored(device: str) -> None:
    """The mean of nothing is NaN, the sum 0."""
    labels = np.full(4, -100)
    check((4, 3), labels, {"weight": None, "label_smoothing": 0.2}, device)
    check((4, 3), labels, {"weight": WEIGHT, "label_smoothing": 0.0}, device)


def test_probabilities_are_not_ignored() -> None:
    with pytest.raises(ValueRangeError, match="ignore_index=1 beside targets that are"):
        cross_entropy(Tensor.ones(2, 3), Tensor.ones(2, 3), ignore_index=1)
