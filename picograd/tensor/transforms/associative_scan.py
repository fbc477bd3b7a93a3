"""Running combinations of elements along an axis, in logarithmically many steps."""

from collections.abc import Callable
from typing import Any

from picograd.errors import ShapeError
from picograd.tensor.public import cat
from picograd.tensor.transforms.pytree import leaves_of, mapped, rebuilt

Combine = Callable[[Any, Any], Any]


def associative_scan(
    combine_fn: Combine,
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
    additional_inputs: Any = (),
) -> Any:
    """Combine the elements of tensors along an axis, each with all before it.

    `combine_fn(earlier, later)` must be associative; `xs` may be a tree of tensors. Every step
    combines what lies twice as far apart. Raises ShapeError for axes of different sizes.

    >>> from picograd import Tensor
    >>> associative_scan(lambda a, b: a * b, Tensor([1.0, 2.0, 3.0]), 0).tolist()
    [1.0, 2.0, 6.0]
    """
    sizes = {x.shape[dim] for x in leaves_of(xs)}
    if len(sizes) != 1:
        text = f"axis {dim} has sizes {sorted(sizes)}"
        raise ShapeError("associative_scan", text, "make them equal")
    size, distance = sizes.pop(), 1
    found = mapped(lambda x: x.flip(dim), xs) if reverse else xs
    while distance < size:
        earlier = mapped(lambda x: x.narrow(dim, 0, size - distance), found)  # noqa: B023
        later = mapped(lambda x: x.narrow(dim, distance, size - distance), found)  # noqa: B023
        first = [x.narrow(dim, 0, distance) for x in leaves_of(found)]
        rest = leaves_of(combine_fn(earlier, later))
        found = rebuilt(found, [cat(pair, dim=dim) for pair in zip(first, rest)])
        distance *= 2
    return mapped(lambda x: x.flip(dim), found) if reverse else found
