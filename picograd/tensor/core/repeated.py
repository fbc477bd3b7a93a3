"""Functions on nodes that record the same each time: what was recorded once is stamped out.

What `cat` or `layer_norm` makes of its inputs follows from their shapes, dtypes and device, and
from its options. Checking, promoting and folding take several times what making the nodes takes.

    @repeated
    def cat(nodes, axis): ...       first call for (4, 2), (4, 3), axis 1: records; keeps the steps
                                    later ones: make the nodes of these steps over other inputs

Settings count as well, and two things more of an input: what constructors of nodes look at (the
value of a constant, what a view is taken of), and which inputs are the same. A number that a user
gave stays an argument of plans: every call has one of its own. What is demanded of inputs (an index
lies inside its axis) is demanded of each call's. What looks at values of its inputs otherwise,
draws numbers, or makes nodes that know others in functions is recorded each time, and so is all in
a trace.

Steps are kept when a call comes for the second time: positions of batches may all be others. With
VERIFY each call records as well, and the two must be alike.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from picograd.config import config
from picograd.dtype import DType, default_float
from picograd.engine.native_calls import CODED
from picograd.engine.tracing import RUNNING
from picograd.errors import check
from picograd.graph.composites import CustomGradient
from picograd.graph.formula import Reader, is_text, reader
from picograd.graph.host_call import HostCall
from picograd.graph.node import Node, is_plain_leaf, toposort
from picograd.graph.recurrence import Recurrence
from picograd.graph.row import MOVES, NUMBERS, PAIRS
from picograd.late_methods import dataclass
from picograd.number import Given, GivenInt
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.function import recorded
from picograd.tensor.core.known_values import LOOKS
from picograd.traced_number import SIZED

Definition = TypeVar("Definition", bound=Callable[..., Any])
KEPT = 256  # recordings of one function
DEEPEST = 64  # moves below an operand that are looked through
PLAIN = {bool, int, str, type(None), DType, type(Ellipsis)}
WORDS = PLAIN | {float}
NUMBERS_GIVEN = (Given, GivenInt)
NEW, REFUSED = object(), object()
REPEATED: set[Any] = set()  # functions that stamp out what they recorded
PURE: set[Any] = set()  # what they and others record follows from what `Operands` sees
Step = tuple[str, tuple[int, ...], Any, Any, DType, str]


@dataclass(slots=True)
class Recording:
    """Steps over inputs, and the results: their numbers, or the one number."""

    steps: list[Reader]
    results: tuple[int, ...]
    kind: Callable[[list[Node]], Any] | None  # list or tuple; None for one result
    names: dict[int, int]  # of given numbers in steps, by identity: an operand, or a count below 0
    numbered: set[int]  # steps with such numbers
    demands: tuple[tuple[int, Callable[[Node], bool]], ...] = ()  # of inputs, by number

    def stamp(self, inputs: list[Node], given: Sequence[Any]) -> Any:
        """Make the results of other inputs. The list is taken."""
        nodes, first = inputs, len(inputs)
        if CODED.stamp is not None:
            CODED.stamp(nodes, self.steps)
        for op, place, several, arg, shape, dtype, device in self.steps[len(nodes) - first :]:
            read = (nodes[place],) if several is None else several(nodes)
            nodes.append(Node(op, read, arg, shape, dtype, device))
        own: dict[int, Any] = {}
        for at in self.numbered:
            node = nodes[first + at]
            node.arg = self.renewed(node.arg, given, own)
        if self.kind is None:
            return nodes[self.results[0]]
        return self.kind([nodes[number] for number in self.results])

    def renewed(self, arg: Any, given: Sequence[Any], own: dict[int, Any]) -> Any:
        """Give an argument with this call's numbers in it, its `own` where none was given."""
        if type(arg) is tuple:
            return tuple([self.renewed(each, given, own) for each in arg])
        if type(arg) not in NUMBERS_GIVEN:
            return arg
        name = self.names[id(arg)]
        return given[name] if name >= 0 else own.setdefault(name, type(arg)(arg))


class Unlike(Exception):
    """An operand that a recording cannot be told by."""


class Operands:
    """This class tells calls apart: a key of what counts, the nodes, and the given numbers."""

    __slots__ = ("given", "inputs", "seen")

    def __init__(self) -> None:
        self.inputs: list[Node] = []
        self.given: list[Any] = []
        self.seen: dict[int, int] = {}

    def key(self, value: Any) -> Any:
        """Say what of an operand counts; raises Unlike."""
        kind = type(value)
        if kind is Node:
            return self.key_of_node(value)
        if kind in PLAIN:
            return kind, value
        if kind is list or kind is tuple:
            kinds = tuple(map(type, value))
            if PLAIN.issuperset(kinds):
                return kind, kinds, tuple(value)
            return kind, *self.keys(value)
        if kind is dict:
            return kind, *[(name, self.key(each)) for name, each in value.items()]
        if kind is slice:
            return kind, self.key(value.start), self.key(value.stop), self.key(value.step)
        if kind in NUMBERS_GIVEN and value.renew is None:
            self.given.append(value)
            return kind, str(value)
        if kind is float:
            return kind, str(value)  # 0.0 is not -0.0
        raise Unlike

    def keys(self, values: Sequence[Any]) -> list[Any]:
        """Say what of some operands counts."""
        node_key, key = self.key_of_node, self.key
        return [node_key(each) if type(each) is Node else key(each) for each in values]

    def key_of_node(self, node: Node, depth: int = 0) -> Any:
        """Say what of a node counts; raises Unlike for one below too many moves."""
        seen, op = self.seen, node.op
        number = seen.setdefault(id(node), len(seen))
        if number != len(self.inputs):
            return number
        self.inputs.append(node)
        if op in PAIRS or node.dtype.kind == "complex":
            raise Unlike
        is_view = op in MOVES or node.row.is_repeating
        if not is_view or node.realized is not None:
            if op not in NUMBERS:
                return node.shape, node.dtype, node.device
            return op, self.key(node.arg), node.shape, node.dtype, node.device
        if depth == DEEPEST:
            raise Unlike
        below = self.key_of_node(node.inputs[0], depth + 1)
        return node.op, node.arg, node.is_asked, node.shape, below


def settings() -> Any:
    """Give the settings that count."""
    return config.epoch, default_float(), MODE.enabled


def is_told(value: Any) -> bool:
    """Tell whether a value, or each of a tuple, is all text and numbers."""
    listed = value if type(value) is tuple else (value,)
    return WORDS.issuperset(map(type, listed))


def repeated(function: Definition) -> Definition:
    """Declare that what a function on nodes records follows from what `Operands` sees."""
    known: dict[Any, Any] = {}

    @functools.wraps(function)
    def recording(*operands: Any, **options: Any) -> Any:
        if RUNNING.active or SIZED or options:
            return function(*operands, **options)
        found = Operands()
        try:
            key = settings(), *found.keys(operands)
        except Unlike:
            return function(*operands)
        kept = known.get(key)
        if type(kept) is Recording:
            for at, demand in kept.demands:
                if not demand(found.inputs[at]):
                    return function(*operands)
            made = kept.stamp(found.inputs, found.given)
            if config.verify:
                check_alike(function, operands, made)
            return made
        if kept is NEW:
            result, known[key] = kept_recording(function, operands, found)
            return result
        if kept is None:
            if len(known) >= KEPT:
                known.clear()
            known[key] = NEW
        return function(*operands)

    REPEATED.add(recording)
    PURE.add(recording)
    return recording  # type: ignore[return-value]


def recorded_once(*names: str, **seen: Any) -> Callable[[Definition], Definition]:
    """Show a definition on nodes whose recording is `repeated`."""
    show = recorded(*names, **seen)
    return lambda definition: show(repeated(definition))


def kept_recording(function: Any, operands: Sequence[Any], found: Operands) -> tuple[Any, Any]:
    """Record, and keep how; what was demanded must be of inputs, whose values are others' later."""
    looks, outer, LOOKS.demands = LOOKS.count, LOOKS.demands, []
    try:
        result = function(*operands)
        demands = LOOKS.demands
    finally:
        LOOKS.demands = outer
    if outer is not None:
        outer += demands
    recording = recording_of(found, result) if LOOKS.count == looks else None
    places = {id(node): number for number, node in enumerate(found.inputs)}
    if recording is None or any(id(node) not in places for node, _ in demands):
        return result, REFUSED
    recording.demands = tuple([(places[id(node)], demand) for node, demand in demands])
    return result, recording


def recording_of(found: Operands, result: Any) -> Recording | None:
    """Keep how results were made; None if that is not all they depend on."""
    kind = None if type(result) is Node else type(result)
    if kind not in (None, list, tuple):
        return None
    results = [result] if kind is None else result
    numbers, numbered = dict(found.seen), set()
    steps: list[Step] = []
    names = {id(each): number for number, each in enumerate(found.given)}
    for node in toposort(results, lambda node: id(node) in found.seen):
        if id(node) in numbers:
            continue
        is_pure = node.realized is None and (node.inputs or is_plain_leaf(node))
        if not is_pure or not is_kept(node.arg) or node.dtype.is_complex:
            return None
        if name_numbers(node.arg, names):
            numbered.add(len(steps))
        numbers[id(node)] = len(found.inputs) + len(steps)
        places = tuple([numbers[id(child)] for child in node.inputs])
        steps.append((node.op, places, node.arg, node.shape, node.dtype, node.device))
    places = tuple([numbers[id(node)] for node in results])
    readers = [reader(*step) for step in steps]
    return Recording(readers, places, kind, names, numbered)


def is_kept(arg: Any) -> bool:
    """Tell whether an argument is all text and numbers, those that a user gave too.

    So is a rule of gradients that knows nothing else, and a loop: its numbers stay, which the key
    of the call has.
    """
    if type(arg) is Recurrence:
        return all(is_kept(node.arg) for node in arg.body.order)
    if type(arg) is tuple:
        return all(map(is_kept, arg))
    if type(arg) is CustomGradient:
        return arg.key() is not None
    if type(arg) is HostCall:
        return is_kept(arg.options)
    return type(arg) in NUMBERS_GIVEN or is_text(arg)


def parts_of(arg: Any) -> Iterator[Any]:
    """List the parts of an argument of a node, those inside its tuples."""
    if type(arg) is tuple:
        for each in arg:
            yield from parts_of(each)
    else:
        yield arg


def name_numbers(arg: Any, names: dict[int, int]) -> bool:
    """Name the given numbers of an argument; tells whether it has any."""
    if type(arg) is tuple:
        found = [name_numbers(each, names) for each in arg]  # all of them
        return any(found)
    if type(arg) not in NUMBERS_GIVEN:
        return False
    names.setdefault(id(arg), -1 - len(names))
    return True


def check_alike(function: Any, operands: Any, made: Any) -> None:
    """Check that a function records what was stamped out."""
    wanted = function(*operands)
    is_one = type(made) is Node
    pairs: list[Any] = [(made, wanted)] if is_one else list(zip(made, wanted, strict=True))
    partner: dict[int, int] = {}
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if id(one) in partner:
            check(partner[id(one)] == id(other), f"{function.__name__}: nodes are shared otherwise")
            continue
        partner[id(one)] = id(other)
        facts = [
            (x.op, type(x.arg), told(x.arg), x.shape, x.dtype, x.device, len(x.inputs))
            for x in (one, other)
        ]
        check(facts[0] == facts[1], f"{function.__name__} recorded {facts[1]}, not {facts[0]}")
        pairs += zip(one.inputs, other.inputs)


def told(arg: Any) -> str:
    """Say what an argument is."""
    return "" if type(arg) is CustomGradient else repr(arg)
