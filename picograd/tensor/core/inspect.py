"""Looking at tensors from outside: plans and stages without running, waiting for devices."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from picograd.engine import pending, realize
from picograd.engine.backends import default_device, get_device
from picograd.engine.plan_key import leaf_buffer
from picograd.errors import DTypeError, ValueRangeError, not_a_tensor
from picograd.graph.node import Node
from picograd.helpers import on_demand
from picograd.target import Target
from picograd.tensor.tensor import Tensor

if TYPE_CHECKING:
    from picograd.engine.inspect import Explanation, PlanView

inspect = on_demand("picograd.engine.inspect", "inspect")
explain_nodes = on_demand("picograd.engine.inspect", "explain_nodes")


def plan(*tensors: Tensor) -> "PlanView":
    """Return the plan that would compute these tensors, without running it.

    >>> x = picograd.ones(4, 8)
    >>> [kernel.hero for kernel in picograd.plan(x.softmax(1)).kernels]
    ['reduce.row']
    """
    return inspect(pending_nodes("plan", tensors))


def explain(
    tensor: Tensor | Sequence[Tensor],
    target: str | Target = "",
    assembly: bool = False,
    full: bool = False,
) -> "Explanation":
    """Write every stage of computing a tensor, under the file that makes it; nothing runs.

    Tensors of a list are computed together.

    `target`: "cpu" (this machine), "cuda" (an H200; no GPU is needed), "sm_80" and the like, or a
    `picograd.target.Target`; empty: the tensor's device. `assembly` adds machine code, `full` the
    helpers before CUDA kernels.

    >>> text = picograd.explain(picograd.Tensor([-1.0, 2.0]).relu(), "cuda")
    >>> [line.split()[-1] for line in text.splitlines() if line.startswith("== ")][2:4]
    ['picograd/schedule/schedule.py', 'picograd/schedule/assemble.py']
    """
    tensors: list[Any] = [*tensor] if isinstance(tensor, list | tuple) else [tensor]
    nodes = pending_nodes("explain", tensors)
    if not isinstance(target, str | Target):
        problem = f"the target must be a name or a Target, not {type(target).__name__}"
        raise DTypeError("explain", problem, "pass several tensors in a list")
    return explain_nodes(nodes, target, assembly, full)


def pending_nodes(name: str, tensors: Sequence[Tensor]) -> list[Node]:
    """List the nodes still to compute; ValueRangeError if there are none."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise not_a_tensor(name, "input", tensor)
    roots = [tensor.node for tensor in tensors if leaf_buffer(tensor.node) is None]
    if not roots:
        problem = "every tensor given is computed already"
        raise ValueRangeError(name, problem, "ask before reading or realizing them")
    return roots


def synchronize(device: str | None = None) -> None:
    """Wait until a device (default: the default device) has done all work given so far.

    >>> picograd.synchronize("cpu")
    """
    pending.compute_checks()
    realize.synchronize(device)


def memory_stats(device: str | None = None) -> dict[str, int]:
    """Return what a device's memory is used for, the default one's if none is named.

    Bytes `in_use` by tensors and plans, `reserved` from the system, at the `peak` of use, and the
    number of `allocations` so far.

    >>> x = picograd.ones(1024).realize()
    >>> picograd.memory_stats("cpu")["in_use"] >= 4096
    True
    """
    return get_device(default_device() if device is None else str(device)).memory_stats()
