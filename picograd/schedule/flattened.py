"""flattened: products of images that are flattened, such as the first linear layer of a classifier.

    x.flatten(1) @ w.T  ->  x.permute(0, 2, 3, 1).flatten(1) @ contiguous(w of the same order).T

Images lie channels-last as convolutions left them, so that what their flat rows sum over lies in
another order than a row of the weight: neither copies nor tensor cores can bring both. The smaller
of the two is copied in the order of the other.
"""

from collections.abc import Container

from picograd.graph.conv_depthwise import stored
from picograd.graph.node import Node
from picograd.graph.row import VIEWS
from picograd.schedule.values import is_leaf


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
            if image is None or id(node.inputs[other]) in ordered:
                continue
            summed = node.arg[number][1]
            if summed in node.arg[2]:
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
        is_flat = id(image) in self.known and image.shape[0] == rows
        is_wide = image.size > rows * image.shape[1]
        return image if is_flat and is_wide else None


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
