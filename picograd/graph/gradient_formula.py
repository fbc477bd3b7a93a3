"""Gradients that were recorded before: the formula of what `backward` records, by the graph.

A training step differentiates the same graph every time, on other nodes. One walk finds its key:
what the rules of differentiation and the constructors that they call look at, and nothing else.
Behind the key is the formula of the gradients (`graph/formula.py`), whose inputs are nodes of the
walk.

    key      for each node op, inputs by number, argument, shape, dtype, device, whether it is
             computed, and what its leaf asks for; numbers and positions that a user gave are left
             out, as they are in the key of a plan
    numbers  a number of a gradient that was computed of given ones is computed of others as it was
             of those, and is an input of the formula, so that it stays an argument of the plan;
             where that was not noted, the formula is for these numbers

No key have graphs with a rule of a user's own, with leaves that were overwritten, and with sizes
that vary: their gradients are recorded each time (docs/design/0017-gradients-by-formula.md).
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from picograd.buffer import Overwritten
from picograd.config import config
from picograd.dtype import DType
from picograd.graph.composites import CustomGradient
from picograd.graph.formula import Change, Formula, formula_over, results_of
from picograd.graph.node import Node, toposort
from picograd.graph.row import MOVING, NUMBERS, PASSING, SHOWING
from picograd.graph.shape import Shape
from picograd.graph.starts import arg_at, placed, starts_of
from picograd.helpers import Key
from picograd.late_methods import dataclass
from picograd.number import GIVEN, LOST, Derivation, Given, Note, derivation, made_of

LIMIT = 256  # graphs whose gradients are known
FEW = 4  # sizes of a graph whose gradients are kept the first time
MANY = 16  # and above which no gradient is folded: plans for any size look inside
ASKS = 1  # what a leaf's flag is if gradients stop at it
REFUSED = (Overwritten, CustomGradient)
Flag = Callable[[Node], int]


@dataclass(slots=True)
class Walked:
    """A graph as one walk finds it: nodes inputs first, their key, and the numbers left out."""

    order: list[Node] = field(default_factory=list)
    key: Any = None
    given: list[Any] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)  # those, and what `find` computed of them
    positions: set[int] = field(default_factory=set)  # which of those are positions


@dataclass(frozen=True, slots=True)
class GivenNumber:
    """A constant among the inputs: one of the numbers left out, or one computed of them."""

    place: int  # among the numbers, -1 for one of which it is not known how it was computed
    value: Any
    kind: tuple[Shape, DType, str]

    def node(self, numbers: Sequence[Any]) -> Node:
        """Make the constant."""
        value = self.value if self.place < 0 else numbers[self.place]
        return Node("const", (), value, *self.kind)


@dataclass(slots=True)
class Sizes:
    """Graphs of the same operations, by the hashes of their keys, and whether many were met."""

    seen: set[int] = field(default_factory=set)
    are_many: bool = False

    def is_likely(self, key: int) -> bool:
        """Note a graph, and tell whether it is likely to come again: of many, one met before."""
        if len(self.seen) >= LIMIT:
            self.seen.clear()
        is_known = key in self.seen or (len(self.seen) < FEW and not self.are_many)
        self.seen.add(key)
        self.are_many |= len(self.seen) > MANY
        return is_known


@dataclass(frozen=True, slots=True)
class Known:
    """The gradients of a graph; of None nothing can be kept."""

    formula: Formula | None
    inputs: tuple[int | GivenNumber, ...] = ()
    targets: tuple[int, ...] = ()  # where the leaves are in the walk
    given: tuple[str, ...] | None = None  # the numbers it is for; None for any
    derivation: Derivation | None = None  # of numbers that are computed of others
    is_placed: bool = False  # positions count among them
    positions: Mapping[int, int] = field(default_factory=dict)  # by identity: which number it is
    key: Any = None  # its own in `KNOWN`
    sizes: Sizes = field(default_factory=Sizes)  # of graphs of its operations


KNOWN: "OrderedDict[Any, Known]" = OrderedDict()
SIZES: dict[int, Sizes] = {}  # of graphs, by their operations


def walk(root: Node, flag_of: Flag) -> Walked | None:
    """Walk what a gradient passes, and see what decides how it is recorded; None without a key.

    The key is one flat row, in which an end begins with None.
    """
    found, numbers, key = Walked(), {}, []  # type: ignore[var-annotated]
    order, given = found.order, found.given
    stack: list[Any] = [root]
    pop, push = stack.pop, stack.append
    while stack:
        node = pop()
        if node is not None:
            if node in numbers:
                continue
            op, inputs = node.op, node.inputs
            flag = numbers[node] = 0 if node.leaf is None else flag_of(node)
            if inputs and is_entered(node, op, flag):
                push(node)
                push(None)
                stack += inputs[::-1]
                continue
            row: Any = end_row(node, given)
            if row is None:
                return None
            key += None, row, flag
        else:
            node = pop()
            flag, inputs, op, arg = numbers[node], node.inputs, node.op, node.arg
            if op in MOVING or type(arg) is CustomGradient or type(node) is not Node:
                arg = special_arg(node, found)
                if arg is None:
                    return None
            read = numbers[inputs[0]] if len(inputs) == 1 else tuple([numbers[x] for x in inputs])
            key += op, arg, flag, read
        key += node.shape, node.dtype, node.device, node.realized is None
        numbers[node] = len(order)
        order.append(node)
    found.key = Key((tuple(key), config.epoch))
    return found


def is_entered(node: Node, op: str, flag: int) -> bool:
    """Tell whether a walk goes below a node: a gradient does, or constructors look through it."""
    if flag == ASKS and op not in PASSING:
        return False  # how a weight is drawn is nobody's matter
    is_passed = flag != ASKS and op in PASSING and node.dtype.is_differentiable
    return is_passed or (op in SHOWING and node.realized is None)


def special_arg(node: Node, found: Walked) -> Any:
    """Describe the argument of what moves, or has a rule of its own; None where it cannot tell.

    Names positions that a user gave.
    """
    if type(node) is not Node:
        return None
    if type(node.arg) is CustomGradient:
        return node.arg.key()
    if not starts_of(node):
        return node.arg

    def name(start: Any) -> str:
        found.positions.add(len(found.given))
        found.given.append(start)
        return "at"

    return placed(node, name)


def end_row(node: Node, given: list[Any]) -> Any:
    """Describe a node where the walk ends; None where something was written over it."""
    if type(node.arg) in REFUSED:
        return None
    if node.op not in NUMBERS:
        return node.op
    if type(node.arg) not in GIVEN:
        return node.op, type(node.arg).__name__, repr(node.arg)
    given.append(node.arg)
    return node.op, type(node.arg).__name__


def sizes_of(walked: Walked) -> Sizes:
    """Find what is known of graphs of the same operations."""
    if len(SIZES) > LIMIT:
        SIZES.clear()
    return SIZES.setdefault(hash(tuple([node.op for node in walked.order])), Sizes())


def keep(
    walked: Walked,
    targets: Sequence[Node],
    gradients: Sequence[Node | None],
    table: dict[int, Note],
) -> Known | None:
    """Keep the gradients of a graph, None for some targets, for the next one with its key.

    The table says how numbers were computed. None: no graph with this key is likely to come.
    """
    sizes = sizes_of(walked)
    if not sizes.is_likely(hash(walked.key)):
        return None
    there = [(target, made) for target, made in zip(targets, gradients) if made is not None]
    made = [node for _, node in there]
    known = known_of(walked, [target for target, _ in there], made, table)
    known = replace(known, key=walked.key, sizes=sizes)
    walked.numbers = numbers_of(walked, known) or walked.given
    KNOWN[walked.key] = known
    KNOWN.move_to_end(walked.key)
    while len(KNOWN) > LIMIT:
        KNOWN.popitem(last=False)
    return known


def known_of(
    walked: Walked, targets: Sequence[Node], gradients: Sequence[Node], table: dict[int, Note]
) -> Known:
    """Find the formula of recorded gradients."""
    places = {id(node): number for number, node in enumerate(walked.order)}
    inputs: list[Node] = []
    sources: list[int | GivenNumber] = []
    is_for_these, is_placed, is_computed_of = LOST in table, False, False
    positions: dict[int, int] = {}
    before = {id(node) for node in toposort(walked.order[-1:], is_computed)}
    order = toposort(gradients, lambda node: id(node) in places)
    wanted = [node.arg for node in order if node.op in NUMBERS and id(node) not in places]
    known = {*map(id, walked.given)}
    is_apart = len(known) == len(walked.given)  # no two places have one position
    derived, numbers = derivation(made_of(wanted, known, table), walked.given)
    for node in order:
        if id(node) in places:
            source: int | GivenNumber = places[id(node)]
        elif id(node) in before:
            return Known(None)  # a rule looked at what the key does not tell
        elif node.op in NUMBERS and type(node.arg) in GIVEN:
            place = numbers.get(id(node.arg), -1)
            source = GivenNumber(place, node.arg, (node.shape, node.dtype, node.device))
            is_for_these |= place < 0
            is_placed |= place < 0 and type(node.arg) is not Given
            is_computed_of |= place >= derived.count
        else:
            starts = [id(start) for start in starts_of(node)] if node.op in MOVING else []
            positions |= {start: numbers[start] for start in starts if start in numbers}
            is_placed |= not (is_apart and positions.keys() >= {*starts})
            continue
        inputs.append(node)
        sources.append(source)
    formula = formula_over(inputs, gradients) if inputs else None
    if formula is None:
        return Known(None)
    given = texts(walked, is_placed) if is_for_these or is_placed else None
    found = tuple([places[id(target)] for target in targets])
    of_others = derived if is_computed_of else None
    return Known(formula, tuple(sources), found, given, of_others, is_placed, positions)


def is_computed(node: Node) -> bool:
    """Tell whether a node has its value."""
    return node.realized is not None


def texts(walked: Walked, is_placed: bool) -> tuple[str, ...]:
    """Write the numbers of a graph so that 0.0 and -0.0 are two; positions where they count."""
    left_out = () if is_placed else walked.positions
    return tuple(["" if at in left_out else repr(each) for at, each in enumerate(walked.given)])


def find(walked: Walked) -> Known | None:
    """Find what is known of the gradients of a graph; None if they must be recorded."""
    known = KNOWN.get(walked.key)
    if known is None:
        return None
    if known.given is not None and known.given != texts(walked, known.is_placed):
        return None
    numbers = numbers_of(walked, known)
    if numbers is None:
        return None
    walked.numbers = numbers
    KNOWN.move_to_end(known.key)  # the same object: nothing is compared
    return known


def numbers_of(walked: Walked, known: Known) -> list[Any] | None:
    """List the numbers of a graph, and those that its gradients compute of them, None for none."""
    return walked.given if known.derivation is None else known.derivation.numbers(walked.given)


def again(walked: Walked, known: Known, is_folded: bool) -> list[Node]:
    """Record known gradients, as one node where that may be."""
    formula: Any = known.formula
    order, given = walked.order, walked.given
    nodes: list[Node] = []
    for source in known.inputs:
        if isinstance(source, GivenNumber):
            nodes.append(source.node(walked.numbers))
        else:
            nodes.append(order[source])
    is_one = is_folded and formula.is_plain and not known.sizes.are_many
    change = mover(known.positions, given) if known.positions else None
    if not is_one:
        return formula.stamp(nodes, change)
    return results_of(formula.over(nodes))


def mover(positions: Mapping[int, int], given: Sequence[Any]) -> Change:
    """Make what moves nodes to the positions of this graph: they are those of its slices, too."""

    def position(start: Any) -> Any:
        place = positions.get(id(start))
        return start if place is None else given[place]

    def moved(node: Node) -> Node:
        if node.op not in MOVING or not starts_of(node):
            return node
        arg = arg_at(node, position)
        return Node(node.op, node.inputs, arg, node.shape, node.dtype, node.device)

    return moved
