"""Attention in float32 on the tensor cores of Hopper, where they may read 10 bits of each mantissa.

The kernels are those of 16-bit floats. Scores are products of boxes, as there; weights stay in
registers, and are multiplied at once (unit "mma"): `wgmma` wants their depth in another order. All
elements have 4 bytes, and weights a register each.
"""

from collections.abc import Iterator

from picograd.codegen.operands import narrow, size_of
from picograd.codegen.streams import Stream
from picograd.codegen.templates.attention_frame import MEMORY, ROWS, SPAN, Schedule
from picograd.helpers import round_up
from picograd.target import Target

GROUPS = 2, 1  # warpgroups of 64 rows
REGISTERS = 40, 232  # of a thread that copies, of one that multiplies
SIZES = 128, 96, 64, 32  # places of a block of the stream
MOST_LIVE = 200  # registers of a thread for fragments
ITEMSIZE, STAGES = 4, 2


def is_float32(stream: Stream) -> bool:
    """Tell whether operands have 32 bits."""
    return narrow(stream.scores[0].streamed).dtype.bits == 32


def schedules(stream: Stream, target: Target) -> Iterator[Schedule]:
    """List how blocks may work, those of the most rows and places first; few rows have no boxes."""
    is_known = target.tf32 and target.copies_boxes
    if not is_known or size_of(stream.rows) <= ROWS:
        return
    for groups in GROUPS:
        for size in SIZES:
            live = live_registers(stream, size)
            memory = bytes_of(stream, size, groups)
            if live <= MOST_LIVE and memory <= MEMORY:
                yield Schedule(groups, size, REGISTERS)


def live_registers(stream: Stream, size: int) -> int:
    """Count the registers of a thread for fragments: of results, scores, and weights."""
    columns = stream.widths
    has_sums = bool(stream.sums) and stream.peak is None
    scores = len(stream.edited) + has_sums
    return (sum(columns) + size * (scores + len(columns))) // 2


def bytes_of(stream: Stream, size: int, groups: int) -> int:
    """Count the bytes of what rows hold, and of two stages of what is streamed.

    Gradients multiply weights by what scores are made of.
    """
    is_forward = stream.peak is not None
    own = sum(round_up(n, SPAN) for n in stream.depths)
    others = sum(round_up(n, SPAN) for n in stream.widths) if is_forward else 0
    held = ROWS * groups * own
    return ITEMSIZE * (held + (STAGES * size * (own + others)))
