"""channels_last: lay operands out as boxes want them: channels, or what is summed, are nearest.

    conv(x, w)  ->  conv(unpermute(contiguous(permute(x))), ...)       where x comes from outside

What a convolution computes lies channels-last already, and what follows it keeps that order
(`Facts.order`). So only what reads no convolution is copied: inputs, weights, what is computed from
them alone, once for all convolutions that read it. Targets without boxes are left alone.

TF32 and 8-bit floats are read along K alone: both operands of such a product are copied so that K
is nearest, where they are not and meet enough rows of the other to be worth it. Products of scores
that stream read them as they are.

flattened: products of images that are flattened, such as the first linear layer of a classifier.

    x.flatten(1) @ w.T  ->  x.permute(0, 2, 3, 1).flatten(1) @ contiguous(w of the same order).T

Images lie channels-last as convolutions left them, so that what their flat rows sum over lies in
another order than a row of the weight: neither copies nor tensor cores can bring both. The smaller
of the two is copied in the order of the other; for the weight's gradient the images, if smaller.
"""

from collections.abc import Container, Sequence

from picograd.graph.conv_few import ALIGNED, SLAB
from picograd.graph.conv_forms import is_lone, is_weight_gradient, multiplies, stored
from picograd.graph.node import Node
from picograd.graph.row import VIEWS, Role, ops_of
from picograd.helpers import product
from picograd.schedule.group import PRODUCTS
from picograd.schedule.index import Atom, Axis, Index, axes_of, axis_index, flatten
from picograd.schedule.score_boxes import streamed_nodes
from picograd.schedule.values import is_leaf
from picograd.schedule.viewindex import SOURCES, reshape_blocks, view_source
from picograd.schedule.views import dimension_map
from picograd.target import Target


class Images:
    """What has the shape (N, C, *S) of images that a convolution gave, by their ids."""

    def __init__(self) -> None:
        self.known: set[int] = set()

    def note(self, node: Node, ordered: Container[int]) -> None:
        """Look at a node that depends on convolutions."""
        for child in node.inputs:
            if id(child) in self.known:
                is_image = node.rank > 2 and node.shape[:2] == child.shape[:2]
            else:
                is_image = id(child) in ordered and merges_groups(child, node)
            if is_image:
                self.known.add(id(node))

    def turned(
        self, node: Node, inputs: tuple[Node, ...], ordered: Container[int]
    ) -> tuple[Node, ...]:
        """Give a product its operands in the order of images, if one of them is flat images."""
        for number in range(2):
            other = 1 - number
            image = self.flattened(node.inputs[number])
            if image is None:
                continue
            summed = node.arg[number][1]
            if summed in node.arg[2]:  # a weight's gradient is stored along its rows
                if image.size < node.size:
                    made = copied(inputs[number], 1)
                    inputs = *inputs[:number], made, *inputs[number + 1 :]
                continue
            if id(node.inputs[other]) in ordered:
                continue
            place = node.arg[other].index(summed)
            return in_one_order(image, inputs, number, place)
        return inputs

    def flattened(self, node: Node) -> Node | None:
        """Find the images that an operand is the flat rows of."""
        base = under_casts(node)
        if is_leaf(base) or base.rank != 2:
            return None
        is_shown = base.op in VIEWS and base.row.is_same_bytes
        if not is_shown:
            return None
        (image,) = base.inputs
        rows = base.shape[0]
        if id(image) not in self.known or image.shape[0] != rows:
            return None
        is_wide = image.size > rows * image.shape[1]
        return image if is_wide else None


def merges_groups(child: Node, node: Node) -> bool:
    """Tell whether a node shows (N, G, C, *S) as (N, G * C, *S)."""
    if child.rank < 4 or not node.row.is_same_bytes:
        return False
    before, groups, channels, *places = child.shape
    return node.shape == (before, groups * channels, *places)


def under_casts(node: Node) -> Node:
    """Find what is converted, if anything is."""
    while not is_leaf(node) and node.row.keeps_value and node.op not in VIEWS:
        (node,) = node.inputs
    return node


def in_one_order(
    image: Node, inputs: tuple[Node, ...], number: int, place: int
) -> tuple[Node, ...]:
    """Put both operands of a product in one order: the smaller one is copied."""
    other = 1 - number
    found = list(inputs)
    if image.size < inputs[other].size:
        found[number] = copied(inputs[number], 1)
    else:
        beside = in_order(inputs[other], image.shape, place)
        found[number] = in_order(inputs[number], image.shape, 1)
        found[other] = copied(beside, place)
    return tuple(found)


def in_order(flat: Node, shape: tuple[int, ...], place: int) -> Node:
    """Let a dimension that is (C, *S) be (*S, C)."""
    before, after = flat.shape[:place], flat.shape[place + 1 :]
    split = flat.reshape((*before, *shape[1:], *after))
    first, count = len(before), len(shape) - 1
    order = [*range(split.rank)]
    order[first : first + count] = [*range(first + 1, first + count), first]
    return split.permute(tuple(order)).reshape(flat.shape)


def copied(operand: Node, place: int) -> Node:
    """Copy an operand so that what is summed over is the nearest."""
    others = [d for d in range(operand.rank) if d != place]
    return stored(operand, (*others, place))


CONVOLUTIONS, FLAT_PRODUCTS = ops_of(Role.CONV), ops_of(Role.CONTRACT)
NARROW = "float8"
WORTH_IT = 128  # rows of the other operand that an element meets: copying it takes as long as 50


def lay_out(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Copy the operands of convolutions that are not channels-last; `order` lists inputs first."""
    if not target.copies_boxes:
        return list(roots)
    has_narrow = any(node.dtype.kind == NARROW for node in order)
    products = PRODUCTS if target.tf32 or has_narrow else CONVOLUTIONS
    if not any(node.op in products and not is_leaf(node) for node in order):
        return list(roots)
    images = Images()
    streamed: set[int] = set()
    if target.tf32:
        streamed = streamed_nodes(roots, order, target)
    done: dict[int, Node] = {}
    ordered: set[int] = set()  # values that lie as convolutions left them
    for node in order:
        if is_leaf(node):
            done[id(node)] = node
            continue
        inputs = tuple([done[id(child)] for child in node.inputs])
        is_ordered = any(id(child) in ordered for child in node.inputs)
        if node.op in CONVOLUTIONS:
            is_turned = id(node.inputs[0]) in ordered
            is_ordered = computed_order(node, target, is_turned) is not None
        if is_ordered and node.row.role is not Role.WRITE:  # that lies as its memory does
            ordered.add(id(node))
            images.note(node, ordered)
        if node.op in FLAT_PRODUCTS:
            inputs = images.turned(node, inputs, ordered)
        is_product = node.op in products and id(node) not in streamed
        if is_product and can_be_boxes(node, target):
            inputs = operands(node, inputs, ordered)
        done[id(node)] = node.with_inputs(inputs)
    return [done[id(root)] for root in roots]


def operands(node: Node, inputs: Sequence[Node], ordered: set[int]) -> tuple[Node, ...]:
    """Copy the operands of a product that are not as boxes want them; `inputs` stand for them."""
    is_conv = node.op in CONVOLUTIONS
    sides = zip(node.inputs, inputs, nearest(node), strict=True)
    found = []
    for number, (source, value, axes) in enumerate(sides):
        if id(source) not in ordered:
            is_weight = is_conv and number == 1
            group = 1 - number if is_conv else None
            value = channels_last(value, axes, is_weight, group)
        found.append(value)
    return tuple(found)


def can_be_boxes(node: Node, target: Target) -> bool:
    """Tell whether boxes of both operands feed tensor cores."""
    first, second = (strip_widening(child).dtype for child in node.inputs)
    if node.op not in CONVOLUTIONS and first.kind == second.kind == NARROW:
        return True
    if first is not second or not multiplies(first, target):
        return False
    is_half = first.bits == 16
    if node.op in CONVOLUTIONS:
        return is_half or not is_weight_gradient(node)
    return not is_half


def strip_widening(node: Node) -> Node:
    """Find what a chain of conversions to wider dtypes converts."""
    while not is_leaf(node) and node.row.keeps_value and node.inputs:
        if node.dtype.bits <= node.inputs[0].dtype.bits:
            break
        node = node.inputs[0]
    return node


def multiplied(operands: Sequence[Node]) -> list[Node]:
    """Find what tensor cores multiply of operands: 8 bits only if both have them."""
    values = [strip_widening(child) for child in operands]
    bits = [value.dtype.bits for value in values]
    if max(bits) == min(bits):
        return values
    for number, child in enumerate(operands):
        if bits[number] <= 8:
            while child.dtype.bits > 16 and child.row.keeps_value:
                child = child.inputs[0]
            values[number] = child
    return values


def nearest(node: Node) -> list[tuple[int, ...]]:
    """List the dimensions of each operand that boxes may run along; none: it stays as it is."""
    if node.op not in CONVOLUTIONS:
        return [summed(node, number) for number in range(2)]
    if is_weight_gradient(node):
        return [(0,), (1,)]
    return [(2,), (2,) if node.dtype.bits == 32 else (1, 2)]  # a weight has two


def summed(node: Node, number: int) -> tuple[int, ...]:
    """Find what a contraction sums over in one operand, if that meets enough of the other."""
    labels, across, kept = node.arg[number], node.arg[1 - number], node.arg[2]
    sizes = dict(zip(across, node.inputs[1 - number].shape, strict=True))
    others = [label for label in sizes if label in kept and label not in labels]
    reuse = product(sizes[label] for label in others)
    wide = [d for d, n in enumerate(node.inputs[number].shape) if n != 1]
    found = tuple(d for d in wide if labels[d] not in kept)
    return found if reuse >= WORTH_IT and len(found) == 1 else ()


def channels_last(
    value: Node, axes: tuple[int, ...], is_weight: bool = False, group: int | None = None
) -> Node:
    """Copy what a chain of views shows so that a dimension of it is the nearest in memory.

    Of several the last one below the views: then both directions read one copy of a weight. Boxes
    of a weight are single taps, which may lie and be missing wherever views say.
    """
    if group is not None and value.shape[group] == 1:
        group = None
    if not axes or any(is_nearest(value, axis, group) for axis in axes):
        return value
    chain, base, near = below_views(value, axes, is_weight)
    wide = [d for d in range(base.rank) if base.shape[d] != 1]
    is_stored = is_leaf(base) or base.op not in VIEWS  # a view stays one: nobody stores it
    is_there = is_stored and wide and wide[-1] in near
    last = max(near)
    if not wide or base.shape[last] == 1 or is_there:
        return value
    rest = [d for d in range(base.rank) if d != last]
    return shown_by(chain, stored(base, (*rest, last)))


def below_views(
    value: Node, axes: tuple[int, ...], is_weight: bool, is_whole: bool = False
) -> tuple[list[Node], Node, tuple[int, ...]]:
    """Find what a chain of views shows, and its dimensions that some of the value's are.

    The views show all of it, if they are to.
    """
    chain: list[Node] = []
    base, near = value, axes
    while is_view(base) and not (is_whole and base.size != base.inputs[0].size):
        below = [dimension_below(base, axis) for axis in near]
        if is_weight and None in below:
            below = [dimension_along(base, axis) for axis in near]
        if None in below:
            break
        near = tuple(axis for axis in below if axis is not None)
        chain.append(base)
        base = base.inputs[0]
    return chain, base, near


def shown_by(chain: Sequence[Node], made: Node) -> Node:
    """Show an array by a chain of views, the outermost one first."""
    for view in reversed(chain):
        made = view.with_inputs((made,))
    return made


def computed_order(node: Node, target: Target, is_turned: bool) -> tuple[int, ...] | None:
    """Choose how a convolution (N, G, O, *S) lies in memory; None if row-major.

    Of a weight's gradient N are the channels. Where channels are alone a CPU reads neighbours
    together: of pixels, unless the image is turned to channels-last. So does a GPU that multiplies
    without tensor cores: it leaves images as it finds them, as threads have neighbouring pixels.
    """
    image, weight = node.inputs
    spatial = range(3, node.rank)
    is_plain = target.has_blocks and not has_units(node, target)
    if is_plain and not is_turned:
        is_turned = is_nearest(image, 2, 1)
    if is_plain and not is_turned:
        return (1, 2, 0, *spatial) if is_weight_gradient(node) else None
    if is_lone(image, weight) and not (is_turned or target.has_blocks):
        return None
    if target.copies_boxes and is_weight_gradient(node):
        return 1, 2, *spatial, 0
    return 0, *spatial, 1, 2


def has_units(node: Node, target: Target) -> bool:
    """Tell whether tensor cores may multiply what a convolution reads."""
    most = 32 if target.tf32 else 16
    values = map(strip_widening, node.inputs)
    bits = [value.dtype.bits for value in values]
    return target.tensor_cores and max(bits) <= most


def is_view(node: Node) -> bool:
    """Tell whether a node shows its input as it is, or converts it to a wider dtype."""
    if is_leaf(node) or not node.inputs:
        return False
    is_wider = node.row.keeps_value and node.dtype.bits > node.inputs[0].dtype.bits
    return node.op in VIEWS or is_wider


def is_nearest(value: Node, axis: int, group: int | None = None) -> bool:
    """Tell whether views show a stored array so that its neighbours are those along an axis.

    The other axes are in the order of memory, and windows along one may overlap: boxes may, too.
    Those that number groups may lie anywhere.
    """
    axes = [Axis(f"d{d}", n) for d, n in enumerate(value.shape)]
    indices = tuple(map(axis_index, axes))
    node = value
    while is_view(node) and (node.op in SOURCES or node.row.keeps_value):
        if node.op in SOURCES:
            indices = view_source(node, indices)
        node = node.inputs[0]
    if node is value or (node.op in VIEWS and not is_leaf(node)):
        return False
    index = flatten(indices, node.shape)
    numbered = None if group is None else axes[group]
    near = axes[axis]
    steps: dict[object, int] = {}
    far = []
    for atom, step in index.terms:
        if atom_axes(atom) != {numbered}:
            steps[atom] = step
        if atom is not near:
            far.append(step)
    wide = [each for each in axes if each.size != 1]
    wide = [each for each in wide if each is not numbered]
    if near not in wide or steps.keys() != set(wide):
        return False
    rest = [each for each in wide if each is not near]
    others = [steps[each] for each in rest]
    in_order = sorted(others, reverse=True)
    is_forward = min(far, default=1) > 0
    places = *far, index.const
    is_aligned = all(place % ALIGNED == 0 for place in places)
    is_plain = others == in_order and is_forward
    if not is_plain or not is_aligned:
        return False
    return steps[near] == 1


def atom_axes(atom: Atom) -> set[Axis]:
    """List the axes that an atom of an index is made of."""
    return axes_of(Index(((atom, 1),), 0))


def dimension_along(view: Node, near: int) -> int | None:
    """Find the dimension of the input that a dimension of a view runs along, if it is whole.

    Others may be padded, cut, flipped and split. Of several that a view merges boxes are along the
    nearest: None if they would reach beyond it.
    """
    source = view.inputs[0]
    if not view.row.is_same_bytes:
        mapping = dimension_map(view)
        if mapping is None or len(mapping) != source.rank or view.row.is_repeating:
            return None
        return mapping[near] if mapping[near] >= 0 else None
    found = None
    for before, after in reshape_blocks(source.shape, view.shape):
        old = [d for d in range(*before.indices(source.rank)) if source.shape[d] != 1]
        new = [d for d in range(*after.indices(view.rank)) if view.shape[d] != 1]
        if len(old) > 1 and (len(new) > 1 or source.shape[old[-1]] % SLAB):
            return None
        if new and near == new[-1]:
            found = old[-1]
    return found


def dimension_below(view: Node, near: int) -> int | None:
    """Find the dimension of the input that a dimension of a view is, if all lie in one array.

    The view may be longer or shorter along that one: boxes have zeros outside of an array. None
    where it repeats, pads or merges others: no strides describe what it shows.
    """
    source, found = view.inputs[0], None
    if view.row.keeps_value:
        return near
    if view.row.is_same_bytes:
        for before, after in reshape_blocks(source.shape, view.shape):
            old, new = (
                [d for d in range(*block.indices(node.rank)) if node.shape[d] != 1]
                for block, node in ((before, source), (after, view))
            )
            if len(old) > 1:
                return None
            if near in new:
                found = old[0] if len(new) == 1 else None
        return found
    mapping = dimension_map(view)
    if view.shape == source.shape and mapping is not None and mapping[near] == near:
        return near
    if mapping is None or len(mapping) != source.rank:
        return None
    others = [d for place, d in enumerate(mapping) if place != near]
    rest = [d for d in range(source.rank) if d not in others]
    if len(rest) != 1:
        return None
    is_cut = source.shape[rest[0]] != view.shape[near]
    return None if is_cut and source.shape[rest[0]] % ALIGNED else rest[0]
