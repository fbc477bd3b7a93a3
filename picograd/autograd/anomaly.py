"""Looking for NaN in gradients, where they arise: `detect_anomaly`, `set_detect_anomaly`.

Inside, each gradient is computed as `backward` records it, so that the error names the operation.
"""

from collections.abc import Sequence
from typing import Any

from picograd.engine.tracing import is_tracing
from picograd.errors import GradientError
from picograd.graph.gradient import WATCHERS
from picograd.graph.node import Node
from picograd.tensor.core.autograd import GradientFunction
from picograd.tensor.core.recording import wrap

__all__ = ["detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]


def look(node: Node, parts: Sequence[Any]) -> None:
    """Raise GradientError for a gradient with NaN; what is traced has no values yet."""
    if is_tracing():
        return
    for number, part in enumerate(parts):
        if isinstance(part, Node) and part.dtype.is_float and wrap(part, False).isnan().any():
            name = GradientFunction(node).name()
            problem = f"Function '{name}' returned nan values in its {number}th output"
            raise GradientError("backward", problem, f"look at {node.op} of shape {node.shape}")


class set_detect_anomaly:
    """This class switches the search by a flag: at once, and in a `with` until its end.

    >>> import picograd
    >>> x = picograd.Tensor([0.0], requires_grad=True)
    >>> with picograd.autograd.set_detect_anomaly(True):
    ...     (x.sqrt() * 0.0).sum().backward()
    Traceback (most recent call last):
    ...
    picograd.errors.GradientError: backward: Function 'SqrtBackward0' returned nan values ...
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = list(WATCHERS)
        WATCHERS[:] = [look] if mode and check_nan else []

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        WATCHERS[:] = self.before


class detect_anomaly(set_detect_anomaly):
    """This class searches for NaN in gradients inside a block.

    >>> import picograd
    >>> with picograd.autograd.detect_anomaly():
    ...     picograd.autograd.is_anomaly_enabled()
    True
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)


def is_anomaly_enabled() -> bool:
    """Tell whether gradients are searched for NaN.

    >>> import picograd
    >>> picograd.autograd.is_anomaly_enabled()
    False
    """
    return bool(WATCHERS)
