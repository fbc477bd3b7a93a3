"""Index maps of views: from the indices of a view's element to those of its input's element."""

from collections.abc import Callable, Iterator
from functools import lru_cache

from picograd.errors import internal
from picograd.graph.node import Node
from picograd.helpers import ceil_div
from picograd.schedule.index import (
    Axis,
    Index,
    Indices,
    axis_index,
    constant,
    flatten,
    substitute,
    unflatten,
)
from picograd.schedule.loop import Condition

Position = Callable[[int, int], Index]
Source = Callable[[Node, Indices, Position], Indices]
SOURCES: dict[str, Source] = {}  # by op, filled by `lowers`
Block = tuple[slice, slice, tuple[Axis, ...], Indices]  # dimensions before and after a reshape
SHAPES_KEPT = 1024


def plain_position(start: int, room: int) -> Index:
    """Where a slice begins, or how far a pad moves: a number that is code."""
    return constant(start)


def view_source(node: Node, indices: Indices, position: Position = plain_position) -> Indices:
    """Indices into the input of a view (any view but pad); `position` reads where slices begin."""
    source = SOURCES.get(node.op)
    if source is None:
        internal(f"{node.op} is no view", node)
    return source(node, indices, position)


def lowers(op: str) -> Callable[[Source], Source]:
    """Name the view whose index map a function is: the column of its row that is made here."""

    def note(function: Source) -> Source:
        SOURCES[op] = function
        return function

    return note


@lowers("reshape")
def reshape_indices(node: Node, indices: Indices, position: Position) -> Indices:
    """The element of the same number in row-major order."""
    return reshape_source(node.inputs[0].shape, node.shape, indices)


@lowers("permute")
def permute_indices(node: Node, indices: Indices, position: Position) -> Indices:
    """The indices in the order of the input's axes."""
    before: list[Index] = [constant(0)] * len(indices)
    for number, axis in enumerate(node.arg):
        before[axis] = indices[number]
    return tuple(before)


@lowers("expand")
def expand_indices(node: Node, indices: Indices, position: Position) -> Indices:
    """The only element of an axis that is repeated."""
    pairs = zip(indices, node.inputs[0].shape, strict=True)
    return tuple(constant(0) if size == 1 else index for index, size in pairs)


@lowers("slice")
def slice_indices(node: Node, indices: Indices, position: Position) -> Indices:
    """start + index * step."""
    found = []
    for index, size, cut in zip(indices, node.inputs[0].shape, node.arg, strict=True):
        start, _, step = cut
        last = max(len(range(*cut)) - 1, 0) * step
        found.append(index * step + position(start, size - last - 1))
    return tuple(found)


@lowers("flip")
def flip_indices(node: Node, indices: Indices, position: Position) -> Indices:
    """The last index less this one."""
    sizes = enumerate(zip(indices, node.shape, strict=True))
    return tuple(i * -1 + (n - 1) if d in node.arg else i for d, (i, n) in sizes)


@lowers("window")
def window_indices(node: Node, indices: Indices, position: Position) -> Indices:
    """window * stride + element * dilation, along each windowed axis."""
    rank = len(node.inputs[0].shape)
    found = list(indices[:rank])
    for number, (axis, _, stride, dilation) in enumerate(node.arg):
        found[axis] = indices[axis] * stride + indices[rank + number] * dilation
    return tuple(found)


def reshape_source(source: tuple[int, ...], target: tuple[int, ...], indices: Indices) -> Indices:
    """Indices before a reshape, worked out for each block of dimensions by itself."""
    if 0 in source:
        return tuple(constant(0) for _ in source)
    found: list[Index] = []
    for before, after, axes, places in placed_blocks(source, target):
        sizes, block = target[after], indices[after]
        if not axes:
            wide = (index for index, size in zip(block, sizes, strict=True) if size != 1)
            found += [constant(0) if n == 1 else next(wide) for n in source[before]]
        elif places:
            given = dict(zip(axes, block, strict=True))  # which is inside where guards hold
            found += [substitute(place, given) for place in places]
        else:
            bounded = [within(index, size) for index, size in zip(block, sizes, strict=True)]
            found += unflatten(flatten(bounded, sizes), source[before])
    return tuple(found)


@lru_cache(SHAPES_KEPT)
def placed_blocks(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[Block, ...]:
    """Cut two shapes into blocks, with places before a reshape over axes of what is after it.

    There are no axes where only dimensions of one element come or go, and no places where those
    are quotients.
    """
    found: list[Block] = []
    for before, after in reshape_blocks(source, target):
        sizes = target[after]
        if [n for n in source[before] if n != 1] == [n for n in sizes if n != 1]:
            found.append((before, after, (), ()))
            continue
        axes = tuple([Axis("inside", size) for size in sizes])
        places = unflatten(flatten(map(axis_index, axes), sizes), source[before])
        is_affine = all(isinstance(atom, Axis) for place in places for atom, _ in place.terms)
        found.append((before, after, axes, places if is_affine else ()))
    return tuple(found)


def within(index: Index, size: int) -> Index:
    """The same index with known bounds: it lies in 0..size-1 wherever the guards around it hold."""
    return index if index.lo >= 0 and index.hi < size else index % size


def reshape_blocks(
    source: tuple[int, ...], target: tuple[int, ...]
) -> Iterator[tuple[slice, slice]]:
    """Cut both shapes into the smallest blocks of dimensions with equal numbers of elements."""
    i = j = 0
    while i < len(source) or j < len(target):
        first_i, first_j = i, j
        have, want = 1, 1
        while have != want or (i == first_i and j == first_j):
            if i < len(source) and (have <= want or j == len(target)):
                have, i = have * source[i], i + 1
            else:
                want, j = want * target[j], j + 1
        yield slice(first_i, i), slice(first_j, j)


def pad_source(
    node: Node, indices: Indices, position: Position = plain_position
) -> tuple[Indices, tuple[Condition, ...]]:
    """Indices before a pad, and the tests that hold inside."""
    found, tests = [], []
    source = node.inputs[0].shape
    for index, (low, high), size in zip(indices, node.arg[0], source, strict=True):
        moved = index - position(low, low + high)
        found.append(moved)
        if low or high:
            tests.append((moved, 0, size - 1))
    return tuple(found), tuple(tests)


def fold_source(
    node: Node, indices: Indices, shape: tuple[int, ...]
) -> tuple[Indices, tuple[Condition, ...], tuple[Axis, ...]]:
    """Indices into a fold's input, the tests that hold there, and the axes to sum over.

    With dilation 1 an element k of window o lies at p = o * stride + k, so k = p % stride + stride
    * j and o = p // stride - j: only ceil(kernel / stride) values of j need a look.
    """
    rows = node.arg[0]
    rank = len(indices)
    found = list(indices) + [constant(0)] * len(rows)
    tests: list[Condition] = []
    axes: list[Axis] = []
    for number, (axis, kernel, stride, dilation) in enumerate(rows):
        at, count = indices[axis], shape[axis]
        steps = ceil_div(kernel, stride) if dilation == 1 else kernel
        j = Axis(f"j{number}", steps)
        axes += [j] if steps != 1 else []
        if dilation == 1:
            window, element = (at // stride - axis_index(j), at % stride + axis_index(j) * stride)
        else:
            element = axis_index(j)
            moved = at - element * dilation
            window = moved // stride
            tests.append((moved % stride, 0, 0))
        found[axis], found[rank + number] = window, element
        tests += [(window, 0, count - 1), (element, 0, kernel - 1)]
    return tuple(found), tuple(tests), tuple(axes)
