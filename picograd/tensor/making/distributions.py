"""Random tensors beyond uniform and normal ones, in place and out of place.

All are functions of the counter-based draws of `random.py`: reproducible, equal on every device,
independent of when they are computed. `poisson` and `binomial` draw on the host by NumPy's Philox
generator, whose key is drawn so, too. `generator=` names the stream.
Last, tensors in the scale of a layer's weights, whose first axis counts a layer's outputs.
"""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import erf
from typing import Any

import numpy as np

from picograd.dtype import DType, bfloat16, float16, float32, float64, int64
from picograd.engine.followed import event
from picograd.engine.tracing import is_tracing
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.graph import build_composite as composite
from picograd.graph.host_call import host_call
from picograd.graph.host_draws import WORDS
from picograd.graph.node import Node
from picograd.graph.shape import broadcast_shapes
from picograd.helpers import product
from picograd.tensor.core.annotations import DeviceLike, DTypeLike, Scalar, Sizes, Tensor
from picograd.tensor.core.arguments import is_tensor, need_tensor
from picograd.tensor.core.demands import answer
from picograd.tensor.core.function import composed
from picograd.tensor.core.known_values import check_between, known_values
from picograd.tensor.core.operands import UNSET, as_shape, optional_dtype, read_scalar
from picograd.tensor.core.recording import Recorded, apart, fresh, read, rewrite
from picograd.tensor.core.repeated import repeated
from picograd.tensor.core.type_info import finfo
from picograd.tensor.making import creation, inverse_sampling, random
from picograd.tensor.making.random import Generator

ROOT_2 = math.sqrt(2)
LARGEST_HALF, LEAST_HALF = 65504.0, 2.0**-24  # of float16


@event
def drawn(
    op: str,
    draw: Callable[..., Node],
    sizes: Any,
    generator: Generator | None,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    more: dict[str, Any],
) -> Any:
    """Make a random float tensor."""
    wanted = random.float_dtype(op, optional_dtype(dtype))
    place = creation.device_named(device)
    return fresh(draw(as_shape(sizes, op), wanted, place, generator), **more)


def units(x: Tensor, generator: Generator | None, dtype: DTypeLike | None = None) -> Tensor:
    """Draw from [0, 1) in a tensor's shape, dtype and device."""
    place = dict(dtype=dtype or x.dtype, device=x.device)
    return Recorded.kind.rand(x.shape, generator=generator, **place)


def wide_units(x: Tensor, generator: Generator | None) -> Node:
    """Draw from [0, 1) in a tensor's shape, in float64 for a dtype of 64 bits, else in float32."""
    return read(units(x, generator, inverse_sampling.wide_dtype(x.dtype)))


def normals(x: Tensor, generator: Generator | None) -> Tensor:
    """Draw from the standard normal distribution in a tensor's shape, dtype and device."""
    return Recorded.kind.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)


def affine(draws: Tensor, scale: Any, shift: Any) -> Tensor:
    """Compute draws * scale + shift, rounded to the draws' dtype once, at the end."""
    wide = draws.cast(inverse_sampling.wide_dtype(draws.dtype))
    return (wide * scale + shift).cast(draws.dtype)


def need_floats(op: str, x: Tensor) -> None:
    """Raise DTypeError for a tensor that cannot hold random floats."""
    need_tensor(op, x)
    if not x.dtype.is_float:
        raise DTypeError(op, f"needs a float dtype, got {x.dtype.name}", "use random_ for integers")


def below(limit: float, dtype: DType) -> float:
    """Find the largest number of a dtype that is less than a limit."""
    if dtype is bfloat16:  # the upper half of a float32, rounded down
        bits = int(np.float32(below(limit, float32)).view(np.uint32))
        is_minus = bits >> 31
        return float(np.uint32(bits + 0xFFFF * is_minus & 0xFFFF0000).view(np.float32))
    rounded = np.asarray(limit, dtype.numpy)
    if float(rounded) < limit:
        return float(rounded)
    return float(np.nextafter(rounded, np.asarray(-np.inf, dtype.numpy)))


def between(unit: Tensor, low: float, high: float) -> Tensor:
    """Stretch draws from [0, 1) to [low, high), parts of complex numbers: never to `high`."""
    if unit.dtype.is_complex:
        real, imag = (read(between(fresh(part), low, high)) for part in read(unit).parts())
        return fresh(real.paired(imag))
    if high == low:
        return unit * 0 + low
    return affine(unit, high - low, low).minimum(below(high, unit.dtype))


def check_range(op: str, low: Scalar, high: Scalar) -> None:
    """Raise for an interval that is no numbers, or empty."""
    numbers = [read_scalar(op, value) for value in (low, high)]
    if not numbers[0] <= numbers[1]:
        text = f"the range [{low}, {high}) is empty"
        raise ValueRangeError(op, text, "pass low <= high")


def check_positive(op: str, name: str, value: Any) -> None:
    """Raise unless a parameter is a positive number."""
    if not read_scalar(op, value) > 0:
        raise ValueRangeError(op, f"{name}={value} is not positive", "use a positive number")


# in place


@composed(function=False)
def uniform_(
    input: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite with draws from [low, high), in place.

    >>> bool((picograd.zeros(8).uniform_(2, 3) >= 2).all())
    True
    """
    if not input.dtype.is_complex:
        need_floats("uniform_", input)
    check_range("uniform_", low, high)
    if not high - low <= finfo(input.dtype.real).max:
        text = f"{input.dtype.real.name} does not hold the width of [{low}, {high})"
        raise ValueRangeError("uniform_", text, "pass limits that are nearer, or a wider dtype")
    return rewrite(input, "uniform", between(units(input, generator), low, high))


@composed(function=False)
def normal_(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite with draws from a normal distribution, in place.

    >>> picograd.zeros(2).normal_(5.0, 0.0).tolist()
    [5.0, 5.0]
    """
    random.check_spread("normal_", mean, std)
    if input.dtype.is_complex:
        return rewrite(input, "normal", normals(input, generator) * std + mean)
    need_floats("normal_", input)
    return rewrite(input, "normal", affine(normals(input, generator), std, mean))


@composed(function=False)
@event
def log_normal_(
    input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite with exp of draws from a normal distribution, in place.

    >>> picograd.zeros(2).log_normal_(0.0, 1e-9).tolist()
    [1.0, 1.0]
    """
    need_floats("log_normal_", input)
    check_positive("log_normal_", "std", std)
    wide = Recorded.kind.randn(
        input.shape,
        generator=generator,
        dtype=inverse_sampling.wide_dtype(input.dtype),
        device=input.device,
    )
    power = read(affine(wide, std, mean)).unary("portable_exp")
    return rewrite(input, "log_normal", fresh(power.cast(input.dtype)))


@composed(function=False)
def exponential_(
    input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite with draws from lambd exp(-lambd x), x > 0, in place.

    >>> bool((picograd.zeros(8).exponential_() > 0).all())
    True
    """
    need_floats("exponential_", input)
    check_positive("exponential_", "lambd", lambd)
    return rewrite(input, "exponential", exponentials(input, generator, lambd))


@event
def exponentials(x: Tensor, generator: Generator | None, rate: float = 1.0) -> Tensor:
    """Draw from rate exp(-rate x), x > 0, in a tensor's shape, dtype and device."""
    draws = inverse_sampling.exponential(wide_units(x, generator)) / float(rate)
    if x.dtype is float16:  # whose least number is above the draws' least
        draws = draws.binary("maximum", LEAST_HALF)
    return fresh(draws.cast(x.dtype))


@event
def gumbels(x: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw from the Gumbel distribution in a tensor's shape, dtype and device."""
    return fresh(inverse_sampling.gumbel(wide_units(x, generator)).cast(x.dtype))


@composed(function=False)
@event
def cauchy_(
    input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite with draws from the Cauchy distribution, in place.

    >>> bool(picograd.zeros(8).cauchy_().isfinite().all())
    True
    """
    need_floats("cauchy_", input)
    check_positive("cauchy_", "sigma", sigma)
    draws = inverse_sampling.cauchy(wide_units(input, generator)) * float(sigma) + float(median)
    if input.dtype is float16:  # which is narrower than the draws
        draws = draws.binary("maximum", -LARGEST_HALF).binary("minimum", LARGEST_HALF)
    return rewrite(input, "cauchy", fresh(draws.cast(input.dtype)))


@composed(function=False)
@event
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Overwrite with the number of trials up to the first success, 1, 2, ..., in place.

    >>> picograd.zeros(2).geometric_(1 - 1e-12).tolist()
    [1.0, 1.0]
    """
    if not 0 < read_scalar("geometric_", p) < 1:
        raise ValueRangeError("geometric_", f"p={p}", "use a probability between 0 and 1")
    count = inverse_sampling.geometric(wide_units(input, generator), p)
    return rewrite(input, "geometric", fresh(count.cast(input.dtype)))


@composed(function=False)
def bernoulli_(
    input: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite with 1, with probability p (a number or a tensor), or 0, in place.

    >>> picograd.zeros(2).bernoulli_(1.0).tolist()
    [1.0, 1.0]
    """
    check_probability("bernoulli_", p)
    draw = units(input, generator, "float64" if input.dtype.bits == 64 else "float32") < p
    return rewrite(input, "bernoulli", draw.expand(*input.shape).cast(input.dtype))


@composed(function=False)
@event
def random_(
    input: Tensor,
    low: int | None = None,
    high: int | None = UNSET,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Overwrite with whole numbers from [low, high), in place; `random_(high)` from [0, high).

    Without limits, all numbers >= 0 that an integer dtype holds, or that a float holds exactly;
    `random_(low, None)` ends there, too.

    >>> picograd.zeros(3).random_(5, 6).tolist()
    [5.0, 5.0, 5.0]
    """
    if high is UNSET:
        low, high = 0, low
    if high is None:
        high = top_of(input.dtype)
    first = 0 if low is None else operator.index(low)
    place = (tuple(input.shape), int64, input.device, generator)
    whole = fresh(random.integers(first, operator.index(high), *place))
    return rewrite(input, "random", whole.cast(input.dtype))


def top_of(dtype: DType) -> int:
    """Find the number above the largest that `random_` draws."""
    if dtype.is_float:
        digits = {"float8_e4m3fn": 4, "float8_e5m2": 3, "float16": 11, "bfloat16": 8,
                  "float32": 24, "float64": 53}  # fmt: skip
        return 1 << digits[dtype.name]
    if dtype.kind == "bool":
        return 2
    return 1 << dtype.bits - (dtype.kind == "int")


# out of place


def check_probability(op: str, p: Any) -> None:
    """Raise ValueRangeError for a probability outside 0..1, where that is known."""
    if is_tensor(p):
        values = known_values(read(p))
        if values is not None and not ((values >= 0) & (values <= 1)).all():
            raise ValueRangeError(op, "a probability is outside 0..1", "use numbers from 0 to 1")
    elif not 0 <= read_scalar(op, p) <= 1:
        raise ValueRangeError(op, f"p={p} is outside 0..1", "use a number from 0 to 1")


@composed()
def bernoulli(
    input: Tensor, p: float | Tensor | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Draw 1 with the probability each element (or p) says, else 0.

    >>> picograd.bernoulli(picograd.Tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    chance = input if p is None else p
    if p is None:
        need_floats("bernoulli", input)
    check_probability("bernoulli", chance)
    wide = "float64" if input.dtype.bits == 64 else "float32"
    chance = chance.detach() if is_tensor(chance) else chance
    return (units(input, generator, wide) < chance).cast(input.dtype)


@composed(method=False)
def normal(
    mean: float | Tensor = 0.0,
    std: float | Tensor = 1.0,
    size: Sizes | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Draw from normal distributions: of tensors of means and deviations, or of a size.

    >>> picograd.normal(picograd.Tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 2.0]
    """
    tensors = [each for each in (mean, std) if is_tensor(each)]
    if size is not None:
        mean, std = (each.item() if is_tensor(each) else each for each in (mean, std))
    if size is not None or not tensors:
        if size is None:
            raise DTypeError("normal", "there is neither a tensor nor a size", "pass size=(...)")
        random.check_spread("normal", mean, std)
        place: dict[str, Any] = dict(mean=mean, std=std, dtype=dtype, device=device)
        return Recorded.kind.normal(size, generator=generator, **place, **more)
    first, *rest = (each.detach() for each in tensors)
    like = (first + rest[0] if rest else first) * 0.0
    if not is_tensor(std):
        random.check_spread("normal", 0.0, std)
    else:
        check_between("normal", "std", read(std), 0.0, math.inf)
    return affine(normals(like, generator), std, mean).detach()


@composed()
def randint_like(
    input: Tensor,
    low: Scalar = 0,
    high: Scalar | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Draw whole numbers from [low, high), or [0, low), in the shape and dtype of a tensor.

    >>> picograd.randint_like(picograd.Tensor([0.0, 0.0]), 3, 4).tolist()
    [3.0, 3.0]
    """
    first, last = (0, low) if high is None else (low, high)
    place = dict(dtype=dtype or input.dtype, device=device or input.device)
    return Recorded.kind.randint(first, last, tuple(input.shape), generator=generator, **place)


@composed(method=False)
def exponential(
    *sizes: Sizes,
    lambd: float = 1.0,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Draw from lambd exp(-lambd x), x > 0.

    >>> picograd.exponential(2, 3).shape
    (2, 3)
    """
    check_positive("exponential", "lambd", lambd)
    like = Recorded.kind.empty(*sizes, dtype=dtype, device=device)
    need_floats("exponential", like)
    return fresh(read(exponentials(like, generator, lambd)), **more)


@composed(method=False)
def truncated_normal(
    *sizes: Sizes,
    mean: float = 0.0,
    std: float = 1.0,
    low: float = -2.0,
    high: float = 2.0,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Draw from a normal distribution inside [low, high], by inversion.

    >>> bool((picograd.truncated_normal(64, low=0.0, high=1.0) <= 1).all())
    True
    """
    check_range("truncated_normal", low, high)
    check_positive("truncated_normal", "std", std)
    wanted = random.float_dtype("truncated_normal", optional_dtype(dtype))
    first, last = (erf((each - mean) / std / ROOT_2) for each in (low, high))
    unit = drawn("truncated_normal", random.uniform, sizes, generator, "float64", device, {})
    wide = inverse_sampling.truncated_normal(read(unit), first, last) * float(std) + float(mean)
    wide = wide.binary("maximum", float(low)).binary("minimum", float(high))
    return fresh(wide.cast(wanted), **more)


@composed(function=False)
def trunc_normal_(
    input: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Overwrite with draws from a normal distribution inside [a, b], in place.

    >>> bool((picograd.zeros(64).trunc_normal_(a=0.0, b=1.0) >= 0).all())
    True
    """
    need_floats("trunc_normal_", input)
    options: dict[str, Any] = dict(mean=mean, std=std, low=a, high=b, generator=generator)
    place: dict[str, Any] = dict(dtype=input.dtype, device=input.device)
    return rewrite(input, "trunc_normal", truncated_normal(input.shape, **options, **place))


@composed()
@event
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Draw indices with probabilities in proportion to the elements of each row, in int64.

    Without replacement the order is that of the draws: an exponential race (Efraimidis and
    Spirakis, 2006). Zeros are never drawn.

    >>> picograd.multinomial(picograd.Tensor([0.0, 3.0, 0.0]), 2, replacement=True).tolist()
    [1, 1]
    """
    op = "multinomial"
    need_floats(op, input)
    count = operator.index(num_samples)
    if input.ndim not in (1, 2) or count < 1 or not input.shape[-1]:
        text = f"{count} samples of weights {tuple(input.shape)}"
        raise ShapeError(op, text, "pass a vector or a matrix, and 1 sample or more")
    if not replacement and count > input.shape[-1]:
        text = f"{count} samples of {input.shape[-1]} without replacement"
        raise ValueRangeError(op, text, "draw fewer, or with replacement=True")
    if not input.numel():
        return Recorded.kind.empty(0, count, dtype=int64, device=input.device)
    check_weights(op, input, 1 if replacement else count)
    if not replacement:
        weights = read(input)
        draws = random.uniform(weights.shape, float64, weights.device, generator)
        if count == 1:
            return fresh(race(weights, draws, True))
        return apart(fresh(race(weights, draws, False)).topk(count, -1, largest=False).indices)
    weights = input.detach().double()
    sums = whole_shares(weights).cumsum(-1)
    total = sums[..., -1:]
    unit = Recorded.kind.rand(
        *input.shape[:-1], count, generator=generator, dtype="float64", device=input.device
    )
    last = sums.searchsorted(total.contiguous())  # the last element that is not zero
    return sums.searchsorted((unit * total.double()).cast(int64), True).minimum(last)


@repeated
def race(weights: Node, draws: Node, is_first: bool) -> Node:
    """Find when each index comes, or which `is_first`: that takes no order of all."""
    wide = weights.cast(float64)
    is_there = wide.const_like(0.0).binary("less", wide)
    times = is_there.where(inverse_sampling.exponential(draws) / wide, math.inf)
    return composite.argmin(times, len(times.shape) - 1, True) if is_first else times


def whole_shares(weights: Tensor) -> Tensor:
    """Scale each row to whole numbers, rounded up, whose sums are exact in any order."""
    digits = min(62 - weights.shape[-1].bit_length(), 52)
    largest: Tensor = weights.amax(-1, keepdim=True)
    return (weights / largest * 2.0**digits).ceil().cast(int64)


def check_weights(op: str, weights: Tensor, least: int) -> None:
    """Raise ValueRangeError for weights that cannot be drawn from, where they are known."""

    def are_fine(values: Any) -> bool:
        return are_weights(values) and bool(((values > 0).sum(-1) >= least).all())

    if answer(read(weights), (op, least), are_fine) is not False:
        return
    if not are_weights(known_values(read(weights))):
        raise ValueRangeError(op, "a weight is negative, infinite or NaN", "use numbers >= 0")
    text = f"fewer than {least} weights of a row are positive"
    raise ValueRangeError(op, text, "draw fewer samples, or with replacement=True")


def are_weights(values: Any) -> bool:
    """Tell whether numbers are finite and not negative."""
    return bool(np.isfinite(values).all() and (values >= 0).all())


def host_draw(name: str, dtype: DType, generator: Generator | None, *parameters: Tensor) -> Tensor:
    """Draw on the host, where the result is computed, by a sampler of `graph/host_draws.py`."""
    wide = [each.detach().cast(float64) for each in parameters]
    shape = broadcast_shapes(*[each.shape for each in wide])
    wide = [each.expand(*shape) for each in wide]
    key = random.random_bits((WORDS,), wide[0].device, generator).cast(float64)
    found = host_call("drawn", *map(read, wide), key, options=(name,))
    return fresh(found.cast(dtype))


def check_draw(op: str, x: Tensor, most: float, text: str, fix: str) -> None:
    """Raise ValueRangeError for parameters not from 0 to `most`; in traces their draws are NaN."""
    need_floats(op, x)
    if is_tracing():
        return
    values: Any = x.detach().numpy()
    is_fine = (values >= 0) & (values <= most)
    if not is_fine.all():
        raise ValueRangeError(op, text, fix)


@composed(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw from Poisson distributions whose rates are the elements; NumPy computes it.

    >>> picograd.poisson(picograd.Tensor([0.0, 0.0])).tolist()
    [0.0, 0.0]
    """
    text = "a rate is negative or NaN"
    check_draw("poisson", input, math.inf, text, "use numbers >= 0")
    return host_draw("poisson", input.dtype, generator, input)


@composed(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw how many of `count` trials succeed with probability `prob`; NumPy computes it.

    >>> picograd.binomial(picograd.Tensor([3.0]), picograd.Tensor([1.0])).tolist()
    [3.0]
    """
    text = "a count is negative or a probability outside 0..1"
    fix = "use counts >= 0 and probabilities from 0 to 1"
    check_draw("binomial", count, math.inf, text, fix)
    check_draw("binomial", prob, 1, text, fix)
    return host_draw("binomial", (count + prob).dtype, generator, count, prob)


# the default generator


@composed(method=False)
def seed() -> int:
    """Restart the default generator from a seed the operating system draws, and return it.

    >>> picograd.seed() == picograd.initial_seed()
    True
    """
    return random.default().seed()


@composed(method=False)
def initial_seed() -> int:
    """Return the seed of the default generator.

    >>> generator = picograd.manual_seed(7)
    >>> picograd.initial_seed()
    7
    """
    return random.default().initial_seed()


@composed(method=False)
def get_rng_state() -> Tensor:
    """Return the state of the default generator, for `set_rng_state`: 16 bytes, on the CPU.

    >>> generator = picograd.manual_seed(7)
    >>> picograd.get_rng_state().view(picograd.int64).tolist()  # the seed, and what was drawn
    [7, 0]
    """
    state = np.array(random.default().get_state(), np.uint64)
    return Recorded.kind.of(state.view(np.uint8), device="cpu")


@composed(method=False)
def set_rng_state(new_state: Any) -> None:
    """Continue the default generator from a state.

    >>> state = picograd.get_rng_state()
    >>> first = picograd.rand(2).tolist()
    >>> picograd.set_rng_state(state)
    >>> picograd.rand(2).tolist() == first
    True
    """
    random.default().set_state(new_state)


@contextmanager
def fork_rng(
    devices: Sequence[Any] | None = None, enabled: bool = True, device_type: str = "cuda"
) -> Iterator[None]:
    """Give the default generator its state back at the end of a block.

    >>> with picograd.fork_rng():
    ...     generator = picograd.manual_seed(3)
    """
    state = random.default().get_state()
    try:
        yield
    finally:
        if enabled:
            random.default().set_state(state)


@composed(function=False, static=True)
def scaled_uniform(*sizes: Sizes, **more: Any) -> Tensor:
    """Draw from [-b, b) with b = 1 / sqrt(number of elements).

    >>> bool((Tensor.scaled_uniform(8, 2).abs() <= 0.25).all())
    True
    """
    shape = as_shape(sizes, "scaled_uniform")
    return symmetric(shape, product(shape) or 1, more)


@composed(function=False, static=True)
def glorot_uniform(*sizes: Sizes, **more: Any) -> Tensor:
    """Draw from [-b, b) with b = sqrt(6 / (outputs + inputs)) (Glorot and Bengio, 2010).

    >>> bool((Tensor.glorot_uniform(3, 3).abs() <= 1).all())
    True
    """
    shape = as_shape(sizes, "glorot_uniform")
    inputs = fan_in("glorot_uniform", shape)
    return symmetric(shape, (shape[0] + inputs) / 6.0, more)


@composed(function=False, static=True)
def kaiming_uniform(*sizes: Sizes, a: float = 0.01, **more: Any) -> Tensor:
    """Draw from [-b, b) with b = sqrt(6 / ((1 + a^2) inputs)) (He et al., 2015).

    `a` is the slope of the leaky ReLU that follows.

    >>> bool((Tensor.kaiming_uniform(2, 6, a=0.0).abs() <= 1).all())
    True
    """
    shape = as_shape(sizes, "kaiming_uniform")
    return symmetric(shape, fan_in("kaiming_uniform", shape) * (1.0 + a * a) / 6.0, more)


@composed(function=False, static=True)
def kaiming_normal(*sizes: Sizes, a: float = 0.01, **more: Any) -> Tensor:
    """Draw from the normal distribution of variance 2 / ((1 + a^2) inputs) (He et al., 2015).

    `a` is the slope of the leaky ReLU that follows.

    >>> Tensor.kaiming_normal(2, 3).shape
    (2, 3)
    """
    shape = as_shape(sizes, "kaiming_normal")
    count = fan_in("kaiming_normal", shape)
    std = math.sqrt(2.0 / ((1.0 + a * a) * count))
    return Recorded.kind.normal(shape, std=std, **more)


def symmetric(shape: tuple[int, ...], square: float, more: dict[str, Any]) -> Tensor:
    """Draw from [-b, b) with b = 1 / sqrt(square)."""
    bound = 1.0 / math.sqrt(square)
    return Recorded.kind.uniform(shape, low=-bound, high=bound, **more)


def fan_in(op: str, shape: tuple[int, ...]) -> int:
    """Count the inputs of one output: the elements of all axes but the first, at least 1."""
    if not shape:
        raise ShapeError(op, "the shape () has no axis of outputs", "give one size or more")
    return max(product(shape[1:]), 1)
