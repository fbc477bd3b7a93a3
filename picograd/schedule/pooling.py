"""pooling: windows of a product's result that the task which computes them reduces.

    max_pool2d(relu(conv2d(x, w) + b), 2)        the image of the convolution is nowhere in memory

On a CPU blocks of rows hold whole windows where these lie side by side. Where they share elements,
or take in padding, a task walks down an image, and keeps of each block the last rows for the next.
Elements that no window has are computed only if they are stored. On a GPU a thread holds windows of
up to 4 elements that take in all of the image.
"""

from picograd.graph.bounded import ends_of
from picograd.graph.row import Role
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.cost import PooledProduct, PoolWork, pool_work
from picograd.schedule.group import (
    AFTER,
    CHAIN_LIMIT,
    Facts,
    Group,
    Labels,
    Reasons,
    Windowed,
    is_stored,
)
from picograd.schedule.heroes import (
    has_every_axis,
    is_product,
    product_depth,
    product_sides,
    uses_tensor_cores,
)
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.joining import places_of
from picograd.target import Target

WINDOW_POINTS = 16  # elements of a window: the kernel computes each where it combines them
PATCH_BYTES = 16  # along a side of a GPU thread's patch of a tile; elements of 4 bytes at least

Domain = dict[int, Index]  # of each dimension


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of a product's result, along its dimensions.

    `places` are the dimensions along which those of the reduced value lie: its own, then windows.
    """

    home: Group
    along: tuple[Windowed, ...]
    places: Labels

    @property
    def count(self) -> int:
        """Elements of a window."""
        return product(each.kernel for each in self.along)

    @property
    def is_beside(self) -> bool:
        """Tell whether no element is in two windows."""
        return all(each.is_beside for each in self.along)

    def is_of(self, dimensions: set[int]) -> bool:
        """Tell whether all windows are along some dimensions."""
        return all(each.dimension in dimensions for each in self.along)


def join_windows(facts: Facts, target: Target, reasons: Reasons) -> Group | None:
    """Find the product whose result is reduced in windows, and tell it, if that is no slower."""
    found = windows_of(facts)
    if found is None or (target.has_blocks and not fits_patches(found, target)):
        return None
    work = work_on_windows(found, target)
    if not work.is_together:
        reasons.note(f"kept windows {facts.node.shape} apart from their product: {work}")
        return None
    found.home.pooled = found.along
    facts.over = found.places
    return found.home


def windows_of(facts: Facts) -> Windows | None:
    """Find the windows of a product's result that a reduction takes."""
    cut = facts.inputs[0]
    if not cut.node.row.is_shifting or cut.is_loaded:
        return None
    source, before = without_padding(cut.inputs[0])
    axes = tuple(range(len(source.node.shape), len(cut.node.shape)))
    if cut.windows != frozenset(axes) or set(facts.node.arg[1]) != set(axes):
        return None
    labels = places_of(source)
    if source.home is None or labels is None or before is None:
        return None
    places, along = list(labels), []
    for axis, kernel, stride, dilation in cut.node.arg:
        places.append(labels[axis])
        sizes = cut.node.shape[axis], kernel, stride, dilation
        if sizes[1:3] != (1, 1):
            more = before.pop(axis, 0), source.node.shape[axis]
            along.append(Windowed(labels[axis], *sizes, *more))
    along.sort(key=lambda each: each.dimension)
    found = Windows(source.home, tuple(along), tuple(places))
    is_cheap = source.cost * found.count <= CHAIN_LIMIT or found.is_beside
    return found if suits(found) and is_cheap and not before else None


def without_padding(facts: Facts) -> tuple[Facts, dict[int, int] | None]:
    """Look below a view that pads: what it pads, and by how much before which dimensions.

    None of that if it is only known when the kernel runs.
    """
    node = facts.node
    if facts.is_loaded or node.row.role is not Role.VIEW or node.row.is_showing:
        return facts, {}
    pads = {axis: low for axis, (low, high) in enumerate(node.arg[0]) if low or high}
    is_known = all(type(size) is int and size >= 0 for pair in node.arg[0] for size in pair)
    return facts.inputs[0], pads if is_known else None


def suits(windows: Windows) -> bool:
    """Tell whether windows are of rows of one product, all of whose results are wanted.

    Floats of 16 bits are stored: that rounds them, and backward looks for the largest among those.
    """
    home = windows.home
    hero = home.members[0]
    is_single = sum(member.level == "hero" for member in home.members) == 1
    if home.summed or not is_single or ends_of(hero.node):
        return False
    if hero.node.dtype.is_narrow_float or home.pooled not in ((), windows.along):
        return False
    rows = product_sides(hero.node)[0]
    is_small = 1 < windows.count <= WINDOW_POINTS
    is_known = is_product(hero) and has_every_axis(hero.inputs[1])
    return is_small and is_known and windows.is_of(rows)


def fits_patches(windows: Windows, target: Target) -> bool:
    """Tell whether a thread of a GPU holds whole windows in its patch of a tile.

    Tensor cores spread the elements of a window over threads.
    """
    hero = windows.home.members[0]
    patch = PATCH_BYTES // max(hero.node.dtype.itemsize, 4)
    is_whole = all(each.is_whole for each in windows.along) and patch % windows.count == 0
    return is_whole and not uses_tensor_cores(hero, target)


def work_on_windows(windows: Windows, target: Target) -> PoolWork:
    """Estimate what it takes to reduce the windows where the product is computed."""
    hero = windows.home.members[0].node
    first = windows.along[0]
    if target.has_blocks:
        made = PooledProduct(hero.size, 0, product_depth(hero), hero.dtype.itemsize)
        return pool_work(made, windows.count, 0, target)
    rows, columns = product_sides(hero)
    least = max(first.stride, 0 if first.is_beside else first.extent)
    held = least * product(hero.shape[d] for d in rows if d > first.dimension)
    wide = product(hero.shape[d] for d in columns)
    walks = 0 if first.is_beside else product(hero.shape[d] for d in rows if d < first.dimension)
    made = PooledProduct(hero.size, wide, product_depth(hero), hero.dtype.itemsize)
    return pool_work(made, held, walks, target)


def computed_sizes(group: Group) -> tuple[int, ...]:
    """Give the sizes of a group's dimensions without elements that nobody looks at.

    Those are no window's, and in memory nowhere.
    """
    sizes = list(group.shape)
    is_read = any(is_stored(m) for m in group.members if m.level not in AFTER)
    for each in group.pooled:
        sizes[each.dimension] = sizes[each.dimension] if is_read else each.covered
    return tuple(sizes)


def pooled_domain(group: Group, domain: Domain) -> Domain:
    """Give the index of each dimension after pooling: a dimension with windows counts those."""
    windows = {each.dimension: Axis(f"p{each.dimension}", each.count) for each in group.pooled}
    return domain | {d: axis_index(axis) for d, axis in windows.items()}


def inside_windows(group: Group) -> Domain:
    """Give the index inside a window of each dimension that has windows."""
    inside = {each.dimension: Axis(f"w{each.dimension}", each.kernel) for each in group.pooled}
    return {d: axis_index(axis) for d, axis in inside.items()}
