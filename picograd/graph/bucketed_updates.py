"""Sums of numbers at many places, on a GPU: updates are sorted by one digit, then put into bins.

    pairs    a place over a value, moved into buckets: those of one bucket have neighbouring places,
             of which a block of threads has room for all (graph/binning.py)
    pieces   the pairs are cut where a bucket begins, and every so many of them: no bucket takes
             long, whatever the places are
    bins     the sums of each piece, at the places of its bucket
    out      those of the pieces of each bucket, added up: a run (graph/indexing.py)

What is sorted by all digits is moved for each of them, and so are positions, by which values are
read in any order. Here it is once, and values go with their places. All orders are those of the
updates: the same bits in every run.
"""

from picograd.dtype import DType, int32, uint32
from picograd.graph.binned_updates import Updates, numbered
from picograd.graph.binning import only_number, summed_in_bins, warps_of
from picograd.graph.node import Node, constant
from picograd.graph.scanning import scan
from picograd.graph.sorting import LOW, bitcast, moved, packed
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.target import Target

LEAST_UPDATES = 1 << 16  # fewer are sorted in no more time
MOST_BITS = 13  # of a place in a bucket: bins of two warps, of 32 bits
USUAL_WARPS = 4  # that have bins of their own in a block
CLEARED_PLACES = 16  # for each update: clearing these takes no longer than two more digits
WASTE = 4  # pieces of a bucket that are full, at equal buckets, for one that is not
PIECES = 1024  # at least, if they are not short: blocks for all processors
LEAST_PIECE = 1024


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of what lies in buckets: of each its bucket, where it begins, and where it stops.

    `first` is the number of the first piece of the bucket.
    """

    bucket: Node
    first: Node
    begin: Node
    stop: Node
    length: int  # elements at most


def in_buckets(base: Node, updates: Updates, target: Target) -> tuple[Node, Pieces] | None:
    """Add updates of single numbers up in pieces of buckets; None where that is not what is best.

    Gives the sums (pieces, places of a bucket), and the pieces, whose buckets ascend.
    """
    values = updates.values.accumulated()
    places, count = base.size, values.size
    one = only_number(values)
    shape = updates.indices[0].shape
    has_rows = count > product(shape) or product(shape[: updates.outside]) > 1
    is_plain = not (has_rows or updates.inside)
    is_few = count < max(places // CLEARED_PLACES, LEAST_UPDATES)
    if is_few or not is_plain or not may_be_moved(values.dtype, one is None):
        return None
    bits = bits_in_bucket(places, values.dtype, target)
    if bits is None:
        return None
    axes = sorted(updates.axes)
    indices = [updates.indices[updates.axes.index(axis)] for axis in axes]
    keys = numbered(indices, [base.shape[axis] for axis in axes])
    keys = keys.cast(uint32).reshape((count,))
    if one is None:
        keys = keys.stored()  # half of what 64-bit indices are, which are looked at before
        bits_of_values = bitcast(values, uint32)
        pairs = packed(keys, bits_of_values.reshape((count,)))
        shift = 32
    else:
        pairs, shift = keys, 0
    pairs, counted = moved(pairs, keys, bits, bits + shift)
    buckets = ceil_div(places, 1 << bits)
    pieces = cut(counted, count, buckets)
    given = values if one is None else one
    rows = sums_of_pieces(pairs, shift, pieces, bits, given, target)
    return rows, pieces


def may_be_moved(dtype: DType, is_each: bool) -> bool:
    """Tell whether there are bins for values of a dtype, and a place and a value are one number."""
    is_number = dtype.kind in ("int", "uint", "float")
    return is_number and (dtype.bits == 32 or (dtype.bits == 64 and not is_each))


def bits_in_bucket(places: int, dtype: DType, target: Target) -> int | None:
    """Choose how many bits of a place tell those of a bucket apart; None if they are too many."""
    every = max(places - 1, 1).bit_length()
    bits = MOST_BITS
    while bits and warps_of(1 << bits, dtype.itemsize, 1, target) < USUAL_WARPS:
        bits -= 1
    bits = max(bits, every - 8)
    has_room = warps_of(1 << bits, dtype.itemsize, 1, target) > 1
    return bits if has_room and bits <= MOST_BITS else None


def cut(counted: Node, count: int, buckets: int) -> Pieces:
    """Cut buckets into pieces, as many as there may be at most; some are empty.

    A piece begins where a bucket does, and at multiples of a length. The first of bucket k is piece
    k + ceil(start / length), as so many multiples come before it.
    """
    most = max(WASTE * buckets, PIECES)
    length = max(ceil_div(count, most), LEAST_PIECE)
    last = counted.shape[-1]
    used = (0, buckets, 1), (last - 1, last, 1)
    each = counted.slice(used).reshape((buckets,))
    ends = scan(each, "sum", 0).stored()
    starts = ends - each
    multiples = (starts + (length - 1)).binary("floordiv", length)
    first = starts.iota(0, int32) + multiples
    pieces = buckets + ceil_div(count, length)
    wide = pieces, buckets
    ones = constant(1, wide, int32, counted.device)
    begins = first.reshape((1, buckets)).expand(wide)
    is_later = ones.iota(0, int32).binary("less", begins)
    bucket = is_later.where(0, ones).reduce("sum", (1,)) - 1
    bucket = bucket.stored()
    number = bucket.iota(0, int32)
    multiple = number - bucket - 1
    begin = starts.gather((bucket,), (0,))
    begin = begin.binary("maximum", multiple * length)
    stop = ends.gather((bucket,), (0,))
    stop = stop.binary("minimum", (multiple + 1) * length)
    own = first.gather((bucket,), (0,))
    return Pieces(bucket, own, begin.stored(), stop.stored(), length)


def sums_of_pieces(
    pairs: Node, shift: int, pieces: Pieces, bits: int, values: Node, target: Target
) -> Node:
    """Add up each piece at the places of its bucket: (pieces, places of a bucket)."""
    pair, is_there = pairs_of(pairs, pieces)
    key = pair.binary("shift_right", shift) if shift else pair
    number = key.binary("bitwise_and", (1 << bits) - 1)
    number = is_there.where(number.cast(int32), 1 << bits)
    if shift:
        low = pair.binary("bitwise_and", LOW)
        each = bitcast(low.cast(uint32), values.dtype)
    else:
        each = values.reshape((1, 1)).expand(pair.shape)
    return summed_in_bins(each, number, 1 << bits, target, values.dtype)


def pairs_of(pairs: Node, pieces: Pieces) -> tuple[Node, Node]:
    """Read the pairs of each piece (pieces, length), and tell which are there."""
    wide = pieces.begin.size, pieces.length
    count, _ = wide
    begin = pieces.begin.reshape((count, 1)).expand(wide)
    place = begin + begin.iota(1, int32)
    stop = pieces.stop.reshape((count, 1)).expand(wide)
    is_there = place.binary("less", stop)
    place = is_there.where(place, 0)
    return pairs.gather((place,), (0,)), is_there
