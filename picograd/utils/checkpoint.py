"""Checkpointing of gradients under torch.utils.checkpoint's names."""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from picograd.errors import check_least
from picograd.nn.containers import Sequential
from picograd.nn.module import Module
from picograd.tensor.transforms.custom import checkpoint

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint_sequential(
    functions: Sequential | Sequence[Module], segments: int, input: Any, **options: Any
) -> Any:
    """Run modules one after the other in segments, whose gradients compute the inside again.

    The last segment is kept, as in PyTorch. Raises ValueRangeError for less than one segment.

    >>> import picograd
    >>> from picograd.utils.checkpoint import checkpoint_sequential
    >>> layers = [picograd.nn.ReLU(), picograd.nn.Tanh()]
    >>> checkpoint_sequential(layers, 2, picograd.Tensor([-1.0])).tolist()
    [0.0]
    """
    check_least("checkpoint_sequential", "segments", segments, 1)
    layers = list(functions)
    size = max(1, math.floor(len(layers) / segments))
    for number in range(segments - 1):
        part = layers[number * size : (number + 1) * size]
        input = checkpoint(Sequential(*part), input, **options)
    return Sequential(*layers[(segments - 1) * size :])(input)


def noop_context_fn() -> tuple[Any, Any]:
    """Give the contexts of both times that a checkpointed function runs: none."""
    return nullcontext(), nullcontext()


def get_device_states(*tensors: Any) -> tuple[list[int], list[Any]]:
    """Give the random states of the devices of some tensors: one generator serves all of them."""
    return [], []


def set_device_states(devices: Any, states: Any, **options: Any) -> None:
    """Put such states back: `set_rng_state` does."""
