"""weighted_sums: a sum of weights times their gradient, taken where it is short.

    o = w @ v                                      sum over j of w[i, j] * (g @ v.T)[i, j]
    sum(w * (g @ v.T), columns)        ->          = sum over d of g[i, d] * o[i, d]

The gradient of a softmax subtracts such a sum. The left side reads two matrices of scores, or
computes their products again; the right side reads what is in memory already. What masks and
dropout do to the weights may stand at either factor: a product of the same factors is meant.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from picograd.graph.node import Node
from picograd.graph.row import NUMBERS, Role
from picograd.target import Target

Factors = Counter[tuple[Any, Any]]  # (kind, what)
MOST_STEPS = 32  # from a product to its factors


def shorten_sums(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Rewrite sums of weights times their gradient; the same nodes if there are none.

    `order` lists the nodes under the roots, inputs first, and not below realized ones.
    """
    products: dict[int, list[Node]] = {}  # by each of their operands
    for node in order:
        if is_product(node):
            for operand in dict.fromkeys(map(id, node.inputs)):
                products.setdefault(operand, []).append(node)
    shorter = {}
    for node in order if products else ():
        if node.realized is None and node.row.role is Role.REDUCE and node.arg[0] == "sum":
            found = shortened(node, products)
            if found is not None:
                shorter[id(node)] = found
    return replaced(roots, shorter) if shorter else list(roots)


def replaced(roots: Sequence[Node], new: dict[int, Node]) -> list[Node]:
    """Rebuild a graph with some nodes replaced by others made of its nodes.

    What a replacement is made of is rebuilt with it: it may hold a node that is replaced too.
    """
    done: dict[int, Node] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, is_ready = stack.pop()
        if id(node) in done:
            continue
        instead = new.get(id(node))
        below = () if node.realized is not None else node.inputs
        below = below if instead is None else (instead,)
        if not is_ready:
            stack.append((node, True))
            stack += [(child, False) for child in below]
        elif instead is not None:
            done[id(node)] = done[id(instead)]
        else:
            inputs = tuple([done[id(child)] for child in below])
            done[id(node)] = node.with_inputs(inputs) if inputs else node
    return [done[id(root)] for root in roots]


def is_product(node: Node) -> bool:
    """Tell whether a node is a product that is not in memory yet."""
    return node.realized is None and node.row.role is Role.CONTRACT


def shortened(node: Node, products: dict[int, list[Node]]) -> Node | None:
    """Write a sum of weights times their gradient as one of rows; None if it is none."""
    factors = factors_of(node.inputs[0])
    for gradient, value in gradients_in(factors):
        others = Counter(factors)
        others[product_key(gradient)] -= 1
        for output in products.get(id(value), ()):
            found = short_sum(node, gradient, value, output)
            if found is not None and factors_of(other_operand(output, value)) == +others:
                return found
    return None


def gradients_in(factors: Factors) -> Iterator[tuple[Node, Node]]:
    """Yield the products among factors, each with what may be the values it was weighted with."""
    for kind, node in factors:
        if kind == "product":
            yield from ((node, value) for value in dict.fromkeys(node.inputs))


def product_key(node: Node) -> tuple[Any, ...]:
    """Name a product as a factor."""
    return "product", node


def factors_of(node: Node) -> Factors:
    """List what an element is the product of; conversions, and masks that leave 0, are seen."""
    found: Factors = Counter()
    stack = [node]
    for _ in range(MOST_STEPS):
        if not stack:
            break
        each = stack.pop()
        row = each.row
        is_atom = each.realized is not None or not row.linear
        if is_product(each):
            found[product_key(each)] += 1
        elif is_reshaped(each):
            stack += each.inputs
        elif is_atom:
            found["element", number_of(each)] += 1
        elif row.linear == (0, 1):
            stack += each.inputs
        else:
            shown = next((k for k in row.linear if is_alone(each, k)), None)
            if shown is None:
                found["element", each] += 1
                continue
            rest = tuple(x for k, x in enumerate(each.inputs) if k not in row.linear)
            if not row.keeps_value:
                found[(each.op, shown), rest] += 1
            stack.append(each.inputs[shown])
    for each in stack:
        found["element", each] += 1
    return found


def is_reshaped(node: Node) -> bool:
    """Tell whether a node adds or drops dimensions of one position."""
    is_view = node.realized is None and node.row.is_same_bytes and node.row.role is Role.VIEW
    return is_view and wide(node.shape) == wide(node.inputs[0].shape)


def wide(sizes: Sequence[Any], values: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """Leave out what belongs to dimensions of one position: sizes, or other values of them."""
    pairs = zip(sizes, sizes if values is None else values, strict=True)
    return tuple(value for size, value in pairs if size != 1)


def is_alone(node: Node, place: int) -> bool:
    """Tell whether the other inputs that a node is linear in are 0."""
    rest = (node.inputs[k] for k in node.row.linear if k != place)
    return all(number_of(each) == 0 for each in rest)


def number_of(node: Node) -> Any:
    """Find the number that a node is everywhere; else the node itself."""
    while node.realized is None and (node.row.is_repeating or node.row.keeps_value):
        node = node.inputs[0]
    return node.arg if node.op in NUMBERS and node.realized is None else node


def other_operand(output: Node, value: Node) -> Node:
    """Find what a product multiplies a value with."""
    return output.inputs[1] if output.inputs[0] is value else output.inputs[0]


def short_sum(node: Node, gradient: Node, value: Node, output: Node) -> Node | None:
    """Multiply the gradient of an output with it and sum its columns; None if they do not fit.

    output = weights @ value; gradient = g @ value.T, of the weights; `node` sums it as `value` was.
    """
    number = 1 - output.inputs.index(value)
    weight_labels, value_labels = output.arg[number], output.arg[1 - number]
    out = output.arg[2]
    place = 1 - gradient.inputs.index(value)
    g = gradient.inputs[place]
    labels = gradient.arg[place], gradient.arg[1 - place], gradient.arg[2]
    if renumbered(labels) != renumbered((out, value_labels, weight_labels)):
        return None
    own = wide(gradient.shape, gradient.arg[2])
    sizes = node.inputs[0].shape
    over = wide(sizes, [axis in node.arg[1] for axis in range(len(sizes))])
    if wide(sizes) != wide(gradient.shape) or g.shape != output.shape:
        return None
    number_in = dict(zip(gradient.arg[2], weight_labels, strict=True))
    own = tuple(number_in[label] for label in own)
    if any((label not in out) != is_over for label, is_over in zip(own, over, strict=True)):
        return None
    columns = tuple(d for d, label in enumerate(out) if label not in weight_labels)
    kept = [label for label in out if label in weight_labels]
    wanted = [label for label in weight_labels if label in out]
    short = (g.cast(node.dtype) * output.cast(node.dtype)).reduce("sum", columns)
    return short.permute(tuple(kept.index(label) for label in wanted)).reshape(node.shape)


def renumbered(lists: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    """Number labels in the order they appear."""
    number: dict[int, int] = {}
    return [[number.setdefault(label, len(number)) for label in labels] for labels in lists]
