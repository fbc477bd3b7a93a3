"""The rules of bounded graphs that rows name: what is computed where sizes vary up to a bound.

A rule gets the graph that is made and a node of the one that was recorded, and gives the bounded
form of the node; graph/bounded.py says what that is.

Bounds: how large each dynamic axis may grow before another plan is made for it.

A bound is a power of two, so that a size that grows to n meets log(n) of them. Where one size
follows from another, so does its bound:
64 rows of 3 elements are 192.
"""

from collections.abc import Mapping, Sequence
from math import lcm

from picograd.dtype import bool_, int64
from picograd.graph.axes import Axes, Degenerate, NoRule, Part, Parts, memory_of
from picograd.graph.bounded import (
    Bounded,
    End,
    clamped,
    ended,
    fit,
    fit_all,
    read_along,
    vector,
    wide,
    zero,
)
from picograd.graph.node import Node, is_cut
from picograd.graph.random import HALF_BITS, HALVES
from picograd.graph.recurrence import stacked_inputs
from picograd.graph.row import POSITIONS, Role
from picograd.graph.shape import conv_sizes, span, window_count
from picograd.helpers import ceil_div, product


def bounded(axes: Axes, bounds: dict[int, int]) -> Bounded:
    """Make the bounded form of a graph."""
    graph = Bounded(axes, bounds)
    graph.run()
    return graph


def bound_const(graph: Bounded, node: Node) -> Node:
    """A number that varies with the sizes is a scalar of the call."""
    shape = graph.shape(node)
    if not graph.varies(node, -1):
        return Node("const", (), node.arg, shape, node.dtype, node.device)
    if node.dtype is bool_:
        raise NoRule("a bool that varies with the sizes")
    return graph.scalar(node, (), shape, node.dtype)


def bound_iota(graph: Bounded, node: Node) -> Node:
    """Count as far as the bound."""
    made = Node("iota", (), node.arg, graph.shape(node), int64, node.device)
    return own_place(graph, node, node.arg, made)[0].cast(node.dtype)


def own_place(graph: Bounded, node: Node, axis: int, place: Node) -> tuple[Node, Node]:
    """Turn places along a bounded axis into those without bounds; gives the size, too."""
    parts = graph.axes.parts_of(node, axis)
    step, found = place.const_like(1), place.const_like(0)
    for at in reversed(range(len(parts))):
        own, bound = graph.factor(parts[at], place)
        here = place.binary("mod", bound) if at else place
        found, step = found + here * step, step * own
        if at:
            place = place.binary("floordiv", bound)
    return found, step


def bound_random(graph: Bounded, node: Node) -> Node:
    """Draw to the bound, each element at the counter that it has without bounds."""
    (offset, seed), shape = graph.inputs(node), graph.shape(node)
    varying = graph.axes.dynamic_axes(node)
    if varying != [0] or graph.axes.find(node, 0) in graph.axes.parts:
        counter = wide(offset, shape).cast(int64)
        counter = counter * HALVES if node.arg == HALF_BITS else counter
        step = counter.const_like(1)
        for axis in reversed(range(len(shape))):
            place, size = own_place(graph, node, axis, counter.iota(axis))
            counter, step = counter + place * step, step * size
        offset = counter
    return Node("random_bits", (offset, seed), node.arg, shape, node.dtype, node.device)


def bound_assign(graph: Bounded, node: Node) -> Node:
    """The new value of memory of a varying size is copied there after the run."""
    value = graph.made[id(node.inputs[1])]
    target = node
    while target.row.role is Role.WRITE and target.realized is None:
        target = target.inputs[0]
    buffer = memory_of(target)
    if buffer is None:
        raise NoRule("an assignment to what has no memory")
    value = value.stored()
    value = ended(value, graph.ends(node, graph.axes.dynamic_axes(node)))
    graph.written.append((buffer, node, value))
    return value


def bound_permute(graph: Bounded, node: Node) -> Node:
    """Reorder the axes."""
    (x,) = graph.inputs(node)
    return Node("permute", (x,), node.arg, graph.shape(node), node.dtype, node.device)


def bound_same(graph: Bounded, node: Node) -> Node:
    """Pass on the elements that there are."""
    return graph.same(node, graph.inputs(node))


def bound_expand(graph: Bounded, node: Node) -> Node:
    """Repeat up to the bound."""
    shape = graph.shape(node)
    return Node("expand", tuple(graph.inputs(node)), shape, shape, node.dtype, node.device)


def bound_flip(graph: Bounded, node: Node) -> Node:
    """Read a varying axis from its last element on."""
    (x,) = graph.inputs(node)
    x = x.flip(tuple(axis for axis in node.arg if not graph.axes.is_dynamic(node, axis)))
    for axis in node.arg:
        if graph.axes.is_dynamic(node, axis):
            graph.need_plain(node, axis)
            size = x.shape[axis]
            count = graph.size(graph.axes.find(node, axis), (size,), x.device)
            x = read_along(x, clamped(count - 1 - vector(size, x.device), size), axis)
    return x


def bound_reshape(graph: Bounded, node: Node) -> Node:
    """Merge and split: layouts of the same factors, or of which the first elements are valid."""
    (x,), source = graph.inputs(node), node.inputs[0]
    axes = graph.axes
    inner, outer = list(x.shape), list(graph.shape(node))
    for ins, outs in axes.groups(node):
        before = flat_parts(axes, source, ins)
        after = flat_parts(axes, node, outs)
        if before == after:
            continue
        if not (is_prefix(before) and is_prefix(after)):
            raise NoRule("a reshape of several axes to several")
        rest = product(inner[a] for a in ins[1:])
        other = product(outer[a] for a in outs[1:])
        step = lcm(rest, other)
        count = ceil_div(outer[outs[0]] * other, step)
        inner[ins[0]] = count * step // rest
        outer[outs[0]] = count * step // other
    x = fit_all(x, tuple(inner))
    if product(inner) != product(outer):
        raise NoRule("a reshape of an axis that varies")
    return fit_all(x.reshape(tuple(outer)), graph.shape(node))


def flat_parts(axes: Axes, node: Node, which: Sequence[int]) -> Parts:
    """List the factors of several axes, those of a fixed size that lie together as one."""
    found: list[Part] = []
    for axis in which:
        for part in axes.parts_of(node, axis):
            last = found[-1] if found else None
            if isinstance(part, int) and isinstance(last, int):
                found[-1] = last * part
            elif part != 1:
                found.append(part)
    return tuple(found)


def is_prefix(parts: Parts) -> bool:
    """Tell whether what is valid comes first: no factor but the first one varies."""
    return not any(isinstance(part, tuple) for part in parts[1:])


def bound_slice(graph: Bounded, node: Node) -> Node:
    """Cut where the range starts in this call."""
    (x,), shape = graph.inputs(node), graph.shape(node)
    number, partial = (graph.axes.numbers[id(node)], graph.axes.changes.partial)
    ranges = [(0, size, 1) for size in x.shape]
    moved = []
    for axis, (start, _, step) in enumerate(node.arg):
        if (number, axis) not in partial:
            continue
        graph.need_plain(node.inputs[0], axis)
        graph.need_plain(node, axis)
        if graph.moves(node, axis, start):
            moved.append((axis, step))
            continue
        count = min(shape[axis], max(-(-(x.shape[axis] - start) // step), 1))
        ranges[axis] = (start, start + (count - 1) * step + 1, step)
    x = x.slice(tuple(ranges))
    for axis, step in moved:
        first = graph.scalar(node, (axis, 0), (shape[axis],))
        positions = vector(shape[axis], x.device) * step + first
        x = read_along(x, clamped(positions, x.shape[axis]), axis)
    return fit_all(x, shape)


def bound_pad(graph: Bounded, node: Node) -> Node:
    """Fill before and after the elements that there are."""
    (x,), shape = graph.inputs(node), graph.shape(node)
    pads, fill = node.arg
    for axis, (low, high) in enumerate(pads):
        if not (low or high) and x.shape[axis] == shape[axis]:
            continue
        if min(low, high) < 0:
            raise NoRule("a pad that cuts an axis that varies")
        source, is_moved = node.inputs[0], graph.moves(node, axis, low)
        size = shape[axis]
        is_dynamic = graph.axes.is_dynamic(source, axis)
        if is_dynamic:
            graph.need_plain(source, axis)
        graph.need_plain(node, axis)
        if is_moved:
            first = graph.scalar(node, (0, axis, 0), (size,))
            positions = vector(size, x.device) - first
            x = read_along(x, clamped(positions, x.shape[axis]), axis)
        else:
            after = max(size - low - x.shape[axis], 0)
            x = x.pad(one_pad(x, axis, low, after), fill)
            x = fit(x, axis, size) if x.shape[axis] > size else x
        if is_moved or (is_dynamic and high):
            place = x.iota(axis)
            begin = graph.scalar(node, (0, axis, 0), x.shape)
            count = graph.axes.bases[graph.axes.numbers[id(source)]] + axis
            end = begin + graph.size(count, x.shape, x.device)
            inside = place.binary("less", end)
            if is_moved:
                is_after = begin.binary("less_equal", place)
                inside = inside.binary("logical_and", is_after)
            x = inside.where(x, fill)
    return x


def one_pad(node: Node, axis: int, low: int, high: int) -> tuple[tuple[int, int], ...]:
    """List the pads of one axis."""
    return tuple((low, high) if a == axis else (0, 0) for a in range(len(node.shape)))


def bound_window(graph: Bounded, node: Node) -> Node:
    """Slide windows over the bound; those beyond the number of windows nobody looks at."""
    (x,) = graph.inputs(node)
    for window in node.arg:
        if graph.axes.is_dynamic(node.inputs[0], window[0]):
            graph.need_plain(node.inputs[0], window[0])
    return fit_all(x.window(node.arg), graph.shape(node))


def bound_fold(graph: Bounded, node: Node) -> Node:
    """Sum the windows that there are."""
    (x,), source = graph.inputs(node), node.inputs[0]
    windows, shape = node.arg[0], graph.shape(node)
    counted = [window[0] for window in windows]
    dynamic = [axis for axis in counted if graph.axes.is_dynamic(source, axis)]
    for axis in dynamic:
        graph.need_plain(source, axis)
    x = graph.mask(source, x, dynamic, zero(node.dtype))
    sizes = tuple(
        max(shape[axis], (x.shape[axis] - 1) * stride + span(kernel, gap))
        for axis, kernel, stride, gap in windows
    )
    return fit_all(x.fold(windows, sizes), shape)


def bound_reduce(graph: Bounded, node: Node) -> Node:
    """Reduce over the elements that there are."""
    (x,), source = graph.inputs(node), node.inputs[0]
    monoid, axes = node.arg
    dynamic = [axis for axis in axes if graph.axes.is_dynamic(source, axis)]
    return ended(x.reduce(monoid, axes), (), (graph.ends(source, dynamic),))


def bound_contract(graph: Bounded, node: Node) -> Node:
    """Sum products over the elements that there are."""
    sources: list[tuple[End, ...]] = []
    varying: set[int] = set()
    for source, labels in zip(node.inputs, node.arg):
        summed = [a for a, label in enumerate(labels) if label not in node.arg[2]]
        dynamic = [axis for axis in summed if graph.axes.is_dynamic(source, axis)]
        varying.update(labels[axis] for axis in graph.axes.dynamic_axes(source))
        sources.append(graph.ends(source, dynamic))
    a, b = graph.inputs(node)
    sizes = dict(zip(node.arg[0] + node.arg[1], a.shape + b.shape))
    if varying == sizes.keys() and len(varying) > 2 and product(sizes.values()) > MOST_TERMS:
        raise Degenerate  # it computes up to its bounds
    return ended(a.contract(b, node.arg), (), tuple(sources))


def bound_conv(graph: Bounded, node: Node) -> Node:
    """Correlate what there is: zeros lie beyond, and the last pads give the bound."""
    (x, weight), (own_x, own_weight) = graph.inputs(node), node.inputs
    axes, spec, shape = graph.axes, node.arg, graph.shape(node)
    padding = list(spec.padding)
    masked_x = [2] if axes.is_dynamic(own_x, 2) else []
    masked_weight = list(masked_x)
    for number, axis in enumerate(range(3, len(shape))):
        is_wide, is_long = (axes.is_dynamic(own_x, axis), axes.is_dynamic(own_weight, axis))
        low, high = padding[number]
        if not (is_wide or is_long or axes.is_dynamic(node, axis)):
            continue
        for each in (own_x, own_weight, node):
            graph.need_plain(each, axis)
        masked_x += [axis] if is_wide and (is_long or high > 0) else []
        masked_weight += [axis] if is_long else []
        reach = (shape[axis] - 1) * spec.stride[number]
        reach += span(weight.shape[axis], spec.kernel_dilation[number])
        high = reach - span(x.shape[axis], spec.input_dilation[number]) - low
        padding[number] = (low, high)
    sources = graph.ends(own_x, masked_x), graph.ends(own_weight, masked_weight)
    wanted = type(spec)(spec.stride, tuple(padding), spec.input_dilation, spec.kernel_dilation)
    return ended(x.conv(weight, wanted), (), sources)


def index_mask(graph: Bounded, index: Node, made: Node) -> Node | None:
    """Tell which elements of an index there are; None if all of them."""
    found: Node | None = None
    for axis in graph.axes.dynamic_axes(index):
        inside = graph.valid(index, axis, made)
        if inside is not None:
            found = inside if found is None else found.binary("logical_and", inside)
    return found


def bound_gather(graph: Bounded, node: Node) -> Node:
    """Read by an index that is 0 where there is none."""
    x, *indices = graph.inputs(node)
    indices = [graph.place(node.inputs[0], a, index) for a, index in zip(node.arg, indices)]
    indices = same_dtype(indices)
    inside = index_mask(graph, node.inputs[1], indices[0])
    if inside is not None:
        indices = [inside.where(index, 0) for index in indices]
    return x.gather(tuple(indices), node.arg)


def bound_scatter(graph: Bounded, node: Node) -> Node:
    """Write by an index; what there is not goes to one more row, which is cut off.

    An index that is the position of an update stays one, as updates need no sort by it.
    """
    base, values, *rest = graph.inputs(node)
    axes, monoid = node.arg
    indices, wanted = rest[: len(axes)], rest[len(axes) :]
    for axis in axes:
        graph.need_plain(node, axis)
    inside = index_mask(graph, node.inputs[2], indices[0])
    if inside is None:
        return base.scatter(values, tuple(indices), axes, monoid, *wanted)
    is_own = [is_position(index, base.shape[axis]) for index, axis in zip(indices, axes)]
    chosen = is_own.index(False) if False in is_own else 0
    size = base.shape[axes[chosen]]
    past = [size if number == chosen else 0 for number in range(len(axes))]
    is_kept = [each and number != chosen for number, each in enumerate(is_own)]
    found = [
        index if stays else inside.where(index, end)
        for index, stays, end in zip(indices, is_kept, past)
    ]
    longer = base.pad(one_pad(base, axes[chosen], 0, 1), zero(base.dtype))
    written = longer.scatter(values, tuple(found), axes, monoid, *wanted)
    return fit(written, axes[chosen], size)


def is_position(index: Node, size: int) -> bool:
    """Tell whether an index is the position along an axis of its own, all of which there are."""
    return index.op in POSITIONS and index.shape[index.arg] <= size


def same_dtype(indices: Sequence[Node]) -> list[Node]:
    """Cast indices to one dtype."""
    if all(index.dtype is indices[0].dtype for index in indices):
        return list(indices)
    return [index.cast(int64) for index in indices]


MOST_TERMS = 1 << 15  # of a product all sizes of which vary
LEAST = 8  # as a bound: smaller sizes share one plan
BESIDE = 2  # sizes that differ by no more have one bound
LEAST_STEPS = 64  # of a loop, which does not run beyond its steps
FAR = 4  # times: sizes further apart than this do not share a bound that a user gave
NEAR = 2  # nor those further apart than this one that was found

Bounds = dict[int, int]  # by class


def next_power(size: int) -> int:
    """Round up to a power of two."""
    return 1 << (size - 1).bit_length()


def choose_bounds(
    axes: Axes, largest: Sequence[int], limits: Mapping[tuple[int, int], int], least: int = LEAST
) -> Bounds:
    """Choose the bounds of all plain dynamic classes; `largest` has the largest sizes seen.

    `limits` are those that a user gave, by memory and axis. A size far below its limit does not
    have it for a bound: the plan would not serve it.
    """
    bounds: Bounds = {}
    far = FAR if limits else NEAR
    wanted, steps = wanted_sizes(axes, largest, far), loop_classes(axes)

    def bound_of(found: int) -> int:
        size = wanted[found]  # a cache and what it is appended to cross their bounds together
        size = max(other for other in wanted.values() if other <= size + BESIDE)
        return max(next_power(size), LEAST_STEPS if found in steps else least)

    for node in axes.order:  # rows of a history that was computed before
        is_history = is_cut(node) and axes.find(node, 0) in steps
        if is_history and axes.is_dynamic(node.inputs[0], 0):
            source = node.inputs[0]
            more = source.shape[0] - node.shape[0]
            bounds.setdefault(axes.find(source, 0), bound_of(axes.find(node, 0)) + more)
    for node in axes.order:
        if memory_of(node) is not None:
            for axis in axes.dynamic_axes(node):
                found = axes.find(node, axis)
                limit = limits.get((id(memory_of(node)), axis), 0)
                is_usable = limit and is_near({found: limit}, axes.sizes, FAR)
                bound = limit if is_usable else bound_of(found)
                bounds.setdefault(found, min(bound, limit or bound))
    for node in axes.order:
        rule = node.row.sizes
        if rule is not None and rule.natural is not None and memory_of(node) is None:
            for source in node.inputs:  # constants have no memory, and sizes
                for axis in axes.dynamic_axes(source):
                    at = axes.find(source, axis)
                    bounds.setdefault(at, bound_of(at))
            for found, bound in rule.natural(axes, node, bounds):
                if bound >= wanted[found]:
                    bounds.setdefault(found, bound)
    for found in axes.dynamic:
        bounds.setdefault(found, bound_of(found))
    return {found: bound for found, bound in bounds.items() if found not in axes.parts}


def loop_classes(axes: Axes) -> set[int]:
    """List the classes of the axes along which loops step, and of rows cut from a history."""
    found = set()
    for node in axes.order:
        if node.row.role is Role.LOOP:
            found.update([axes.find(source, 0) for source in stacked_inputs(node)])
        elif is_cut(node) and node.inputs[0].row.role is Role.RESULT:
            found.add(axes.find(node, 0))
    return found


def wanted_sizes(axes: Axes, largest: Sequence[int], far: int) -> Bounds:
    """Find the size that a bound has to hold: the largest one seen, if that is not too far."""
    wanted: Bounds = {}
    for axis, (now, most) in enumerate(zip(axes.sizes, largest)):
        found = axes.root(axis)
        if found in axes.dynamic:
            wanted[found] = max(now, most) if most <= far * now else now
    return wanted


def fits(axes: Axes, bounds: Bounds) -> bool:
    """Tell whether bounds hold the present sizes, and not by far too much."""
    if bounds.keys() != axes.dynamic - axes.parts.keys():
        return False
    return holds(bounds, axes.sizes)


def holds(bounds: Bounds, sizes: Sequence[int]) -> bool:
    """Tell whether the sizes of classes are within their bounds, and not by far too small."""
    return is_near(bounds, sizes, FAR) and all(sizes[at] <= bounds[at] for at in bounds)


def is_near(bounds: Bounds, sizes: Sequence[int], far: int) -> bool:
    """Tell whether bounds are at most so many times the sizes, or twice that for other powers.

    The least bounds, of a loop and its history, are far from nothing, and nor is what is no
    further than these are: rows that were merged of its steps, say.
    """
    short = [at for at, bound in bounds.items() if bound <= LEAST_STEPS + LEAST]
    return all(
        bound <= LEAST_STEPS + LEAST
        or bound <= 2 * far * sizes[at]
        or any(bound * sizes[other] <= bounds[other] * sizes[at] for other in short)
        for at, bound in bounds.items()
    )


# bounds that follow from others


def pad_bound(axes: Axes, node: Node, bounds: Bounds) -> list[tuple[int, int]]:
    """Add the pads."""
    found = []
    source = node.inputs[0]
    for axis, (low, high) in enumerate(node.arg[0]):
        bound = bounds.get(axes.find(source, axis))
        if bound is not None and axes.is_dynamic(node, axis):
            found.append((axes.find(node, axis), bound + low + high))
    return found


def reshape_bound(axes: Axes, node: Node, bounds: Bounds) -> list[tuple[int, int]]:
    """Multiply or divide by what is merged or split off."""
    found = []
    source = node.inputs[0]
    for ins, outs in axes.groups(node):
        bound = bounds.get(axes.find(source, ins[0])) if ins else None
        if bound is None or not axes.is_dynamic(node, outs[0]):
            continue
        rest = product(source.shape[axis] for axis in ins[1:])
        more = product(node.shape[axis] for axis in outs[1:])
        if not bound * rest % more:
            found.append((axes.find(node, outs[0]), bound * rest // more))
    return found


def window_bound(axes: Axes, node: Node, bounds: Bounds) -> list[tuple[int, int]]:
    """Count the windows."""
    found = []
    for axis, kernel, stride, gap in node.arg:
        bound = bounds.get(axes.find(node.inputs[0], axis))
        if bound is not None and axes.is_dynamic(node, axis):
            found.append((axes.find(node, axis), window_count(bound, kernel, stride, gap)))
    return found


def conv_bound(axes: Axes, node: Node, bounds: Bounds) -> list[tuple[int, int]]:
    """Apply the rule of sizes of a convolution."""
    x, weight = node.inputs
    spatial = range(3, len(x.shape))
    wide = [bounds.get(axes.find(x, axis), x.shape[axis]) for axis in spatial]
    sizes = conv_sizes(tuple(wide), weight.shape[3:], node.arg)
    found = []
    for axis, size in enumerate(sizes, 3):
        if axes.is_dynamic(node, axis) and not axes.is_dynamic(weight, axis):
            found.append((axes.find(node, axis), size))
    return found
