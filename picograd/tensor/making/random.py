"""Random numbers: a counter-based generator whose values do not depend on when they are computed.

`Generator` holds (seed, offset). Recording a random tensor takes its block of counters at once, so
neither the order of realisation nor the backend changes a value: the bits are threefry2x32 of
(seed, offset + position). Dropout and the like are recomputed from them, never stored.
"""

import functools
import math
import operator
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from picograd.buffer import RuntimeScalar
from picograd.config import config
from picograd.device_name import device as device_name
from picograd.dtype import DType, bfloat16, default_float, float16, float32, float64, int64, uint64
from picograd.engine import pending
from picograd.engine.tracing import RUNNING, note_draw, note_refusal, note_undo
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.graph import build, sorting
from picograd.graph.node import Node
from picograd.graph.random import HALF_BITS, HALVES, signed
from picograd.graph.room import check_size
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.number import given
from picograd.tensor.core import running_vmaps
from picograd.tensor.core.annotations import DeviceLike, Shape
from picograd.tensor.core.operands import read_scalar
from picograd.tensor.core.repeated import (
    KEPT,
    NEW,
    Operands,
    Recording,
    check_alike,
    is_told,
    kept_recording,
    settings,
)
from picograd.tensor.making import inverse_sampling
from picograd.traced_number import SIZED

# digits of the significand: a uniform draw is a whole number of 2 ** -digits, as PyTorch's
DIGITS = {float16: 11, bfloat16: 8, float32: 24}
# how many numbers randperm takes at most, where a float holds them all; as PyTorch, bfloat16 rounds
WHOLE = {float16: (1 << 11) + 1, float32: (1 << 24) + 1, float64: (1 << 53) + 1, bfloat16: 1 << 63}
RARE = 2.0**-6  # a chance below which 2 ** -17 is more than 1 in 2,000 of it
LONG_PERMUTATION = 1 << 15  # beyond it, some of the 32-bit keys would be equal


def read_seed(seed: Any) -> int:
    """Read a seed as PyTorch does, by int(): a number of 64 bits, its sign or none."""
    try:
        number = int(seed)
    except TypeError:
        text = f"the seed must be an int, not {type(seed).__name__}"
        raise DTypeError("manual_seed", text, "pass a whole number") from None
    except (ValueError, OverflowError) as error:
        raise ValueRangeError("manual_seed", str(error), "pass a whole number") from None
    if not -(1 << 63) <= number < 1 << 64:
        text = f"the seed {number} has more than 64 bits"
        raise ValueRangeError("manual_seed", text, "pass a smaller one")
    return number % (1 << 64)


def check_spread(op: str, first: Any, second: Any, least: float | None = 0.0) -> None:
    """Raise for parameters of a distribution that are no numbers, or a negative deviation."""
    numbers = [read_scalar(op, value) for value in (first, second)]
    if least is not None and numbers[1] < least:
        raise ValueRangeError(op, f"std={second} is negative", "use 0 or more")


def read_range(
    given: Sequence[Any], low: int | None, high: int | None, size: Any
) -> tuple[Any, Any, Any]:
    """Read ([low,] high, size) of `randint`, or the sizes with `low` and `high` by name."""
    listed = list(given)
    if size is None and not (low is None and high is None):
        sizes = listed[0] if len(listed) == 1 else listed
        return low or 0, 10 if high is None else high, sizes
    if size is None and listed and isinstance(listed[-1], (tuple, list)):
        size = listed.pop()
    bounds = [value for value in (low, *listed, high) if value is not None]
    if not 1 <= len(bounds) <= 2:
        text = f"{len(bounds)} bounds were given"
        raise DTypeError("randint", text, "pass randint(low, high, size)")
    return *((0, *bounds)[-2:]), () if size is None else size


@dataclass(eq=False, slots=True)
class Loop:
    """A loop being recorded: what each of its steps draws, by the identity of the first counter."""

    times: int
    taken: dict[int, int] = field(default_factory=dict)
    kept: list[RuntimeScalar] = field(default_factory=list)  # so that identities stay unique


REPEATED: list[Loop] = []  # the loops being recorded, outermost first


@contextmanager
def repeated(times: int) -> Iterator[dict[int, int]]:
    """Reserve counters for every step of a loop while its body is recorded."""
    loop = Loop(times)
    REPEATED.append(loop)
    try:
        yield loop.taken
    finally:
        REPEATED.pop()


class Generator:
    """This class hands out random counters: `key` names the stream, `offset` the next counter.

    Numbers are the same on every device; `device` is there for PyTorch's sake.

    >>> generator = picograd.Generator().manual_seed(3)
    >>> state = generator.get_state()
    >>> first = picograd.rand(2, generator=generator).tolist()
    >>> _ = generator.set_state(state)
    >>> picograd.rand(2, generator=generator).tolist() == first
    True
    """

    def __init__(self, seed: Any = 0, device: DeviceLike | None = None) -> None:
        if isinstance(seed, str):  # PyTorch's Generator("cuda")
            seed, device = 0, seed
        self.key: int = read_seed(seed)
        self.offset: int = 0
        self.named: RuntimeScalar | None = None  # the seed, as the draws recorded so far read it
        self.device = device_name("cpu" if device is None else device)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the number that recorded draws read: it belongs to this generator."""
        return {**vars(self), "named": None}

    def manual_seed(self, seed: int) -> "Generator":
        """Start the stream of a seed from its beginning; unlike the global one, it is an int."""
        if isinstance(seed, float):
            text = f"the seed must be an int, not {type(seed).__name__}"
            raise DTypeError("manual_seed", text, "pass a whole number")
        note_refusal("a seed is set in it")
        note_undo(partial(self.put_back, self.key, self.offset))
        self.key, self.offset = read_seed(seed), 0
        return self

    def seed(self) -> int:
        """Start the stream of a seed that the operating system drew, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self.key

    def initial_seed(self) -> int:
        """Return the seed of the stream."""
        return self.key

    def take(self, count: int) -> RuntimeScalar:
        """Reserve `count` counters; gives the first, as a number that plans do not bake in.

        A jitted plan that runs again renews it: it reserves the next block of counters.
        """
        if RUNNING.traces:
            note_undo(partial(self.put_back, self.key, self.offset))
        whole = count = operator.index(count)  # every call takes as many
        for loop in REPEATED:
            whole *= loop.times
        first = note_draw(RuntimeScalar(self.advance(whole), lambda: self.advance(whole)))
        for loop in reversed(REPEATED):
            loop.taken[id(first)] = count
            loop.kept.append(first)
            count *= loop.times
        return first

    def put_back(self, key: int, offset: int) -> None:
        """Continue where a trace began that failed."""
        self.key, self.offset = key, offset

    def stream(self) -> RuntimeScalar:
        """Give the seed, as a number that plans do not bake in: another seed compiles nothing.

        All draws of one seed share it. A jitted plan that runs again reads the present seed.
        """
        value = signed(self.key)
        if self.named is None or self.named.value != value:
            self.named = RuntimeScalar(value, lambda: signed(self.key))
        return self.named

    def advance(self, count: int) -> int:
        """Move on by `count` counters and return the first of them."""
        start = self.offset
        self.offset = start + count
        return start

    def get_state(self) -> tuple[int, int]:
        """Return (seed, offset), for checkpoints."""
        return self.key, self.offset

    def set_state(self, state: Any) -> "Generator":
        """Continue from a state of `get_state`, or bytes of `get_rng_state`; gives itself."""
        note_refusal("the state of a generator is set in it")
        note_undo(partial(self.put_back, self.key, self.offset))
        self.key, self.offset = read_state(state)
        return self

    def clone_state(self) -> "Generator":
        """Make another generator that will draw the same numbers.

        >>> generator = picograd.Generator().manual_seed(3)
        >>> other = generator.clone_state()
        >>> picograd.equal(picograd.rand(2, generator=generator), picograd.rand(2, generator=other))
        True
        """
        return Generator(self.key, self.device).set_state(self.get_state())


def read_state(state: Any) -> tuple[int, int]:
    """Read a seed and an offset; of another generator of PyTorch's the seed, which comes first."""
    if isinstance(state, (tuple, list)):
        return int(state[0]), int(state[1])
    listed = np.asarray(state, np.uint8)
    if listed.size < 8:
        text = f"{listed.size} bytes are no state"
        raise ValueRangeError("set_state", text, "pass what get_rng_state gave")
    content = listed.tobytes()
    seed, offset = (int.from_bytes(content[at : at + 8], "little") for at in (0, 8))
    return seed, offset if listed.size == 16 else 0


DEFAULT = default_generator = Generator()
OWN = threading.local()  # its `generator`, in a thread that has one: a worker that loads data


def default() -> Generator:
    """Return the generator of draws that name none: the thread's own, or the one that all share."""
    return getattr(OWN, "generator", DEFAULT)


@dataclass(eq=False, slots=True)
class Watch:
    """What is drawn while a sampler records: how many counters each time, and their nodes."""

    counts: list[int] = field(default_factory=list)
    found: Operands = field(default_factory=Operands)

    def note(self, count: int, nodes: Sequence[Node]) -> None:
        """Take down the nodes of a block of counters."""
        self.counts.append(count)
        for node in nodes:
            self.found.seen[id(node)] = len(self.found.inputs)
            self.found.inputs.append(node)


WATCHES: list[Watch] = []  # of samplers that record, the outermost first


def counters(source: Generator, count: int, device: str) -> tuple[Node, Node]:
    """Take a block of counters: the first of them, and the seed."""
    first = build.scalar(source.take(count), device, int64)
    nodes = first, build.scalar(source.stream(), device, int64)
    for watch in WATCHES:
        watch.note(count, nodes)
    return nodes


def sampler(draw: Callable[..., Node]) -> Callable[..., Node]:
    """Declare that all a function records but its counters follows from its operands.

    The last of them is the generator. What was recorded once is stamped out over other counters.
    """
    known: dict[Any, Any] = {}

    def record(key: Any, operands: Sequence[Any]) -> Node:
        watch = Watch()
        WATCHES.append(watch)
        try:
            made, recording = kept_recording(draw, operands, watch.found)
        finally:
            WATCHES.pop()
        known[key] = (recording, watch.counts) if type(recording) is Recording else recording
        return made

    def told(operands: Sequence[Any]) -> Node:
        if RUNNING.active or SIZED or REPEATED:
            return draw(*operands)
        options = operands[:-1]
        key = settings(), options, *map(type, options)
        kept = known.get(key)
        if type(kept) is tuple:
            return stamped(draw, operands, *kept)
        if "meta" in options or not all(map(is_told, options)):
            return draw(*operands)
        if kept is NEW:
            return record(key, operands)
        if kept is None:
            if len(known) >= KEPT:
                known.clear()
            known[key] = NEW
        return draw(*operands)

    @functools.wraps(draw)
    def drawing(*operands: Any) -> Node:
        with pending.LOCK:  # another thread may be recording a loop or samples
            return told(operands)

    return drawing


def stamped(
    draw: Callable[..., Node], operands: Sequence[Any], recording: Recording, counts: list[int]
) -> Node:
    """Make the nodes of a recording over new counters."""
    generator, device = operands[-1], recording.steps[0][-1]
    source = default() if generator is None else generator
    start = source.key, source.offset
    inputs = [node for count in counts for node in counters(source, count, device)]
    made: Node = recording.stamp(inputs, ())
    if config.verify:
        source.put_back(*start)
        watches = WATCHES[:]
        WATCHES.clear()  # these counters are the same
        check_alike(draw, operands, made)
        WATCHES[:] = watches
    return made


def random_bits(shape: Shape, device: str, generator: Generator | None) -> Node:
    """Draw 32 random bits per element (uint32)."""
    return random_words(shape, device, generator, 1)[0]


@pending.locked  # another thread may be recording a loop or samples
def random_words(
    shape: Shape, device: str, generator: Generator | None, count: int = 2
) -> list[Node]:
    """Draw one or two words of 32 random bits per element (uint32), which share a block."""
    source = default() if generator is None else generator
    if device == "meta":  # what has no values draws none: the stream stays where it is
        source = Generator()
    block: list[tuple[Node, Node]] = []  # its counters

    def make(whole: Shape) -> Node:
        is_second = bool(block)
        if not block:
            block.append(counters(source, product(whole), device))
        first, seed = block[0]
        return build.random_bits(first, seed, whole, is_second)

    if running_vmaps.LEVELS:
        return [running_vmaps.draw("random", shape, make) for _ in range(count)]
    return [make(shape) for _ in range(count)]


@pending.locked
def random_halves(shape: Shape, device: str, generator: Generator | None) -> Node:
    """Draw 16 random bits per element, as uint32, from a counter for every 32 of them."""
    source = default() if generator is None else generator
    if device == "meta":
        source = Generator()

    def make(whole: Shape) -> Node:
        count = ceil_div(product(whole), HALVES)
        return build.random_halves(*counters(source, count, device), whole)

    return running_vmaps.draw("random", shape, make) if running_vmaps.LEVELS else make(shape)


@sampler
def kept(shape: Shape, p: float, device: str, generator: Generator | None) -> Node:
    """Draw what dropout keeps: False with probability p.

    16 bits are drawn of an element, so that p is taken to the nearest multiple of 2 ** -16. Where
    either outcome is so rare that this would show, 24 bits are.
    """
    is_rare = min(p, 1.0 - p) < RARE
    if is_rare:
        least = build.const(given(p), shape, float32, device)
        drawn = uniform(shape, float32, device, generator)
        return least.binary("less_equal", drawn)
    count = 1 << HALF_BITS
    dropped = round(p * count)
    most = given(count - dropped)
    return random_halves(shape, device, generator).binary("less", most)


def float_dtype(op: str, dtype: DType | None) -> DType:
    """Check the dtype of a random float tensor; None is float32."""
    wanted = default_float() if dtype is None else dtype
    if wanted.real.kind != "float":  # 8-bit floats are too coarse
        raise DTypeError(op, f"needs a float dtype, got {wanted.name}", "use randint for integers")
    return wanted


@sampler
def uniform(shape: Shape, dtype: DType, device: str, generator: Generator | None) -> Node:
    """Draw from [0, 1), each part of complex numbers."""
    if dtype.is_complex:
        real, imag = (uniform(shape, dtype.real, device, generator) for _ in range(2))
        return real.paired(imag)
    return unit(drawn_bits(shape, dtype, device, generator), dtype)


def drawn_bits(
    shape: Shape, dtype: DType, device: str, generator: Generator | None
) -> tuple[Node, ...]:
    """Draw the bits that a number of [0, 1) takes."""
    return tuple(random_words(shape, device, generator, 1 + (dtype is float64)))


def unit(bits: tuple[Node, ...], dtype: DType) -> Node:
    """Make numbers of [0, 1) of bits."""
    if dtype is float64:
        high = bits[0].binary("shift_right", 5).cast(float64)
        low = bits[1].binary("shift_right", 6).cast(float64)
        return (high * 67108864.0 + low) * 2.0**-53  # 27 + 26 bits
    digits = DIGITS[dtype]
    whole = bits[0].binary("shift_right", 32 - digits)
    return (whole.cast(float32) * 2.0**-digits).cast(dtype)


@sampler
def normal(shape: Shape, dtype: DType, device: str, generator: Generator | None) -> Node:
    """Draw from the standard normal by Box and Muller; complex numbers have variance 1 as well."""
    if dtype.is_complex:
        real, imag = (normal(shape, dtype.real, device, generator) for _ in range(2))
        return (real * math.sqrt(0.5)).paired(imag * math.sqrt(0.5))
    compute = inverse_sampling.wide_dtype(dtype)
    if compute is float64:
        draws = [drawn_bits(shape, compute, device, generator) for _ in range(2)]
    else:
        draws = [(word,) for word in random_words(shape, device, generator)]
    u, v = (unit(bits, compute) for bits in draws)
    return inverse_sampling.box_muller(u, v).cast(dtype)


@sampler
def integers(
    low: int, high: int, shape: Shape, dtype: DType, device: str, generator: Generator | None
) -> Node:
    """Draw whole numbers from [low, high): the bits scaled by the span, biased by < 2 ** -31."""
    if high <= low:
        text = f"the range [{low}, {high}) is empty"
        raise ValueRangeError("randint", text, "pass low < high")
    least, most = (0, 1) if dtype.kind == "bool" else dtype.ends
    if not dtype.is_differentiable and not least <= low < high <= most + 1:
        text = f"the range [{low}, {high}) does not fit {dtype.name}"
        raise ValueRangeError("randint", text, "pass a dtype that holds it, such as int64")
    span, first = high - low, given(signed(low % (1 << 64)))
    is_narrow = span <= 1 << 31
    low_bits, *more = random_words(shape, device, generator, 2 - is_narrow)
    bits = low_bits.cast(int64)
    if is_narrow:
        return ((bits * given(span)).binary("shift_right", 32) + first).cast(dtype)
    wide = more[0].cast(uint64).binary("shift_left", 32).binary("bitwise_or", bits.cast(uint64))
    rest = wide if span >> 64 else wide.binary("mod", span)
    return (rest.cast(int64) + first).cast(dtype)


@sampler
def permutation(count: int, dtype: DType, device: str, generator: Generator | None) -> Node:
    """Shuffle range(count): the order of random keys, equal ones in the order of their positions.

    Longer permutations have keys of 63 bits, so that equal keys stay rare.
    """
    if count < 0:
        raise ValueRangeError("randperm", f"{count} numbers are not possible", "use at least 0")
    if dtype.kind not in ("int", "uint", "float"):
        raise DTypeError("randperm", f"is not defined for {dtype.name}", "use int64")
    if count > WHOLE.get(dtype, 1 << dtype.bits - (dtype.kind == "int")):
        text = f"{dtype.name} does not hold every number below {count}"
        raise ShapeError("randperm", text, "use int64")
    check_size("randperm", (count,), dtype.itemsize)
    if count >= 1 << 31:  # positions in a row that is sorted are int32
        raise ShapeError("randperm", f"{count} numbers are too many", "use less than 2 ** 31")
    keys, *low = random_words((count,), device, generator, 1 + (count > LONG_PERMUTATION))
    if not count:
        return keys.cast(dtype)
    if low:
        high = keys.binary("shift_right", 1).cast(int64)
        keys = high.binary("shift_left", 32).binary("bitwise_or", low[0].cast(int64))
    return sorting.sort(keys, 0).cast(dtype)
