"""Machine code of Fourier transforms: a vector has the same point of several signals.

Signals are worked on as many at a time as a vector has elements, `lanes`; a point of them is two
vectors, real and imaginary parts. A step of Stockham's method (C. Van Loan, Computational
Frameworks for the Fast Fourier Transform, 1992, 1.7) transforms r points of each signal that lie
`apart` from one another, and turns them; after steps whose product is all points they are in order:

    to[i + s (r p + k)] = W^(p k) * sum over j of W_r^(j k) from[i + s (p + m j)]

with i < s, p < m, and s the product of the r of the steps before. A transform back is one whose
parts change places. What it reads and writes lies signal by signal (`rows`: squares of them are
turned round in registers) or point by point (`columns`).

A plan is the table PLAN, of words and addresses, behind it (r, m, s) of each step. Real signals of
an even number of points are complex ones of half as many, between which `mirror` takes the way:

    to[k] = (from[k] + conj from[m - k]) + turns[k] (from[k] - conj from[m - k])

Signals that are too few, or long, are rows and columns of a matrix: points of other vectors are
turned between two transforms (`rotate`).
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from picograd.graph.butterflies import FIRST, in_two
from picograd.helpers import product
from picograd.runtime.python_calls import places
from picograd.runtime.python_code import Translator

Array = Any
PLAN = (
    "outer", "blocks", "lanes", "read", "points", "wrote", "made", "source_outer", "source_lane",
    "source_point", "to_outer", "to_lane", "to_point", "room", "swap", "opened", "closed", "turns",
    "rotations", "scale", "steps",
)  # fmt: skip
RADICES = (8, 7, 5, 4, 3, 2)
STEP = ("points", "groups", "apart")

DRIVER = """
def least(number, other):
    if number < other:
        return number
    return other

def opened(plan: plan, x, y):
    "makes half as many complex points of the frequencies of real ones"
    last = plan.points * POINT
    clear(x + PART)
    clear(x + last + PART)
    mirror(x, y, plan.opened, plan.points, plan.points)

def closed(plan: plan, x, y):
    "makes frequencies of real points of those of half as many complex ones"
    memcpy(x + plan.points * POINT, x, POINT)
    mirror(x, y, plan.closed, plan.points, plan.points + 1)

def mirror(x, y, turns, points, count):
    for k in range(count):
        reflect(x + k * POINT, x + (points - k) * POINT, y + k * POINT, turns + k * TURN)

def transform(plan: plan, x, y):
    "takes all steps; gives where the points are then"
    from_re = x
    to_re = y
    turn = PART
    if plan.swap:
        from_re = x + PART
        to_re = y + PART
        turn = 0 - PART
    turns = plan.turns
    for number in range(plan.steps):
        step: step = plan + END + number * STEP
        advance(step, from_re, to_re, turns, turn)
        turns = turns + step.groups * (step.points - 1) * TURN
        between = from_re
        from_re = to_re
        to_re = between
    if plan.swap:
        return from_re - PART
    return from_re

def load(plan: plan, source, x):
    if plan.source_point == ONE:
        point = 0
        while point < plan.read:
            begin = least(point, plan.read - SQUARE)
            load_square(source + begin * ONE, plan.source_lane, x + begin * POINT)
            point = point + SQUARE
        return 0
    for point in range(plan.read):
        load_column(source + point * plan.source_point, x + point * POINT)

def store(plan: plan, x, to):
    if plan.to_point == ONE:
        point = 0
        while point < plan.made:
            begin = least(point, plan.made - SQUARE)
            store_square(x + begin * POINT, plan.to_lane, to + begin * ONE, plan.scale)
            point = point + SQUARE
        return 0
    for point in range(plan.made):
        store_column(x + point * POINT, to + point * plan.to_point, plan.scale)

def rotate(x, count, turns):
    for point in range(count):
        rotate_point(x + point * POINT, turns + point * POINT)

def block(plan: plan, source, to, x, y, rotations):
    load(plan, source, x)
    if plan.opened:
        opened(plan, x, y)
        between = x
        x = y
        y = between
    found = transform(plan, x, y)
    if plan.closed:
        other = x
        if found == x:
            other = y
        closed(plan, found, other)
        found = other
    if rotations:
        rotate(found, plan.made, rotations)
    store(plan, found, to)

def signals(plan: plan, source, to, x):
    for number in range(plan.blocks):
        lane = least(number * LANES, plan.lanes - LANES)
        rotations = 0
        if plan.rotations:
            rotations = plan.rotations + number * plan.made * POINT
        begin = source + lane * plan.source_lane
        end = to + lane * plan.to_lane
        block(plan, begin, end, x, x + plan.room, rotations)

@public
def picograd_fourier(first: plan, second, source, to, between, room):
    "transforms all signals; those that are matrices in two ways, one after the other"
    for outer in range(first.outer):
        begin = source + outer * first.source_outer
        end = to + outer * first.to_outer
        if second:
            signals(first, begin, between, room)
            signals(second, between, end, room)
        else:
            signals(first, begin, end, room)
"""


class Lanes:
    """This class is a vector of numbers, as an expression of LLVM's."""

    def __init__(self, body: "Body", name: str) -> None:
        self.body, self.name = body, name

    def made(self, operation: str, other: "Lanes | float") -> "Lanes":
        """Compute with another one, or a number."""
        body = self.body
        right = other.name if isinstance(other, Lanes) else body.number(other)
        return body.value(f"{operation} contract {body.vector} {self.name}, {right}")

    def __add__(self, other: "Lanes") -> "Lanes":
        return self.made("fadd", other)

    def __sub__(self, other: "Lanes") -> "Lanes":
        return self.made("fsub", other)

    def __mul__(self, other: "Lanes | float") -> "Lanes":
        return self.made("fmul", other)

    def __neg__(self) -> "Lanes":
        return self.body.value(f"fneg {self.body.vector} {self.name}")


class Body:
    """This class writes the instructions of a function, over vectors of `lanes` numbers."""

    def __init__(self, lanes: int, is_double: bool) -> None:
        self.lanes, self.kind, self.size = lanes, ("float", "double")[is_double], 4 << is_double
        self.vector = f"<{lanes} x {self.kind}>"
        self.lines: list[str] = []

    def value(self, text: str) -> Lanes:
        """Write an instruction that has a value."""
        name = f"%n{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return Lanes(self, name)

    def number(self, value: float) -> str:
        """Spell a vector of equal numbers."""
        single = struct.unpack("f", struct.pack("f", value))[0] if self.size == 4 else value
        bits = struct.unpack("<Q", struct.pack("<d", single))[0]
        return f"splat ({self.kind} 0x{bits:016X})"

    def pointer(self, address: str, offset: int = 0, steps: tuple[int, str] = (0, "0")) -> str:
        """Point behind an address: some bytes, and so many of a length."""
        count, length = steps
        if count:
            far = self.value(f"mul i64 {length}, {count}").name
            address = self.value(f"add i64 {address}, {far}").name
        if offset:
            address = self.value(f"add i64 {address}, {offset}").name
        return self.value(f"inttoptr i64 {address} to ptr").name

    def load(self, pointer: str) -> Lanes:
        """Read a vector."""
        return self.value(f"load {self.vector}, ptr {pointer}, align {self.size}")

    def store(self, found: Lanes, pointer: str) -> None:
        """Write a vector."""
        self.lines.append(f"store {self.vector} {found.name}, ptr {pointer}, align {self.size}")

    def everywhere(self, pointer: str) -> Lanes:
        """Read a number for all lanes."""
        one = self.value(f"load {self.kind}, ptr {pointer}, align {self.size}").name
        first = self.value(f"insertelement {self.vector} poison, {self.kind} {one}, i64 0").name
        return self.mixed(first, "poison", [0] * self.lanes)

    def mixed(self, one: str, other: str, places: Sequence[int]) -> Lanes:
        """Choose elements of two vectors."""
        listed = ", ".join(f"i32 {each}" for each in places)
        vectors = f"{self.vector} {one}, {self.vector} {other}"
        return self.value(f"shufflevector {vectors}, <{len(places)} x i32> <{listed}>")

    def halves(self, one: Lanes, other: Lanes) -> tuple[Lanes, Lanes]:
        """Lay the elements of two vectors by turns."""
        by_turns = [place for lane in range(self.lanes) for place in (lane, self.lanes + lane)]
        cut = by_turns[: self.lanes], by_turns[self.lanes :]
        first, second = (self.mixed(one.name, other.name, each) for each in cut)
        return first, second

    def point(self, address: str, re: int = 0, steps: tuple[int, str] = (0, "0")) -> list[Lanes]:
        """Read both parts of a point."""
        part = self.lanes * self.size
        return [self.load(self.pointer(address, offset, steps)) for offset in (re, part - re)]

    def put(self, pair: Sequence[Lanes], address: str) -> None:
        """Write both parts of a point."""
        for number, found in enumerate(pair):
            self.store(found, self.pointer(address, number * self.lanes * self.size))

    def turn(self, address: str, number: int = 0) -> tuple[Lanes, Lanes]:
        """Read a complex number for all lanes."""
        start = 2 * number * self.size
        re, im = (self.everywhere(self.pointer(address, start + k * self.size)) for k in (0, 1))
        return re, im


Pair = Sequence[Lanes]


def times(a: Pair, b: Pair) -> Pair:
    """Multiply complex numbers."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def butterfly(body: Body, size: int) -> None:
    """Transform a few points of all lanes, and turn them."""
    given: list[Pair] = []
    for j in range(size):
        re = body.load(body.pointer("%x", 0, (j, "%apart")))
        other = body.value("add i64 %x, %turn").name
        given.append((re, body.load(body.pointer(other, 0, (j, "%apart")))))
    found: list[Pair] = in_two(given, FIRST[size], -1, False)  # type: ignore[arg-type, assignment]
    for k, pair in enumerate(found):
        made = times(pair, body.turn("%turns", k - 1)) if k else pair
        other = body.value("add i64 %y, %turn").name
        for part, base in zip(made, ("%y", other)):
            body.store(part, body.pointer(base, 0, (k, "%beside")))


def reflect(body: Body) -> None:
    """Take a point and its mirror image apart; see the module docstring."""
    (a, b), (c, d) = body.point("%x"), body.point("%image")
    sums, rest = (a + c, b - d), (a - c, b + d)
    turned = times(rest, body.turn("%turns"))
    body.put([sums[0] + turned[0], sums[1] + turned[1]], "%y")


def rotate_point(body: Body) -> None:
    """Turn a point, each lane otherwise."""
    body.put(times(body.point("%x"), body.point("%turns")), "%x")


def clear(body: Body) -> None:
    """Let a part be 0."""
    body.store(Lanes(body, "zeroinitializer"), body.pointer("%x"))


def turned_round(body: Body, rows: list[Lanes]) -> list[Lanes]:
    """Turn a square of numbers round: half of the rows by turns with the others, log2 times."""
    half = body.lanes // 2
    for _ in range(body.lanes.bit_length() - 1):
        pairs = [body.halves(rows[k], rows[k + half]) for k in range(half)]
        rows = [each for pair in pairs for each in pair]
    return rows


def load_square(body: Body) -> None:
    """Read half as many points as there are lanes, of signals that lie one behind the other."""
    part = body.lanes * body.size
    rows = [body.load(body.pointer("%x", 0, (k, "%length"))) for k in range(body.lanes)]
    for number, each in enumerate(turned_round(body, rows)):
        body.store(each, body.pointer("%y", number * part))


def factor(body: Body) -> Lanes:
    """Read the factor of results, a word, for all lanes."""
    wide = body.value("bitcast i64 %scale to double").name
    one = wide if body.size == 8 else body.value(f"fptrunc double {wide} to float").name
    first = body.value(f"insertelement {body.vector} poison, {body.kind} {one}, i64 0").name
    return body.mixed(first, "poison", [0] * body.lanes)


def store_square(body: Body) -> None:
    """Write points of signals that lie one behind the other."""
    part, scale = body.lanes * body.size, factor(body)
    rows = [body.load(body.pointer("%x", k * part)) * scale for k in range(body.lanes)]
    for number, each in enumerate(turned_round(body, rows)):
        body.store(each, body.pointer("%y", 0, (number, "%length")))


def load_column(body: Body) -> None:
    """Read a point of signals that lie side by side."""
    part = body.lanes * body.size
    one, other = (body.load(body.pointer("%x", k * part)).name for k in (0, 1))
    evens = range(0, 2 * body.lanes, 2)
    body.put([body.mixed(one, other, [each + k for each in evens]) for k in (0, 1)], "%y")


def store_column(body: Body) -> None:
    """Write a point of signals that lie side by side."""
    scale = factor(body)
    re, im = body.point("%x")
    body.put(body.halves(re * scale, im * scale), "%y")


PARTS: dict[str, tuple[str, Callable[[Body], None]]] = {
    "reflect": ("x image y turns", reflect),
    "rotate_point": ("x turns", rotate_point),
    "clear": ("x", clear),
    "load_square": ("x length y", load_square),
    "store_square": ("x length y scale", store_square),
    "load_column": ("x y", load_column),
    "store_column": ("x y scale", store_column),
}


def advance_text() -> str:
    """Write the step of a plan: loops around the function of its number of points."""
    lines = ["def advance(step: step, x, y, turns, turn):", "    apart = step.groups * step.apart"]
    lines += ["    apart = apart * POINT", "    beside = step.apart * POINT"]
    for size in RADICES:
        lines += [f"    if step.points == {size}:"]
        lines += ["        for group in range(step.groups):"]
        lines += ["            here = x + group * beside"]
        lines += [f"            there = y + group * beside * {size}"]
        lines += [f"            now = turns + group * {size - 1} * TURN"]
        lines += ["            for number in range(step.apart):"]
        lines += [f"                points{size}(here, there, now, turn, apart, beside)"]
        lines += ["                here = here + POINT", "                there = there + POINT"]
    return "\n".join(lines)


def fourier_source(lanes: int, is_double: bool) -> str:
    """Write the functions for numbers of a width, for vectors of so many."""
    size = 4 << is_double
    part = lanes * size
    constants = {
        "LANES": lanes, "PART": part, "POINT": 2 * part, "ONE": 2 * size, "TURN": 2 * size,
        "SQUARE": lanes // 2, "END": 8 * len(PLAN), "STEP": 8 * len(STEP),
    }  # fmt: skip
    code = Translator(places("plan", PLAN) | places("step", STEP), constants)

    def write(name: str, parameters: str, fill: Callable[[Body], None]) -> None:
        body = Body(lanes, is_double)
        fill(body)
        listed = ", ".join(f"i64 %{each}" for each in parameters.split())
        text = "\n  ".join([*body.lines, "ret i64 0"])
        code.heads[name] = f"define internal i64 @{name}({listed}) alwaysinline {{\n  {text}\n}}"

    for name, (parameters, fill) in PARTS.items():
        write(name, parameters, fill)
    for each in RADICES:
        write(f"points{each}", "x y turns turn apart beside", partial(butterfly, size=each))
    code.translate(advance_text() + DRIVER)
    return code.text()


# what steps turn points by


@lru_cache(maxsize=1024)
def radices_of(points: int) -> tuple[int, ...]:
    """Find the points of each step; nothing where there is another prime factor."""
    found: list[int] = []
    for each in RADICES:
        while points % each == 0:
            found.append(each)
            points //= each
    return tuple(found) if points == 1 else ()


def circle(count: int) -> Array:
    """List the powers of exp(-2 pi i / count), of float64."""
    return np.exp(-2j * np.pi / count * np.arange(count))


@lru_cache(maxsize=64)
def turns_of(radices: tuple[int, ...], kind: Any) -> Array:
    """List what each step turns points by, in the order in which it does."""
    left = product(radices)
    found: list[Array] = [np.empty(0, complex)]
    for each in radices:
        powers = np.outer(np.arange(left // each), np.arange(1, each))
        found.append(circle(left)[powers % left].ravel())
        left //= each
    return np.concatenate(found).astype(kind)


@lru_cache(maxsize=16)
def rotations_of(a: int, b: int, is_back: bool, vector: int) -> Array:
    """List what points of a rows of b are turned by, as vectors of columns are worked on.

    Real and imaginary parts of a vector lie one behind the other: the pairs that are read as
    complex numbers are no numbers of the circle.
    """
    powers = np.outer(np.arange(a), np.arange(b))
    turned = circle(a * b)[powers]
    turned = turned.conj() if is_back else turned
    first: Array = np.arange(-(-b // vector)) * vector
    starts = np.minimum(first, b - vector)
    lanes = starts[:, None, None] + np.arange(vector)
    blocks = turned[np.arange(a)[:, None], lanes]  # blocks a vector
    parts = np.stack([blocks.real, blocks.imag], 2)  # blocks a 2 vector
    return parts.reshape(-1, 2).view(np.complex128)
