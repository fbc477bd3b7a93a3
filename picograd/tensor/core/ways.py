"""Ways are learnt: what a program records between two computations, event by event.

An event is a call of a function that records, with what it was given, told as

    IS      a plain value            MADE    a tensor that an earlier event made
    NEW     a tensor in memory       MET     one that came before
    MANY    a list or tuple          NAMED   options by name
    NUMBER  a float, which is an argument of the plan and may be another the next time
    FACTOR  one of those, but none of 0, 1 and -1, which are recorded otherwise

`Log` watches one way. At its end `close` keeps it, if all that the step's plan computes and reads
was made or met there; following.py then follows it. See engine/followed.py.
"""

import threading
import weakref
from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import field
from types import FunctionType
from typing import Any

from picograd.buffer import RuntimeScalar, Storage
from picograd.config import config
from picograd.engine import carried, foreign, pending
from picograd.engine.executable import CompiledPlan
from picograd.engine.followed import (
    BY_PYTHON,
    CUTTING,
    EVENTS,
    FILLING,
    MISS,
    OTHERS,
    SCALING,
    SHORT,
    STEADY,
    Copied,
    Look,
    Move,
    Taken,
    Template,
    add_order,
    is_old,
    met_with,
    present,
    stop,
)
from picograd.engine.foreign import is_shared
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.update import Update, told_of
from picograd.errors import PicogradError
from picograd.graph import build
from picograd.graph.formula import FOLDED, reader
from picograd.graph.node import Node, is_plain_leaf
from picograd.graph.recurrence import Recurrence
from picograd.graph.row import PASSING, WRITES, Role, ops_of
from picograd.graph.starts import starts_of
from picograd.late_methods import dataclass
from picograd.number import GIVEN, Note, noting
from picograd.tensor.core.aliasing import is_shown
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE, WALKS, leaf_of
from picograd.tensor.core.known_values import below_views
from picograd.tensor.core.pieces import (
    IS,
    MADE,
    MANY,
    MET,
    NAMED,
    NEW,
    Told,
    facts_of,
    may_be_placed,
    may_cut,
    piece,
)
from picograd.tensor.core.plain_values import PLAIN, is_plain
from picograd.tensor.core.recording import VERSIONS, Recorded
from picograd.tensor.core.repeated import is_kept, parts_of
from picograd.tensor.core.sizes import Size
from picograd.tensor.core.varying import NUMBER, VARYING, Varying, as_factor
from picograd.tensor.making import random

LISTS = (tuple, list, Size)
READS = 16  # computations on a way
FREE_LIMIT = 1024  # nodes of what lives on, and is not computed: they are made each time
TOLD_NUMBERS = (*GIVEN, RuntimeScalar)
# what reads memory as it is, while a view of it may begin where a piece of it does
ROLES = (Role.ELEMENTWISE, Role.REDUCE, Role.CONTRACT, Role.GATHER, Role.SCAN, Role.SORT)
WHOLE = frozenset().union(*map(ops_of, ROLES))
FreeStep = tuple[int, tuple[int, ...]]  # the number of a node, and those of what it reads


class Unlike(Exception):
    """Something that a way cannot be told by."""


@dataclass(slots=True)
class Shown:
    """How a tensor shows the memory of another: what a `View` says, but for that other."""

    base: Told
    function: Callable[..., Node]
    operands: tuple[Any, ...]


@dataclass(slots=True)
class Made:
    """A tensor that an event makes: its node in the template, and what else it is."""

    at: int
    tracks: bool
    is_leaf: bool
    shown: Shown | None


@dataclass(slots=True)
class Constant:
    """Memory that an event makes of the plain values that it is given."""

    _node: Node


@dataclass(slots=True)
class Event:
    """A call, told as in the module docstring, and all that it does."""

    function: Any
    args: list[Told]
    options: list[tuple[str, Told]]
    modes: tuple[Any, ...]
    result: Told = (IS, None)
    made: list[int] = field(default_factory=list)
    writes: list[tuple[int, Any]] = field(default_factory=list)  # of tensors met, to nodes
    shows: list[tuple[int, Any]] = field(default_factory=list)  # those that get other memory
    # of tensors met, tensors made, and what they had before, or None
    gradients: list[tuple[int, int, Told]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    copies: list[Copied] = field(default_factory=list)
    checks: list[tuple[Any, PicogradError]] = field(default_factory=list)
    reached: int = 0  # steps of the template
    offset: int = 0  # of random numbers, before it
    advance: int = 0  # random numbers that it takes
    walks: int = 0  # how often it looks for gradients
    # arguments or options, and whose place they take
    numbers: list[tuple[int | str, int]] = field(default_factory=list)
    # those that are computed of others, what does, and of which
    derived: list[Note] = field(default_factory=list)
    draws: list[tuple[Any, int]] = field(default_factory=list)  # counters, from that offset on
    is_change: bool = False  # it changes tensors that were met
    is_simple: bool = False  # machine code follows it: see native_following.py
    may_cut: bool = False  # of what has memory: see the function of that name

    def is_alone(self) -> bool:
        """Tell whether it makes tensors, writes and gives leaves gradients, and no more."""
        others = self.derived or self.draws or self.advance or self.looks or self.copies
        if others or self.moves or self.shows:
            return False
        if any(before != (IS, None) for _, _, before in self.gradients):
            return False
        kind, told = self.result
        new = [told] if kind == MADE and told in self.made else []
        if kind == MANY:
            new = [number for _, number in told[1]]
            made = [(MADE, number) for number in self.made[: len(new)]]
            if not new or not issubclass(told[0], (tuple, list)) or told[1] != made:
                return False
        is_known = kind in (MADE, MET, IS, MANY)
        return is_known and new + [number for _, number, _ in self.gradients] == self.made


@dataclass(slots=True)
class Computation:
    """A computation on the way, of what was asked for while its graph is still needed, or at its
    end.

    Nodes are told by their numbers once the way is known.
    """

    at: int  # how many events come before
    asked: list[Any] | None  # what is asked for, where no optimizer steps there
    plan: "weakref.ref[CompiledPlan]"
    scalars: list[Any]
    is_ahead: bool  # see engine/carried.py
    native: Any  # of the plan
    buffers: list[Any] = field(default_factory=list)  # MET, MADE, or IS a tensor of an optimizer
    roots: list[Any] = field(default_factory=list)  # nodes of the template that are computed
    living: list[int] = field(default_factory=list)  # tensors that are made and live then
    nodes: list[Any] = field(default_factory=list)  # on the way: theirs
    # what was computed and not stored: see engine/carried.py
    passed: list[Any] = field(default_factory=list)
    is_simple: bool = False  # machine code computes it: nothing but what lives gets values

    @classmethod
    def of(cls, taken: Taken, at: int, asked: list[Any] | None) -> "Computation":
        """Note what is about to be computed."""
        plan = taken.plan
        return cls(at, asked, weakref.ref(plan), taken.scalars, carried.is_ahead(), plan.native)


@dataclass(slots=True)
class Way:
    """A way that is known, and what the plan at its end takes and gives."""

    events: list[Event]
    template: Template
    made: list[Made]
    last: Computation  # at its end
    told: Any  # of the optimizer that steps there: see `told_of`
    gradients: list[tuple[Any, int]]  # parameters, and which tensors that are made they have
    found: int  # which of those tells the optimizer to skip its step, -1 for none
    shared: dict[int, tuple[int, bool]]  # nodes met of the memory of another, or that are it
    targets: list[Any]  # tensors that the optimizer writes
    holders: list[int]  # how often their leaves are met
    old: list[int]  # tensors met that an earlier step made
    written: list[int]  # those that the optimizer writes
    final: dict[int, int]  # the last nodes of tensors that are made and changed
    free: dict[int, list[FreeStep]]  # those that are not, and the steps that make them
    moving: dict[int, list[Any]]  # where users let nodes that are met begin, which may be elsewhere
    stream: Any  # the seed of what was drawn
    leading: int  # events before all that others read, which may as well be recorded
    reads: list[Computation]  # on the way
    detached: list[int]  # tensors that are made by `detach`, which may let go what they show
    uses: int = 0  # how often it came to its end
    ends: Any = None  # what machine code does at the end of others: see native_ends.py

    def describe(self) -> None:
        """Note what machine code may follow and end, once all is told by numbers."""
        for event in self.events:
            event.is_simple = event.is_alone()
            event.may_cut = event.function in CUTTING and may_be_placed(event.args[1:])
        other = self.told or self.targets or self.detached or self.final or self.free
        for each in (*self.reads, self.last):
            is_change = any(event.is_change for event in self.events[: each.at])
            each.is_simple = not (is_change or (other and each is self.last))

    @property
    def is_short(self) -> bool:
        """Whether machine code computes as fast, without a way, what is recorded."""
        events = self.events
        if self.last.asked is None or any(x.walks or is_more(x) for x in events):
            return False
        return sum(map(gain_of, self.events)) <= SHORT


def modes() -> tuple[Any, ...]:
    """List what else decides how an operation is recorded, as it is now."""
    return MODE.enabled, dict(REGIONS.dtypes), config.epoch


class Log:
    """This class watches a way, event by event, but for so many `leading` ones.

    `keep` is given what was learnt, or None. Where it `may_read`, what is asked for does not end it
    if gradients of that may follow, or were taken; but for the plan that it began behind. A way is
    made, which takes as long as some steps, where its sketch `is_usual`: it came before.
    """

    def __init__(
        self, keep: Callable[[Way | None], None], leading: int = 0, may_read: bool = False,
        begun_behind: Any = None, is_usual: Callable[[Hashable], bool] = lambda sketch: True,
    ) -> None:  # fmt: skip
        self.keep, self.leading, self.may_read, self.is_usual = keep, leading, may_read, is_usual
        self.begun_behind = id(begun_behind)
        self.reads_made: list[Computation] = []
        self.results: list[Node] = []  # of these
        self.shared: dict[int, tuple[int, bool]] = {}
        self.before: dict[int, Node] = {}  # writes, as they were before a read on the way ran them
        self.is_reading = False
        self.events: list[Event] = []
        self.names: dict[int, tuple[weakref.ref[Any], Told]] = {}
        self.met: list[Node] = []
        self.made: list[tuple[Node, weakref.ref[Any], Made]] = []
        self.moved: dict[int, Node] = {}  # the last nodes of tensors made that were changed
        self.event: Event | None = None
        self.notes: dict[int, Note] = {}  # how numbers were computed of others
        self.reads = self.explained = 0  # looks at values in memory, and those that are told
        self.owner = threading.get_ident()
        self.optimizer: Any = None
        self.asked: list[Node] | None = None
        self.least = 1 << 60  # of the numbers of tensors made that events were given

    def take(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a function that records, and note it."""
        if EVENTS.learning is not self:
            return MISS  # another thread has begun, or ended, one
        EVENTS.take = None  # what it calls is part of it
        if self.leading:
            self.leading -= 1
            try:
                return function(*args, **options)
            finally:
                self.go_on()
        if may_cut(function, args) and not self.is_made(args[0]):
            if (found := piece(function, args)) is not None:
                self.go_on()
                return found
        try:
            if threading.get_ident() != self.owner:
                raise Unlike
            given = [self.told(each) for each in args]
            named = [(name, self.told(each)) for name, each in options.items()]
            if any(type(x) is FunctionType and x in STEADY for x in args[:2]):
                given = [(NUMBER, x) if type(x) is float else told for told, x in zip(given, args)]
            elif function in FILLING or any(
                type(x) is FunctionType and x in SCALING for x in args[:2]
            ):
                given = [as_factor(each) for each in given]
            elif function in SCALING:
                named = [(name, as_factor(each)) for name, each in named]
        except Unlike:
            self.spoil()
            return function(*args, **options)
        self.event = Event(function, given, named, modes())
        return self.watch(self.event, args, options)

    def watch(self, event: Event, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call the function of an event, and note what it does."""
        function = event.function
        reads, self.explained, waiting = self.reads, 0, len(pending.WAITING)
        event.offset, event.walks = random.default().offset, WALKS.count
        try:
            with noting(self.notes):
                result = function(*args, **options)
        except BaseException:
            self.spoil()
            raise
        if EVENTS.learning is not self:
            return result
        try:
            event.result = self.told_result(result, event)
            event.checks += pending.WAITING[waiting:]
            event.advance = random.default().offset - event.offset
            event.walks = WALKS.count - event.walks
            if self.reads - reads != self.explained:
                raise Unlike
        except Unlike:
            self.spoil()
            return result
        self.events.append(event)
        self.event = None
        self.go_on()
        return result

    def go_on(self) -> None:
        """Watch the next event, after one that is no part of the way."""
        with pending.LOCK:
            EVENTS.take = self.take if EVENTS.learning is self else EVENTS.take

    @property
    def is_awaited(self) -> bool:
        """Whether something was written, or is to be checked."""
        start = self.reads_made[-1].at if self.reads_made else 0
        return any(x.writes or x.shows or x.checks for x in self.events[start:])

    def spoil(self) -> None:
        """Learn no more: this way cannot be told."""
        if EVENTS.learning is self:
            EVENTS.learning = EVENTS.take = None
            self.keep(None)

    # telling

    def told(self, value: Any) -> Told:
        """Tell a value; raises Unlike."""
        kind = type(value)
        if kind in PLAIN:
            if kind is FunctionType and not value.__module__.startswith("picograd."):
                raise Unlike  # who knows what it does
            return IS, value
        if kind is tuple and is_plain(value):
            return IS, value
        if kind in LISTS:
            return MANY, (kind, [self.told(each) for each in value])
        if kind is slice:
            return MANY, (kind, [self.told(x) for x in (value.start, value.stop, value.step)])
        if kind is dict:
            return NAMED, [(name, self.told(each)) for name, each in value.items()]
        if not isinstance(value, Recorded):
            raise Unlike
        known = self.names.get(id(value))
        if known is not None and known[0]() is value:
            if known[1][0] == MADE:
                self.least = min(self.least, known[1][1])
            return known[1]
        facts = facts_of(value)
        if facts is None:
            EVENTS.is_early = leaf_buffer(value._node) is None
            raise Unlike
        self.names[id(value)] = weakref.ref(value), (MET, len(self.met))
        self.met += met_with(value._node, facts[-1])
        return NEW, facts

    def told_result(self, value: Any, event: Event) -> Told:
        """Tell what an event gives; tensors that have no name are made by it."""
        kind = type(value)
        if kind in LISTS or (isinstance(value, tuple) and hasattr(kind, "_make")):
            return MANY, (kind, [self.told_result(each, event) for each in value])
        if not isinstance(value, Recorded):
            return self.told(value)
        known = self.names.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        return MADE, self.add_made(value, event)

    def add_made(self, value: Any, event: Event) -> int:
        """Name a tensor that an event made."""
        if type(value) is not Recorded.kind or not is_bare(value):
            raise Unlike
        number, node, view = len(self.made), value._node, value._view
        reference, shown = weakref.ref(value), None
        if view is not None:
            base = self.names.get(id(view.base))
            if base is None or base[0]() is not view.base or not is_told(view.operands):
                raise Unlike
            shown = Shown(base[1], view.function, view.operands)
        at = -1 if view is None else next((n for n, x in enumerate(self.met) if x is node), -1)
        made = Made(at, value._tracks, leaf_of(node) is value, shown)
        self.made.append((node, reference, made))
        self.names[id(value)] = reference, (MADE, number)
        event.made.append(number)
        return number

    def note_write(self, target: Any, node: Node) -> None:
        """Note that a tensor in memory is given its next value there."""
        event, told = self.event, self.told_before(target)
        if event is None or told is None or told[0] != MET:
            self.spoil()
        else:
            event.writes.append((told[1], node))

    def told_before(self, tensor: Any) -> Told | None:
        """Say what is known of a tensor: that it was met or made, and which it is."""
        known = self.names.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def is_made(self, tensor: Any) -> bool:
        """Tell whether an event made a tensor."""
        told = self.told_before(tensor)
        return told is not None and told[0] == MADE

    def may_move(self, target: Any, source: Any = None, *_: Any) -> bool:
        """Tell whether an event may give a tensor that was made its next value.

        Or one that was met the memory of `source`: once, and if nothing else shows either.
        """
        if self.event is None:
            return False
        if self.is_made(target):
            return True
        told = self.told_before(target)
        if told is None or not self.is_made(source) or source._tracks:
            return False  # a view that an event cannot name, of what was made
        changed = [met for each in self.events for met, _ in (*each.writes, *each.shows)]
        if told[1] in changed or foreign.SHARED:
            return False
        return type(target._node.arg) is Storage and not (is_shown(target) or is_shown(source))

    def note_move(self, target: Any) -> None:
        """Note that a tensor was given its next value, or memory, unless that was computed."""
        event, node = self.event, target._node
        if EVENTS.learning is not None or event is None or leaf_buffer(node) is not None:
            stop()
            self.keep(None)
            return
        EVENTS.learning, (kind, number) = self, self.names[id(target)][1]
        if kind == MET:
            event.shows.append((number, node))
            return
        is_apart = target._view is None and self.made[number][2].shown is not None
        flags = node.leaf is not None, node in VERSIONS, node in pending.CHANGED, is_apart
        event.moves.append(Move(number, node, target._tracks, *flags))
        self.moved[number] = node

    def told_gradient(self, leaf: Any) -> Told | None:
        """Tell the gradient that a leaf has, or that it has none; None where a way is spoilt."""
        try:
            return self.told(leaf._grad)
        except Unlike:
            self.spoil()
            return None

    def note_gradient(self, leaf: Any, before: Told) -> None:
        """Note that a leaf was given a gradient, in the place of another."""
        event, known = self.event, self.names.get(id(leaf))
        is_met = known is not None and known[0]() is leaf and known[1][0] == MET
        if event is None or known is None or not is_met or leaf._hooks is not None:
            self.spoil()
            return
        try:
            now, places = self.names.get(id(leaf._grad)), [each[0] for each in event.gradients]
            if (now is not None and now[0]() is leaf._grad) or known[1][1] in places:
                raise Unlike  # it was changed in place, or is of two values of the leaf
            event.gradients.append((known[1][1], self.add_made(leaf._grad, event), before))
        except Unlike:
            self.spoil()

    def note_demand(
        self, node: Node, question: Hashable, look: Callable[[Any], Any], reads: int
    ) -> None:
        """Note that values, or their bounds, were looked at, by what question.

        Others may be there the next time.
        """
        place, source = self.place(node), below_views(node)[0]
        self.explained += self.reads - reads
        if self.event is not None and place is not None:
            self.event.looks.append(Look(*place, look, question))
        elif self.event is None or not is_plain_leaf(source) or type(source.arg) in GIVEN:
            self.spoil()  # else it is a constant, which the way makes itself

    def note_copy(self, copy: Node, source: Node) -> None:
        """Note that an event copies what others may write."""
        place = self.place(source)
        if self.event is None or place is None:
            self.spoil()
        else:
            self.event.copies.append(Copied(*place, len(self.met)))
            self.met.append(copy)
            self.explained += 1

    def place(self, node: Node) -> tuple[int, list[Node]] | None:
        """Find the first node below views that was met, and describe those; None without one."""
        source, views = below_views(node)
        chain = [*views, source]
        places = {id(each): number for number, each in reversed([*enumerate(self.met)])}
        for depth, each in enumerate(chain):
            if id(each) in places:
                views = [Node(x.op, (), x.arg, x.shape, x.dtype, x.device) for x in views[:depth]]
                return places[id(each)], views
        return None

    # keeping

    def may_end(self, asked: list[Node]) -> bool:
        """Tell whether what is asked for may end the way, and note it."""
        if self.event is not None or self.optimizer is not None or not self.events:
            return False
        self.asked, EVENTS.take = asked, None
        return True

    def close(self, taken: Taken, updates: Sequence[Update] = ()) -> None:
        """Keep the way, at the computation that ends it; nothing was computed yet."""
        if EVENTS.learning is not self:
            return
        EVENTS.learning = EVENTS.take = None
        try:
            if self.asked is not None and self.may_go_on(taken):
                self.add_read(taken, self.asked)
                self.is_reading = True
                return
            if self.is_usual(hash(tuple(map(sketch_of, self.events)))):
                self.keep(Closing(self, taken, updates).way())
        except Unlike:
            self.keep(None)

    def held(self, held: dict[int, Told]) -> dict[int, Told]:
        """Tell whose memory there is, by its identity; some of it is told already."""
        for node in self.results:
            held[id(present(node))] = MADE, node
        first: dict[int, int] = {}
        for number, node in enumerate(self.met):
            buffer = present(node)
            kind, name = held.get(id(buffer), (IS, None))
            if buffer is not None and name is not None and kind == IS and name._node is not node:
                raise Unlike  # memory of two tensors
            if first.setdefault(id(node), number) != number:
                self.shared[number] = first[id(node)], True
            elif buffer is not None and kind == MET:
                self.shared[number] = name, False
            elif buffer is not None and kind != MADE:
                held[id(buffer)] = MET, number
        return held

    def may_go_on(self, taken: Taken) -> bool:
        """Tell whether a computation is a read on the way: gradients may be taken behind it.

        None but live tensors, and what is checked, get values.
        """
        if not self.may_read or len(self.reads_made) == READS:
            return False
        if id(taken.plan) == self.begun_behind or any(each.shows for each in self.events):
            return False
        tensors = [tensor for _, each, _ in self.made if (tensor := each()) is not None]
        nodes = {id(each._node) for each in tensors}
        nodes.update([id(carried.shown(each._node, each, {})[0]) for each in tensors])
        told = [node for event in self.events for _, node in event.writes]
        told += [node for event in self.events for node, _ in event.checks]
        if not nodes.union(map(id, told)).issuperset(map(id, taken.roots)):
            return False
        if any(each.gradients or each.walks for each in self.events):
            return True
        if any(each.plan() is taken.plan for each in self.reads_made):
            return False  # it is another round of a loop
        nodes.difference_update(map(id, taken.roots))
        left = [each._node for each in tensors if id(each._node) in nodes]
        # a way that begins behind it would meet what is not there yet
        is_left = any(each.inputs and each.realized is None for each in left)
        return is_left or any(each._tracks and each._node.leaf is None for each in tensors)

    def add_read(self, taken: Taken, asked: list[Node]) -> None:
        """Note a computation on the way."""
        written = [node for event in self.events for _, node in event.writes]
        for x in written:
            if x.inputs:
                self.before[id(x)] = Node(x.op, x.inputs, x.arg, x.shape, x.dtype, x.device)
        read = Computation.of(taken, len(self.events), asked)
        read.buffers = told_buffers(self.held({}), taken)
        made = enumerate(self.made)
        alive = {number: x for number, (_, each, _) in made if (x := each()) is not None}
        read.living, read.nodes = [*alive], [tensor._node for tensor in alive.values()]
        read.roots = [*taken.roots]
        self.reads_made.append(read)
        self.results += taken.roots

    def living(self) -> list[int]:
        """Number the tensors that were made and live."""
        return [number for number, each in enumerate(self.made) if each[1]() is not None]

    def goes_on(self) -> bool:
        """Learn on behind a read; False where the way ended, or other things happened meanwhile."""
        is_read, self.is_reading = self.is_reading, False
        if not is_read or EVENTS.learning is not None or EVENTS.take is not None:
            return False
        EVENTS.learning, EVENTS.take, self.asked = self, self.take, None
        if pending.WAITING or pending.pending_writes() or pending.changed_values():
            self.spoil()
            return False
        passed = carried.PASSED
        self.reads_made[-1].passed = [(each, passed[each]) for each in carried.nodes_of(passed)]
        return True


def is_bare(tensor: Any) -> bool:
    """Tell whether a tensor that was just made has nothing but its node."""
    return tensor._history is None and tensor._hooks is None and tensor._grad is None


class Closing:
    """This class makes a way of what was noted, where the plan at its end is known."""

    def __init__(self, log: Log, taken: Taken, updates: Sequence[Update]) -> None:
        self.log, self.taken, self.updates = log, taken, updates
        self.numbers: dict[int, int] = {}
        for number, node in enumerate(log.met):  # a node of two has the first number, and its own
            self.numbers[id(node) if id(node) not in self.numbers else -number] = number
        self.order: list[Node] = []
        # What reads on the way stored, by its memory: what comes behind a read has leaves of that.
        self.stored = {id(buffer): id(x) for x in log.results if (buffer := present(x))}
        self.written = {met for event in log.events for met, _ in event.writes}
        self.drawn: dict[int, RuntimeScalar] = {}
        self.constants: dict[int, Told] = {}  # memory that events made of plain values
        self.parts: set[int] = set()  # of the arguments of all nodes, by identity
        self.varying = Varying(log.notes)

    def way(self) -> Way:
        """Make the way; raises Unlike."""
        log, taken = self.log, self.taken
        if (log.optimizer is None) is not (log.asked is not None):
            raise Unlike
        self.add_events()
        moving = self.moving()
        shows = self.shown()
        self.number_tensors()
        final = {number: self.number(node) for number, node in log.moved.items()}
        alive = log.living()
        roots = [*map(self.number, taken.roots)]
        asked = None if log.asked is None else [self.number(node) for node in log.asked]
        computed = {*roots, *map(self.number, log.results)}
        is_shown = computed.issuperset(map(self.number_made, shows))
        if not is_shown or not {*(asked or ())} <= {*roots}:
            raise Unlike
        template = self.template()
        self.number_changes()
        old = [at for at, node in enumerate(log.met) if is_old(node)]
        places = {n: final.get(n, log.made[n][2].at) for n in alive}
        cut = [each.inputs[0] for each in self.order if carried.is_detached(each)]
        stored = computed.intersection((*places.values(), *map(self.number, cut)))
        stored.update({met: at for event in log.events for met, at in event.writes}.values())
        free = {n: self.free(at, stored) for n, at in places.items() if at not in computed}
        targets = [tensor for each in self.updates for tensor in each.tensors]
        written, told = self.written_targets(), log.optimizer and told_of(log.optimizer)
        met = [id(log.met[at]) for at in written]
        holders = [met.count(id(leaf)) for leaf in self.targets()]
        last = Computation.of(taken, len(log.events), asked)
        last.roots, last.living, last.buffers = roots, alive, self.buffers()
        self.check_scalars(last.scalars)
        way = Way(
            log.events, template, [each for _, _, each in log.made], last, told, self.gradients(),
            self.number_of(log.optimizer and log.optimizer.found_inf), log.shared, targets, holders,
            old, written, final, free, moving, random.default().named, self.leading(free),
            log.reads_made, self.detached(),
        )  # fmt: skip
        way.describe()
        return way

    def detached(self) -> list[int]:
        """Number the tensors that were made by `detach`."""
        shown = [each.shown for _, _, each in self.log.made]
        return [at for at, each in enumerate(shown) if each and each.function is build.detach]

    def shown(self) -> list[Node]:
        """List the nodes of tensors that were given other memory.

        Raises Unlike where more is to be computed than what events wrote, checked and changed.
        """
        events = self.log.events
        told = {id(node) for event in events for node, _ in event.checks}
        told.update([id(node) for event in events for _, node in event.writes])
        shows = [node for event in events for _, node in event.shows]
        waiting = [node for node, _ in pending.WAITING]
        beside = {*map(id, pending.pending_writes()), *map(id, waiting)}
        changed = {*map(id, pending.changed_values())}
        if beside - told or changed.difference(map(id, (*self.log.moved.values(), *shows))):
            raise Unlike
        return shows

    def number_read(self, each: Computation) -> None:
        """Let a computation on the way tell what it takes and gives by numbers."""
        numbers = self.numbers
        each.asked = [*map(self.number, each.asked or ())]
        each.roots = [*map(self.number, each.roots)]
        each.nodes = [*map(self.number, each.nodes)]
        each.buffers = self.by_number(each.buffers)
        each.passed = [
            (numbers[id(node)], is_free) for node, is_free in each.passed if id(node) in numbers
        ]
        self.check_scalars(each.scalars)
        if not {*each.asked} <= {*each.roots}:
            raise Unlike

    def number_changes(self) -> None:
        """Let events, and reads on the way, tell what they change by numbers."""
        for read in self.log.reads_made:
            self.number_read(read)
        for event in self.log.events:
            event.writes = [(met, self.number(node)) for met, node in event.writes]
            event.shows = [(met, self.number(node)) for met, node in event.shows]
            event.checks = [(self.number(node), error) for node, error in event.checks]
            for each in event.moves:
                each.at = self.number(each.at)
            event.is_change = bool(event.writes) or is_more(event)

    def leading(self, free: Container[int]) -> int:
        """Count the events before all that others read, of which nothing is to be computed."""
        log, count = self.log, 0
        if log.reads_made:
            return 0
        for event in log.events:
            is_read = any(number >= log.least for number in event.made)
            lives = any(log.made[n][1]() is not None and n not in free for n in event.made)
            if is_read or lives or event.is_change or event.looks or event.copies:
                break
            count += 1
        return count

    def moving(self) -> dict[int, list[Any]]:
        """List the positions of users in nodes that were met, which nothing else may know."""
        found, names, below = {}, set(), set()
        for number, node in enumerate(self.log.met):
            if own := starts_of(node):
                found[number] = own
                names |= {*map(id, own)}
                below |= {*map(id, node.inputs)}
        for node in self.order if found else ():
            args = map(id, parts_of(node.arg))
            is_beside = node.op in WHOLE or below.isdisjoint(map(id, node.inputs))
            if not (is_beside and names.isdisjoint(args)):
                raise Unlike
        return found

    def add_events(self) -> None:
        """Number all nodes, in the order of the events that lead to them."""
        for event in self.log.events:
            before = [x.inputs for _, node in event.writes if (x := self.log.before.get(id(node)))]
            roots = [each for inputs in before for each in inputs]
            roots += [self.log.made[number][0] for number in event.made]
            roots += [node for _, node in (*event.writes, *event.shows)]
            roots += [each.at for each in event.moves]
            roots += [node for node, _ in event.checks]
            start = len(self.order)
            add_order(roots, self.numbers, self.order, len(self.log.met), self.stored)
            self.order[start:] = [self.log.before.get(id(x), x) for x in self.order[start:]]
            event.reached = len(self.order)
            self.add_draws(event, self.order[start:])
            self.varying.add(event, self.order[start:])
            if not event.advance:
                found = [node for node in self.order[start:] if is_private(node)]
                self.constants |= {id(node.arg.buffer): (IS, Constant(node)) for node in found}
        stored = {*map(id, self.log.results)}
        for node in self.order:
            is_told = (
                type(node.arg) is Recurrence
                or is_kept(node.arg)
                or (node.op == FOLDED and node.arg.is_plain)
            )
            is_pending = node.realized is None or id(node) in stored
            is_new = is_pending and (node.inputs or is_end(node))
            is_told |= id(node.arg) in self.drawn
            if is_private(node) and id(node.arg.buffer) in self.constants:
                continue
            if not is_told or not is_new or type(node) is not Node:
                raise Unlike
        if not self.varying.may_vary:
            for event in self.log.events:
                event.args = [(IS if k in VARYING else k, told) for k, told in event.args]
                event.options = [
                    (name, (IS if k in VARYING else k, told)) for name, (k, told) in event.options
                ]
                event.numbers, event.derived = [], []
        self.check_old_graphs()

    def add_draws(self, event: Event, nodes: Sequence[Node]) -> None:
        """Note the random numbers of an event: its counters, and the seed, are those of a plan."""
        for node in nodes:
            scalar = node.arg
            if type(scalar) is not RuntimeScalar or id(scalar) in self.drawn:
                continue
            self.drawn[id(scalar)] = scalar
            if scalar is random.default().named:
                continue
            at = int(scalar.value) - event.offset
            if not 0 <= at < event.advance:
                raise Unlike
            event.draws.append((scalar, at))

    def check_old_graphs(self) -> None:
        """Refuse what leads to the graph of an earlier computation, but by a detach."""
        old = {id(node) for node in self.log.met if is_old(node)}
        for node in self.order:
            if node.op in PASSING and not old.isdisjoint(map(id, node.inputs)):
                raise Unlike

    def number(self, node: Node) -> int:
        """Give the number of a node, or of what a read on the way stored."""
        found = self.numbers.get(id(node))
        if found is None and type(node.arg) is Storage:
            found = self.numbers.get(self.stored.get(id(node.arg.buffer), 0))  # no identity is 0
        if found is None:
            raise Unlike
        return found

    def number_tensors(self) -> None:
        """Number the nodes of tensors that were made; raises Unlike for one that a way cannot give.

        A view may have the node below a piece that was met, as `x[0].unsqueeze(0)` has, and nothing
        else.
        """
        log, first = self.log, len(self.log.met)
        kept = {*log.moved, *[each[1] for event in log.events for each in event.gradients]}
        for number, (node, _, each) in enumerate(log.made):
            is_met, each.at = each.at >= 0, self.number(node)
            if each.at < first and (not is_met or number in kept or each.is_leaf or each.tracks):
                raise Unlike

    def number_made(self, node: Node) -> int:
        """Give the number of a node that an event made; raises Unlike where that was met."""
        found = self.number(node)
        if found < len(self.log.met):
            raise Unlike
        return found

    def template(self) -> Template:
        """Make the template."""
        numbers, first = self.numbers, len(self.log.met)
        steps, asked = [], []
        for at, node in enumerate(self.order, first):
            places = [numbers[id(each)] for each in node.inputs]
            step = node.op, places, node.arg, node.shape, node.dtype, node.device
            steps.append(reader(*step))
            if node.is_asked:
                asked.append(at)
        return Template(first, steps, asked)

    def gradients(self) -> list[tuple[Any, int]]:
        """Pair parameters with the tensors made that are their gradients, -1 for none."""
        found: list[tuple[Any, int]] = []
        for group in () if self.log.optimizer is None else self.log.optimizer.param_groups:
            for parameter in group.parameters:
                found.append((parameter, self.number_of(parameter._grad)))
        return found

    def number_of(self, tensor: Any) -> int:
        """Give the number of a tensor that was made, -1 for None."""
        known = (None, (MADE, -1)) if tensor is None else self.log.names.get(id(tensor))
        if known is None or known[1][0] != MADE:
            raise Unlike
        return known[1][1]  # type: ignore[no-any-return]

    def by_number(self, several: Sequence[Told]) -> list[Told]:
        """Tell what reads on the way computed by numbers."""
        return [(k, self.number(told) if k == MADE else told) for k, told in several]

    def buffers(self) -> list[Told]:
        """Tell whose memory the plan takes."""
        held = {**self.constants}
        for update in self.updates:
            for node, tensor in zip(update.whole.inputs, update.sources, strict=True):
                if type(node.arg) is Storage:
                    if self.log.names.get(id(tensor), (None, (IS, 0)))[1][0] == MADE:
                        raise Unlike  # it was computed on the way
                    held[id(node.arg.buffer)] = IS, tensor
        return self.by_number(told_buffers(self.log.held(held), self.taken))

    def check_scalars(self, found: list[Any]) -> None:
        """Raise Unlike unless the numbers of a plan are those of the template."""
        if not self.parts:  # all nodes are known by now
            nodes = [*self.log.met, *self.order]
            self.parts = {id(each) for node in nodes for each in parts_of(node.arg)}
        if not all(type(each) in TOLD_NUMBERS and id(each) in self.parts for each in found):
            raise Unlike

    def free(self, at: int, stored: Container[int]) -> list[FreeStep]:
        """List the steps of what nothing computes, a few views or operations over what is stored.

        It may be computed later: so nothing that it reads is written.
        """
        first, stack = len(self.log.met), [at]
        found: dict[int, tuple[int, ...]] = {}
        written = {*self.written, *self.written_targets()}
        while stack:
            number = stack.pop()
            if number in found or number in stored:
                continue
            if number < first:
                if number in written:
                    raise Unlike
                continue
            node = self.order[number - first]
            found[number] = tuple([self.number(each) for each in node.inputs])
            if node.op in WRITES or len(found) > FREE_LIMIT:
                raise Unlike
            stack += found[number]
        return sorted(found.items())

    def written_targets(self) -> list[int]:
        """Number what is met of the leaves that the optimizer writes."""
        leaves = {id(leaf) for leaf in self.targets()}
        return [number for number, node in enumerate(self.log.met) if id(node) in leaves]

    def targets(self) -> list[Node]:
        """List the leaves that the optimizer writes."""
        return [leaf for each in self.updates for leaf in each.written()]


def told_buffers(held: dict[int, Told], taken: Taken) -> list[Told]:
    """Tell whose memory a plan takes."""
    wanted = [*map(id, taken.buffers)]
    found = [held.get(each) for each in wanted]
    if None in found or not foreign.SHARED.keys().isdisjoint(wanted):
        raise Unlike
    return found  # type: ignore[return-value]


def is_more(event: Event) -> bool:
    """Tell whether an event changes more than the values of tensors that have memory."""
    return bool(event.checks or event.gradients or event.moves or event.shows)


def gain_of(event: Event) -> int:
    """Tell how much longer an event takes where it is recorded: see `SHORT`.

    One function on nodes takes little to record.
    """
    if not event.is_simple or event.writes:
        return BY_PYTHON
    return 1 if event.args and type(event.args[0][1]) is FunctionType else OTHERS


def is_private(node: Node) -> bool:
    """Tell whether a node is memory that no tensor has, and nobody wrote."""
    if type(node.arg) is not Storage or node.realized is not None or is_shared(node):
        return False
    return not node.arg.version and pending.LIVE.get(id(node)) is None


def is_end(node: Node) -> bool:
    """Tell whether a node reads nothing, and may be told: a number, positions, or what is drawn."""
    return is_plain_leaf(node) or type(node.arg) is RuntimeScalar


def sketch_of(event: Event) -> Hashable:
    """Tell of an event, roughly, what has to be the same when it is due."""
    options = [(name, likeness(told)) for name, told in event.options]
    return event.function, tuple(map(likeness, event.args)), tuple(options)


def likeness(told: Told) -> Hashable:
    """Tell of what an event was given what has to be the same when it is due, but for views."""
    kind, value = told
    if kind == MANY:
        return tuple(map(likeness, value[1]))
    if kind == NAMED:
        return tuple([(name, likeness(each)) for name, each in value])
    return kind, None if kind in VARYING else value[:-1] if kind == NEW else value


def is_told(value: Any) -> bool:
    """Tell whether the operands of a view are no tensors, nor nodes."""
    if type(value) in LISTS:
        return all(map(is_told, value))
    if type(value) is slice:
        return is_told((value.start, value.stop, value.step))
    return type(value) in PLAIN or type(value) in GIVEN
