"""The gradient of a loop: another loop, backwards, whose body is the gradient of the body.

The first loop keeps nothing on its own account. The gradient asks it, by outcomes, for the carries
before each step and for the results of the body's products, reductions and the like; elementwise
work is done again. Cotangents of the carries are the carries of the new loop.

The gradient of a constant is a sum over all steps. Where one step's part is a product or a sum,
its operands are stacked and it is taken once, outside: the gradient of a weight is one product
over all steps. Otherwise it is a carry of its own, in the dtype sums accumulate in.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from picograd.graph.node import Node, is_move, toposort
from picograd.graph.recurrence import (
    Body,
    carries_after,
    close,
    first_row,
    make_body,
    outcome,
    placeholder,
    recur,
    stacked,
)
from picograd.graph.row import INPUTS, NUMBERS, Role
from picograd.late_methods import dataclass
from picograd.shared_parts import once_a_node

Pair = tuple[Node, Node]
Differentiate = Callable[[Sequence[Pair], Sequence[Node]], list[Node | None]]
IsCheap = Callable[[Node], bool]
Numbered = dict[int, Node]  # by the number of a carry, an input or a body node


@dataclass(eq=False, slots=True)
class Derived:
    """The body of the gradient loop, where its inputs come from, and where gradients are found."""

    floats: list[int]  # the carries of the first loop that have a gradient
    sums: list[int] = field(default_factory=list)  # constants whose gradient is a carry
    given: Numbered = field(default_factory=dict)  # x of a body node's stacked cotangent
    kept: Numbered = field(default_factory=dict)  # x of a body node's value
    read: list[Node] = field(default_factory=list)  # those of both that the loop reads
    constants: Numbered = field(default_factory=dict)
    outer: list[Node] = field(default_factory=list)  # more constants, from outside the loop
    varying: set[int] = field(default_factory=set)  # nodes that differ from step to step
    split: set[int] = field(default_factory=set)  # of these, what adds up sums
    slices: Numbered = field(default_factory=dict)  # the gradient of each x
    totals: Numbered = field(default_factory=dict)  # of each constant summed outside
    numbers: dict[int, int] = field(default_factory=dict)  # of its body's nodes, by identity
    body: Any = None

    def rows(self, node: Node, loop: Node, stacks: Numbered) -> Node | None:
        """Find all rows of an x that stands for a cotangent, or for a value of the first loop."""
        for number, leaf in self.given.items():
            if leaf is node:
                return stacks[number]
        for number, leaf in self.kept.items():
            if leaf is node:
                return stacked(loop, number)
        return None


def recur_vjp(
    flowing: Node, loop: Node, differentiate: Differentiate, is_cheap: IsCheap
) -> list[Node | None]:
    """Build the gradients of a loop's inputs; `differentiate` is the walk over a graph."""
    body: Body = loop.arg.body
    last, stacks, first = flows_of(flowing, loop)
    key = tuple(sorted(stacks))
    derived = body.gradients.get(key)
    if derived is None:
        derived = body.gradients[key] = derive(body, key, differentiate, is_cheap)
    back = gradient_loop(loop, derived, last, stacks)
    parts: list[Node | None] = [None] * len(loop.inputs)
    for place, number in enumerate(derived.floats):
        part = outcome(back, "carry", place)
        parts[number] = part + first[number] if number in first else part
    totals = Totals(loop, back, derived, stacks)
    for number, node in derived.slices.items():
        parts[number] = totals.lifted(node)
    for number, node in derived.totals.items():
        parts[number] = totals.total(node)
    for place, number in enumerate(derived.sums, len(derived.floats)):
        parts[number] = outcome(back, "carry", place).cast(loop.inputs[number].dtype)
    return parts


def flows_of(flowing: Node, loop: Node) -> tuple[Numbered, Numbered, Numbered]:
    """Take a sum of `flow` nodes apart: cotangents of the last carries, of body nodes stacked over
    all steps, and what goes straight to the first carries."""
    last: Numbered = {}
    stacks: Numbered = {}
    first: Numbered = {}

    def add(found: Numbered, number: int, part: Node) -> None:
        found[number] = found[number] + part if number in found else part

    for flow in toposort([flowing], is_flow):
        if not is_flow(flow):
            continue
        (kind, number), part = flow.arg, flow.inputs[0]
        if kind == "carry":
            add(last, number, part)
        elif kind == "stack":
            add(stacks, number, part)
        else:
            add(first, number, first_row(loop, part))
            add(stacks, loop.arg.body.nexts[number], carries_after(loop, part))
    return last, stacks, first


def is_flow(node: Node) -> bool:
    """Tell whether a node is the cotangent of one outcome."""
    return node.row.role is Role.FLOW


def derive(
    body: Body, given: Sequence[int], differentiate: Differentiate, is_cheap: IsCheap
) -> Derived:
    """Differentiate one step; `given` are the body nodes that have a stacked cotangent."""
    floats = [n for n, node in enumerate(body.carries) if node.dtype.is_float]
    arriving = [like("carry", body.carries[n]) for n in floats]
    slices = [like("x", body.order[n]) for n in given]
    outputs = [(body.order[body.nexts[n]], leaf) for n, leaf in zip(floats, arriving)]
    outputs += [(body.order[n], leaf) for n, leaf in zip(given, slices)]
    leaves = list(enumerate(body.leaves))
    wanted = [(n, leaf) for n, leaf in leaves if leaf.dtype.is_float]
    found = differentiate(outputs, [leaf for _, leaf in wanted])
    parts = {n: part for (n, _), part in zip(wanted, found) if part is not None}
    for n in floats:  # a carry nobody reads passes nothing back
        parts.setdefault(n, body.carries[n].const_like(0))
    derived = Derived(floats)
    replaced = Replaced(body, [*arriving, *slices], is_cheap)
    rewritten = dict(zip(parts, replaced.rewrite(list(parts.values()))))
    assemble_body(body, derived, replaced, rewritten, dict(zip(given, slices)))
    return derived


def like(kind: str, node: Node) -> Node:
    """Make a placeholder of a node's shape and dtype."""
    return placeholder(kind, node.shape, node.dtype, node.device)


class Replaced:
    """Puts placeholders for the values of the first loop into the gradient of its body."""

    def __init__(self, body: Body, arriving: Sequence[Node], is_cheap: IsCheap) -> None:
        self.body: Body = body
        self.is_cheap: IsCheap = is_cheap
        self.arriving: list[Node] = list(arriving)  # cotangents: they stay
        self.numbers: dict[int, int] = {id(node): n for n, node in enumerate(body.order)}
        self.kept: Numbered = {}  # placeholder of each body node kept over time
        self.made: set[int] = set()  # identities of nodes kept, not computed of what is dear
        self.constants: Numbered = {}
        self.outer: list[Pair] = []

    def is_leaf(self, node: Node) -> bool:
        """Tell whether a node is read from the first loop."""
        if id(node) not in self.numbers:
            return node.op in INPUTS
        return node.op in INPUTS or id(node) in self.made or not self.is_cheap(node)

    def keep_made(self, roots: Sequence[Node]) -> None:
        """Keep what alone is read of a dear value in its place: what else that is made of may go.

        Of a product the gates of an LSTM, with the input's part of them; of an RNN its state.
        """
        order = toposort(roots, self.is_leaf)
        readers: dict[int, list[Node]] = {id(root): [root] for root in roots}
        for node in order:
            inputs = {} if self.is_leaf(node) else {id(child): child for child in node.inputs}
            for number in inputs:
                readers.setdefault(number, []).append(node)
        for node in [each for each in order if self.is_leaf(each)]:
            if id(node) not in self.numbers or node.op in INPUTS:
                continue
            kept = node
            while len(found := readers[id(kept)]) == 1 and self.replaces(found[0], kept):
                kept = found[0]
                self.made.add(id(kept))

    def replaces(self, reader: Node, node: Node) -> bool:
        """Tell whether the first loop has what is read of a node, in as many bytes."""
        is_own = id(reader) in self.numbers and reader.row.is_elementwise
        is_short = reader.dtype.itemsize <= node.dtype.itemsize
        return is_own and is_short and reader.shape == node.shape and reader is not node

    def leaf(self, node: Node) -> Node:
        """Find or make the placeholder that stands for a node of the first loop."""
        number = self.numbers.get(id(node))
        if number is None:  # a cotangent
            return node
        is_constant = node.op in INPUTS and node.arg == "constant"
        found = self.constants if is_constant else self.kept
        return found.setdefault(number, like("constant" if is_constant else "x", node))

    def rewrite(self, roots: Sequence[Node]) -> list[Node]:
        """Rewrite the gradient of the body over placeholders of its own."""
        done: Numbered = {}
        self.keep_made(roots)
        for node in toposort(roots, self.is_leaf):
            if self.is_leaf(node):
                done[id(node)] = self.leaf(node)
                continue
            done[id(node)] = node.with_inputs(tuple([done[id(child)] for child in node.inputs]))
        new = [done[id(root)] for root in roots]
        leaves = [*self.arriving, *self.kept.values(), *self.constants.values()]
        closed, constants = close(new, leaves)
        by_identity = {id(node): node for node in toposort(new)}
        self.outer = [(by_identity[key], leaf) for key, leaf in constants.items()]
        return closed


def assemble_body(
    body: Body, derived: Derived, replaced: Replaced, parts: Numbered, slices: Numbered
) -> None:
    """Decide how each gradient leaves the loop, and make its body."""
    carries = len(body.carries)
    nexts = [parts[number] for number in derived.floats]
    results: list[Node] = []
    sums: list[Node] = []
    largest = max((leaf.size for leaf in (*body.carries, *body.xs)), default=1)
    fixed = [*replaced.constants.values(), *(leaf for _, leaf in replaced.outer)]
    derived.varying = varying_nodes(list(parts.values()), fixed)
    derived.split = split_nodes(list(parts.values()), derived.varying)
    for number, part in parts.items():
        if carries <= number < carries + len(body.xs):
            derived.slices[number] = part
            results.append(below_views(part))
        elif number >= carries and is_summed_outside(part, derived, largest):
            derived.totals[number] = part
            results += operands_of(part, derived)
        elif number >= carries:
            wide = part.accumulated()
            sums.append(like("carry", wide))
            nexts.append(sums[-1] + wide)
            derived.sums.append(number)
    inner = [node for node in results if node.op not in INPUTS]
    reached = {id(node) for node in toposort([*nexts, *inner])}
    derived.kept = replaced.kept
    derived.given = dict(slices)
    derived.read = [leaf for leaf in (*slices.values(), *replaced.kept.values())
                    if id(leaf) in reached]  # fmt: skip
    derived.constants = {n: x for n, x in replaced.constants.items() if id(x) in reached}
    derived.outer = [node for node, _ in replaced.outer]
    arriving = replaced.arriving[: len(derived.floats)]
    constants = [*derived.constants.values(), *(leaf for _, leaf in replaced.outer)]
    leaves = ([*arriving, *sums], derived.read, constants)
    derived.body, derived.numbers = make_body(leaves, nexts, inner)


def varying_nodes(roots: Sequence[Node], fixed: Sequence[Node]) -> set[int]:
    """Find the nodes whose value differs from step to step."""
    constants = {id(leaf) for leaf in fixed}
    varying: set[int] = set()
    for node in toposort(roots):
        is_leaf = node.op in INPUTS and id(node) not in constants
        if is_leaf or any(id(child) in varying for child in node.inputs):
            varying.add(id(node))
    return varying


def is_linear(node: Node) -> bool:
    """Tell whether the sum of a node over steps is the node of the sums of its inputs."""
    if node.row.keeps_value:
        return node.inputs[0].dtype.is_float
    return is_move(node) or node.row.factors == (1, 1)


def is_sum(node: Node) -> bool:
    """Tell whether a node is a sum, into which the steps can be taken."""
    role = node.row.role
    return role is Role.CONTRACT or (role is Role.REDUCE and node.arg[0] == "sum")


def split_nodes(roots: Sequence[Node], varying: set[int]) -> set[int]:
    """Find what adds up sums, each of which is taken outside; sums are among them.

    What adds up other arrays, as the gradients of slices of one are, needs one place, not each.
    """
    split: set[int] = set()
    for node in [each for each in toposort(roots) if id(each) in varying]:
        if is_sum(node) or (is_linear(node) and any(id(child) in split for child in node.inputs)):
            split.add(id(node))
    return split


@once_a_node
def is_summed_outside(node: Node, derived: Derived, largest: int) -> bool:
    """Tell whether the sum of a node over all steps is better taken after the loop."""
    if id(node) not in derived.varying:
        return node.op in NUMBERS
    if is_sum(node):
        return all(id(child) in derived.varying for child in node.inputs)
    if id(node) in derived.split:
        return all(is_summed_outside(child, derived, largest) for child in node.inputs)
    return node.size <= largest


@once_a_node
def operands_of(node: Node, derived: Derived) -> list[Node]:
    """List what must be stacked for a sum taken after the loop."""
    if id(node) not in derived.varying:
        return []
    if is_sum(node):
        return [below_views(child) for child in node.inputs]
    if id(node) in derived.split:
        every = [each for child in node.inputs for each in operands_of(child, derived)]
        return list({id(each): each for each in every}.values())
    return [below_views(node)]


def below_views(node: Node) -> Node:
    """Look below views that can be applied to all steps at once."""
    while is_move(node):
        node = node.inputs[0]
    return node


def gradient_loop(loop: Node, derived: Derived, last: Numbered, stacks: Numbered) -> Node:
    """Record the loop of the gradient: in the other direction, on what the first one kept."""
    spec = loop.arg
    body = derived.body
    inputs = [
        last[number] if number in last else spec.body.carries[number].const_like(0)
        for number in derived.floats
    ]
    inputs += [carry.const_like(0) for carry in body.carries[len(inputs) :]]
    inputs += [derived.rows(leaf, loop, stacks) for leaf in derived.read]
    inputs += [loop.inputs[number] for number in derived.constants]
    return recur(body, spec.length, not spec.is_reverse, [*inputs, *derived.outer])


@dataclass(eq=False, slots=True)
class Totals:
    """Sums over all steps, taken after the gradient loop `back` of `loop`."""

    loop: Node
    back: Node
    derived: Derived
    stacks: Numbered

    def total(self, node: Node) -> Node:
        """Sum a node of the gradient's body over all steps."""
        length = self.loop.arg.length
        if id(node) not in self.derived.varying:
            return node.const_like(node.arg * length)
        if node.row.role is Role.CONTRACT:
            a, b, out = node.arg
            time = max((*a, *b), default=0) + 1
            left, right = (self.lifted(child) for child in node.inputs)
            return left.contract(right, ((time, *a), (time, *b), out))
        if is_sum(node):
            axes = (0, *(axis + 1 for axis in node.arg[1]))
            return self.lifted(node.inputs[0]).reduce("sum", axes)
        if id(node) in self.derived.split:
            first, *others = map(self.total, node.inputs)
            return first + others[0] if others else node.with_inputs((first,))
        return self.lifted(node).reduce("sum", (0,))

    def lifted(self, node: Node) -> Node:
        """Find the values of a node at all steps."""
        if is_move(node):
            row, steps = node.row, self.loop.arg.length
            source = self.lifted(node.inputs[0])
            return row.view.show(source, row.batch_arg(node.arg, steps))  # type: ignore
        found = self.derived.rows(node, self.loop, self.stacks)
        return stacked(self.back, self.derived.numbers[id(node)]) if found is None else found
