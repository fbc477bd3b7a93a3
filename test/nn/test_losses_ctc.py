"""CTC beside PyTorch: both layouts of targets, lengths, repeated symbols, impossible targets."""

import numpy as np
import pytest
from nn_support import array, torch

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError
from picograd.graph.node import toposort

TARGETS = np.array([[1, 1, 2], [3, 2, 0], [2, 0, 0]])
TIMES, SIZES = [7, 6, 3], [3, 2, 1]


def both(device, logits, targets, times, sizes, **options):
    """Compare losses and gradients of logits."""
    mine = Tensor(logits, device=device, requires_grad=True)
    theirs = torch.tensor(logits, requires_grad=True)
    labels = Tensor(targets, device=device)
    found = nn.CTCLoss(**options)(mine.log_softmax(-1), labels, times, sizes)
    lengths = (torch.tensor(times), torch.tensor(sizes))
    wanted = torch.nn.CTCLoss(**options)(theirs.log_softmax(-1), torch.tensor(targets), *lengths)
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-5)
    found.sum().backward()
    wanted.sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_padded_targets(reduction, device):
    both(device, array(7, 3, 4), TARGETS, TIMES, SIZES, reduction=reduction)


def test_targets_in_a_row_and_another_blank(device):
    row = np.concatenate([TARGETS[n, :size] for n, size in enumerate(SIZES)])
    both(device, array(7, 3, 4), row, TIMES, SIZES)
    both(device, array(7, 3, 4), row - 1, TIMES, SIZES, blank=3)


def test_one_sequence_without_a_batch(device):
    both(device, array(7, 4), TARGETS[0], 7, 3, reduction="none")


def test_impossible_and_empty_targets(device):
    logits = array(3, 2, 4)
    both(device, logits, np.array([[1, 1, 1], [2, 1, 0]]), [3, 3], [3, 2], zero_infinity=True)
    both(device, logits, TARGETS[:2], [3, 3], [0, 2])
    scores = Tensor(logits, device=device, requires_grad=True)
    losses = nn.CTCLoss(reduction="none")(
        scores.log_softmax(-1), Tensor([[1, 1, 1], [2, 1, 0]], device=device), [3, 3], [3, 2]
    )
    assert np.isinf(losses.numpy()).tolist() == [True, False]
    losses[1].backward()
    assert np.isfinite(scores.grad.numpy()).all() and not scores.grad.numpy()[:, 0].any()


def test_one_step(device):
    both(device, array(1, 2, 4), np.array([[2], [3]]), [1, 1], [1, 0], reduction="sum")


def test_the_graph_does_not_grow_with_the_steps():
    def nodes(steps):
        scores = Tensor.ones(steps, 2, 3, requires_grad=True)
        loss = nn.CTCLoss()(scores.log_softmax(-1), Tensor([[1], [2]]), [steps] * 2, [1, 1])
        return len(toposort([loss.node, *(x.node for x in loss.gradient(scores))]))

    assert nodes(9) == nodes(300)


def test_impossible_symbols(device):
    scores = np.log(np.full((3, 1, 3), 1 / 3))
    scores[:, :, 1] = -np.inf
    given = (Tensor(scores, device=device), Tensor([[1]], device=device))
    loss = nn.CTCLoss(reduction="sum")(*given, [3], [1])
    assert np.isinf(loss.item())


def test_captured_steps_take_other_lengths(device):
    loss = nn.CTCLoss(reduction="none")
    step = picograd.jit(lambda x, y, times, sizes: loss(x.log_softmax(-1), y, times, sizes))
    for seed in range(3):
        logits = np.random.default_rng(seed).normal(size=(7, 3, 4)).astype(np.float32)
        sizes = [3 - seed % 2, 2, 1]
        lengths = (Tensor(TIMES, device=device), Tensor(sizes, device=device))
        found = step(Tensor(logits, device=device), Tensor(TARGETS, device=device), *lengths)
        wanted = torch.nn.CTCLoss(reduction="none")(
            torch.tensor(logits).log_softmax(-1),
            torch.tensor(TARGETS),
            torch.tensor(TIMES),
            torch.tensor(sizes),
        )
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


@pytest.mark.usefixtures("cpu_by_default")
def test_wrong_arguments_are_named():
    scores = Tensor.zeros(4, 2, 3)
    target = Tensor([[1, 2], [2, 1]])
    with pytest.raises(ValueRangeError, match=r"input_lengths \[5, 4\] do not lie between 0 and 4"):
        nn.CTCLoss()(scores, target, [5, 4], [2, 2])
    with pytest.raises(ValueRangeError, match="blank=3 is no class of 3"):
        nn.CTCLoss(blank=3)(scores, target, [4, 4], [2, 2])
    with pytest.raises(ShapeError, match="target_lengths of shape"):
        nn.CTCLoss()(scores, target, [4, 4], [2])
    with pytest.raises(ShapeError, match="3 targets for lengths that add up to 4"):
        nn.CTCLoss()(scores, Tensor([1, 2, 1]), [4, 4], [2, 2])
