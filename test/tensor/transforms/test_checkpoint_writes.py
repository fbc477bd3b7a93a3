"""What checkpointed functions write in place, they write again with their gradients."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import nn
from picograd.utils import checkpoint as tools


def trained(library: Any, run: Any, momentum: float | None) -> list[Any]:
    """Run checkpointed norms for three steps; give gradients and statistics after each."""
    norms = [library.nn.BatchNorm1d(2, momentum=momentum) for _ in range(2)]
    counted, found = library.zeros(2), []

    def inside(x: Any) -> Any:
        counted.add_(1)
        return norms[1](norms[0](norms[0](x).exp()))

    for step in range(3):
        x = library.tensor([[1.0, 2.0], [3.0, 5.0], [-1.0, step]], requires_grad=True)
        y = (run(inside, x, use_reentrant=False) ** 3).sum()
        found += [y.item()] if step == 1 else []
        y.backward()
        found += [x.grad.tolist(), counted.tolist()]
        found += [each.tolist() for norm in norms for each in norm.buffers()]
    return found


@pytest.mark.parametrize("momentum", [0.1, None])
def test_what_a_checkpoint_wrote_is_written_again_with_its_gradient(momentum: float | None) -> None:
    pytest.importorskip("torch")
    import torch
    from torch.utils.checkpoint import checkpoint

    wanted = trained(torch, checkpoint, momentum)
    for ours, theirs in zip(trained(picograd, tools.checkpoint, momentum), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-4)


def test_a_checkpoint_without_gradients_writes_once() -> None:
    norm, x = nn.BatchNorm1d(2), picograd.ones(3, 2)
    with picograd.no_grad():
        tools.checkpoint(norm, x)
    y = tools.checkpoint(norm, x)
    del norm.running_mean
    y.sum().backward()  # what is gone is not written
    assert norm.num_batches_tracked.item() == 3


def test_writes_that_follow_from_one_another_are_repeated_in_their_order() -> None:
    """The gradient stays that of the values which the function gave."""
    count, mean = picograd.tensor(0), picograd.zeros(2)
    x = picograd.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def inside(x: Any) -> Any:
        count.add_(1)
        mean.lerp_(x.detach().mean(0), 1 / count)
        mean.mul_(0.5)
        return x * mean.clone() * count

    y = tools.checkpoint(inside, x).sum()
    y.backward()
    assert count.item() == 2
    assert x.grad.tolist() == [[1.0, 1.5]] * 2
    assert mean.tolist() == [0.5 * (1 + (2 - 1) / 2), 0.5 * (1.5 + (3 - 1.5) / 2)]


def test_jitted_checkpoints_write_as_others_do() -> None:
    norms = [nn.BatchNorm1d(2) for _ in range(2)]
    steps = [lambda x, norm=norm: tools.checkpoint(norm, x).exp().sum() for norm in norms]
    steps[1] = picograd.jit(steps[1])
    for number in range(4):
        for step in steps:
            x = picograd.tensor([[1.0, 2.0], [3.0, 5.0 + number]], requires_grad=True)
            step(x).backward()
    for ours, other in zip(norms[1].buffers(), norms[0].buffers()):
        np.testing.assert_allclose(ours.numpy(), other.numpy(), rtol=1e-6)
