"""PyTorch's `torch._higher_order_ops`: loops and branches that are functions.

`scan` and `associative_scan` record a step once; what asks for a value, the condition of
`while_loop` and of `cond`, reads it where the program runs.
"""

from collections.abc import Callable
from typing import Any

from picograd.errors import DTypeError
from picograd.scripting import cond
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms import scan as loops
from picograd.tensor.transforms.pytree import mapped
from picograd.tensor.transforms.scan import associative_scan

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
    additional_inputs: tuple[Any, ...] = (),
) -> tuple[Any, Any]:
    """Run `carry, y = combine_fn(carry, x)` along an axis of `xs`; all y get that axis.

    As `picograd.scan`, whose rows are those of axis 0; with `reverse` the last row comes first.

    >>> x = picograd.arange(4.0).reshape(1, 4)
    >>> last, sums = scan(lambda c, x: (c + x, c + x), picograd.zeros(1), x, dim=1)
    >>> last.tolist(), sums.tolist()
    ([6.0], [[0.0, 1.0, 3.0, 6.0]])
    """

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        carry, y = combine_fn(carry, x, *additional_inputs)
        return carry, y

    rows = mapped(lambda leaf: leaf.movedim(dim, 0), xs)
    last, results = loops.scan(step, init, rows, reverse=reverse)
    return last, mapped(lambda leaf: leaf.movedim(0, dim), results)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Call `f(x, *args)` for each row of the tensors in `xs`, recorded once; stack the results.

    >>> from picograd.higher_order import map as mapped
    >>> mapped(lambda x, y: x.sum() + y, picograd.Tensor([[1.0, 2.0], [3.0, 4.0]]), 1.0).tolist()
    [4.0, 8.0]
    """
    return loops.scan(lambda carry, x: (carry, f(x, *args)), (), xs)[1]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Replace the carried values by `body_fn(*carried)` while `cond_fn(*carried)` holds.

    Raises DTypeError for carried values in no tuple or list, and for a body that gives others.

    >>> double = lambda i, x: (i + 1, x * 2)
    >>> start = (picograd.tensor(0), picograd.ones(2))
    >>> [each.tolist() for each in while_loop(lambda i, x: i < 3, double, start)]
    [3, [8.0, 8.0]]
    """
    op, carried = "while_loop", carried_inputs
    while True:
        if not isinstance(carried, (tuple, list)) or len(carried) != len(carried_inputs):
            problem = f"{type(carried).__name__} where {len(carried_inputs)} values are carried"
            raise DTypeError(op, problem, "pass, and return, a tuple of as many tensors")
        holds = cond_fn(*carried)
        is_flag = isinstance(holds, bool) or (isinstance(holds, Tensor) and holds.numel() == 1)
        if not is_flag:
            raise DTypeError(op, "cond_fn gave no flag", "return a bool, or a tensor of one")
        if not holds:
            return tuple(carried)
        carried = body_fn(*carried)
