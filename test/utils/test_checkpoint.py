"""Checkpoints under torch.utils.checkpoint's names."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

import picograd
from picograd import nn
from picograd.utils import checkpoint as tools


def test_checkpoints() -> None:
    layers = nn.Sequential(*[nn.Linear(2, 2) for _ in range(4)])
    x = picograd.rand(1, 2, requires_grad=True)
    tools.checkpoint_sequential(layers, 2, x).sum().backward()
    first, x.grad = x.grad, None
    layers(x).sum().backward()
    np.testing.assert_allclose(first.numpy(), x.grad.numpy(), rtol=1e-6)


def test_the_first_context_of_a_checkpoint_is_entered() -> None:
    entered: list[str] = []

    @contextmanager
    def note(name: str) -> Iterator[None]:
        entered.append(name)
        yield
        entered.append("left")

    x = picograd.tensor([2.0], requires_grad=True)
    y = tools.checkpoint(lambda x: x * x, x, context_fn=lambda: (note("one"), note("two")))
    y.backward()
    assert entered == ["one", "left"]
    assert x.grad.tolist() == [4.0]


def test_selective_checkpoints() -> None:
    """A policy chooses what is kept, whose values are those that would be computed again."""

    def policy(ctx: object, op: object, *args: object, **options: object) -> object:
        return tools.CheckpointPolicy.MUST_SAVE

    x = picograd.tensor([2.0], requires_grad=True)
    for chosen in (policy, [picograd.ops.aten.mm.default]):
        contexts = partial(tools.create_selective_checkpoint_contexts, chosen)
        with tools.set_checkpoint_early_stop(False):
            y = tools.checkpoint(lambda x: x.exp(), x, use_reentrant=False, context_fn=contexts)
        (slope,) = picograd.autograd.grad(y, x)
        np.testing.assert_allclose(slope.numpy(), np.exp([2.0]), rtol=1e-6)
    with pytest.raises(TypeError, match="a function or a list of operators"):
        tools.create_selective_checkpoint_contexts(3)  # type: ignore[arg-type]
