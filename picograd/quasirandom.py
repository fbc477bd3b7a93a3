"""PyTorch's `torch.quasirandom`: points that fill a cube evenly. SciPy has the table of numbers."""

import importlib
import warnings
from typing import Any

from picograd.dtype import default_float
from picograd.errors import StateError, ValueRangeError, check_least
from picograd.tensor.core.annotations import DTypeLike
from picograd.tensor.tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """This class draws Sobol points in [0, 1) of `dimension` numbers, one after the other.

    `scramble` moves them at random: by the seed, else by the next number that picograd draws.
    Raises ValueRangeError for a dimension that is not in 1 to 21201, StateError without SciPy.

    >>> engine = SobolEngine(2)
    >>> engine.draw(3).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]]
    >>> engine.num_generated
    3
    """

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            text = f"dimension={dimension} is not in 1 to {self.MAXDIM}"
            raise ValueRangeError("SobolEngine", text, "draw points of fewer numbers")
        try:
            engines: Any = importlib.import_module("scipy.stats").qmc
        except ImportError:
            fix = "install it: pip install scipy"
            raise StateError("SobolEngine", "the package scipy is not there", fix) from None
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        start = int(Tensor.randint(0, 2**31 - 1, ())) if scramble and seed is None else seed
        self._engine = engines.Sobol(dimension, scramble=scramble, bits=self.MAXBIT, seed=start)

    def draw(self, n: int = 1, out: Any = None, dtype: DTypeLike | None = None) -> Tensor:
        """Draw the next n points: (n, dimension), of the default dtype."""
        check_least("draw", "n", n, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # n need be no power of 2
            values = self._engine.random(n)
        self.num_generated += n
        found = Tensor.of(values).to(dtype or default_float())
        return found if out is None else out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out: Any = None, dtype: DTypeLike | None = None) -> Tensor:
        """Draw 2**m points. Raises ValueRangeError unless all drawn are then a power of 2."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            text = f"{self.num_generated} points and 2**{m} are no power of 2"
            raise ValueRangeError("draw_base2", text, "use draw(n), or reset() first")
        return self.draw(2**m, out, dtype)

    def reset(self) -> "SobolEngine":
        """Begin again at the first point."""
        self._engine.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> "SobolEngine":
        """Leave out the next n points."""
        self._engine.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        options = ", scramble=True" if self.scramble else ""
        options += "" if self.seed is None else f", seed={self.seed}"
        return f"SobolEngine(dimension={self.dimension}{options})"
