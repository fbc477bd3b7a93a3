"""Two tensors that become each other, as `Module.to` and subclasses of PyTorch's programs do it."""

from picograd.errors import StateError
from picograd.tensor.tensor import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange all that two tensors are: memory, class, gradient and attributes.

    Shapes and dtypes may differ; whoever holds one of them sees the other from then on. Views of
    the two keep the memory they show. Raises StateError for results of recorded operations.

    >>> x, y = Tensor([1.0, 2.0]), Tensor([3])
    >>> swap_tensors(x, y)
    >>> x.tolist(), y.tolist()
    ([3], [1.0, 2.0])
    """
    pair = (t1, t2)
    if not all(each.is_leaf for each in pair):
        problem = "a tensor is the result of recorded operations"
        raise StateError("swap_tensors", problem, "detach it first")
    kept = [
        (each.detach(), each.grad, each.requires_grad, type(each), dict(vars(each)))
        for each in pair
    ]
    for each, (memory, gradient, asks, kind, attributes) in zip(pair, reversed(kept)):
        each.grad = None
        each.requires_grad_(False)
        each.data = memory
        each.__class__ = kind
        vars(each).clear()
        vars(each).update(attributes)
        each.requires_grad_(asks)
        each.grad = gradient
