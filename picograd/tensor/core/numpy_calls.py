"""Functions of NumPy called with tensors: `numpy.sqrt(tensor)`, `array * tensor`.

Those that have a counterpart here are recorded, so that they have gradients; others compute on the
values.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.errors import GradientError
from picograd.tensor.core.recording import Recorded, as_tensor

# NumPy's name -> that of the method, where they differ
METHODS = {
    "absolute": "abs", "conjugate": "conj", "equal": "eq", "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift", "negative": "neg", "power": "pow",
    "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip
# what an operator of Python does: the method of the second operand
REFLECTED = {
    "add": "__radd__", "bitwise_and": "__rand__", "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__", "divide": "__rtruediv__", "equal": "__eq__",
    "floor_divide": "__rfloordiv__", "greater": "__lt__", "greater_equal": "__le__",
    "less": "__gt__", "less_equal": "__ge__", "matmul": "__rmatmul__",
    "multiply": "__rmul__", "not_equal": "__ne__", "power": "__rpow__", "remainder": "__rmod__",
    "subtract": "__rsub__",
}  # fmt: skip


def recording(name: str, inputs: Sequence[Any], like: Recorded) -> Any:
    """Record a function by ours of that name; None if there is none."""
    first, *rest = inputs
    if not isinstance(first, Recorded) and name in REFLECTED:
        return getattr(rest[0], REFLECTED[name])(first)
    method = getattr(Recorded.kind, METHODS.get(name, name), None)
    if method is None:
        return None
    return method(as_tensor(first, like), *(as_tensor(each, like) for each in rest))


def on_values(
    ufunc: Any, method: str, inputs: Sequence[Any], out: Any, options: dict[str, Any]
) -> Any:
    """Compute a function with NumPy, and make tensors of new arrays."""
    for each in inputs:
        if isinstance(each, Recorded) and each.requires_grad:
            text = "NumPy computes on values, which have no gradient"
            raise GradientError(f"numpy.{ufunc.__name__}", text, "pass tensor.detach()")
    values = [np.asarray(each) if isinstance(each, Recorded) else each for each in inputs]
    if out is not None:
        options["out"] = out
    result = getattr(ufunc, method)(*values, **options)
    made: Any = Recorded.kind
    if isinstance(result, tuple):
        return tuple(map(made, result))
    return made(result) if out is None else result
