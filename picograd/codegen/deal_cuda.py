"""Loops over the points that a block of a persistent loop runs, by how they are dealt."""

from collections.abc import Iterator
from contextlib import contextmanager

from picograd.codegen.block_cuda import Block
from picograd.codegen.tile_pipeline import Persistent, Shares
from picograd.dtype import bool_
from picograd.helpers import ceil_div, product
from picograd.schedule.index import Axis, Index, axis_index, flatten, unflatten


@contextmanager
def points(block: Block, step: Persistent, team: int) -> Iterator[None]:
    """Open the loop of a team over its points."""
    if step.is_dealt:
        loop = dealt_points(block, step)
    elif step.shares is not None:
        loop = shared_points(block, step, step.shares, team)
    else:
        loop = whole_points(block, step, team)
    with loop:
        yield


def bind_point(block: Block, axes: tuple[Axis, ...], place: Index) -> None:
    """Bind the axes of a point by its position."""
    shape = tuple(axis.size for axis in axes)
    indices = unflatten(place, shape)
    for axis, index in zip(axes, indices, strict=True):
        value = block.emitter.index(index)
        block.emitter.bind(axis, value)


@contextmanager
def whole_points(block: Block, step: Persistent, team: int) -> Iterator[None]:
    """Open the loop over points that are dealt in turn."""
    emitter, blocks = block.emitter, step.block.size
    count = product(axis.size for axis in step.points)
    flat = Axis("point", count)
    width = emitter.integer(blocks)
    skipped = emitter.arithmetic("mul", team, width)
    own = emitter.axis_value(step.block)
    first = emitter.arithmetic("add", own, skipped)
    stop = emitter.integer(flat.size)
    stride = blocks * step.teams.count
    with emitter.loop(first, stop, stride, None) as variable:
        emitter.bind(flat, variable)
        bind_point(block, step.points, axis_index(flat))
        yield


@contextmanager
def dealt_points(block: Block, step: Persistent) -> Iterator[None]:
    """Open the loop over points that are dealt in rounds, forth and back."""
    emitter, blocks, rounds = block.emitter, step.block.size, step.rounds
    groups, *inner = step.points
    count = product(axis.size for axis in inner)
    turn = Axis("turn", groups.size * rounds)
    place = Axis("point", rounds * blocks)
    with emitter.axis_loop(turn, None):
        number = axis_index(turn)
        turned = (axis_index(step.block) + number // 2 * step.shift) % blocks
        own = emitter.index(turned)
        back = emitter.index(turned * -1 + (blocks - 1))
        parity = emitter.index(number % 2)
        one = emitter.integer(1)
        is_back = emitter.raw("equal", bool_, parity, one)
        position = emitter.raw("where", emitter.index_dtype, is_back, back, own)
        first = emitter.index(number % rounds * blocks)
        value = emitter.arithmetic("add", first, position)
        emitter.bind(place, value)
        inside = axis_index(place), 0, count - 1
        is_there = emitter.conditions([inside])
        with emitter.when(is_there):
            group = emitter.index(number // rounds)
            emitter.bind(groups, group)
            bind_point(block, tuple(inner), axis_index(place))
            yield


def stretch(block: Block, step: Persistent, shares: Shares) -> tuple[Index, Index]:
    """Bind the first of the steps of all points that a block has, and where they stop."""
    emitter, blocks = block.emitter, step.block.size
    own = axis_index(step.block)
    count = product(axis.size for axis in step.points)
    steps = count * shares.depth
    bounds = Axis("low", steps + 1), Axis("high", steps + 1)
    for axis, place in zip(bounds, (own, own + 1), strict=True):
        value = emitter.index(place * steps // blocks)
        emitter.bind(axis, value)
    low, high = map(axis_index, bounds)
    return low, high


@contextmanager
def shared_points(block: Block, step: Persistent, shares: Shares, team: int) -> Iterator[None]:
    """Open the loop of a team over the points that a block has steps of, the last one first."""
    emitter, depth = block.emitter, shares.depth
    dtype = emitter.index_dtype
    low, high = stretch(block, step, shares)
    last = (high - 1) // depth
    count = product(axis.size for axis in step.points)
    turn = Axis("turn", ceil_div(count, step.block.size) + 1)
    flat = Axis("point", count)
    turns = emitter.index(last - low // depth + 1)
    with emitter.loop(team, turns, step.teams.count, None) as variable:
        emitter.bind(turn, variable)
        point = emitter.index(last - axis_index(turn))
        emitter.bind(flat, point)
        start = axis_index(flat) * depth
        begin = emitter.index(low - start)
        end = emitter.index(high - start)
        least, most = emitter.integer(0), emitter.integer(depth)
        first = emitter.raw("maximum", dtype, begin, least)
        stop = emitter.raw("minimum", dtype, end, most)
        emitter.bind(shares.first, first)
        emitter.bind(shares.stop, stop)
        bind_point(block, step.points, axis_index(flat))
        yield


def steps_before(block: Block, step: Persistent, shares: Shares) -> int:
    """Count the steps of later points, which a block runs before those of the present one."""
    emitter = block.emitter
    shape = tuple(axis.size for axis in step.points)
    _, high = stretch(block, step, shares)
    places = [axis_index(axis) for axis in step.points]
    point = flatten(places, shape)
    after = emitter.index(high - (point + 1) * shares.depth)
    least = emitter.integer(0)
    return emitter.raw("maximum", emitter.index_dtype, after, least)
