"""Formula: a graph with open inputs, recorded once and stamped out over other nodes.

What an optimizer or `backward` records is the same at every step, on other nodes. Recording it
checks, promotes and folds; stamping it out only makes the nodes.

    formula_of([x, y], [x * y + 1])     mul 0 1, const 1, add 2 3; result 4
    .stamp([a, b])                      [a * b + 1]
    .folded([a, b])                     [result 0 of one node that names the formula and a, b]

A folded formula is two kinds of nodes that are no ops: whoever looks for a plan sees one where
there would be hundreds, and `unfolded` stamps the formula out where a plan has to be made. Any
other walk (`toposort`) expands the results that it meets. Constructors know them not: a tensor has
one only behind a `detach`, or is computed at once.
"""

import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

from picograd.dtype import DType
from picograd.graph.node import RESULT, Node, is_move, is_plain_leaf, toposort
from picograd.graph.row import NUMBERS
from picograd.graph.shape import ConvSpec, Shape
from picograd.late_methods import dataclass
from picograd.number import Given, GivenInt

Change = Callable[[Node], Node]
Step = tuple[str, tuple[int, ...], tuple[Any, Shape, DType, str]]
Several = Callable[[list[Node]], tuple[Node, ...]]
# op; the number of the node that is read, or what takes several of a list; arg and what follows
Reader = tuple[str, int, Several | None, Any, Shape, DType, str]

NUMERIC = {int, float, bool, type(None)}
PLAIN = (*NUMERIC, str, DType, ConvSpec)  # arguments told by as text
FOLDED = "formula"


@dataclass(frozen=True, eq=False)
class Formula:
    """See the module docstring; a step reads inputs and earlier steps by their numbers.

    Of two that say the same there is one, unless some argument is more than plain values.
    """

    steps: tuple[Step, ...]
    results: tuple[int, ...]
    kinds: tuple[tuple[Shape, DType], ...]  # of the results
    is_plain: bool

    def stamp(self, inputs: Sequence[Node], change: Change | None = None) -> list[Node]:
        """Make the results of other inputs, of the same shapes, dtypes and device.

        `change` may give another node for one that is made.
        """
        nodes = list(inputs)
        for op, first, several, arg, shape, dtype, device in self.readers:
            read = (nodes[first],) if several is None else several(nodes)
            made = Node(op, read, arg, shape, dtype, device)
            if change is not None:
                made = change(made)
            nodes.append(made)
        return [nodes[number] for number in self.results]

    @cached_property
    def text(self) -> str:
        """All that it says, written out."""
        return repr((self.steps, self.results, self.kinds))

    def __repr__(self) -> str:
        return f"Formula{self.text}"

    @cached_property
    def readers(self) -> list[Reader]:
        """The steps as `stamp` takes them."""
        return [reader(op, places, *rest) for op, places, rest in self.steps]

    def folded(self, inputs: Sequence[Node]) -> list[Node]:
        """Make the results as nodes of one that stands for all steps."""
        return results_of(self.over(inputs))

    def over(self, inputs: Sequence[Node]) -> Node:
        """Make the node that stands for all steps."""
        first = inputs[0]
        return Node(FOLDED, tuple(inputs), self, (), first.dtype, first.device)

    def expand(self, result: Node) -> None:
        """Turn a result of a folded formula into the value itself: what walks a graph sees that."""
        whole = result.inputs[0]
        made = STAMPED.get(whole)
        if made is None:
            made = self.stamp(whole.inputs)
            STAMPED[whole] = made
        result.inputs = (made[result.arg],)
        result.op = "cast"
        result.arg = result.dtype


STAMPED: "weakref.WeakKeyDictionary[Node, list[Node]]" = weakref.WeakKeyDictionary()
KNOWN: "weakref.WeakValueDictionary[str, Formula]" = weakref.WeakValueDictionary()


def reader(
    op: str, places: Sequence[int], arg: Any, shape: Shape, dtype: DType, device: str
) -> Reader:
    """Write a step so that what it reads is taken from a list of nodes by code that is not Python.

    A step is taken thousands of times.
    """
    rest = arg, shape, dtype, device
    if len(places) == 1:
        return op, places[0], None, *rest
    several: Any = itemgetter(*places) if places else nothing
    return op, 0, several, *rest


def nothing(nodes: list[Node]) -> tuple[Node, ...]:
    """Give what a constant reads."""
    return ()


def results_of(whole: Node) -> list[Node]:
    """Make the results of a folded formula."""
    formula: Formula = whole.arg
    return [
        Node(RESULT, (whole,), number, shape, dtype, whole.device)
        for number, (shape, dtype) in enumerate(formula.kinds)
    ]


def formula_of(inputs: Sequence[Node], results: Sequence[Node]) -> Formula | None:
    """Keep how results were made of inputs; None if that is not all they depend on."""
    if any(map(is_looked_through, inputs)):
        return None
    return formula_over(inputs, results)


def formula_over(inputs: Sequence[Node], results: Sequence[Node]) -> Formula | None:
    """Keep how results were made of inputs, for others that constructors treat as they did these.

    None if the results depend on more than their inputs.
    """
    numbers = {id(node): number for number, node in enumerate(inputs)}
    steps: list[Step] = []
    for node in toposort(results, lambda node: id(node) in numbers):
        if id(node) in numbers:
            continue
        if not is_pure(node):
            return None
        numbers[id(node)] = len(inputs) + len(steps)
        places = tuple([numbers[id(child)] for child in node.inputs])
        rest = fixed(node.arg), node.shape, node.dtype, node.device
        steps.append((node.op, places, rest))
    found = [numbers[id(node)] for node in results]
    kinds = [(node.shape, node.dtype) for node in results]
    devices = {node.device for node in (*inputs, *results)}
    is_plain = len(devices) == 1 and all(is_text(op) and is_text(arg) for op, _, (arg, *_) in steps)
    return interned(Formula(tuple(steps), tuple(found), tuple(kinds), is_plain))


def fixed(arg: Any) -> Any:
    """Give a number that is the same at every step as code: no argument of a plan."""
    kind = {Given: float, GivenInt: int}.get(type(arg))
    return arg if kind is None else kind(arg)


def interned(formula: Formula) -> Formula:
    """Give the formula that says the same, if there is one."""
    if not formula.is_plain:
        return formula
    return KNOWN.setdefault(formula.text, formula)


def is_text(value: Any) -> bool:
    """Tell whether the text of a value says all that counts; no function of the host is called."""
    if type(value) is tuple:
        return NUMERIC.issuperset(map(type, value)) or all(map(is_text, value))
    return type(value) in PLAIN and value != "host_call"


def unfolded(roots: Sequence[Node], order: Sequence[Node]) -> list[Node]:
    """Copy a graph, listed inputs first, with its folded formulas stamped out."""
    done: dict[int, Node] = {}
    stamped: dict[int, list[Node]] = {}
    for node in order:
        made = node
        if node.inputs and node.realized is None:
            if node.op == RESULT:
                made = stamped[id(node.inputs[0])][node.arg]
            else:
                inputs = tuple([done[id(child)] for child in node.inputs])
                if node.op != FOLDED:
                    made = node.with_inputs(inputs)
                else:
                    stamped[id(node)] = node.arg.stamp(inputs)
        done[id(node)] = made
    return [done[id(root)] for root in roots]


def is_pure(node: Node) -> bool:
    """Tell whether a node has the value that its inputs give it, and not one of its own."""
    if node.realized is not None:
        return False
    return bool(node.inputs) or is_plain_leaf(node)


def is_looked_through(node: Node) -> bool:
    """Tell whether Node's constructors fold what is made of a node with it."""
    return node.op in NUMBERS or is_move(node)
