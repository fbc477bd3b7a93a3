"""Function transforms under torch.func's names: they compose with each other and with `vmap`.

A model becomes a function of its parameters with `functional_call`; gradients of every sample of a
batch are then `vmap(grad(loss), in_dims=(None, 0, 0))(parameters, inputs, targets)`.
"""

from picograd.nn.stateless import functional_call, stack_module_state
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

_vmap = vmap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
