"""Looking at tensors from outside: the plan that would compute them, and waiting for devices."""

from picograd.engine import realize
from picograd.engine.inspect import PlanView, inspect
from picograd.engine.plan_key import leaf_buffer
from picograd.errors import ValueRangeError
from picograd.tensor.tensor import Tensor


def plan(*tensors: Tensor) -> PlanView:
    """Return the plan that would compute these tensors, without running it.

    >>> import picograd
    >>> x = picograd.ones(4, 8)
    >>> [kernel.hero for kernel in picograd.plan(x.softmax(1)).kernels]
    ['reduce.row']
    """
    roots = [tensor.node for tensor in tensors if leaf_buffer(tensor.node) is None]
    if not roots:
        problem = "every tensor given is computed already"
        raise ValueRangeError("plan", problem, "ask before reading or realizing them")
    return inspect(roots)


def synchronize(device: str | None = None) -> None:
    """Wait until a device (default: the default device) has done all work given so far.

    >>> import picograd
    >>> picograd.synchronize("cpu")
    """
    realize.synchronize(device)
