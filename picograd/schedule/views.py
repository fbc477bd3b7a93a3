"""What views and other operations do to labels, storage order and window dimensions."""

from collections.abc import Mapping, Sequence

from picograd.dtype import DType
from picograd.graph.node import Node
from picograd.graph.row import POSITIONS, VIEWS, Role
from picograd.helpers import ceil_div, product
from picograd.schedule.cost import OPERATION_LIMIT
from picograd.schedule.group import FREE, Facts, Labels
from picograd.schedule.viewindex import reshape_blocks
from picograd.shared_parts import once_a_node
from picograd.target import Target

Order = tuple[int, ...]
THREADS = 2048  # of a multiprocessor
MOST_PIECES = 8  # arrays one behind another, of which a thread computes an element each


def dimension_map(node: Node) -> tuple[int, ...] | None:
    """The input dimension each dimension of a view runs along whole and in order, or -1.

    Of a reduction over dimensions of one element, too.
    """
    rule = node.row.dimensions
    return None if rule is None else rule(node)


def view_labels(facts: Facts, source: Facts, mapping: tuple[int, ...] | None) -> Labels | None:
    """Labels of a view: those of the dimensions kept whole; None if a labelled one is lost.

    A dimension that `pad` makes longer is not free if it was one of one element.
    """
    labels = source.labels
    if labels is None or mapping is None:
        return None
    if (own := labels_in_row(source, labels, mapping)) is not None:
        return own
    if -1 in mapping and not facts.node.row.is_showing and not is_padded(facts, mapping):
        return None
    is_wider = facts.node.row.is_repeating and facts.node.shape != source.node.shape
    if source.is_grand and is_wider:
        return None
    lost = {label for d, label in enumerate(labels) if label != FREE and d not in mapping}
    return None if lost else tuple(FREE if d < 0 else labels[d] for d in mapping)


def labels_in_row(source: Facts, labels: Labels, mapping: tuple[int, ...]) -> Labels | None:
    """Labels of a view that moves elements inside rows that are worked on again, else None.

    A rotation reads halves of a row, in another order: each element is one of the same row, so
    that places along it are free.
    """
    home = source.home
    if home is None or home.kind != "reduce" or not home.is_row or -1 not in mapping:
        return None
    kept = set(home.kept)
    found = tuple([FREE if d < 0 or labels[d] not in kept else labels[d] for d in mapping])
    return found if kept and kept <= set(found) else None


def is_padded(facts: Facts, mapping: tuple[int, ...]) -> bool:
    """Tell whether a view only makes dimensions longer that had several elements before."""
    before = facts.inputs[0].node.shape
    if len(before) != len(mapping):
        return False
    return all(d >= 0 or size > 1 for d, size in zip(mapping, before))


def view_order(node: Node, order: Order | None, mapping: tuple[int, ...] | None) -> Order | None:
    """Storage order a view prefers: that of its input, dimension by dimension."""
    if order is None:
        return None
    shape = node.inputs[0].shape
    if node.row.is_shifting:  # along dimensions that stay where they are
        return order + tuple(range(len(shape), len(node.shape)))
    if mapping is None or (-1 in mapping and node.row.is_same_bytes):
        return None if 0 in shape else regrouped_order(shape, node.shape, order)
    where = {d: position for position, d in enumerate(mapping) if d >= 0}
    kept = [where[d] for d in order if d in where]
    rest = [d for d in range(len(node.shape)) if d not in kept]
    return tuple(rest + kept)


def regrouped_order(before: Order, after: Order, order: Order) -> Order:
    """Storage order of a reshape: what is split or merged lies where the nearest of it lay."""
    places: dict[int, int] = {}
    for old, new in reshape_blocks(before, after):
        found = [order.index(d) for d in range(*old.indices(len(before))) if before[d] != 1]
        places.update(dict.fromkeys(range(*new.indices(len(after))), max(found, default=-1)))
    return tuple(sorted(places, key=places.__getitem__))


def is_window(node: Node) -> bool:
    """Tell whether a view appends dimensions of windows."""
    if node.op not in VIEWS:  # a gather has more dimensions than its input, too
        return False
    return len(node.shape) > len(node.inputs[0].shape) and node.row.is_shifting


def view_windows(node: Node, source: Facts, mapping: tuple[int, ...] | None) -> frozenset[int]:
    """Dimensions of a view that a window appended."""
    if is_window(node):
        return frozenset(range(source.node.rank, node.rank))
    if source.windows and mapping is None:
        return merged_windows(node, source)
    if not source.windows or mapping is None:
        return frozenset()
    return frozenset(p for p, d in enumerate(mapping) if d in source.windows)


def merged_windows(node: Node, source: Facts) -> frozenset[int]:
    """Window dimensions of a reshape that only regroups the trailing window dimensions."""
    shape = source.node.shape
    lead = len(shape) - len(source.windows)
    is_trailing = source.windows == frozenset(range(lead, len(shape)))
    if not is_trailing or node.shape[:lead] != shape[:lead]:
        return frozenset()
    return frozenset(range(lead, len(node.shape)))


def below_windows(source: Facts) -> tuple[Facts, int]:
    """Find what windows should read from memory, and count the kernels that read it.

    It is the value below all views, or the last of these that mixes its dimensions: neighbours
    would lie apart, as those of channels that were shuffled.
    """
    base = strip_views(source)
    found, kernels, below = base, base.kernels, source
    while below is not base:
        is_mixed = below.mixings > below.inputs[0].mixings and below.size == base.size
        found = below if is_mixed and found is base and not base.is_loaded else found
        kernels, below = max(kernels, below.kernels), below.inputs[0]
    return found, kernels


def reads_windows(facts: Facts) -> bool:
    """Tell whether windows are read by what is computed where a value is."""
    pending, seen = [facts], {facts.number}
    while pending:
        each = pending.pop()
        if each.windows:
            return True
        inputs = () if each.is_loaded else each.inputs
        pending += [source for source in inputs if source.number not in seen]
        seen.update(source.number for source in inputs)
    return False


def strip_views(facts: Facts) -> Facts:
    """The node below a chain of views and casts that stays worth loading directly.

    A cast that narrows is looked through only to find what is in memory: else its result is smaller
    to store. One to 16 bits is not looked through at all: the tensor cores want it in memory.
    """
    narrow: Facts | None = None
    while not facts.is_loaded and facts.inputs:
        node = facts.node
        is_free = node.row.view is not None
        if type(node.arg) is DType:
            is_narrowing = node.dtype.bits < node.inputs[0].dtype.bits
            is_free = not is_narrowing or node.dtype.bits > 16
            narrow = facts if is_narrowing and is_free and narrow is None else narrow
        if not is_free:
            break
        facts = facts.inputs[0]
    return facts if facts.is_loaded or narrow is None else narrow


def is_made_operand(facts: Facts) -> bool:
    """Tell whether a product reads a value that is no view, nor 16-bit floats in a wider dtype."""
    if not facts.is_operand or not facts.node.inputs or facts.node.row.view is not None:
        return False
    return not (strip_views(facts) is not facts and facts.node.inputs[0].dtype.is_narrow_float)


def fold_count(node: Node) -> int:
    """Elements a fold adds up at each position."""
    rows = node.arg[0]
    return product(ceil_div(row[1], row[2]) if row[3] == 1 else row[1] for row in rows)


def window_labels(facts: Facts, source: Facts) -> Labels | None:
    """Labels of a window reduction: those of the dimensions it keeps."""
    if (
        facts.node.row.role is not Role.REDUCE
        or source.labels is None
        or source.home is not facts.home
    ):
        return None
    axes = facts.node.arg[1]
    is_lost = any(source.labels[d] != FREE for d in axes)
    return None if is_lost else kept_labels(source.labels, axes)


def deepen(facts: Facts, source: Facts) -> None:
    """Keep depth, and the deepest group if only one has that depth."""
    if source.depth > facts.depth:
        facts.depth, facts.home = source.depth, source.home
    elif source.depth == facts.depth and source.home is not facts.home and facts.depth:
        facts.home = None


def read_of(facts: Facts) -> tuple[Facts, ...]:
    """List what a value that waits is made of; what it only waits for makes it deeper."""
    for source in facts.inputs[1:]:
        deepen(facts, source)
    return facts.inputs[:1]


def merge_labels(facts: Facts) -> None:
    """Labels of an elementwise node: those of its inputs in the same home must agree."""
    home = facts.home
    if home is None:
        facts.labels = None
        return
    near = [source for source in facts.inputs if source.home is home]
    if len(near) == 1:
        facts.is_grand |= near[0].is_grand
        facts.labels = near[0].labels
        return
    labels: list[int] | None = [FREE] * len(facts.node.shape)
    for source in near:
        facts.is_grand |= source.is_grand
        for d, label in enumerate(source.labels or ()):
            if labels is not None and label != FREE and labels[d] not in (FREE, label):
                labels = None
            elif labels is not None and label != FREE:
                labels[d] = label
        labels = None if source.labels is None else labels
    facts.labels = None if labels is None else tuple(labels)


def gather_labels(facts: Facts) -> None:
    """A gather keeps the labels of the dimensions it takes at their own position (an iota)."""
    source, home = facts.inputs[0], facts.home
    facts.labels = None
    if home is not None and source.is_source:
        facts.labels = read_labels(facts)
        return
    if home is None or source.home is not home or source.labels is None or source.is_grand:
        return
    if any(index.depth >= facts.depth for index in facts.inputs[1:]):
        return
    rank = len(facts.inputs[1].node.shape)
    labels = [FREE] * rank
    for axis, index in zip(facts.node.arg, facts.inputs[1:], strict=True):
        label = source.labels[axis]
        if label == FREE or label in home.reduced:
            continue
        run = iota_dimension(index)
        if run is None or index.node.shape[run] != source.node.shape[axis]:
            return
        labels[run] = label
    rest = [x for d, x in enumerate(source.labels) if d not in facts.node.arg]
    facts.labels = (*labels, *rest)


def read_labels(facts: Facts) -> Labels | None:
    """Labels of what is gathered from memory: those of the one index that has a place."""
    found = [index.labels for index in facts.inputs[1:] if index.home is facts.home]
    if len(found) != 1 or found[0] is None:
        return None
    rest = facts.node.rank - len(found[0])
    return (*found[0], *(FREE,) * rest)


def iota_dimension(facts: Facts) -> int | None:
    """The dimension along which an index tensor counts 0, 1, 2, ..., if it is such a one."""
    chain: list[Facts] = []
    while facts.inputs and (facts.node.op in VIEWS or facts.node.row.keeps_value):
        chain.append(facts)
        facts = facts.inputs[0]
    if facts.node.op not in POSITIONS:
        return None
    mapped = int(facts.node.arg)
    for view in reversed(chain):
        if view.node.row.keeps_value:
            continue
        mapping = dimension_map(view.node)
        if mapping is None or mapped not in mapping:
            return None
        mapped = mapping.index(mapped)
    return mapped


def most_repeated(node: Node) -> int:
    """Operations that are rather done again than stored, where a node reads elements again."""
    if node.row.role is not Role.PASS:
        return OPERATION_LIMIT
    return 0 if node.arg else OPERATION_LIMIT // 2  # patches read an element about twice


def shared_inputs(facts: Facts, target: Target) -> tuple[Facts, ...]:
    """List the inputs that are rather computed once, if they are dear.

    On a CPU the indices of a gather that are used for several elements each, as by every channel:
    computing them for each takes a GPU less than a kernel more. On a GPU short arrays that a sum
    puts one behind another, each as long as the next: one kernel stores them in their places
    (folding.py). It waits for few threads; long arrays wait for memory. What is read after
    something else is read often.
    """
    role = facts.node.row.role
    if role is Role.PASS:
        return facts.inputs[: len(facts.inputs) - 1]
    if target.has_blocks:
        is_short = facts.size <= target.multiprocessors * THREADS
        is_sum = is_short and facts.node.row.factors == (1, 1) and puts_behind(facts.node)
        return tuple(x for x in facts.inputs if is_put(x.node)) if is_sum else ()
    if role is not Role.GATHER:
        return ()
    return tuple(i for i in facts.inputs[1:] if 2 * i.size <= facts.size)


@once_a_node
def puts_behind(node: Node) -> bool:
    """Tell whether a node only adds up arrays of which each is 0 but in its share of the places."""
    if node.realized is None and node.row.factors == (1, 1):
        return all(map(puts_behind, node.inputs))
    return is_put(node)


def is_put(node: Node) -> bool:
    """Tell whether a node is an array with zeros around it, so that several fill it."""
    if node.realized is not None or node.row.role is not Role.VIEW or node.row.is_showing:
        return False
    count, rest = divmod(node.size, max(node.inputs[0].size, 1))
    return not rest and 2 <= count <= MOST_PIECES


def kept_labels(labels: Labels, axes: Sequence[int]) -> Labels:
    """Labels of a reduction's result."""
    return tuple(label for d, label in enumerate(labels) if d not in axes)


def reduced_order(order: Order | None, axes: Sequence[int]) -> Order | None:
    """Storage order of a reduction's result: that of its input without the reduced dimensions."""
    if order is None:
        return None
    kept = [d for d in range(len(order)) if d not in axes]
    return tuple(kept.index(d) for d in order if d in kept)


def followed_order(node: Node, orders: Mapping[int, Order]) -> Order | None:
    """Storage order of what is made of values; `orders` has those of some, by identities."""
    role = node.row.role
    for source in node.inputs:
        order = orders.get(id(source))
        if order is None:
            continue
        if role is Role.VIEW:
            return view_order(node, order, dimension_map(node))
        if role is Role.REDUCE:
            return reduced_order(order, node.arg[1])
        if role in (Role.ELEMENTWISE, Role.PASS) and len(order) == node.rank:
            return order
    return None


def innermost(facts: Facts) -> int:
    """The dimension along which a value is contiguous in memory, if it is stored as it prefers."""
    shape = facts.node.shape
    wide = [d for d in facts.order or range(len(shape)) if shape[d] != 1]
    return wide[-1] if wide else 0


def refresh(facts: Facts) -> None:
    """Recompute depth after an input was stored (views above it keep their own facts)."""
    source = facts.inputs[0]
    settle(source, strip_views(source))
    facts.depth, facts.home = source.depth, source.home


def settle(source: Facts, base: Facts) -> None:
    """After `base` was stored, the views between it and its reader read it from memory."""
    if base.depth > source.depth:
        source.depth, source.home, source.labels = base.depth, base.home, None
    if base.is_loaded and source is not base:
        source.cost, source.length, source.loads = base.cost, 1, base.loads
        source.is_moved, source.has_window, source.mixings = False, False, 0


def is_beside(facts: Facts) -> bool:
    """Tell whether a pad puts a single element beside others: the norm of one of many arrays."""
    return not facts.node.row.is_showing and facts.inputs[0].size == 1 < facts.size
