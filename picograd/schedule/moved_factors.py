"""moved_factors: numbers that scale the operands of scores, or what weights are summed to.

    (q * c) @ k.T  ->  (q @ k.T) * c        scores, and gradients of weights
    w @ (v * c)    ->  (w * c) @ v          products of weights, and their gradients
    (w @ v) * c    ->  (w * c) @ v

A kernel that streams over scores scales them for nothing; an operand that was scaled before would
be stored once more, and a result afterwards, too. Only products that stream are written anew, none
of float16: its scores may be out of range.

scale_results: the same of all products, on a GPU, whose kernels read operands as memory has them.

    (q * c) @ k.T  ->  (q @ k.T) * c        a kernel for two: q is in memory, q * c is not

Only where products alone read what is scaled. Numbers far from 1 stay where they are: they may
have been meant to keep a product in range.

wide_scores: scores of few rows, of 16-bit floats, are not rounded on the way to the exponential.

    float32((q @ k.T) * scale)    ->    (float32(q) @ float32(k).T) * scale

Scores that stream are sums of float32 wherever they are read. A CPU stores those of few rows, and
rounded they cost a digit: an error of 1 of 100 in a weight. Nothing else may read them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from picograd.dtype import float16, float32, float64
from picograd.graph.bounded import EndedNode
from picograd.graph.node import Node, toposort
from picograd.graph.row import EXPONENTIALS, SCALARS, Role, ops_of
from picograd.graph.starts import starts_of
from picograd.helpers import product
from picograd.number import Given
from picograd.schedule.joined_scores import widen_maxima
from picograd.schedule.order import nodes_of
from picograd.schedule.score_boxes import has_scores, streamed_nodes
from picograd.schedule.scores import LEAST_SIDE
from picograd.schedule.values import is_leaf
from picograd.schedule.weighted_sums import is_product, number_of, replaced
from picograd.target import Target

FAR = 1 << 16  # a number so far from 1 may be meant to keep a product in range
BETWEEN = (Role.ELEMENTWISE, Role.VIEW, Role.PASS)


def move_factors(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Scale scores and weights instead of operands and results; `order` lists inputs first."""
    if not has_scores(order, target):
        return list(roots)
    wider = widen_maxima(roots, order)
    if wider is not None:
        roots, order = wider, toposort(wider, is_leaf)
    made = made_of_exponentials(order)
    scores = below_exponentials(order, made)
    readers: dict[int, int] = {}
    new: dict[int, Node] = {}
    products: dict[int, int] = {}  # that are written anew
    weighted: set[int] = set()  # products of weights, and what shows them
    for node in order:
        product, found = node, None
        if node.op in CONTRACTIONS and is_movable(node):
            weight = weights_of(node, made)
            if weight is not None:
                weighted.add(id(node))
            if weight is not None or id(node) in scores:
                found = unscaled(node, weight)
        elif weighted.isdisjoint(map(id, node.inputs)):
            continue
        elif is_plain_view(node):
            weighted.add(id(node))
        else:
            readers = readers or counted(roots, order)
            product, found = scaled_weights(node, made, readers)
        if found is not None:
            new[id(node)] = found
            products[id(node)] = id(product)
    if not new:
        return list(roots)
    streamed = streamed_nodes(roots, order, target)
    kept = {key: found for key, found in new.items() if products[key] in streamed}
    return replaced(roots, order, kept) if kept else list(roots)


def weights_of(product: Node, made: set[int]) -> int | None:
    """Number the operand of a product that is made of exponentials; None if none is."""
    numbers = [number for number, each in enumerate(product.inputs) if id(each) in made]
    return numbers[0] if numbers else None


def is_movable(node: Node) -> bool:
    """Tell whether a node is a product whose factors may stand elsewhere."""
    is_known = node.op in CONTRACTIONS and node.realized is None and type(node) is not EndedNode
    return is_known and node.dtype is not float16


def made_of_exponentials(order: Sequence[Node]) -> set[int]:
    """Find exponentials, and what is made of them element by element."""
    made: set[int] = set()
    for node in order:
        is_made = not made.isdisjoint(map(id, node.inputs)) and node.row.role in BETWEEN
        if (is_made or node.op in EXPONENTIALS) and node.realized is None:
            made.add(id(node))
    return made


def below_exponentials(order: Sequence[Node], made: set[int]) -> set[int]:
    """Find what exponentials, and what is made of them, are computed from element by element."""
    found: set[int] = set()
    for node in reversed(order):
        is_read = id(node) in made or id(node) in found
        if is_read and node.realized is None and node.row.role in BETWEEN:
            found.update(map(id, node.inputs))
    return found


def counted(roots: Sequence[Node], order: Sequence[Node]) -> dict[int, int]:
    """Count the readers of every node, the user among them."""
    read = chain.from_iterable(node.inputs for node in order if node.realized is None)
    return Counter(map(id, chain(roots, read)))


def inputs_of(node: Node) -> Sequence[Node]:
    """List what a node is computed from; nothing if it is in memory."""
    return node.inputs if node.realized is None else ()


class Scale(NamedTuple):
    """A product with a number or a quotient by it; a number that is given each time is a node."""

    op: str
    number: Any

    def of(self, node: Node) -> Node:
        """Scale a node."""
        number = self.number
        if isinstance(number, Node):
            number = number.cast(node.dtype).broadcast_to(node.shape)
        return node.binary(self.op, number)

    @property
    def is_near_one(self) -> bool:
        """Tell whether it keeps no product in range; of a node, by what it was given first."""
        number = self.number.arg if isinstance(self.number, Node) else self.number
        return 1 / FAR <= abs(number) <= FAR


def factor_of(node: Node) -> tuple[Node, Scale] | None:
    """Find what a node scales, and how; None if it does not."""
    linear = node.row.linear
    is_scaling = node.realized is None and len(node.inputs) == 2 and 0 in linear
    if not is_scaling or not node.dtype.is_float:
        return None
    for place in (1, 0):
        number = given_number(node.inputs[place])
        if number is not None and 1 - place in linear:
            return node.inputs[1 - place], Scale(node.op, number)
    return None


def given_number(node: Node) -> Any:
    """Find the number that a node is everywhere, or the scalar that will be; None if it is none."""
    number = number_of(node)
    if not isinstance(number, Node):
        return number
    *_, base = views_above(number)
    is_given = base.realized is None and base.op in SCALARS
    return base if is_given and type(base.arg) is Given else None


def views_above(node: Node) -> Iterator[Node]:
    """Yield a node, and what its views show, down to what is no view."""
    yield node
    while is_plain_view(node):
        node = node.inputs[0]
        yield node


def viewed(node: Node, views: Sequence[Node]) -> Node:
    """Show a node by the views above another, which may be of another dtype."""
    for view in reversed(views):
        node = Node(view.op, (node,), view.arg, view.shape, node.dtype, view.device)
    return node


def is_plain_view(node: Node) -> bool:
    """Tell whether a node is a view that is to be shown, at places known before."""
    row = node.row
    is_view = node.realized is None and row.view is not None and row.is_showing
    return is_view and not starts_of(node)


def without_factor(operand: Node) -> tuple[Node, Scale] | None:
    """Take a number off what an operand shows."""
    *views, base = views_above(operand)
    found = factor_of(base)
    if found is None:
        return None
    node, scale = found
    return viewed(node, views), scale


def unscaled(product: Node, weight: int | None) -> Node | None:
    """Multiply operands as they were before they were scaled, and scale weights or scores."""
    operands = list(product.inputs)
    scales = []
    for number in range(2):
        found = None if number == weight else without_factor(operands[number])
        if found is not None:
            operands[number], scale = found
            scales.append(scale)
    if not scales:
        return None
    if weight is not None:
        operands[weight] = scaled(operands[weight], scales)
        scales = []
    return scaled(operands[0].contract(operands[1], product.arg), scales)


def scaled(node: Node, scales: Sequence[Scale]) -> Node:
    """Scale a node."""
    for scale in scales:
        node = scale.of(node)
    return node


def scaled_weights(node: Node, made: set[int], readers: dict[int, int]) -> tuple[Node, Node | None]:
    """Scale the weights of a product instead of its result, if nobody else reads that."""
    found = factor_of(node)
    if found is None:
        return node, None
    whole, scale = found
    *views, product = views_above(whole)
    is_alone = all(readers[id(each)] == 1 for each in (*views, product))
    weight = weights_of(product, made) if is_movable(product) else None
    if not is_alone or weight is None:
        return node, None
    operands = list(product.inputs)
    operands[weight] = scale.of(operands[weight])
    return product, viewed(operands[0].contract(operands[1], product.arg), views)


def fit_numbers(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Scale products afterwards on a GPU, and widen scores on a CPU."""
    fitted = widen_scores if target.packs_operands else scale_results
    return fitted(roots, order, target)


def scale_results(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Scale products instead of operands that only products read; `order` lists inputs first."""
    if not any(map(is_scalable, nodes_of(order, CONTRACTIONS))):
        return list(roots)
    others = read_by_others(roots, order)
    new: dict[int, Node] = {}
    for node in filter(is_scalable, nodes_of(order, CONTRACTIONS)):
        operands, scales = list(node.inputs), []
        for number, operand in enumerate(operands):
            found = scaled_leaf(operand, others)
            if found is not None:
                operands[number], scale = found
                scales.append(scale)
        if scales:
            new[id(node)] = scaled(operands[0].contract(operands[1], node.arg), scales)
    return replaced(roots, order, new) if new else list(roots)


def scaled_leaf(operand: Node, others: set[int]) -> tuple[Node, Scale] | None:
    """Take a number off an array in memory; what a kernel makes is scaled there for nothing."""
    *_, base = views_above(operand)
    found = None if id(base) in others else without_factor(operand)
    if found is None or not found[1].is_near_one:
        return None
    *_, value = views_above(found[0])
    return found if is_leaf(value) else None


def is_scalable(node: Node) -> bool:
    """Tell whether scaling a product afterwards has no greater an error than before."""
    is_plain = is_product(node) and type(node) is not EndedNode
    return is_plain and node.dtype in (float32, float64)


def read_by_others(roots: Sequence[Node], order: Sequence[Node]) -> set[int]:
    """Find what something else than products that may be scaled reads, through views too."""
    found = set(map(id, roots))
    for node in reversed(order):
        is_passed = is_scalable(node) or (is_plain_view(node) and id(node) not in found)
        if not is_passed:
            found.update(map(id, inputs_of(node)))
    return found


CONTRACTIONS = ops_of(Role.CONTRACT)
MADE = (Role.ELEMENTWISE, Role.VIEW)


def widen_scores(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Multiply few rows to float32 where that is read; `order` lists inputs first."""
    if not nodes_of(order, EXPONENTIALS):
        return list(roots)
    few = {id(node) for node in nodes_of(order, CONTRACTIONS) if is_few(node)}
    if not few:
        return list(roots)
    scores = below_exponentials(order, made_of_exponentials(order))
    readers = counted(roots, order)
    wide: dict[int, Node] = {}
    new = {}
    for node in order:
        key = id(node)
        if is_leaf(node) or key not in scores:
            continue
        below = list(map(id, node.inputs))
        has_wide = not wide.keys().isdisjoint(below)
        if has_wide and node.row.keeps_value and node.dtype is float32:
            new[key] = wide[below[0]]
            continue
        is_alone = readers[key] == 1 and type(node) is Node
        is_made = has_wide and node.row.role in MADE and node.dtype.bits == 16
        if is_alone and (key in few or is_made):
            wide[key] = widened(node, wide)
    return replaced(roots, order, new) if new else list(roots)


def is_few(node: Node) -> bool:
    """Tell whether a node is a product of 16-bit floats that is too small to stream."""
    is_narrow = node.op in CONTRACTIONS and node.dtype.bits == 16
    if is_leaf(node) or not is_narrow:
        return False
    first, second, out = node.arg
    sizes = list(zip(out, node.shape, strict=True))
    rows = product(size for label, size in sizes if label not in second)
    columns = product(size for label, size in sizes if label not in first)
    return min(rows, columns) < LEAST_SIDE


def widened(node: Node, wide: dict[int, Node]) -> Node:
    """Compute a node in float32."""
    inputs = []
    for each in node.inputs:
        found = wide.get(id(each), each)
        if found.dtype is node.dtype:
            found = found.cast(float32)
        inputs.append(found)
    return Node(node.op, tuple(inputs), node.arg, node.shape, float32, node.device)
