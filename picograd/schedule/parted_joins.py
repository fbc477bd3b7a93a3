"""parted_joins: rows that join scores and others are worked on piece by piece.

    softmax(cat([s, t]))[..., :-1] @ v    ->    m = maximum(max(s), t);  e = exp(s - m)
                                                e / (sum(e) + exp(t - m)) @ v

A join that nobody reads whole, only what reduces it and what cuts pieces out of it, is nowhere:
scores are products as any others, which may stream. Its gradients are padded with zeros, and cut.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from itertools import chain

from picograd.graph import build
from picograd.graph.bounded import EndedNode
from picograd.graph.node import Node, is_cut
from picograd.graph.row import EXPONENTIALS, NUMBERS, OPS, POSITIONS, VIEWS, Role, ops_of
from picograd.late_methods import dataclass
from picograd.schedule.monoid import COMBINE
from picograd.schedule.scores import CONTRACTIONS, is_seed
from picograd.schedule.weighted_sums import number_of, replaced
from picograd.target import Target

REDUCTIONS = ops_of(Role.REDUCE)
BETWEEN = (Role.ELEMENTWISE, Role.VIEW, Role.PASS)
Range = tuple[int, int]
Found = tuple[int, tuple[Range, Range], tuple[Node, Node]]


@dataclass(eq=False, slots=True)
class Join:
    """Joins along an axis at the same place, and who reads what is made of them."""

    axis: int
    pieces: tuple[Range, Range]
    parts: dict[int, tuple[Node, Node]] = field(default_factory=dict)  # of each, by identity
    readers: list[Node] = field(default_factory=list)
    has_power: bool = False
    is_whole: bool = False  # somebody reads all of one
    known: dict[tuple[int, Range], Node] = field(default_factory=dict)


def part_joins(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Take joins of scores apart; `order` lists inputs first."""
    found = find_joins(order)
    if not found:
        return list(roots)
    follow(found, roots, order)
    new: dict[int, Node] = {}
    for join in found:
        if join.is_whole or not join.has_power:
            continue
        for reader in join.readers:
            new[id(reader)] = parted(reader, join)
    return replaced(roots, order, new) if new else list(roots)


def find_joins(order: Sequence[Node]) -> list[Join]:
    """List the joins of two pieces of which one is made of scores, by where they are joined.

    Scores that are padded are joined with a number.
    """
    present = {node.op for node in order}
    if present.isdisjoint(EXPONENTIALS):
        return []
    padding = {op for op in present & VIEWS if not OPS[op].is_showing}
    choosing = {op for op in present if OPS[op].linear == (1, 2)}
    wanted = padding | choosing
    plain = [node for node in order if node.op in wanted and is_to_make(node)]
    padded = [node for node in plain if node.op in padding]
    if not padded:
        return []
    sources = chain.from_iterable(node.inputs for node in padded)
    scores = made_of_products(order, sources)
    every: dict[tuple[int, tuple[Range, Range], tuple[int, ...]], Join] = {}
    scored: dict[Join, None] = {}  # in the order of their nodes
    for node in plain:
        found = join_of(node) if node.row.linear == (1, 2) else padded_of(node, scores)
        if found is None:
            continue
        axis, pieces, parts = found
        key = axis, pieces, node.shape
        join = every.setdefault(key, Join(axis, pieces))
        join.parts[id(node)] = parts
        count = sum(id(part) in scores for part in parts)
        join.is_whole |= count > 1  # which stream by themselves, but for what they share
        if count:
            scored[join] = None
    return list(scored)


def is_to_make(node: Node) -> bool:
    """Tell whether a node is not in memory, and of one size."""
    return node.realized is None and type(node) is Node


def made_of_products(order: Sequence[Node], sources: Iterable[Node]) -> set[int]:
    """Find products that may be scores, and what is made of each of their elements; among some
    sources, and what is below these."""
    asked = set(map(id, sources))
    for node in reversed(order):
        if id(node) in asked and node.row.role in BETWEEN:
            asked.update(map(id, node.inputs))
    found: set[int] = set()
    for node in [node for node in order if id(node) in asked]:
        if node.op in CONTRACTIONS:
            is_made = is_seed(node)
        elif found.isdisjoint(map(id, node.inputs)) or node.row.role not in BETWEEN:
            continue
        else:
            made = [each for each in node.inputs if id(each) in found]
            is_made = any(each.size == node.size for each in made)
        if is_made and node.realized is None:
            found.add(id(node))
    return found


def join_of(node: Node) -> Found | None:
    """Read a choice by position between two padded arrays as a join."""
    condition, low, high = node.inputs
    if not (is_padded(low) and is_padded(high)) or condition.row.least != 1:
        return None
    place, count = condition.inputs
    if place.op not in POSITIONS:
        return None
    axis, start = place.arg, number_of(count)
    size = node.shape[axis]
    before, after = pads_along(low, axis), pads_along(high, axis)
    if before != (0, size - start) or after != (start, 0):
        return None
    pieces = (0, start), (start, size)
    return axis, pieces, (low.inputs[0], high.inputs[0])


def padded_of(node: Node, scores: Collection[int]) -> Found | None:
    """Read scores that are padded at one end of an axis as a join with a number."""
    if not is_padded(node) or id(node.inputs[0]) not in scores:
        return None
    (source,) = node.inputs
    pads, fill = node.arg
    ends = [axis for axis, pair in enumerate(pads) if any(pair)]
    axis = ends[0]
    low, high = pads[axis]
    if len(ends) > 1 or (low and high):
        return None
    size = node.shape[axis]
    start = low or size - high
    pieces = (0, start), (start, size)
    shape = with_size(node.shape, axis, low or high)
    beside = build.const(fill, shape, node.dtype, node.device)
    parts = (beside, source) if low else (source, beside)
    return axis, pieces, parts


def with_size(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """Give an axis of a shape another size."""
    sizes = list(shape)
    sizes[axis] = size
    return tuple(sizes)


def is_padded(node: Node) -> bool:
    """Tell whether a node is an array with something around it."""
    if node.realized is not None or node.op not in VIEWS:
        return False
    return not node.row.is_showing


def pads_along(node: Node, axis: int) -> Range | None:
    """Tell by how much an axis is padded; None if others are."""
    pads, _ = node.arg
    others = [pair for number, pair in enumerate(pads) if number != axis]
    return None if any(map(any, others)) else pads[axis]


def follow(joins: Sequence[Join], roots: Sequence[Node], order: Sequence[Node]) -> None:
    """Find what is made of joins, and who reads that."""
    homes = {key: join for join in joins for key in join.parts}
    for node in order:
        if node.realized is not None:
            continue
        for child in node.inputs:
            join = homes.get(id(child))
            if join is not None:
                look(join, node, child, homes)
    for root in roots:
        join = homes.get(id(root))
        if join is not None:
            join.is_whole = True


def look(join: Join, node: Node, child: Node, homes: dict[int, Join]) -> None:
    """Look at one who reads what is made of a join."""
    role = node.row.role
    if role in (Role.ELEMENTWISE, Role.PASS) and not node.row.is_stored:
        other = homes.setdefault(id(node), join)
        if other is not join or type(node) is EndedNode:
            join.is_whole = other.is_whole = True
        join.has_power |= node.op in EXPONENTIALS
    elif is_reader(node, join):
        join.readers.append(node)
    else:
        join.is_whole = True


def is_reader(node: Node, join: Join) -> bool:
    """Tell whether a node reduces the axis of a join, or cuts a piece out."""
    if node.op in REDUCTIONS:
        return join.axis in node.arg[1]
    return is_cut(node) and is_inside(node, join)


def is_inside(cut: Node, join: Join) -> bool:
    """Tell whether a cut shows elements of one piece, all of its other axes."""
    first, last, step = cut.arg[join.axis]
    wide = [(0, size, 1) for size in cut.inputs[0].shape]
    wide[join.axis] = cut.arg[join.axis]
    is_along = list(cut.arg) == wide
    is_piece = any(low <= first and last <= high for low, high in join.pieces)
    return is_piece and step == 1 and is_along


def parted(reader: Node, join: Join) -> Node:
    """Compute what reads all of a join piece by piece."""
    (source,) = reader.inputs
    if reader.op not in REDUCTIONS:
        first, last, _ = reader.arg[join.axis]
        before, behind = join.pieces
        piece = before if last <= before[1] else behind
        found = piece_of(source, piece, join)
        low, _ = piece
        place = first - low, last - low
        return cut_along(found, join.axis, place)
    monoid, axes = reader.arg
    pieces = [piece_of(source, each, join) for each in join.pieces]
    parts = [each.reduce(monoid, axes) for each in pieces]
    first, second = parts
    if monoid == "sum" and 0 in map(number_of, pieces):
        return first if number_of(pieces[1]) == 0 else second
    return first.binary(COMBINE[monoid], second)


def piece_of(node: Node, piece: Range, join: Join) -> Node:
    """Write a node where the places of an axis are in a range."""
    key = id(node), piece
    if key not in join.known:
        join.known[key] = new_piece(node, piece, join)
    return join.known[key]


def new_piece(node: Node, piece: Range, join: Join) -> Node:
    """Write a node that has no form in a range yet."""
    axis, role = join.axis, node.row.role
    first, last = piece
    shape = with_size(node.shape, axis, last - first)
    if node.realized is not None:
        return cut_along(node, axis, piece)
    if node.op in NUMBERS:
        return build.const(node.arg, shape, node.dtype, node.device)
    if node.op in POSITIONS:
        places = build.iota(shape, node.arg, node.device, node.dtype)
        return places + first if node.arg == axis and first else places
    if id(node) in join.parts:
        return join.parts[id(node)][join.pieces.index(piece)]
    if is_padded(node):
        return unpadded(node, piece, join, shape)
    if node.row.is_repeating:
        (source,) = node.inputs
        if source.shape[axis] != 1:
            source = piece_of(source, piece, join)
        return source.expand(shape)
    if role in (Role.ELEMENTWISE, Role.PASS) and not node.row.is_stored:
        inputs = tuple([piece_of(each, piece, join) for each in node.inputs])
        if node.row.linear == (0, 1) and 0 in map(number_of, inputs):
            return build.const(0, shape, node.dtype, node.device)
        return Node(node.op, inputs, node.arg, shape, node.dtype, node.device)
    return cut_along(node, axis, piece)


def unpadded(node: Node, piece: Range, join: Join, shape: tuple[int, ...]) -> Node:
    """Write a piece of a padded array: inside of the array, or beside it."""
    pads = pads_along(node, join.axis)
    first, last = piece
    if pads is not None:
        begin, behind = pads
        end = node.shape[join.axis] - behind
        if last <= begin or end <= first:
            _, fill = node.arg
            return build.const(fill, shape, node.dtype, node.device)
        if begin <= first and last <= end:
            (source,) = node.inputs
            place = first - begin, last - begin
            return cut_along(source, join.axis, place)
    return cut_along(node, join.axis, piece)


def cut_along(node: Node, axis: int, piece: Range) -> Node:
    """Cut a range of an axis out, if it is not all of it."""
    if piece == (0, node.shape[axis]):
        return node
    ranges = [(0, size, 1) for size in node.shape]
    ranges[axis] = (*piece, 1)
    return node.slice(tuple(ranges))
