"""The rows of sorting: `sort` gives the stable permutation that orders an axis, as int64.

`sort` (arg = axis, is_descending) is the op a user records; the sorted values are a gather. It
expands to `sort_keys` (arg = axis, run): the permutation of unsigned integers within runs of an
axis. Elements become keys by their bits: -inf < numbers < inf < NaN (the greatest, as PyTorch), and
-0 equals 0; a descending sort negates the bits, which keeps it stable.

On CUDA a row longer than a block can hold is sorted digit by digit, least significant first. A key
of up to 32 bits and its position are one integer, and each digit takes three steps, all O(n):

    counts = radix_count(x)     how often each tile of the row has each digit (arg = tile, shift)
    counted = scan(counts)      the same in all tiles up to this one, for each digit by itself
    x = radix_move(x, counted)  each element behind those of lower digits, those of its digit in
                                tiles before, and those that its own tile has before it
"""

from dataclasses import replace
from math import isqrt, nan
from typing import Any

import numpy as np

from picograd.dtype import DType, int32, int64, to_dtype, uint8, uint16, uint32, uint64
from picograd.graph.axes import link_same
from picograd.graph.batch_rules import first_next, same
from picograd.graph.bounded import Bounded
from picograd.graph.bounds import place_in_order
from picograd.graph.node import Node, Nodes, constant
from picograd.graph.recurrence import make_body, outcome, placeholder, recur
from picograd.graph.row import BITS, PLACES, POSITIONS, Op, Role, Sizes, table
from picograd.graph.scanning import identity, scan
from picograd.graph.shape import first_shape
from picograd.helpers import ceil_div
from picograd.target import Target

Array = Any
BLOCK_RUN = 4096  # elements a CUDA block sorts in shared memory: 48 KiB with 64-bit keys
RADIX_TILE = 4096  # elements of a block: 16 for each of 256 threads
LOW = (1 << 32) - 1
LEAST_PIECE = 1024  # elements of a row that blocks do not sort in pieces
SHORTEST = 16  # elements of a stretch whose first one is found: a vector


def sort(node: Node, axis: int, is_descending: bool = False) -> Node:
    """Find the stable permutation that orders an axis (not negative)."""
    arg = (axis, is_descending)
    return Node("sort", (node,), arg, node.shape, int64, node.device)


def along(node: Node, index: Node, axis: int) -> Node:
    """Read out[i][j] = node[i][index[i][j]] (axis 1); all other sizes are equal."""
    indices = tuple(index if d == axis else index.iota(d, index.dtype) for d in range(node.rank))
    return node.gather(indices, tuple(range(node.rank)))


def bitcast(node: Node, dtype: DType) -> Node:
    """Read the same bits as another dtype."""
    return Node("bitcast", (node,), dtype, node.shape, dtype, node.device)


def ordered_keys(x: Node, is_descending: bool) -> Node:
    """Map elements to unsigned integers of the same order.

    The bits of a float order like integers if those of a negative number are all negated, and only
    the sign of a positive one: bits ^ (bits >> 31 | sign) for 32 bits.
    """
    if x.dtype.kind == "bool":
        x = x.cast(uint8)
    keys, bits = x, x.dtype.bits
    if x.dtype.kind != "uint":
        sign = -(1 << (bits - 1))
        if x.dtype.is_float:
            plain = x.binary("equal", 0).where(0, x)
            whole = bitcast(plain, to_dtype(f"int{bits}"))
            spread = whole.binary("shift_right", bits - 1)
            whole = whole.binary("bitwise_xor", spread.binary("bitwise_or", sign))
        else:
            whole = x.binary("bitwise_xor", sign)
        keys = bitcast(whole, to_dtype(f"uint{bits}"))
    if x.dtype.is_float:
        keys = x.unary("isnan").where((1 << bits) - 1, keys)
    return keys.unary("bitwise_not") if is_descending else keys


def expand_sort(node: Node, target: Target) -> Node:
    """Sort keys in one step, or digit by digit."""
    x, (axis, is_descending) = node.inputs[0], node.arg
    if node.size == 0 or x.shape[axis] == 1:
        return x.iota(axis)
    return ordered(ordered_keys(x, is_descending), axis, x.dtype.bits, target.has_blocks)


def values_of_keys(keys: Node, dtype: DType, is_descending: bool) -> Node:
    """Give the elements that have these keys; of zeros the sign is lost, and of NaN everything."""
    if is_descending:
        keys = keys.unary("bitwise_not")
    if dtype.kind in ("uint", "bool"):
        return keys.cast(dtype)
    sign = -(1 << (dtype.bits - 1))
    whole = bitcast(keys, to_dtype(f"int{dtype.bits}"))
    if not dtype.is_float:
        return whole.binary("bitwise_xor", sign)
    spread = whole.unary("bitwise_not").binary("shift_right", dtype.bits - 1)
    whole = whole.binary("bitwise_xor", spread.binary("bitwise_or", sign))
    return bitcast(whole, dtype)


def take_sorted(node: Node, target: Target) -> Node:
    """Take the values of a sort from what it sorted, not from where they were.

    That is where a GPU sorts a long row by digits: the keys are there in order. Zeros and NaN alone
    are read at their places.
    """
    x = node.inputs[0]
    found = sort_read(node) if target.has_blocks else None
    if found is None or x.dtype.bits > 32:
        return node
    axis, is_descending = found.arg
    if x.shape[axis] <= BLOCK_RUN:
        return node
    swap = swapped(x.rank, axis)
    keys, order = radix_sorted(ordered_keys(x, is_descending).permute(swap), x.dtype.bits)
    keys = keys.cast(to_dtype(f"uint{x.dtype.bits}"))
    values = values_of_keys(keys, x.dtype, is_descending)
    if x.dtype.is_float:
        is_lost = values.binary("equal", 0).binary("logical_or", values.unary("isnan"))
        place = is_lost.where(order, 0)
        values = is_lost.where(along(x.permute(swap), place, x.rank - 1), values)
    return values.permute(swap)


def sort_read(node: Node) -> Node | None:
    """Find the sort of what a gather reads, by whose order alone it does."""
    x, *indices = node.inputs
    found = None
    for axis, index in zip(node.arg, indices, strict=True):
        is_sort = index.row.expand_on is expand_sort
        if is_sort and index.inputs[0] is x and index.arg[0] == axis:
            found = index
        elif index.op not in POSITIONS or index.arg != axis:
            return None
    is_whole = node.arg == tuple(range(x.rank)) and node.shape == x.shape
    return found if is_whole and found is not None and found.realized is None else None


def swapped(rank: int, axis: int) -> tuple[int, ...]:
    """Give the order of axes in which one of them and the last have changed places."""
    last = rank - 1
    return tuple([{axis: last, last: axis}.get(d, d) for d in range(rank)])


def selected(node: Node, axis: int, count: int, is_largest: bool) -> Node:
    """Find the first `count` elements of the stable order of an axis, one reduction for each.

    A key of up to 32 bits over its position is one number, and no two are equal: the next element
    is the least number beyond the last one. Longer keys take two reductions. Gives positions.
    """
    keys = ordered_keys(node, is_largest)
    if keys.dtype.bits > 32:
        return beside(selected_wide(keys, axis, count), axis)
    pairs = packed(keys, node.iota(axis))
    found = [pairs.reduce("min", (axis,), True)]
    while len(found) < count:
        last = found[-1].expand(pairs.shape)
        rest = last.binary("less", pairs).where(pairs, (1 << 64) - 1)
        found.append(rest.reduce("min", (axis,), True))
    return positions(beside(found, axis))


def selected_wide(keys: Node, axis: int, count: int) -> list[Node]:
    """Find the places of the first keys: the least key behind the last, then where it is first."""
    places, found = keys.iota(axis), []
    least, is_open = keys.reduce("min", (axis,), True), None
    while True:
        wide = least.expand(keys.shape)
        is_here = keys.binary("equal", wide)
        is_here = is_here if is_open is None else is_here.binary("logical_and", is_open)
        found.append(is_here.where(places, keys.shape[axis]).reduce("min", (axis,), True))
        if len(found) == count:
            return found
        is_next = is_here.binary("logical_and", found[-1].expand(keys.shape).binary("less", places))
        is_open = is_next.binary("logical_or", wide.binary("less", keys))
        most = (1 << keys.dtype.bits) - 1
        least = is_open.where(keys, most).reduce("min", (axis,), True)


def beside(found: Nodes, axis: int) -> Node:
    """Put nodes of size 1 along an axis one behind the other."""
    total: Node | None = None
    shape = tuple(len(found) if d == axis else n for d, n in enumerate(found[0].shape))
    for number, each in enumerate(found):
        wide = each.expand(shape)
        is_here = wide.iota(axis).binary("equal", number)
        total = wide if total is None else is_here.where(wide, total)
    return total if total is not None else found[0]


def nth(node: Node, axis: int, rank: int) -> Node:
    """Find the element that `rank` others of an axis come before: its position, size 1 there.

    Its key is the largest number that at most as many keys are below, found bit by bit from the
    top; of equal elements it is the first.
    """
    keys = ordered_keys(node, False)
    keys = keys.stored()
    bits, kind = keys.dtype.bits, keys.dtype
    shape = tuple(1 if d == axis else n for d, n in enumerate(keys.shape))
    ranks = constant(rank, (), int64, keys.device)
    powers = constant(1, (bits,), kind, keys.device)
    powers = powers.binary("shift_left", (powers.iota(0) * -1 + (bits - 1)).cast(kind))
    found = placeholder("carry", shape, kind, keys.device)
    power = placeholder("x", (), kind, keys.device)
    known = placeholder("constant", keys.shape, kind, keys.device)
    limit = placeholder("constant", (), int64, keys.device)
    more = found.binary("bitwise_or", power.broadcast_to(shape))
    below = known.binary("less", more.expand(keys.shape)).cast(int32)
    count = below.reduce("sum", (axis,), True).cast(int64)
    is_above = limit.broadcast_to(shape).binary("less", count)
    body, _ = make_body(([found], [power], [known, limit]), [is_above.where(found, more)], [])
    start = constant(0, shape, kind, keys.device)
    key = outcome(recur(body, bits, False, [start, powers, keys, ranks]), "carry", 0)
    size = keys.shape[axis]
    place = keys.binary("equal", key.expand(keys.shape)).where(keys.iota(axis), size)
    return place.reduce("min", (axis,), True)


def foremost(node: Node, axis: int, count: int, is_largest: bool, in_blocks: bool) -> Node:
    """Find the first `count` elements of the stable order of an axis by sorting few of them.

    An axis is cut into stretches. An element outside the `count` stretches whose first ones come
    first is behind as many elements: those stretches are sorted, in the order they lie in.
    """
    last = node.rank - 1
    swap = swapped(node.rank, axis)
    keys = ordered_keys(node, is_largest).permute(swap)
    size = keys.shape[last]
    length = max(1 << (isqrt(size // count).bit_length() - 1), SHORTEST)
    cut = in_pieces(keys, length)
    cut = cut if in_blocks else cut.stored()
    *rows, stretches, _ = cut.shape
    first = cut.reduce("min", (last + 1,), True).reshape((*rows, stretches))
    chosen = first_few(first, count, in_blocks)
    chosen = along(chosen, first_few(chosen, count, in_blocks), last)
    wide = chosen.reshape((*rows, count, 1)).expand((*rows, count, length))
    few = along(cut, wide, last).reshape((*rows, count * length))
    found = first_few(few, count, in_blocks)
    place = along(chosen, found.binary("floordiv", length), last)
    return (place * length + found.binary("mod", length)).permute(swap)


def in_pieces(keys: Node, length: int) -> Node:
    """Cut the last axis into pieces; behind the last element are keys that come last."""
    *rows, size = keys.shape
    pieces = ceil_div(size, length)
    pads = (*((0, 0) for _ in rows), (0, pieces * length - size))
    return keys.pad(pads, (1 << keys.dtype.bits) - 1).reshape((*rows, pieces, length))


def first_few(keys: Node, count: int, in_blocks: bool) -> Node:
    """Find the first `count` elements of the stable order of the last axis: their positions.

    Blocks of threads sort the pieces of a long row, and then what came first in each.
    """
    *rows, size = keys.shape
    last = len(rows)
    length = min(max(isqrt(size * count), LEAST_PIECE), BLOCK_RUN)
    if not in_blocks or size <= length or 2 * count > length:
        return first_of_rows(keys, count)
    cut = in_pieces(keys, length)
    pieces = cut.shape[last]
    found = first_of_rows(cut, count)
    place = (found.iota(last) * length + found).reshape((*rows, pieces * count))
    few = along(cut.reshape((*rows, pieces * length)), place, last)
    return along(place, first_few(few, count, in_blocks), last)


def first_of_rows(keys: Node, count: int) -> Node:
    """Sort the last axis, and keep the first `count` positions."""
    *rows, _ = keys.shape
    return sort(keys, len(rows)).slice((*((0, n, 1) for n in rows), (0, count, 1)))


def ordered(keys: Node, axis: int, bits: int, in_blocks: bool) -> Node:
    """Sort unsigned keys below 2 ** bits along an axis: the permutation, as int64.

    A block of threads sorts a short row, and long ones go through digits; else a task sorts a row.
    """
    size = keys.shape[axis]
    if not in_blocks or size <= BLOCK_RUN:
        kinds = (uint8, uint16, uint32, uint64)
        keys = keys.cast(next(kind for kind in kinds if bits <= kind.bits))
        return Node("sort_keys", (keys,), (axis, size), keys.shape, int64, keys.device)
    swap = swapped(keys.rank, axis)
    return radix_sorted(keys.permute(swap), bits)[1].permute(swap)


def radix_sorted(keys: Node, bits: int) -> tuple[Node, Node]:
    """Sort keys of up to 64 bits along the last axis: up to 32 of each, and the permutation.

    The low half of longer keys is sorted; the high half follows, in the order that this gave.
    """
    if bits <= 32:
        return sorted_pairs(keys, keys.iota(keys.rank - 1), bits)
    low = keys.cast(uint64).binary("bitwise_and", LOW)
    _, order = sorted_pairs(low, keys.iota(keys.rank - 1), 32)
    high = along(keys.binary("shift_right", 32), order, keys.rank - 1)
    return sorted_pairs(high, order, bits - 32)


def packed(key: Node, position: Node, shift: int = 32, dtype: DType = uint64) -> Node:
    """Put a key over a position."""
    high = key.cast(dtype).binary("shift_left", shift)
    return high.binary("bitwise_or", position.cast(dtype))


def positions(pairs: Node, shift: int = 32) -> Node:
    """Take the positions of pairs."""
    return pairs.binary("bitwise_and", (1 << shift) - 1).cast(int64)


def sorted_pairs(keys: Node, order: Node, bits: int) -> tuple[Node, Node]:
    """Sort the last axis by keys of so many bits, one digit at a time: the keys, and their order.

    A pair has 32 bits if key and position fit into them: half as much is moved.
    """
    size = keys.shape[-1]
    width = max(size - 1, 1).bit_length()
    shift, dtype = (width, uint32) if width + bits <= 32 else (32, uint64)
    pairs = packed(keys, order, shift, dtype)
    for place in range(shift, shift + bits, 8):
        pairs, _ = moved(pairs, pairs, place, place)
    return pairs.binary("shift_right", shift).cast(uint32), positions(pairs, shift)


def moved(pairs: Node, keys: Node, digit: int, place: int) -> tuple[Node, Node]:
    """Sort the last axis by one digit, at a place of the pairs: also as a digit of their keys.

    Gives the pairs, and how often each digit occurs in tiles up to each one (..., 256, tiles).
    """
    *rows, size = pairs.shape
    tiles = ceil_div(size, RADIX_TILE)
    cells = (*rows, 256 * tiles)
    counts = Node("radix_count", (keys,), (RADIX_TILE, digit), cells, int32, keys.device)
    counted = scan(counts.reshape((*rows, 256, tiles)), "sum", len(rows) + 1)
    inputs, arg = (pairs, counted.reshape(cells)), (RADIX_TILE, place)
    return Node("radix_move", inputs, arg, pairs.shape, pairs.dtype, pairs.device), counted


def digits_of(node: Node, pairs: Array) -> tuple[Array, Array]:
    """Digit of each element, and the number of its tile."""
    tile, shift = node.arg
    digit = (pairs.astype(np.uint64) >> np.uint64(shift)).astype(np.int64) % 256
    return digit, np.broadcast_to(np.arange(pairs.shape[-1]) // tile, pairs.shape)


def radix_count(node: Node, pairs: Array) -> Array:
    """Count the digits of every tile: digits outside, tiles inside."""
    digit, tile = digits_of(node, pairs)
    counts: Array = np.zeros(node.shape, np.int32)
    *rows, _ = np.indices(pairs.shape, sparse=True)
    np.add.at(counts, (*rows, digit * (node.shape[-1] // 256) + tile), 1)
    return counts


def starts_of(counted: Array, counts: Array) -> Array:
    """Find where the elements of each digit and tile begin (..., 256, tiles)."""
    every = counted[..., -1].astype(np.int64)
    lower: Array = np.cumsum(every, axis=-1) - every
    return lower[..., None] + counted - counts


def radix_move(node: Node, pairs: Array, counted: Array) -> Array:
    """Move every element to the start of its digit and tile, plus its rank there."""
    digit, tile = digits_of(node, pairs)
    tiles = counted.shape[-1] // 256
    out = np.empty_like(pairs)
    for row in np.ndindex(pairs.shape[:-1]):
        until, moved = counted[row].reshape(256, tiles).astype(np.int64), out[row]
        counts = np.diff(until, axis=-1, prepend=0)
        place = starts_of(until, counts).reshape(-1)
        for pair, cell in zip(pairs[row], digit[row] * tiles + tile[row], strict=True):
            moved[place[cell]] = pair
            place[cell] += 1
    return out


def sort_keys(node: Node, keys: Array) -> Array:
    """Sort every run by itself."""
    axis, run = node.arg
    out: Array = np.empty(node.shape, np.int64)
    turned, rows = np.moveaxis(out, axis, 0), np.moveaxis(keys, axis, 0)
    for first in range(0, len(rows), run):
        order = np.argsort(rows[first : first + run], axis=0, kind="stable")
        turned[first : first + run] = order + first
    return out


def bound_sort(graph: Bounded, node: Node) -> Node:
    """Sort what there is to the front: the greatest values lie beyond, and equal ones stay."""
    (x,), (axis, is_descending) = graph.inputs(node), node.arg
    if graph.axes.is_dynamic(node, axis):
        graph.need_plain(node, axis)
        last = identity("max" if is_descending else "min", x.dtype)
        if x.dtype.is_float and not is_descending:
            last = nan
        x = graph.mask(node, x, [axis], last)
    return graph.same(node, [x])


SORT_ROWS = table(
    Op("sort", Role.COMPOSITE, 1, PLACES, expand_on=expand_sort, shape=first_shape,
        batch_arg=first_next, sizes=Sizes(link_same, bound_sort, is_whole=True),
        bounds=place_in_order),
    Op("sort_keys", Role.SORT, 1, replace(BITS, gives=int64), sort_keys, hero="sort",
        shape=first_shape, batch_arg=first_next, bounds=place_in_order),
    Op("radix_count", Role.SORT, 1, replace(BITS, gives=int32), radix_count, hero="radix",
        shape=lambda arg, x: (*x[:-1], 256 * ceil_div(x[-1], arg[0])), batch_arg=same),
    Op("radix_move", Role.SORT, 2, BITS, radix_move, hero="radix", shape=first_shape, data=(0, 1),
        batch_arg=same),
)  # fmt: skip
