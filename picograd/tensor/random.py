"""Random numbers: a counter-based generator whose values do not depend on when they are computed.

`Generator` holds (seed, offset). Recording a random tensor takes its block of counters at once, so
neither the order of realisation nor the backend changes a value: the bits are threefry2x32 of
(seed, offset + position). Dropout and the like are recomputed from them, never stored.
"""

import math
import operator
from typing import Any

import numpy as np

from picograd.buffer import RuntimeScalar
from picograd.dtype import DType, bfloat16, default_float, float16, float32, float64, int64
from picograd.engine.tracing import check_not_tracing
from picograd.errors import DTypeError, ValueRangeError
from picograd.graph import build
from picograd.graph.node import Node
from picograd.helpers import product
from picograd.tensor.operands import Shape, read_scalar

# digits of the significand: a uniform draw is a whole number of 2 ** -digits, as PyTorch's
DIGITS = {float16: 11, bfloat16: 8, float32: 24}


def read_seed(seed: Any) -> int:
    """Read a seed: a whole number, modulo 2 ** 64."""
    try:
        return operator.index(seed) % (1 << 64)
    except TypeError:
        text = f"the seed must be an int, not {type(seed).__name__}"
        raise DTypeError("manual_seed", text, "pass a whole number") from None


def check_spread(op: str, first: Any, second: Any, least: float | None = 0.0) -> None:
    """Raise for parameters of a distribution that are no numbers, or a negative deviation."""
    numbers = [read_scalar(op, value) for value in (first, second)]
    if least is not None and numbers[1] < least:
        raise ValueRangeError(op, f"std={second} is negative", "use 0 or more")


class Generator:
    """This class hands out random counters: `seed` names the stream, `offset` the next counter."""

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.offset = read_seed(seed), 0

    def manual_seed(self, seed: int) -> "Generator":
        """Start the stream of a seed from its beginning."""
        self.seed, self.offset = read_seed(seed), 0
        return self

    def take(self, count: int) -> RuntimeScalar:
        """Reserve `count` counters; gives the first, as a number that plans do not bake in.

        A jitted plan that runs again renews it: it reserves the next block of counters.
        """
        return RuntimeScalar(self.advance(count), lambda: self.advance(count))

    def advance(self, count: int) -> int:
        """Move on by `count` counters and return the first of them."""
        start = self.offset
        self.offset = start + count
        return start

    def get_state(self) -> tuple[int, int]:
        """Return (seed, offset), for checkpoints."""
        return self.seed, self.offset

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue from a state of `get_state`."""
        self.seed, self.offset = int(state[0]), int(state[1])


DEFAULT = Generator()


def random_bits(shape: Shape, device: str, generator: Generator | None) -> Node:
    """Draw 32 random bits per element (uint32)."""
    source = DEFAULT if generator is None else generator
    offset = build.scalar(source.take(product(shape)), device, int64)
    return build.random_bits(offset, source.seed, shape)


def float_dtype(op: str, dtype: DType | None) -> DType:
    """Check the dtype of a random float tensor; None is float32."""
    wanted = default_float if dtype is None else dtype
    if not wanted.is_float:
        raise DTypeError(
            op, f"needs a float dtype, got {wanted.name}", "use randint for integers"
        )
    return wanted


def uniform(shape: Shape, dtype: DType, device: str, generator: Generator | None) -> Node:
    """Draw from [0, 1)."""
    if dtype is float64:
        high = random_bits(shape, device, generator).binary("shift_right", 5).cast(float64)
        low = random_bits(shape, device, generator).binary("shift_right", 6).cast(float64)
        return (high * 67108864.0 + low) * 2.0**-53  # 27 + 26 bits
    digits = DIGITS[dtype]
    whole = random_bits(shape, device, generator).binary("shift_right", 32 - digits)
    return (whole.cast(float32) * 2.0**-digits).cast(dtype)


def normal(shape: Shape, dtype: DType, device: str, generator: Generator | None) -> Node:
    """Draw from the standard normal by Box and Muller: sqrt(-2 log(1 - u)) cos(2 pi v)."""
    compute = float64 if dtype is float64 else float32
    u = uniform(shape, compute, device, generator)
    v = uniform(shape, compute, device, generator)
    radius = ((1.0 - u).unary("log") * -2.0).unary("sqrt")  # 1 - u is never 0
    return (radius * (v * (2 * math.pi)).unary("cos")).cast(dtype)


def integers(
    low: int,
    high: int,
    shape: Shape,
    dtype: DType,
    device: str,
    generator: Generator | None,
) -> Node:
    """Draw whole numbers from [low, high): the bits scaled by the span, biased by < 2 ** -32."""
    if high <= low:
        text = f"the range [{low}, {high}) is empty"
        raise ValueRangeError("randint", text, "pass low < high")
    span = high - low
    bits = random_bits(shape, device, generator).cast(int64)
    if span <= 1 << 31:
        return ((bits * span).binary("shift_right", 32) + low).cast(dtype)
    more = random_bits(shape, device, generator).cast(int64).binary("shift_right", 1)
    wide = more.binary("shift_left", 32).binary("bitwise_or", bits)
    return (wide.binary("mod", span) + low).cast(dtype)


def permutation(count: int, generator: Generator | None) -> "np.ndarray[Any, Any]":
    """Shuffle range(count) on the host, from the generator's seed and offset."""
    check_not_tracing("randperm")
    if count < 0:
        raise ValueRangeError("randperm", f"{count} numbers are not possible", "use at least 0")
    source = DEFAULT if generator is None else generator
    key = (source.seed, int(source.take(count).value))
    return np.random.Generator(np.random.Philox(key=np.array(key, np.uint64))).permutation(
        count
    )
