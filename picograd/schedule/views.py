"""What views and other operations do to labels, storage order and window dimensions."""

from collections.abc import Sequence

from picograd.graph.node import Node
from picograd.helpers import ceil_div, product
from picograd.schedule.group import FREE, Facts, Labels, reshape_dimensions

Order = tuple[int, ...]
VIEWS = {"reshape", "permute", "expand", "slice", "flip", "pad", "window"}
MOVERS = {"slice", "flip", "pad", "window", "fold", "gather"}


def dimension_map(node: Node) -> tuple[int, ...] | None:
    """The input dimension each dimension of a view runs along whole and in order, or -1."""
    source = node.inputs[0].shape
    if node.op == "reshape":
        return reshape_dimensions(source, node.shape)
    if node.op == "reduce":  # over dimensions of one element
        return tuple(d for d in range(len(source)) if d not in node.arg[1])
    if node.op == "permute":
        return tuple(node.arg)
    if node.op == "expand":
        return tuple(d if source[d] == n else -1 for d, n in enumerate(node.shape))
    if node.op in ("slice", "pad"):
        spans = enumerate(zip(source, node.shape, strict=True))
        return tuple(d if n == m else -1 for d, (n, m) in spans)
    if node.op == "flip":
        return tuple(-1 if d in node.arg else d for d in range(len(source)))
    if node.op == "window":
        listed = {row[0] for row in node.arg}
        kept = tuple(-1 if d in listed else d for d in range(len(source)))
        return kept + (-1,) * len(node.arg)
    return None


def view_labels(facts: Facts, source: Facts, mapping: tuple[int, ...] | None) -> Labels | None:
    """Labels of a view: those of the dimensions kept whole; None if a labelled one is lost.

    A dimension that `pad` makes longer is not free, though it may have been one of one element.
    """
    labels = source.labels
    if labels is None or mapping is None or (facts.node.op == "pad" and -1 in mapping):
        return None
    is_wider = facts.node.op == "expand" and facts.node.shape != source.node.shape
    if source.is_grand and is_wider:
        return None
    lost = {label for d, label in enumerate(labels) if label != FREE and d not in mapping}
    return None if lost else tuple(FREE if d < 0 else labels[d] for d in mapping)


def view_order(node: Node, source: Facts, mapping: tuple[int, ...] | None) -> Order | None:
    """Storage order a view prefers: that of its input, dimension by dimension."""
    if source.order is None:
        return None
    if node.op in ("slice", "pad", "flip"):
        return source.order
    if node.op == "window":
        count = len(source.node.shape)
        return source.order + tuple(range(count, len(node.shape)))
    if mapping is None:
        return None
    where = {d: position for position, d in enumerate(mapping) if d >= 0}
    kept = [where[d] for d in source.order if d in where]
    rest = [d for d in range(len(node.shape)) if d not in kept]
    return tuple(rest + kept)


def view_windows(node: Node, source: Facts, mapping: tuple[int, ...] | None) -> frozenset[int]:
    """Dimensions of a view that a window appended."""
    if node.op == "window":
        count = len(source.node.shape)
        return frozenset(range(count, count + len(node.arg)))
    if source.windows and node.op == "reshape" and mapping is None:
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


def strip_views(facts: Facts) -> Facts:
    """The node below a chain of views and casts that stays worth loading directly.

    A cast that narrows to 16 bits is not looked through: the tensor cores want it in memory.
    """
    while not facts.is_loaded and facts.inputs:
        node = facts.node
        is_free = node.op in VIEWS or node.op in ("detach", "bitcast")
        if node.op == "cast":
            is_free = node.dtype.bits >= node.inputs[0].dtype.bits or node.dtype.bits > 16
        if not is_free:
            return facts
        facts = facts.inputs[0]
    return facts


def fold_count(node: Node) -> int:
    """Elements a fold adds up at each position."""
    rows = node.arg[0]
    return product(ceil_div(row[1], row[2]) if row[3] == 1 else row[1] for row in rows)


def window_labels(facts: Facts, source: Facts) -> Labels | None:
    """Labels of a window reduction: those of the dimensions it keeps."""
    if facts.node.op != "reduce" or source.labels is None or source.home is not facts.home:
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


def merge_labels(facts: Facts) -> None:
    """Labels of an elementwise node: those of its inputs in the same home must agree."""
    labels: list[int] | None = [FREE] * len(facts.node.shape)
    for source in facts.inputs:
        if facts.home is None or source.home is not facts.home:
            continue
        facts.is_grand |= source.is_grand
        for d, label in enumerate(source.labels or ()):
            if labels is not None and label != FREE and labels[d] not in (FREE, label):
                labels = None
            elif labels is not None and label != FREE:
                labels[d] = label
        labels = None if source.labels is None else labels
    facts.labels = None if labels is None or facts.home is None else tuple(labels)


def gather_labels(facts: Facts) -> None:
    """A gather keeps the labels of the dimensions it takes at their own position (an iota)."""
    source, home = facts.inputs[0], facts.home
    facts.labels = None
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


def iota_dimension(facts: Facts) -> int | None:
    """The dimension along which an index tensor counts 0, 1, 2, ..., if it is such a one."""
    chain: list[Facts] = []
    while facts.node.op in VIEWS or facts.node.op == "cast":
        chain.append(facts)
        facts = facts.inputs[0]
    if facts.node.op != "iota":
        return None
    mapped = int(facts.node.arg)
    for view in reversed(chain):
        if view.node.op == "cast":
            continue
        mapping = dimension_map(view.node)
        if mapping is None or mapped not in mapping:
            return None
        mapped = mapping.index(mapped)
    return mapped


def kept_labels(labels: Labels, axes: Sequence[int]) -> Labels:
    """Labels of a reduction's result."""
    return tuple(label for d, label in enumerate(labels) if d not in axes)


def reduced_order(source: Facts, axes: Sequence[int]) -> tuple[int, ...] | None:
    """Storage order of a reduction's result: that of its input without the reduced dimensions."""
    if source.order is None:
        return None
    kept = [d for d in range(len(source.node.shape)) if d not in axes]
    return tuple(kept.index(d) for d in source.order if d in kept)


def innermost(facts: Facts) -> int:
    """The dimension along which a value is contiguous in memory, if it is stored as it prefers."""
    shape = facts.node.shape
    wide = [d for d in facts.order or range(len(shape)) if shape[d] != 1]
    return wide[-1] if wide else 0
