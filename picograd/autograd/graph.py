"""PyTorch's `torch.autograd.graph`: hooks of what gradients read, and of several gradients."""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from picograd.engine.pending import owner
from picograd.errors import GradientError, StateError, check_known
from picograd.tensor.core import saved_hooks
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import WALKS, AccumulateGradient, function_of
from picograd.tensor.core.autograd import GradientFunction as Node
from picograd.tensor.core.gradient_hooks import HookHandle
from picograd.tensor.core.recording import fill
from picograd.tensor.tensor import Tensor

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class GradientEdge(NamedTuple):
    """This class says where the gradient of a tensor goes, without the tensor's values."""

    node: Node
    output_nr: int = 0
    ownership_token: Any = None

    def tensor(self) -> Tensor:
        """Give a tensor whose gradient goes there."""
        if isinstance(self.node, AccumulateGradient):
            return self.node.variable
        found = owner(self.node.node)
        if found is None:
            found = Tensor.__new__(Tensor)
            fill(found, self.node.node, True)
        return found


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Tell where the gradient of a tensor goes: `autograd.grad` takes that for the tensor.

    Raises GradientError for a tensor that asks for none.

    >>> import picograd
    >>> x = picograd.Tensor([3.0], requires_grad=True)
    >>> edge = picograd.autograd.graph.get_gradient_edge(x * x)
    >>> picograd.autograd.grad(edge, x, picograd.ones(1))[0].tolist()
    [6.0]
    """
    if not tensor.requires_grad:
        text = "the tensor does not ask for gradients"
        raise GradientError("get_gradient_edge", text, "set requires_grad=True first")
    step: Any = function_of(tensor._node)
    return GradientEdge(step)


def tensors_of(values: Any) -> Any:
    """Give what `autograd.grad` was passed, tensors in the place of edges."""
    if isinstance(values, (Tensor, GradientEdge)):
        return values.tensor() if isinstance(values, GradientEdge) else values
    if not isinstance(values, (list, tuple)):
        return values
    return [each.tensor() if isinstance(each, GradientEdge) else each for each in values]


class saved_tensors_hooks:
    """This class packs what gradients read of operations in a block, and unpacks it for them.

    `pack_hook(tensor)` is called when an operation is recorded, with each operand that its gradient
    reads and what a Function saves; `unpack_hook(packed)` gives the tensor back, whenever a
    gradient is taken. Inside a trace (`jit`, the steps of an LSTM) a tensor has no values yet.

    >>> import picograd
    >>> x = picograd.Tensor([3.0], requires_grad=True)
    >>> with picograd.autograd.graph.saved_tensors_hooks(lambda t: t.item(), picograd.Tensor):
    ...     y = x.reshape(()) ** 2
    >>> y.backward()
    >>> x.grad.tolist()
    [6.0]
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.packing = saved_hooks.Packing(pack_hook, unpack_hook)
        self.previous: list[Any] = []

    def __enter__(self) -> None:
        saved_hooks.check_allowed()
        enter(self.previous, self.packing)

    def __exit__(self, *error: Any) -> None:
        REGIONS.dtypes = self.previous.pop()


def enter(previous: list[Any], entry: Any) -> None:
    """Open a block: what is recorded in it asks the entry."""
    previous.append(REGIONS.dtypes)
    REGIONS.dtypes = {**REGIONS.dtypes, saved_hooks.KEY: entry}


class save_on_cpu(saved_tensors_hooks):
    """This class keeps on the CPU what gradients read; `pin_memory` changes nothing."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(to_host, from_host)


def to_host(tensor: Tensor) -> Any:
    """Move a tensor to the CPU, and note where it was."""
    return tensor.device, tensor.to("cpu")


def from_host(packed: Any) -> Any:
    """Move a tensor back."""
    device, tensor = packed
    return tensor.to(device)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Any:
    """Open a block in which hooks raise StateError, with this message.

    >>> import picograd
    >>> with picograd.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     with picograd.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    ...
    picograd.errors.StateError: saved_tensors_hooks: no hooks here. Fix: ...
    """
    if saved_hooks.current() is not None:
        raise StateError("disable_saved_tensors_hooks", error_message, "close the block of hooks")
    previous: list[Any] = []
    enter(previous, saved_hooks.Disabled(error_message))
    try:
        yield
    finally:
        REGIONS.dtypes = previous.pop()


@contextmanager
def allow_mutation_on_saved_tensors() -> Any:
    """Open a block in which tensors that gradients read may be changed in place.

    They always may: gradients read what they were.
    """
    yield


class Together:
    """This class collects gradients of several tensors, and calls a function with them."""

    def __init__(self, count: int, function: Callable[..., Any], mode: str) -> None:
        self.function, self.mode = function, mode
        self.count = count
        self.found: dict[int, Any] = {}
        self.walk = 0

    def take(self, number: int, gradient: Any) -> None:
        """Note the gradient of one tensor; the last one, or the first, calls the function."""
        if self.walk != WALKS.count:  # the last walk had not all
            self.found = {}
        self.walk = WALKS.count
        self.found[number] = gradient
        if self.mode == "any" and len(self.found) == 1:
            self.function(gradient)
        if self.mode == "all" and len(self.found) == self.count:
            found = [self.found[at] for at in range(self.count)]
            self.function(found)


class Handles:
    """This class takes several hooks away again."""

    def __init__(self, handles: Sequence[HookHandle]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Stop calling the function."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> Handles:
    """Call a function with the gradients of all tensors, or with "any", which comes first.

    Of all it is not called where one of them gets no gradient.

    >>> import picograd
    >>> a, b = (picograd.ones(1, requires_grad=True) for _ in range(2))
    >>> seen = []
    >>> handle = picograd.autograd.graph.register_multi_grad_hook((a, b), seen.append)
    >>> (a * 2 + b * 3).sum().backward()
    >>> [each.tolist() for each in seen[0]]
    [[2.0], [3.0]]
    """
    check_known("register_multi_grad_hook", "mode", mode, ("all", "any"))
    together = Together(len(tensors), fn, mode)
    hooks = [partial(together.take, number) for number in range(len(tensors))]
    return Handles([tensor.register_hook(hook) for tensor, hook in zip(tensors, hooks)])
