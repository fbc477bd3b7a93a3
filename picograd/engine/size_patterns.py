"""Graphs recorded again at other sizes: their plan is bound by code, and nothing is walked.

Keys of recordings of one structure differ in some rows. The numbers there, sizes and those in
arguments, that were equal in each are one variable:

    first    (4, 37, 32) (37, 38) ...      variables n = 37 and 38, m = 38 and 39
    second   (4, 38, 32) (38, 39) ...

The plan that served the second is bound to a copy of its graph over traced variables
(`engine/bound_sizes.py`). So the third needs its key, whose other rows have to be the same, and the
values of the variables; what does not fit goes the long way, and is learnt from once more.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from picograd.buffer import Buffer, Storage
from picograd.dtype import BY_NAME
from picograd.engine.bound_sizes import BoundSizes, bound_sizes
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_key import GraphKey, leaf_buffer
from picograd.engine.sizes import BoundedPlan, Family, prime
from picograd.errors import PicogradError
from picograd.graph.axes import Degenerate, NoRule
from picograd.graph.composites import NO_GRADIENT, CustomGradient
from picograd.graph.formula import FOLDED, unfolded
from picograd.graph.node import Node
from picograd.graph.recurrence import Recurrence
from picograd.graph.starts import MOVING, starts_of
from picograd.late_methods import dataclass
from picograd.number import GIVEN, GivenInt

PATTERN_LIMIT = 256  # structures that are remembered; the one seen longest ago goes first
RECORDINGS = 3  # of a structure that are compared: what is equal in all of them by chance is rare
LEARNT_LIMIT = 4  # ways to bind plans of a structure: each is read in turn
TRIALS = 16  # times that a plan is bound to the variables of a structure

Rows = tuple[Any, ...]  # of a key: what is read of a node, its shape, dtype and device


@dataclass(slots=True)
class Variables:
    """Where a structure has its sizes: rows of the key that differ, and the numbers at them."""

    varying: list[tuple[int, bool]]  # rows, and whether their arguments vary too
    others: list[int]
    same: list[Any]  # the other rows
    frames: list[Any]  # of the rows that vary, what is no number
    fixed: list[int] = field(default_factory=list)  # places of numbers that do not vary
    constants: list[Any] = field(default_factory=list)  # these numbers
    places: list[int] = field(default_factory=list)  # of numbers that do
    variable: list[int] = field(default_factory=list)  # each of them
    values: list[Any] = field(default_factory=list)  # of the variables, at first

    def read(self, found: GraphKey) -> list[Any] | None:
        """Find the values of the variables in a graph; None if it is not of this structure."""
        rows = found.key.rows[0]
        if [rows[at] for at in self.others] != self.same:
            return None
        numbers: list[Any] = []
        frames = [content(found, at, has_numbers, numbers) for at, has_numbers in self.varying]
        if frames != self.frames or [numbers[at] for at in self.fixed] != self.constants:
            return None
        values: list[Any] = [None] * len(self.values)
        for at, variable in zip(self.places, self.variable):
            if values[variable] is None:
                values[variable] = numbers[at]
            elif values[variable] != numbers[at]:
                return None
        return values

    def moved(self, found: GraphKey, other: GraphKey) -> "Variables | None":
        """Find the same numbers in another key of the nodes that have them; None if it lacks one.

        Where the rest of that key is the same, the rest of this one has to be.
        """
        varying = []
        for at, has_numbers in self.varying:
            node = found.order[at]
            number = other.numbers.get(id(node), -1)
            if number < 0:
                return None
            varying.append((number, has_numbers))
        known = dict(varying)
        rows = other.key.rows[0]
        others = [at for at in range(len(rows)) if at not in known]
        frames = [content(other, at, has_numbers, []) for at, has_numbers in varying]
        same = [rows[at] for at in others]
        return replace(self, varying=varying, others=others, same=same, frames=frames)


@dataclass(slots=True)
class Learnt:
    """A plan, and how it is bound to the variables of a structure."""

    variables: Variables
    bound: BoundSizes
    patience: int
    steady: int

    def find(self, found: GraphKey) -> BoundedPlan | None:
        """Bind the plan to the sizes of a graph; None where it has others, or a guard fails."""
        values = self.variables.read(found)
        plan = None if values is None else self.bound.find(values)
        if plan is not None:
            plan.patience, plan.steady = self.patience, self.steady
            found.family = plan.family
        return plan


@dataclass(slots=True)
class Pattern:
    """Recordings of one structure: the last ones, and what was learnt of all."""

    recordings: list[tuple[Rows, list[Any]]]  # rows of the key, and arguments; the last first
    learnt: list[Learnt] = field(default_factory=list)
    trials: int = TRIALS
    untold: Family | None = None  # that `sizes` does not know yet


PATTERNS: OrderedDict[Any, Pattern] = OrderedDict()


def plan_by_code(found: GraphKey) -> BoundedPlan | None:
    """Find a plan for many sizes by what was learnt of other recordings."""
    pattern = PATTERNS.get(structure(found))
    if pattern is None:
        return None
    pattern.learnt = [each for each in pattern.learnt if each.bound.is_alive()]
    for number, each in enumerate(pattern.learnt):
        plan = each.find(found)
        if plan is not None:
            pattern.learnt.insert(0, pattern.learnt.pop(number))
            return plan
    return None


def learnt_of(found: GraphKey) -> Learnt | None:
    """Find what was learnt last of a graph that has a plan for many sizes."""
    pattern = PATTERNS.get(structure(found))
    if pattern is None or not pattern.learnt:
        return None
    learnt = pattern.learnt[0]
    values = learnt.variables.read(found)
    return None if values is None else learnt


def learn(roots: Sequence[Node], found: GraphKey, plan: BoundedPlan | None) -> None:
    """Note a recording that went the long way, and bind its plan by code if it is not the first."""
    key, rows = structure(found), found.key.rows[0]
    args = arguments(found)
    pattern = PATTERNS.get(key)
    if pattern is None:
        keep(key, Pattern([(rows, args)]))
        return
    PATTERNS.move_to_end(key)
    variables = compare(pattern, found)
    pattern.recordings = [(rows, args), *pattern.recordings[: RECORDINGS - 1]]
    if variables is None or plan is None or pattern.trials <= 0:
        return
    if plan.binding is None or plan.binding.large:
        return
    pattern.trials -= 1
    bound = bind(variables, roots, found, plan)
    if bound is not None:
        pattern.learnt.insert(0, Learnt(variables, bound, plan.patience, plan.steady))
        del pattern.learnt[LEARNT_LIMIT:]


def is_new(found: GraphKey) -> bool:
    """Tell whether no graph of a structure was met before, and `rebuilt` could make it again."""
    return structure(found) not in PATTERNS and all(type(node) is Node for node in found.order)


def note_stored(found: GraphKey, plan: CompiledPlan) -> None:
    """Note a new graph whose plan was on disk: its family is told of it when another one comes."""
    plan.family = found.family = Family()
    recordings = [(found.key.rows[0], arguments(found))]
    keep(structure(found), Pattern(recordings, untold=plan.family))


def tell_stored(found: GraphKey) -> None:
    """Let `sizes` know the first recording of a structure, if its plan was on disk."""
    pattern = PATTERNS.get(structure(found))
    if pattern is not None and pattern.untold is not None:
        family, pattern.untold = pattern.untold, None
        prime(rebuilt(pattern, found.key.rows[1]), family)


def keep(key: Any, pattern: Pattern) -> None:
    """Remember a structure, and not too many."""
    PATTERNS[key] = pattern
    while len(PATTERNS) > PATTERN_LIMIT:
        PATTERNS.popitem(last=False)


def arguments(found: GraphKey) -> list[Any]:
    """List what nodes have beside what they read; None for memory."""
    return [
        None if leaf_buffer(node) is not None
        else NO_GRADIENT if type(node.arg) is CustomGradient else node.arg
        for node in found.order
    ]  # fmt: skip


def rebuilt(pattern: Pattern, roots: Sequence[int]) -> list[Node]:
    """Make the graph of a recording over memory without bytes; folded formulas are written out."""
    nodes: list[Node] = []
    storages: dict[int, Storage] = {}
    for (op, *read, shape, name, device), arg in zip(*pattern.recordings[0]):
        dtype = BY_NAME[name]
        if not read:  # a leaf, named by its memory
            storage = storages.setdefault(op, Storage(Buffer(device, dtype, 0, 0)))
            nodes.append(Node("buffer", (), storage, shape, dtype, device))
            continue
        if op == "scalar" and type(arg) in GIVEN:
            op = "const"
        places = read[0] if len(read) == 2 else ()
        inputs = [nodes[at] for at in ((places,) if type(places) is int else places)]
        nodes.append(Node(op, tuple(inputs), arg, shape, dtype, device))
    return unfolded([nodes[at] for at in roots], nodes)


def structure(found: GraphKey) -> Any:
    """Key a graph by its operations alone: what else has to be the same is compared."""
    rows, roots = found.key.rows
    return tuple([row[0] for row in rows]), roots


def content(found: GraphKey, at: int, has_numbers: bool, numbers: list[Any]) -> Any:
    """List the numbers that the key has of a node, its sizes first; returns what is no number."""
    row = found.key.rows[0][at]
    sizes = framed(row[-3], numbers)
    if not has_numbers:
        return (*row[:-3], *row[-2:], sizes)
    node = found.order[at]
    places = [found.places[id(start)] for start in starts_of(node)] if node.op in MOVING else ()
    return (*row[:-4], *row[-2:], sizes, *places, framed(node.arg, numbers))


def framed(value: Any, numbers: list[Any]) -> Any:
    """List the numbers in a value; returns what is around them."""
    kind = type(value)
    if kind is tuple:
        return tuple([framed(each, numbers) for each in value])
    if kind is Recurrence:
        numbers.append(value.length)
        return kind, value.body, value.is_reverse
    if kind is int or kind is GivenInt or (kind is float and value and value == value):
        numbers.append(value)
        return kind
    return repr(value) if kind is float else value  # 0.0 and -0.0 are equal


def filled_in(value: Any, numbers: Iterator[Any]) -> Any:
    """Give a value with other numbers in the order of `framed`; a position is traced as such."""
    kind = type(value)
    if kind is tuple:
        return tuple([filled_in(each, numbers) for each in value])
    if kind is Recurrence:
        return replace(value, length=next(numbers))
    if kind is int or (kind is float and value and value == value):
        return next(numbers)
    if kind is not GivenInt:
        return value
    made = GivenInt(value)
    made.source = next(numbers)
    return made


def compare(pattern: Pattern, found: GraphKey) -> Variables | None:
    """Find what varies between the last recordings and this one; None if more than numbers.

    Formulas say the sizes of all that is inside: where these are others, nothing is found.
    """
    rows, before = found.key.rows[0], [earlier for earlier, _ in pattern.recordings]
    others_sized = {
        id(x)
        for x, row, *was in zip(found.order, rows, *before)
        if any(row[-3] != each[-3] for each in was)
    }
    if any(x.op == FOLDED and not others_sized.isdisjoint(map(id, x.inputs)) for x in found.order):
        return None
    varying = []
    for at, (row, node) in enumerate(zip(rows, found.order)):
        has_argument = leaf_buffer(node) is None and row[0] != "scalar"
        is_moving = has_argument and node.op in MOVING and bool(starts_of(node))
        if is_moving or any(row != each[at] for each in before):
            is_other = has_argument and any(row[-4] != each[at][-4] for each in before)
            varying.append((at, is_moving or is_other))
    numbers: list[Any] = []
    frames = [content(found, at, has_numbers, numbers) for at, has_numbers in varying]
    known = {at for at, _ in varying}
    others = [at for at in range(len(rows)) if at not in known]
    made = Variables(varying, others, [rows[at] for at in others], frames)
    earlier = [numbers_of(recording, varying) for recording in pattern.recordings]
    if any(len(each) != len(numbers) for each in earlier):
        return None
    numbered: dict[Any, int] = {}
    for at, (number, *was) in enumerate(zip(numbers, *earlier)):
        is_position = type(number) is GivenInt
        if all(number == each for each in was) and not is_position:
            made.fixed.append(at)
            made.constants.append(number)
            continue
        key = ("position", at) if is_position else (type(number), number, *was)  # 2 == 2.0
        variable = numbered.setdefault(key, len(numbered))
        if variable == len(made.values):
            made.values.append(number)
        made.places.append(at)
        made.variable.append(variable)
    return made


def numbers_of(recording: tuple[Rows, list[Any]], varying: Sequence[tuple[int, bool]]) -> list[Any]:
    """List the numbers that a recording had in rows that vary."""
    found: list[Any] = []
    rows, args = recording
    for at, has_numbers in varying:
        framed(rows[at][-3], found)
        if has_numbers:
            framed(args[at], found)
    return found


def bind(
    variables: Variables, roots: Sequence[Node], found: GraphKey, plan: BoundedPlan
) -> BoundSizes | None:
    """Bind a plan to a copy of its graph over traced variables; None where that cannot be."""

    def copy(traced: Sequence[Any]) -> tuple[list[Node], dict[int, int]]:
        return copied(variables, roots, found, traced)

    try:
        every = range(len(variables.values))
        return bound_sizes(plan, every, variables.values, copy, found.buffers, is_near=True)
    except (Degenerate, NoRule, PicogradError, ArithmeticError, LookupError, TypeError, ValueError):
        return None


def copied(
    variables: Variables, roots: Sequence[Node], found: GraphKey, traced: Sequence[Any]
) -> tuple[list[Node], dict[int, int]]:
    """Copy a graph over traced variables; gives its roots, and the numbers of its scalars."""
    listed: list[Any] = []
    for at, has_numbers in variables.varying:
        content(found, at, has_numbers, listed)
    for at, variable in zip(variables.places, variables.variable):
        listed[at] = traced[variable]
    numbers, varying = iter(listed), dict(variables.varying)
    places = {id(scalar): number for number, scalar in enumerate(found.scalars)}
    done: dict[int, Node] = {}
    for at, node in enumerate(found.order):
        buffer = leaf_buffer(node)
        inputs = () if buffer is not None else tuple([done[id(each)] for each in node.inputs])
        if at not in varying:
            done[id(node)] = node if buffer is not None else node.with_inputs(inputs)
            continue
        shape, op, arg = filled_in(node.shape, numbers), node.op, node.arg
        if buffer is not None:
            op, arg = "buffer", Storage(buffer)
        elif varying[at]:
            arg = filled_in(node.arg, numbers)
        done[id(node)] = made = Node(op, inputs, arg, shape, node.dtype, node.device)
        if varying[at] and op in MOVING:
            for start, old in zip(starts_of(made), starts_of(node)):
                places[id(start)] = places[id(old)]
    return unfolded([done[id(root)] for root in roots], [*done.values()]), places
