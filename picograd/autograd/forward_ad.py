"""Derivatives along a direction, beside values, under torch.autograd.forward_ad's names.

    with dual_level():
        y = make_dual(x, direction).sin()
        value, derivative = unpack_dual(y)

A dual is a place in the graph; nothing is computed beside it. `unpack_dual` finds the derivative as
`picograd.func.jvp` does, and it can be differentiated again. A level resumes the recording of
gradients; under a `no_grad` inside it there are no duals.
"""

from typing import Any, NamedTuple

from picograd.errors import GradientError, ShapeError, ValueRangeError
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autograd import MODE, enable_grad
from picograd.tensor.core.recording import same_value, wrap
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.derivatives import push, rules_along
from picograd.tensor.transforms.vmap import tracked

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip

RECORDING = enable_grad()
LEVELS: list[list[tuple[Node, Node]]] = []  # of the open level: places, and their directions


class UnpackedDualTensor(NamedTuple):
    """This class holds a value, and its derivative or None."""

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> int:
    """Give `_current_level`: 0 inside a level, -1 outside."""
    if name == "_current_level":
        return len(LEVELS) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Begin a level, in which tensors may be dual; give its number."""
    if LEVELS:
        problem = "a level is open, and levels are not nested"
        raise GradientError("enter_dual_level", problem, "close it, or use picograd.func.jvp")
    LEVELS.append([])
    RECORDING.__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: tensors are dual no more."""
    _opened("exit_dual_level", level)
    LEVELS.pop()
    RECORDING.__exit__()


class dual_level:
    """This class opens a level for a block.

    >>> from picograd import Tensor
    >>> from picograd.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(Tensor([3.0]), Tensor([1.0]))
    ...     forward_ad.unpack_dual(x * x).tangent.tolist()
    [6.0]
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Give a tensor of the same value that has a direction. ShapeError if it does not fit."""
    duals = _opened("make_dual", level)
    need_tensor("make_dual", tensor, tangent)
    for each in (tensor, tangent):
        if not each.dtype.is_differentiable:
            fix = "pass tensors of floats"
            raise ValueRangeError("make_dual", f"{each.dtype.name} has no derivative", fix)
    if tensor.shape != tangent.shape:
        problem = f"the direction {tuple(tangent.shape)} of a tensor {tuple(tensor.shape)}"
        raise ShapeError("make_dual", problem, "give a direction of the tensor's shape")
    place = same_value(tensor._node)
    duals.append((place, tangent._node))
    return wrap(same_value(place), True)  # type: ignore[no-any-return]


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Give the value of a tensor, and its derivative: None where no path leads from a dual."""
    if not LEVELS:
        return UnpackedDualTensor(tensor, None)
    node, duals = tensor._node, _opened("unpack_dual", level)
    places, directions = zip(*duals) if duals else ((), ())
    is_float = node.dtype.is_differentiable
    with rules_along(True):
        slopes = gradient([(node, node.const_like(1))], places) if is_float else []
    if all(slope is None for slope in slopes):
        return UnpackedDualTensor(tensor, None)
    (along,) = push([node], places, directions)
    return UnpackedDualTensor(tracked(same_value(node)), tracked(along))


def _opened(op: str, level: Any) -> list[tuple[Node, Node]]:
    """Give the duals of the open level."""
    if level not in (None, 0) or not LEVELS:
        raise GradientError(op, "no level is open", "write `with forward_ad.dual_level():`")
    if not MODE.enabled and op != "exit_dual_level":
        raise GradientError(op, "no_grad inside the level", "put it around the level")
    return LEVELS[-1]
