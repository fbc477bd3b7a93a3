"""pooling: windows of a product's result that the task which computes them reduces.

    max_pool2d(relu(conv2d(x, w) + b), 2)        the image of the convolution is nowhere in memory

Windows lie side by side: they have the same elements, and none is left over. So a dimension of the
result is two axes, one that counts windows and one inside of them, and blocks of rows hold whole
windows.
"""

from picograd.graph.ends import ends_of
from picograd.helpers import product
from picograd.schedule.cost import PoolWork, pool_work
from picograd.schedule.group import FREE, Facts, Group, Labels, place, waits_for_rows
from picograd.schedule.heroes import has_every_axis, is_product, product_depth, product_sides
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.joining import has_room
from picograd.target import Target

WINDOW_POINTS = 16  # elements of a window: the kernel computes each where it combines them

Windows = tuple[tuple[int, int], ...]  # dimensions of a product's result, and elements of a window


def pooled_places(facts: Facts, target: Target) -> tuple[Windows, Labels] | None:
    """Find the windows that a reduction takes of the product it reads, and its labels there.

    The labels are those of its input: of every dimension, then of every window.
    """
    window, home = facts.inputs[0], facts.inputs[0].home
    if not target.packs_operands or home is None or not home.is_product or home.summed:
        return None
    source = window.inputs[0] if window.inputs else window
    rank = len(source.node.shape)
    axes = tuple(range(rank, len(window.node.shape)))
    is_window = window.node.row.is_shifting and window.windows == frozenset(axes)
    if not is_window or tuple(facts.node.arg[1]) != axes or source.home is not home:
        return None
    if source.labels is None or waits_for_rows(source) or source.has_window:
        return None
    placed = place(source.node.shape, source.labels, home)
    if placed is None or not has_room(home, source) or not has_sides(home):
        return None
    labels, found = placed[1], []
    for axis, kernel, stride, dilation in window.node.arg:
        size = source.node.shape[axis]
        if kernel != stride or size % kernel or (dilation != 1 and kernel != 1):
            return None
        found.append((labels[axis], kernel))
    windows = tuple(sorted((label, kernel) for label, kernel in found if kernel != 1))
    if home.pooled not in ((), windows) or not fits(windows, home):
        return None
    return windows, (*labels, *(label for label, _ in found))


def has_sides(home: Group) -> bool:
    """Tell whether a group is one product of two operands, all of whose results are wanted."""
    hero = home.members[0]
    if sum(member.level == "hero" for member in home.members) > 1 or ends_of(hero.node):
        return False
    return is_product(hero) and has_every_axis(hero.inputs[1])


def fits(windows: Windows, home: Group) -> bool:
    """Tell whether windows are of rows of the product, and few enough elements."""
    rows = product_sides(home.members[0].node)[0]
    is_small = 1 < product(size for _, size in windows) <= WINDOW_POINTS
    return is_small and {label for label, _ in windows} <= rows - {FREE}


def work_on_windows(windows: Windows, home: Group, target: Target) -> PoolWork:
    """Estimate what it takes to reduce the windows where the product is computed."""
    hero = home.members[0].node
    rows = sorted(product_sides(hero)[0])
    first = windows[0]
    held = first[1] * product(hero.shape[d] for d in rows if d > first[0])
    return pool_work(held, hero.size, hero.dtype.itemsize, product_depth(hero), target)


def split_windows(group: Group, axes: dict[int, Axis]) -> dict[int, Index]:
    """Give the index of each dimension of a domain: of one with windows, two axes."""
    found = {d: axis_index(axis) for d, axis in axes.items()}
    for d, size in group.pooled:
        window, inside = Axis(f"p{d}", axes[d].size // size), Axis(f"w{d}", size)
        found[d] = axis_index(window) * size + axis_index(inside)
    return found


def pooled_domain(group: Group, domain: dict[int, Index]) -> dict[int, Index]:
    """Give the index of each dimension after pooling."""
    sizes = dict(group.pooled)
    return {d: index // sizes.get(d, 1) for d, index in domain.items()}


def inside_windows(group: Group, domain: dict[int, Index]) -> dict[int, Index]:
    """Give the index inside a window of each dimension that has windows."""
    return {d: domain[d] % size for d, size in group.pooled}
