"""Muon: momentum whose matrices are made orthogonal."""

import math
from collections.abc import Iterable
from typing import Any

from picograd.dtype import bfloat16
from picograd.errors import ShapeError, ValueRangeError, check_known
from picograd.nn.optim.adam import average
from picograd.nn.optim.base import Optimizer, Result, Slots
from picograd.nn.optim.group import Numbers, Options, given_options
from picograd.tensor.tensor import Tensor

# Jordan's quintic (2024): steep at 0, so that few steps bring all singular values near 1.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
MOST_STEPS = 100
ADJUSTMENTS = ("original", "match_rms_adamw")


class Muon(Optimizer):
    """This class replaces a matrix of momentum by the nearest orthogonal one (Jordan, 2024).

    m = momentum m + (1 - momentum) g; p = p (1 - lr weight_decay) - rate U V^T of m's singular
    value decomposition, found by `ns_steps` Newton-Schulz steps in bfloat16. The rate is lr times
    sqrt(max(1, rows / columns)) ("original") or 0.2 sqrt(max(rows, columns)) ("match_rms_adamw",
    Liu et al., 2025). Takes 2-d parameters only: train biases and embeddings with AdamW.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> optimizer = nn.optim.Muon([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> bool((x < Tensor([[1.0, 2.0], [3.0, 4.0]])).any())
    True
    """

    _slots = {"momentum_buffer": 0.0}

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, weight_decay: float = 0.1,
        momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = COEFFICIENTS, eps: float = 1e-7,
        ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_known("Muon", "adjust_lr_fn", adjust_lr_fn, (None, *ADJUSTMENTS))
        if not 0 <= ns_steps < MOST_STEPS:
            raise ValueRangeError("Muon", f"ns_steps={ns_steps} is not in [0, 100)", "use 5")
        if len(ns_coefficients) != 3:
            problem = f"{len(ns_coefficients)} coefficients"
            raise ValueRangeError("Muon", problem, "give three")
        super().__init__(params, given_options(locals()))

    def add_param_group(self, param_group: Any) -> None:
        """Train more matrices. Raises ShapeError for a parameter of another rank than 2."""
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1].parameters:
            if parameter.ndim != 2:
                self.param_groups.pop()
                problem = f"a parameter of shape {parameter.shape} is no matrix"
                raise ShapeError("Muon", problem, "train it with AdamW")

    def numbers(self, options: Options) -> dict[str, float]:
        """Add 1 - momentum."""
        return super().numbers(options) | {"rest": 1.0 - options["momentum"]}

    def decay(self, p: Tensor, g: Tensor, n: Numbers, options: Options) -> tuple[Tensor, Tensor]:
        """Shrink the parameter."""
        return (p * n["keep"] if options["weight_decay"] else p), g

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        velocity = average(state["momentum_buffer"], g, n["rest"])
        direction = velocity
        if options["nesterov"]:
            direction = average(g, velocity, n["momentum"])
        matrix = orthogonal(direction, options["ns_coefficients"], options["ns_steps"], n["eps"])
        rows, columns = p.shape
        if options["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        else:
            scale = math.sqrt(max(1.0, rows / columns))
        return p - n["lr"] * scale * matrix.cast(p.dtype), {"momentum_buffer": velocity}


def orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: Any = 1e-7
) -> Tensor:
    """Bring the singular values of a matrix near 1: X = a X + b (X X^T) X + c (X X^T)^2 X.

    Computed in bfloat16, on the side with fewer rows. Returns the same shape.
    """
    a, b, c = coefficients
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.cast(bfloat16)
    length = x.float().square().sum().sqrt().maximum(eps)
    x = (x.float() / length).cast(bfloat16)
    x = x.T if is_tall else x
    for _ in range(steps):
        gram = x @ x.T
        mixed = (gram @ gram) * c + gram * b
        x = mixed @ x + x * a
    return x.T if is_tall else x
