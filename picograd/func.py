"""Function transforms under torch.func's names: they compose with each other and with `vmap`.

A model becomes a function of its parameters with `functional_call`; gradients of every sample of a
batch are then `vmap(grad(loss), in_dims=(None, 0, 0))(parameters, inputs, targets)`.
"""

import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from picograd.errors import StateError
from picograd.nn.module import Module
from picograd.nn.norm import BatchNorm
from picograd.nn.stateless import FunctionalModule as FunctionalModule
from picograd.nn.stateless import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers
from picograd.nn.stateless import combine_state_for_ensemble as combine_state_for_ensemble
from picograd.nn.stateless import functional_call, stack_module_state
from picograd.nn.stateless import make_functional as make_functional
from picograd.nn.stateless import make_functional_with_buffers as make_functional_with_buffers
from picograd.tensor.transforms.derivatives import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from picograd.tensor.transforms.vmap import vmap

T = TypeVar("T")
_vmap = vmap

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev",
    "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def functionalize(func: Callable[..., T], *, remove: str = "mutations") -> Callable[..., T]:
    """Make a function that records no writes: what is recorded has none, so it is the same.

    >>> picograd.func.functionalize(lambda x: x.clone().add_(1.0))(Tensor([1.0])).tolist()
    [2.0]
    """

    @functools.wraps(func)
    def call(*args: Any, **options: Any) -> T:
        return func(*args, **options)

    return call


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let batch norms forget their running statistics, which `vmap` cannot write; give the root.

    >>> norm = picograd.func.replace_all_batch_norm_modules_(picograd.nn.BatchNorm1d(2))
    >>> norm.running_mean is None, norm.track_running_stats
    (True, False)
    """
    for module in root.modules():
        if isinstance(module, BatchNorm):
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(module, name, None)
    return root


def make_fx(*given: Any, **options: Any) -> NoReturn:
    """Raise: programs are run, not read."""
    fix = "picograd.plan(output) shows what was recorded"
    raise StateError("make_fx", "programs are not rewritten", fix)
