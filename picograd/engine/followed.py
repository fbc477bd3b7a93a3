"""Steps that are followed: what was recorded the same way before is recorded without nodes.

Between two computations a program records operations and takes gradients. Where that is
known, each operation that comes as expected (tensor/core/following.py) gives a tensor whose node
stands in for the one that would be recorded: it has all that a node has but what it reads. At the
next step the plan, and what it takes, are known, so that no graph was needed.

    EVENTS.take         what an operation is shown to first: it follows, or learns; None as a rule
    Template            all nodes of a way, over those of tensors that are met on it
    Record              one way that is being followed: nodes that are met, and those that stand in
    stop                for whatever is not expected: nodes are made, and recording goes on as usual

Whoever looks at what a standing node reads finds the graph made, too (`Standing` of graph/node.py).
"""

import functools
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from picograd.buffer import Overwritten, Storage, memory_of
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.sizes import RUNNABLE, BoundedPlan
from picograd.errors import check
from picograd.graph.formula import Reader
from picograd.graph.node import Node, Standing
from picograd.graph.row import WRITES
from picograd.late_methods import dataclass

NEW_NODE = object.__new__
F = TypeVar("F", bound=Callable[..., Any])


class Events:
    """What operations, and whoever changes tensors, look at first.

    `after` is called when something else than a step was computed, `anchor` where nothing is known
    of where a program is, with the plan that ran: `computed`. `is_place` tells of a plan whether a
    way began behind it; one of few nodes is a place, too, where one that began earlier met what was
    not computed (`is_early`). `lock` is that of pending.py, `expected` what a step that was
    followed would take, where VERIFY records it as well.
    """

    __slots__ = (
        "after", "anchor", "computed", "expected", "is_early", "is_place", "learning", "lock",
        "record", "shorts", "take",
    )  # fmt: skip
    is_early: bool
    shorts: int
    is_place: Callable[[Any], bool]
    anchor: Callable[[], None]
    computed: Any
    after: Callable[[], None] | None
    take: Callable[..., Any] | None
    record: "Record | None"
    learning: Any
    expected: Any
    lock: Any

    def __init__(self) -> None:
        self.take = self.record = self.learning = None
        self.after = self.expected = self.computed = None
        self.anchor = lambda: None
        self.is_early, self.is_place = False, lambda plan: False
        self.shorts = 0  # ways that were followed one after the other, all of them short

    @property
    def is_watched(self) -> bool:
        """Whether somebody has to be told what a computation takes."""
        return self.learning is not None or self.expected is not None


EVENTS = Events()
FEWEST = 4  # nodes of a computation that a way begins behind
FIRST = 4  # steps of an optimizer before its way is learnt
SELDOM = 4  # times sooner behind a plan for many sizes, which is bound to one
SKETCHES = 16  # that are remembered of what followed one place
PATIENCE = 3  # times that a way is missed before it is learnt anew
BRANCHES = 4  # ways that are learnt beside the first, behind one place
# what recording takes longer than following, in parts of an operator: of other functions, and of
# events that Python follows; and of a way what its begin and end take, which machine code saves
OTHERS, BY_PYTHON, SHORT = 3, -4, 9
SHORTS = 64  # of those in turn, until it is let
TRIES = 24  # times that Python computes what machine code of a plan did not take
LONGEST = 12  # powers of two of steps that nothing is tried for
CUTTING: set[Any] = set()  # events that may give pieces of memory
STEADY: set[Any] = set()  # functions that record the same for all floats
SCALING: set[Any] = set()  # those that do for all factors but 0, 1 and -1
FILLING: set[Any] = set()  # events that do for all floats but these
MISS: Any = object()  # what `take` gives where recording goes on as usual


def stop() -> None:
    """Make the nodes of what was followed, and learn nothing: what comes is not expected."""
    with EVENTS.lock:
        if EVENTS.learning is not None:
            EVENTS.learning.spoil()
        EVENTS.take = None
        if EVENTS.record is not None:
            EVENTS.record.stop()


def check_expected(plan: Any, memory: Sequence[Any], scalars: Sequence[Any], roots: Any) -> None:
    """Check that a step that was recorded takes what it would have taken where it was followed."""
    expected, EVENTS.expected = EVENTS.expected, None
    if expected is not None:
        wanted, held, numbers, nodes = expected
        check(plan is wanted and list(scalars) == numbers, "another plan was followed")
        check([*map(id, memory)] == [*map(id, held)], "memory was followed otherwise")
        pairs = zip(roots, nodes, strict=True)
        check(all(other in (None, node) for node, other in pairs), "other values were followed")


@dataclass(slots=True)
class Taken:
    """A plan, what it is about to take, in its own order, and the nodes that it computes."""

    plan: Any
    buffers: list[Any]
    scalars: list[Any]
    roots: Sequence[Node]


def note_taken(taken: Taken, count: int) -> None:
    """Tell who learns, or checks, what a computation that no optimizer makes is about to take.

    It is of a number of nodes: behind few no way begins, machine code is as fast there; it writes
    to no memory that there is.
    """
    is_many = count >= FEWEST or EVENTS.is_early
    is_write = not is_many and any(node.op in WRITES for node in taken.roots)
    is_place = is_many or is_write or EVENTS.is_place(taken.plan)
    EVENTS.computed, EVENTS.is_early = taken.plan if is_place else None, False
    if EVENTS.expected is not None:
        numbers = [each.value for each in taken.scalars]
        check_expected(taken.plan, taken.buffers, numbers, taken.roots)
    if EVENTS.learning is not None:
        EVENTS.learning.close(taken)


def leave() -> None:
    """Let what is not expected happen: see `stop`."""
    if EVENTS.record is not None or EVENTS.learning is not None:
        stop()


def leave_unless_inside() -> None:
    """Let what is not expected happen, unless it is part of an event that is learnt."""
    learning = EVENTS.learning
    if learning is None or learning.event is None or learning.owner != threading.get_ident():
        leave()


def is_unwatched() -> bool:
    """Tell whether nothing is learnt: places are told by calls, which are others there."""
    is_learnt = EVENTS.learning is not None
    if is_learnt:
        stop()
    return not is_learnt


def noted(change: Callable[..., None], target: Any, *given: Any) -> None:
    """Change a tensor, in a way if that can tell it."""
    learning = EVENTS.learning
    if learning is None or not learning.may_move(target, *given):
        leave()
        change(target, *given)
        return
    EVENTS.learning = None
    change(target, *given)
    learning.note_move(target)


def end_way(nodes: Sequence[Node], compute: Callable[[Sequence[Node]], None]) -> None:
    """Compute nodes: a way ends there, and another begins.

    Not where all is there, and nothing else was to be computed. The caller holds the lock.
    """
    after, EVENTS.after = EVENTS.after, None
    if after is None:
        EVENTS.computed = None
        compute(nodes)
        if EVENTS.computed is not None:
            EVENTS.anchor()
        return
    asked = [node for node in nodes if leaf_buffer(node) is None]
    log, take = EVENTS.learning, EVENTS.take
    way = EVENTS.record or log
    if not asked and way is not None and not way.is_awaited:
        EVENTS.after = after
        return
    EVENTS.computed = None
    try:
        follower = None if take is None or EVENTS.record is None else EVENTS.record.follower
        if follower is None or not follower.end(asked):
            is_end = log is not None and log.may_end(asked)
            if not is_end and (asked or way is not None):
                stop()
            compute(nodes)
            if is_end and log.goes_on():
                return
            leave()
        elif EVENTS.record is not None:
            return  # it was read on the way
    finally:
        EVENTS.after, EVENTS.expected = after, None
    if asked or EVENTS.computed is not None:
        after()


def event(function: F) -> F:
    """Declare that what a function of tensors does follows from what it is given, and may be told.

    What it looks at beside are the settings, and values that it says (`demands`). No other thread
    writes between what it reads and the entry of what it made.
    """

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if EVENTS.take is not None and (made := EVENTS.take(call, args, options)) is not MISS:
            return made
        with EVENTS.lock:
            return function(*args, **options)

    vars(call)["recorded"] = function
    return call  # type: ignore[return-value]


def cutting(function: F) -> F:
    """Declare that an event may give a piece of its first argument."""
    CUTTING.add(function)
    return function


@dataclass(eq=False)
class Known:
    """What is known of what follows a step of an optimizer, and for how long nothing is tried.

    Several ways may begin there, by what they begin with: another batch, or an evaluation.
    """

    ways: list[Any] = field(default_factory=list)
    branches: int = BRANCHES  # how often one more is learnt
    others: int = 0  # times that what came began none of them
    is_other: bool = False  # so far, this time
    waits: int = field(default_factory=lambda: FIRST)
    missed: int = 0
    leading: int = 0  # events that are recorded before the way begins
    may_read: bool = True  # on the way: whether what is asked for need not end it
    turn: int = 0  # which of its computations VERIFY looks at
    sketches: dict[Hashable, None] = field(default_factory=dict)  # of what came, by `Log`
    unseen: int = 0  # times that something new came
    pays: bool = True  # ways were followed to their ends, or none is known yet
    is_short: bool = False  # all ways are
    tries: int = TRIES  # that are left to machine code
    native: Any = None  # what machine code knows of the plan that this is behind

    @classmethod
    def behind(cls, owner: Any) -> "Known":
        """Know nothing yet of what follows a plan, or a step of an optimizer."""
        native = owner.native if type(owner) in RUNNABLE else None
        waits = max(FIRST // SELDOM, 1) if type(owner) is BoundedPlan else FIRST
        return cls(native=native, waits=waits)

    def is_usual(self, sketch: Hashable) -> bool:
        """Tell whether what came did so before, where ways do not pay: else wait twice as long."""
        is_known = self.pays or sketch in self.sketches
        if not is_known:
            self.sketches[sketch] = None
            if len(self.sketches) > SKETCHES:
                del self.sketches[next(iter(self.sketches))]
            self.unseen = min(self.unseen + 1, LONGEST)
            self.waits = 0 if self.ways else (1 << self.unseen) - 2
        return is_known

    def keep(self, way: Any) -> None:
        """Keep a way that was learnt; None for one that cannot be told.

        Where it could begin later, so that what is between two steps ends none, it is learnt again.
        """
        self.branches -= bool(self.ways)
        if way is None and not self.ways:
            self.leading, self.may_read = 0, not self.may_read
            self.miss()
        elif way is not None and way.leading and not (self.leading or self.ways):
            self.leading = way.leading
        elif way is not None:
            self.ways.append(way)
            self.unseen, self.pays = 0, False
        self.waits = 0 if self.ways or way is not None else self.waits
        self.is_short = all(each.is_short for each in self.ways)
        if self.native is not None:
            self.native.is_place = not self.is_short

    def may_rest(self) -> bool:
        """Tell whether nothing is followed for once: short ways alone came for a while.

        What machine code computes then begins none. So this is asked again where it does not, and
        not before there is some.
        """
        if not self.ways or not self.is_short or EVENTS.shorts < SHORTS or not self.tries:
            return False
        if not self.native.address:
            return False
        self.tries -= 1
        return True

    def miss(self, way: Any = None) -> None:
        """Wait twice as long as the last time, and not at all for one that comes alone."""
        self.missed = min(self.missed + 1, LONGEST)
        self.waits = (1 << self.missed) - 2
        if not self.missed % PATIENCE:
            self.forget(way)

    def forget(self, way: Any) -> None:
        """Let a way go."""
        self.ways = [each for each in self.ways if each is not way]


@dataclass(slots=True)
class Look:
    """Values in memory that an event looks at: below which views of what is met, what raises for
    them, and the question that it is.
    """

    met: int
    views: list[Node]
    look: Callable[[Any], Any]
    question: Hashable  # None: it looks at their bounds


@dataclass(slots=True)
class Copied:
    """A copy of memory that others write, which is met next: below which views of what is met."""

    met: int
    views: list[Node]
    number: int


@dataclass(slots=True)
class Move:
    """The next value of a tensor that was made: its node, and what else is noted of it."""

    number: int
    at: Any
    tracks: bool
    is_leaf: bool
    is_counted: bool  # by the tensor's version
    is_changed: bool  # the next computation stores it
    is_apart: bool  # it shows no other any more, which nobody has


@dataclass(slots=True)
class Template:
    """The nodes of a way, inputs first, over those of `count` tensors that are met on it."""

    count: int
    steps: list[Reader]
    asked: list[int]  # nodes whose gradients may be asked for

    def make(
        self, found: list[Any], last: int, standing: dict[int, Node], drawn: dict[int, Any]
    ) -> list[Any]:
        """Make the nodes of the first steps, those that stand in among them."""
        nodes = [*found, *[None] * (self.count - len(found))]
        for op, place, several, arg, shape, dtype, device in self.steps[:last]:
            read = (nodes[place],) if several is None else several(nodes)
            node = standing.get(len(nodes))
            if node is None:
                node = Node(op, read, drawn.get(id(arg), arg), shape, dtype, device)
            elif type(node) is Standing:  # else it is in memory by now
                node.inputs = read
            nodes.append(node)
        made = len(nodes)
        for at in self.asked:
            if at < made:
                nodes[at].is_asked = True
        return nodes


@dataclass(slots=True, eq=False)
class Record:
    """A way that is being followed; `found` are the nodes of tensors that were met."""

    template: Template
    follower: Any  # whose `settle` lets tensors be known as those that were recorded
    found: list[Any] = field(default_factory=list)
    standing: dict[int, Node] = field(default_factory=dict)
    kept: dict[int, Any] = field(default_factory=dict)  # those of values, once all is computed
    versions: dict[int, int] = field(default_factory=dict)  # of memory that was written
    drawn: dict[int, Any] = field(default_factory=dict)  # numbers, by the identity of those learnt
    reached: int = 0  # steps of the template that were followed
    is_made: bool = False
    is_awaited: bool = False  # something was written, or is to be checked
    owner: int = field(default_factory=threading.get_ident)

    def look(self, node: Node, at: int) -> None:
        """Make the nodes of all that was followed, for who looks at what one of them reads."""
        with EVENTS.lock:
            if EVENTS.record is self:
                stop()
                return
            kept = {at: each for at, reference in self.kept.items() if (each := reference())}
            kept[at] = node
            self.template.make(self.past(), self.reached, kept, self.drawn)
            for each in kept.values():
                stand_no_more(each)

    def overwrite(self, written: Sequence[int]) -> None:
        """Note that memory that was met is about to be written."""
        self.versions = {met: self.found[met].arg.version for met in written}

    def past(self) -> list[Node]:
        """List the nodes that were met; those of memory that was written name what is gone."""
        found = list(self.found)
        for met, version in self.versions.items():
            leaf = found[met]
            gone = Overwritten(memory_of(leaf), version)
            found[met] = Node(leaf.op, (), gone, leaf.shape, leaf.dtype, leaf.device)
            found[met].leaf = leaf.leaf
        return found

    def stop(self) -> None:
        """Make the nodes, and go on as usual."""
        EVENTS.record = None
        if not self.is_made and self.follower is not None:
            self.is_made, follower = True, self.follower
            nodes = self.template.make(self.found, self.reached, self.standing, self.drawn)
            follower.settle(nodes)
            self.follower = None


def whole(follower: Any, give: Callable[..., Any], *given: Any) -> Any:
    """Give all that was computed, also where the handler of a signal raises in the middle.

    Half of it would leave tensors whose memory no node names: what was given is given again.
    """
    begun = follower.begun
    try:
        return give(*given)
    except BaseException:
        follower.begun = begun
        if follower.record.standing:
            give(*given)
        raise


def standing_node(record: Record, at: int) -> Node:
    """Make a node that stands in for one of a template, and remember it."""
    template = record.template
    node = NEW_NODE(Standing)
    step = template.steps[at - template.count]
    node.op, _, _, node.arg, node.shape, node.dtype, node.device = step
    node.realized = node.leaf = None
    node.is_asked = False
    node.record = record, at
    record.standing[at] = node
    return node


def stand_no_more(node: Node) -> bool:
    """Let a node be one as all others; False if it is already."""
    if type(node) is Node:
        return False
    del node.record
    node.__class__ = Node  # type: ignore[assignment]
    return True


def is_one_memory(one: Node, other: Node, is_one: bool) -> bool:
    """Tell whether two nodes that were met are of the same memory, or even one."""
    return one is other or (not is_one and leaf_buffer(one) is leaf_buffer(other))


def met_with(node: Node, views: Sequence[Any]) -> list[Node]:
    """List the node of a tensor that is met, and those below it: all but the last are views."""
    found = [node]
    for _ in views:
        found += found[-1].inputs
    return found


def present(node: Node) -> Any:
    """Give the memory of a node, None where that was overwritten."""
    return None if type(node.arg) is Overwritten else leaf_buffer(node)


def is_old(node: Node) -> bool:
    """Tell whether an earlier computation made what a tensor that is met has."""
    return bool(node.inputs) and node.realized is not None


def as_leaf(node: Node) -> Node:
    """Make a leaf of the memory of a computed node."""
    if node.realized is None:
        return node
    return Node("buffer", (), Storage(node.realized), node.shape, node.dtype, node.device)


def add_order(
    roots: Sequence[Node],
    numbers: dict[int, int],
    order: list[Node],
    after: int,
    stored: Mapping[int, int],
) -> None:
    """List what is under nodes and has no number, inputs first; formulas are left as they are.

    Numbers count on behind `after` others. Leaves of memory whose identity is among those of what
    is `stored` have its number, once it has one.
    """
    stack: list[Node] = [*reversed(roots)]
    while stack:
        node = stack[-1]
        waiting = [each for each in node.inputs if id(each) not in numbers]
        if id(node) in numbers or not waiting:
            stack.pop()
        if id(node) not in numbers:
            if waiting:
                stack += reversed(waiting)
            elif type(node.arg) is Storage and stored.get(id(node.arg.buffer)) in numbers:
                numbers[id(node)] = numbers[stored[id(node.arg.buffer)]]
            else:
                numbers[id(node)] = after + len(order)
                order.append(node)
