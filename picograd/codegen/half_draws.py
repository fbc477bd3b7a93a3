"""Draws of 16 bits in programs: read where they were drawn ahead, else written out.

Lanes of a vector name their places, so that those of one block compute it once:

    pack(bits[8*t + 0], bits[8*t + 1])  ->  one block for t, of which both take a half
"""

from collections.abc import Iterable
from typing import Protocol

from picograd.codegen.program import Instr
from picograd.dtype import DType
from picograd.schedule.draws import half_written_out, is_half_drawn
from picograd.schedule.index import Axis, Index, constant
from picograd.schedule.loop import Expr, rewrite

VECTOR_BYTES, NEIGHBOURS = 16, 16  # of an access; of elements


class Emitter(Protocol):
    """What the emitter offers: see `picograd/codegen/emit.py`."""

    drawn: dict[Expr, tuple[int, Index]]
    instructions: list[Instr]

    def value(self, root: Expr) -> int:
        """Append an expression."""

    def index(self, index: Index) -> int:
        """Append the arithmetic of an index."""

    def get(self, array: int, place: int) -> int:
        """Read an element of an array."""

    def cast(self, value: int, dtype: DType) -> int:
        """Convert a value."""


def half(emitter: Emitter, draw: Expr) -> int:
    """Read 16 random bits that were drawn ahead, or draw them."""
    found = emitter.drawn.get(draw)
    if found is None:
        return emitter.value(half_written_out(draw))
    array, place = found
    bits = emitter.get(array, emitter.index(place))
    return emitter.cast(bits, draw.dtype)


def neighbours(sizes: Iterable[int], exprs: Iterable[Expr]) -> int:
    """Choose how many neighbours a thread of a GPU has, by the bytes of elements: 16 bytes of them.

    Of 16 neighbours four share a block of bits, of eight two: short elements wait for blocks.
    """
    widest = max(sizes, default=4)
    is_dear = widest == 2 and any(map(is_half_drawn, exprs))
    return NEIGHBOURS if is_dear else VECTOR_BYTES // widest


def half_of_lane(emitter: Emitter, draw: Expr, axis: Axis, lane: int) -> int:
    """Draw the bits of one lane of a vector."""
    return half(emitter, rewrite(draw, {axis: constant(lane)}))
