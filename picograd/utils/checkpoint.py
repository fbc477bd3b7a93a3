"""Checkpointing of gradients under torch.utils.checkpoint's names."""

import enum
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from picograd.errors import DTypeError, check_least
from picograd.nn.containers import Sequential
from picograd.nn.module import Module
from picograd.tensor.transforms.custom import checkpoint
from picograd.tensor.transforms.custom import no_contexts as noop_context_fn

__all__ = [
    "CheckpointPolicy", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
]  # fmt: skip


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


class CheckpointPolicy(enum.Enum):
    """This class has what a policy may answer of an operator: keep its result, or compute it."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Make the contexts of a checkpoint that keeps what a policy chooses, for `context_fn`.

    A policy is a function or a list of operators. Gradients have the same values whatever it
    answers, so it is not asked: all that is inside is computed again. Raises DTypeError for what
    is neither.

    >>> from picograd.utils import checkpoint as tools
    >>> contexts = lambda: tools.create_selective_checkpoint_contexts([])
    >>> x = picograd.Tensor([2.0], requires_grad=True)
    >>> tools.checkpoint(lambda x: x * x, x, context_fn=contexts).backward()
    >>> x.grad.tolist()
    [4.0]
    """
    if not (callable(policy_fn_or_list) or isinstance(policy_fn_or_list, list)):
        problem = f"the policy is a {type(policy_fn_or_list).__name__}"
        raise DTypeError("checkpoint", problem, "pass a function or a list of operators")
    return noop_context_fn()


def set_checkpoint_early_stop(enable: bool | None) -> Any:
    """Make a context that changes nothing: only what is read is ever computed again."""
    return nullcontext()


set_checkpoint_debug_enabled = set_checkpoint_early_stop


def get_device_states(*tensors: Any) -> tuple[list[int], list[Any]]:
    """Give the random states of the devices of some tensors: one generator serves all of them."""
    return [], []


def set_device_states(devices: Any, states: Any, **options: Any) -> None:
    """Put such states back: `set_rng_state` does."""
