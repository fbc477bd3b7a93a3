"""The step of a block that multiplies tiles, and where its operands are that no tile has as rows.

A window's taps are digits of the depth, each with a place in an image; a matrix may lie in memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np

from picograd.late_methods import dataclass
from picograd.schedule.index import Index

Places = Any  # an array of NumPy's


class Digit(NamedTuple):
    """Where the rows of a digit of the depth begin: `step` elements on for the next one.

    Of `phases` that is the next but so many; the phases are `apart` elements from one another.
    """

    size: int
    step: int
    phases: int = 1
    apart: int = 0

    def place(self, number: int) -> int:
        """Find where a row of the digit begins, from the first."""
        return number // self.phases * self.step + number % self.phases * self.apart

    def __repr__(self) -> str:
        """Show what there is to know."""
        phases = f", {self.phases} phases {self.apart} apart" if self.phases > 1 else ""
        return f"({self.size}, {self.step}{phases})"


def places_of(digits: Sequence[Digit], start: int) -> Places:
    """List where the rows of a depth begin that digits count."""
    places = np.array([start])
    for digit in digits:
        own = [digit.place(number) for number in range(digit.size)]
        places = (places[:, None] + np.array(own)).ravel()
    return places


class Runs(NamedTuple):
    """How often a product is repeated, and how many columns further in b and acc each time.

    For some taps of a digit, its number among all, one run reads what another does for others.
    """

    times: int = 1
    apart: int = 0
    digit: int = 0


@dataclass(frozen=True, slots=True)
class InPlace:
    """An operand of a `Dot` that lies in memory: element [i, j] is slot[index + i * step + j]."""

    slot: int
    index: Index
    step: int

    def at(self, further: Index) -> "InPlace":
        """Begin so many elements further on."""
        return InPlace(self.slot, self.index + further, self.step)

    def elements(self, first: int, rows: int, columns: int) -> Places:
        """List where the elements of a block are, of which the first is known."""
        starts: Places = first + np.arange(rows) * self.step
        return starts[:, None] + np.arange(columns)


@dataclass(frozen=True, slots=True)
class Dot:
    """acc[m, n] += sum_k a[m, k] * b[k, n] over whole tiles.

    unit "fma" (CPU vectors or CUDA cores), "wgmma" (asynchronous, from the stages of a `Pipeline`),
    "tiles" (of bfloat16, on a CPU: rows of b are pairs of K, whose elements stand in turn).
    Tiles a and b are shared; `a_is_km` says that a is stored [k, m], `b_is_nk` that b is stored
    [n, k]. `a_origin`/`b_origin`: where in
    the shared tiles the product starts, for a register block inside a larger shared tile.

    On the CPU acc may be a shared tile too: the product is then `block` = (rows, columns) large and
    lands at `acc_origin`, in acc's last two dimensions. Leading dimensions of a and b (before the
    last two) are picked by the origins alone. `is_first`: acc = instead of acc +=. `stop`: the sum
    ends there, if that is before `depth`. `taps`: digits that count the depth, the last fastest: b
    then has no row a depth, but a place of each digit. `a_place`, `b_place`: where an operand lies
    that is no tile; its name and origin then mean nothing. `runs`: the same one row is multiplied
    with other columns, so that what taps of neighbouring runs read is read once.
    """

    acc: str
    a: str
    b: str
    depth: int
    unit: str = "fma"
    a_is_km: bool = False
    b_is_nk: bool = False
    a_origin: tuple[Index, ...] | None = None
    b_origin: tuple[Index, ...] | None = None
    acc_origin: tuple[Index, ...] | None = None
    block: tuple[int, int] | None = None
    is_first: bool = False
    stop: Index | None = field(default=None, repr=False)
    taps: tuple[Digit, ...] = field(default=(), repr=False)
    a_place: InPlace | None = field(default=None, repr=False)
    b_place: InPlace | None = field(default=None, repr=False)
    runs: Runs = field(default=Runs(), repr=False)

    def each_run(self) -> Iterator["Dot"]:
        """Yield the products of which this one is several."""
        if self.runs.times == 1:
            yield self
            return
        for number in range(self.runs.times):
            further = number * self.runs.apart
            acc = moved(self.acc_origin, further)
            b = moved(self.b_origin, further)
            yield replace(self, runs=Runs(), acc_origin=acc, b_origin=b)


def moved(origin: tuple[Index, ...] | None, further: int) -> tuple[Index, ...]:
    """Begin so many columns further on."""
    *before, last = origin or ()
    return (*before, last + further)


def format_dot(dot: Dot) -> str:
    """Print a product, and where its operands are."""
    text = repr(dot)
    text += f" stops at {dot.stop}" if dot.stop else ""
    text += f" goes on to taps {dot.taps}" if dot.taps else ""
    text += f" in {dot.runs.times} runs {dot.runs.apart} apart" if dot.runs.times > 1 else ""
    for name, place in (("a", dot.a_place), ("b", dot.b_place)):
        if place is not None:
            text += f" {name} lies in s{place.slot}[{place.index}] by {place.step}"
    return text
