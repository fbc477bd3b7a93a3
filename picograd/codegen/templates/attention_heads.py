"""attention_heads: in which order blocks take the heads of a batch."""

from picograd.codegen.operands import size_of
from picograd.codegen.streams import Stream
from picograd.schedule.index import Axis

CACHED = 24 << 20  # bytes, half of the second-level cache


def head_axes(stream: Stream, itemsize: int, tiles: int, blocks: int) -> tuple[Axis, Axis]:
    """Cut the batch in groups whose streamed operands stay in the cache while all rows read them.

    In a group all longest tiles of rows come first: of a mask, the last ones are the shortest. It
    has about one tile a block: of more, the first rounds would wait for memory, which is idle while
    others read the same heads.
    """
    count = size_of(stream.batch)
    columns = max(sum(stream.depths), sum(stream.widths))
    row_bytes = columns * itemsize
    size = 2 * size_of(stream.over) * row_bytes
    in_round = round(blocks / tiles)
    most = count
    if tiles > 1:
        cached = CACHED // size
        most = max(min(cached, in_round), 1)
    largest = min(count, most)
    group = max(n for n in range(1, largest + 1) if count % n == 0)
    outer = Axis("group", count // group)
    inner = Axis("head", group)
    return outer, inner
