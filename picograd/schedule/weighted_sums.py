"""weighted_sums: a sum of weights times their gradient, taken where it is short.

    o = w @ v                                      sum over j of w[i, j] * (g @ v.T)[i, j]
    sum(w * (g @ v.T), columns)        ->          = sum over d of g[i, d] * o[i, d]
    sum(w / t * (g @ v.T), columns)    ->            the same, over t[i]

The gradient of a softmax subtracts such a sum. The left side reads two matrices of scores, or
computes their products again; the right side reads what is in memory already. What masks and
dropout do to the weights may stand at either factor: a product of the same factors is meant.

shared_totals: logarithms of sums of scores, beside their softmax.

    softmax(s), logsumexp(s)                  ->    m and l of the softmax, m + log(l)
    exp(s - logsumexp(s)), a gradient         ->    softmax(s)
    exp(s - logsumexp(s)) @ v                 ->    softmax(s) @ v
    exp(log_softmax(s)) @ v                   ->    softmax(s) @ v

Alone each subtracts a maximum in its own way, and nothing streams over exponentials of two kinds.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from picograd.dtype import DType
from picograd.graph import build
from picograd.graph.bounded import ended, sources_of
from picograd.graph.composites import (
    CustomGradient,
    expand_log_softmax,
    expand_logsumexp,
    expand_softmax,
    logsumexp_beside_softmax,
)
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node
from picograd.graph.row import EXPONENTIALS, NUMBERS, OPS, Role, ops_of
from picograd.late_methods import dataclass
from picograd.schedule.group import Facts
from picograd.schedule.order import nodes_of, ops_in
from picograd.schedule.values import facts_of
from picograd.target import Target

Factors = Counter[tuple[Any, Any]]  # (kind, what)
CONTRACTIONS, REDUCTIONS = map(ops_of, (Role.CONTRACT, Role.REDUCE))
LOGARITHM = "log"  # what undoes the exponentials of a softmax
MOST_STEPS = 32  # from a product to its factors


def shorter_sums(order: Sequence[Node], is_parted: bool = False) -> dict[int, Node]:
    """Find what stands for sums of weights times their gradient, by their identities.

    `order` lists nodes inputs first, and not below realized ones. Products of weights that are a
    sum of softmaxes may be parted, where all of them stream in one kernel.
    """
    products = Products(is_parted)
    for node in filter(is_product, nodes_of(order, CONTRACTIONS)):
        products.add(node)
    shorter = {}
    for node in filter(is_sum, nodes_of(order, REDUCTIONS) if products.of else ()):
        found = shortened(node, products)
        if found is not None:
            shorter[id(node)] = found
    return shorter


@dataclass(slots=True)
class Products:
    """The products of a graph by each of their operands, and by a factor of the other one."""

    is_parted: bool
    of: dict[int, list[Node]] = field(default_factory=dict)
    known: dict[int, dict[Any, list[tuple[Node, Factors]]]] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Note a product."""
        for operand in set(map(id, node.inputs)):
            self.of.setdefault(operand, []).append(node)

    def weighted_by(self, value: Node, factors: Factors) -> Iterator[tuple[Node, Factors]]:
        """Yield products of a value with weights that are made of some factors, and no others.

        Only those are asked whose first factor is among them: a matrix that each step of a loop
        multiplies has as many products as steps.
        """
        if id(value) not in self.known:
            found: dict[Any, list[tuple[Node, Factors]]] = {}
            self.known[id(value)] = found
            for node in self.of.get(id(value), ()):
                for each in (node, *(parts_of(node, value) if self.is_parted else ())):
                    weights = factors_of(other_operand(each, value))
                    found.setdefault(next(iter(weights)), []).append((each, weights))
        for factor in factors:
            for node, weights in self.known[id(value)].get(factor, ()):
                if not weights - factors:
                    yield node, weights


def parts_of(product: Node, value: Node) -> Iterator[Node]:
    """Yield products of a value of 16 bits with each of the softmaxes that its weights sum."""
    weights = other_operand(product, value)
    softmaxes = softmaxes_in(weights) if value.dtype.bits == 16 else []
    for each in softmaxes if len(softmaxes) > 1 else ():
        part = each.cast(weights.dtype)
        yield product.with_inputs((part, value) if product.inputs[1] is value else (value, part))


def softmaxes_in(weights: Node) -> list[Node]:
    """List the softmaxes that weights are a sum of, each times what is repeated; none if there is
    anything else."""
    found: list[Node] = []
    stack = [weights]
    while stack and len(found) < MOST_STEPS:
        node = stack.pop()
        linear, inputs = node.row.linear, node.inputs
        if node.realized is not None or not inputs:
            return []
        if len(node.row.factors) == 2 or (len(inputs) == 1 and linear == (0,)):
            stack += inputs
        elif linear == (0, 1):
            stack += [each for each in inputs if not is_repeated(each)]
        elif linear == (0,) and unconverted(inputs[0]).op in EXPONENTIALS:
            found.append(node)
        else:
            return []
    return found


def is_repeated(node: Node) -> bool:
    """Tell whether a node is a number, or repeats what it shows."""
    return node.row.is_repeating or not isinstance(number_of(node), Node)


def expanded(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Replace composites by what the target computes them from; `order` lists inputs first."""
    shared = shared_totals(roots, order) | unshifted(order)
    if not shared:
        return expand_composites(roots, target=target, order=order)
    roots = replaced(roots, order, shared)
    return expand_composites(roots, target=target)


def shared_totals(roots: Sequence[Node], order: Sequence[Node]) -> dict[int, Node]:
    """Find what stands for logarithms of sums beside a softmax, by their identities."""
    expanding = {op: OPS[op].expand for op in ops_in(order)}
    if not {expand_logsumexp, expand_log_softmax} & set(expanding.values()):
        return {}
    plain = [node for node in order if type(node) is Node and node.realized is None]
    logs = [node for node in plain if expanding[node.op] is expand_logsumexp]
    softmaxes = [node for node in plain if expanding[node.op] is expand_softmax]
    powers = [node for node in plain if node.row.logarithm == LOGARITHM]
    new: dict[int, Node] = {}
    for node in powers:
        inner = unconverted(node.inputs[0])
        if expanding.get(inner.op) is expand_log_softmax and is_weight(node, order):
            new[id(node)] = build.softmax(inner.inputs[0], inner.arg).cast(node.dtype)
    sizes = {node.size for node in (*softmaxes, *powers)}
    if any(node.inputs[0].size in sizes for node in logs):
        new |= beside_softmaxes(logs, softmaxes, powers, roots, order)
    return new


def beside_softmaxes(
    logs: Sequence[Node],
    softmaxes: Sequence[Node],
    powers: Sequence[Node],
    roots: Sequence[Node],
    order: Sequence[Node],
) -> dict[int, Node]:
    """Find what stands for logarithms of sums, and for exponentials of values less these."""
    facts = facts_of(order, roots)

    def normalised(node: Node) -> tuple[Facts, int]:
        return facts[id(node.inputs[0])], node.arg

    known = {normalised(node): node for node in softmaxes if weighing(node, order)}
    new: dict[int, Node] = {}
    totals = {facts[id(node)]: node for node in logs}
    pairs: list[tuple[Node, Node]] = []  # exponentials of values less the logarithm of their own
    for node in powers:
        (less,) = node.inputs
        if less.row.factors != (1, -1):
            continue
        values, shift = less.inputs
        log = totals.get(facts[id(unconverted(unrepeated(shift)))])
        source = unconverted(values)
        if log is None or facts[id(source)] is not facts[id(unconverted(log.inputs[0]))]:
            continue
        if is_along(shift, log.arg):
            pairs.append((node, log))
            if normalised(log) not in known and is_weight(node, order):
                known[normalised(log)] = build.softmax(log.inputs[0], log.arg)
    for node in filter(lambda each: normalised(each) in known, logs):
        new[id(node)] = logsumexp_beside_softmax(node.inputs[0], node.arg)
    for node, log in pairs:
        if normalised(log) in known:
            new[id(node)] = known[normalised(log)].cast(node.dtype)
    return new


def unshifted(order: Sequence[Node]) -> dict[int, Node]:
    """Find what stands for softmaxes of values less their maximum, which subtract it themselves."""
    new: dict[int, Node] = {}
    shiftless = {op for op in ops_in(order) if OPS[op].is_shiftless}
    for node in nodes_of(order, shiftless):
        if node.realized is not None:
            continue
        less = unconverted(node.inputs[0])
        if less.realized is not None or less.row.factors != (1, -1):
            continue
        values, shift = less.inputs
        top = unrepeated(shift)
        is_maximum = top.op in REDUCTIONS and top.arg == ("max", (node.arg,))
        if is_maximum and top.realized is None and top.inputs[0] is values:
            plain = values.cast(node.inputs[0].dtype)
            new[id(node)] = node.with_inputs((plain,))
    return new


def unconverted(node: Node) -> Node:
    """Find what is converted."""
    while node.realized is None and node.row.keeps_value:
        (node,) = node.inputs
    return node


def weighing(weights: Node, order: Sequence[Node], is_linear: bool = False) -> Node | None:
    """Find the first product that reads weights, or what is made of them at their places."""
    made = {id(weights)}
    for node in order:
        if made.isdisjoint(map(id, node.inputs)):
            continue
        if node.op in CONTRACTIONS:
            return node
        is_made = bool(node.row.linear) if is_linear else node.row.role is Role.ELEMENTWISE
        if is_made or node.row.role is Role.VIEW:
            made.add(id(node))
    return None


def unrepeated(node: Node) -> Node:
    """Find what is repeated along one dimension."""
    while node.realized is None:
        row = node.row
        is_named = row.role is Role.PASS and not row.is_stored
        is_repeated = row.is_repeating or is_reshaped(node) or is_named
        if isinstance(node.arg, CustomGradient):
            node = node.inputs[-1]
        elif is_repeated:
            node = node.inputs[0]
        else:
            break
    return node


def is_weight(power: Node, order: Sequence[Node]) -> bool:
    """Tell whether an exponential, or what is linear in it, weighs values, of each of a batch.

    The gradient of a loss over the words of a vocabulary is multiplied by one matrix.
    """
    product = weighing(power, order, is_linear=True)
    if product is None:
        return False
    labels, others, out = product.arg
    sizes = zip(out, product.shape, strict=True)
    return any(n > 1 and name in labels and name in others for name, n in sizes)


def is_along(shift: Node, axis: int) -> bool:
    """Tell whether a value is repeated along an axis, and along no other."""
    sizes = list(shift.shape)
    sizes[axis] = 1
    return shift.row.is_repeating and shift.inputs[0].shape == tuple(sizes)


def replaced(roots: Sequence[Node], order: Sequence[Node], new: dict[int, Node]) -> list[Node]:
    """Rebuild a graph with some nodes replaced by others made of its nodes.

    What a replacement is made of is rebuilt with it: it may hold a node that is replaced too, or
    one that comes later in `order`.
    """
    changed: dict[int, Node] = {}
    seen: set[int] = set()
    for node in order:
        if id(node) in new:
            rebuild(node, new, changed, seen)
        elif id(node) not in seen:
            seen.add(id(node))
            change(node, changed)
    return [changed.get(id(root), root) for root in roots]


def rebuild(top: Node, new: dict[int, Node], changed: dict[int, Node], seen: set[int]) -> None:
    """Rebuild a node, after all below it that was not seen."""
    stack = [(top, False)]
    while stack:
        node, is_ready = stack.pop()
        instead = new.get(id(node))
        if is_ready and instead is not None:
            changed[id(node)] = changed.get(id(instead), instead)
        elif is_ready:
            change(node, changed)
        elif id(node) not in seen:
            seen.add(id(node))
            below = () if node.realized is not None else node.inputs
            below = below if instead is None else (instead,)
            stack.append((node, True))
            stack += [(child, False) for child in below]


def change(node: Node, changed: dict[int, Node]) -> None:
    """Rebuild a node over what its inputs have become, if any has changed."""
    if not changed.keys().isdisjoint(map(id, node.inputs)) and node.realized is None:
        inputs = tuple([changed.get(id(child), child) for child in node.inputs])
        changed[id(node)] = node.with_inputs(inputs)


def is_product(node: Node) -> bool:
    """Tell whether a node is a product that is not in memory yet."""
    return node.realized is None and node.op in CONTRACTIONS


def is_sum(node: Node) -> bool:
    """Tell whether a node is a sum over dimensions that is not in memory yet."""
    return node.realized is None and node.op in REDUCTIONS and node.arg[0] == "sum"


def shortened(node: Node, products: Products) -> Node | None:
    """Write a sum of weights times their gradient as one of rows; None if it is none."""
    factors = factors_of(node.inputs[0])
    for gradient, value in gradients_in(factors):
        others = Counter(factors)
        others[product_key(gradient)] -= 1
        for output, weights in products.weighted_by(value, others):
            inside, rest = of_one_number(others - weights)
            found = short_sum(node, gradient, value, output, inside)
            if found is not None:
                found = multiplied(found, rest, node)
            if found is not None:
                return found
    return None


def of_one_number(factors: Factors) -> tuple[list[Any], Factors]:
    """Part the factors of a softmax that is subtracted: signs, and numbers, stand in the sum."""
    inside: list[Any] = []
    rest: Factors = Counter()
    for (kind, what), count in factors.items():
        is_sign = isinstance(kind, tuple) and not what and OPS[kind[0]].arity == 1
        is_number = kind == "element" and (not isinstance(what, Node) or what.size == 1)
        if is_sign:
            inside += [kind[0]] * count
        elif is_number and count == 1:
            inside.append(what)
        else:
            rest[kind, what] = count
    has_sign = any(isinstance(each, str) for each in inside)
    return (inside, rest) if has_sign else ([], factors)


def multiplied(short: Node, rest: Factors, node: Node) -> Node | None:
    """Multiply a short sum by what else `node` sums, if that has one value a row."""
    for (kind, what), count in rest.items():
        is_operation = isinstance(kind, tuple)
        others = what if is_operation else (what,)
        if is_operation and OPS[kind[0]].arity != len(others) + 1:
            return None
        rows = [row_of(each, node, short.dtype) for each in others]
        if count > 1 or kind == "product" or any(row is None for row in rows):
            return None
        if is_operation:
            op, place = kind
            rows.insert(place, short)
        else:
            op, rows = "mul", [short, *rows]
        found = build.elementwise(op, *[row for row in rows if row is not None])
        short = found
    return short


def row_of(what: Any, node: Node, dtype: DType) -> Node | None:
    """Find the value that all summed elements of a row share: a number, or what is repeated."""
    if not isinstance(what, Node):
        return build.const(what, node.shape, dtype, node.device)
    axes = node.arg[1]
    if what.rank == node.inputs[0].rank and all(what.shape[axis] == 1 for axis in axes):
        left, there = (
            [size for d, size in enumerate(each.shape) if d not in axes]
            for each in (what, node.inputs[0])
        )
        return what.cast(dtype).reshape(tuple(left)).expand(tuple(there)).reshape(node.shape)
    sizes = [1 if axis in axes else size for axis, size in enumerate(what.shape)]
    is_same = what.row.is_repeating and what.inputs[0].shape == tuple(sizes)
    return what.inputs[0].cast(dtype).reshape(node.shape) if is_same else None


def gradients_in(factors: Factors) -> Iterator[tuple[Node, Node]]:
    """Yield the products among factors, each with what may be the values it was weighted with."""
    for kind, node in factors:
        if kind == "product":
            for value in dict.fromkeys(node.inputs):
                yield node, value


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
            others = [place for place in range(len(each.inputs)) if place not in row.linear]
            rest = tuple([each.inputs[place] for place in others])
            if not row.keeps_value:
                found[(each.op, shown), rest] += 1
            stack.append(each.inputs[shown])
    for each in stack:
        found["element", each] += 1
    return found


def is_reshaped(node: Node) -> bool:
    """Tell whether a node adds or drops dimensions of one position."""
    row = node.row
    is_view = row.is_same_bytes and row.role is Role.VIEW
    if node.realized is not None or not is_view:
        return False
    return wide(node.shape) == wide(node.inputs[0].shape)


def wide(sizes: Sequence[Any], values: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """Leave out what belongs to dimensions of one position: sizes, or other values of them."""
    shown = sizes if values is None else values
    left = [value for size, value in zip(sizes, shown, strict=True) if size != 1]
    return tuple(left)


def is_alone(node: Node, place: int) -> bool:
    """Tell whether the other inputs that a node is linear in are 0."""
    others = [k for k in node.row.linear if k != place]
    numbers = [number_of(node.inputs[k]) for k in others]
    return all(number == 0 for number in numbers)


def number_of(node: Node) -> Any:
    """Find the number that a node is everywhere; else the node itself."""
    while node.realized is None:
        is_same = node.row.is_repeating or node.row.keeps_value
        if not is_same:
            break
        node = node.inputs[0]
    is_number = node.op in NUMBERS and node.realized is None
    return node.arg if is_number else node


def other_operand(output: Node, value: Node) -> Node:
    """Find what a product multiplies a value with."""
    first, second = output.inputs
    return second if first is value else first


def short_sum(
    node: Node, gradient: Node, value: Node, output: Node, inside: Sequence[Any]
) -> Node | None:
    """Multiply the gradient of an output with it and sum its columns; None if they do not fit.

    output = weights @ value; gradient = g @ value.T, of the weights; `node` sums it as `value` was.
    What is `inside` is done to each summand: an operation, or a product with one number.
    """
    weight_labels, value_labels, out = labels_beside(output, value)
    gradient_labels = labels_beside(gradient, value)
    wanted_labels = out, value_labels, weight_labels
    if renumbered(gradient_labels) != renumbered(wanted_labels):
        return None
    g = other_operand(gradient, value)
    sizes = node.inputs[0].shape
    is_alike = wide(sizes) == wide(gradient.shape)
    if not is_alike or g.shape != output.shape:
        return None
    # `weight_labels` name the dimensions of the gradient of the weights as the output does.
    own = wide(gradient.shape, weight_labels)
    summed = [axis in node.arg[1] for axis in range(len(sizes))]
    is_over = list(wide(sizes, summed))
    is_left_out = [label not in out for label in own]
    if is_left_out != is_over:
        return None
    kept = [label for label in out if label in weight_labels]
    wanted = [label for label in weight_labels if label in out]
    columns = [d for d, label in enumerate(out) if label not in kept]
    first, second = g.cast(node.dtype), output.cast(node.dtype)
    product = first * second
    for each in inside:
        product = multiple_of(product, each)
    short = product.reduce("sum", tuple(columns))
    sources = sources_of(gradient)  # it sums the same columns of `g`, which may end
    if sources:
        ends = sources[1 - gradient.inputs.index(value)]
        summed_ends = tuple([end for end in ends if end.axis in columns])
        short = ended(short, (), (summed_ends,))
    order = [kept.index(label) for label in wanted]
    return short.permute(tuple(order)).reshape(node.shape)


def multiple_of(product: Node, factor: Any) -> Node:
    """Do an operation of one argument, or multiply by one number."""
    if isinstance(factor, str):
        return build.elementwise(factor, product)
    if not isinstance(factor, Node):
        return product * factor
    number = factor.cast(product.dtype).reshape((1,) * product.rank)
    return product * number.expand(product.shape)


def labels_beside(product: Node, value: Node) -> tuple[tuple[int, ...], ...]:
    """List the labels of what a product multiplies a value with, of the value, of the result."""
    place = product.inputs.index(value)
    labels = product.arg
    return labels[1 - place], labels[place], labels[2]


def renumbered(lists: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    """Number labels in the order they appear."""
    number: dict[int, int] = {}
    found = []
    for labels in lists:
        numbers = [number.setdefault(label, len(number)) for label in labels]
        found.append(numbers)
    return found
