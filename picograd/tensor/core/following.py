"""Ways are followed: an operation that comes as the last time gives a tensor without recording.

`begin` is called when an optimizer has stepped, or else a plan has run: what follows is learnt
(ways.py) or, where it is known, followed up to the next step, or to what is asked for.
`Follower.take` compares each call with the event that is due: function, plain values by type and
value, tensors by identity or, where one comes for the first time, by all that recording looks at.
Its tensors get nodes that stand in. `finish` then runs the plan that such a way leads to. Whatever
else happens stops it, with nothing lost: the nodes are made (engine/followed.py). A way that was
missed is not tried for a while.
"""

import functools
import operator
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from threading import get_ident
from typing import Any

from picograd.buffer import Overwritten, RuntimeScalar, Storage, memory_of
from picograd.config import config
from picograd.engine import carried, foreign, pending
from picograd.engine.carried import ALONE, become_leaf, entries, held, let_go, readers_among
from picograd.engine.debug import user_place
from picograd.engine.followed import (
    EVENTS,
    MISS,
    PATIENCE,
    Known,
    Record,
    Taken,
    as_leaf,
    is_one_memory,
    leave,
    met_with,
    stand_no_more,
    standing_node,
    stop,
    whole,
)
from picograd.engine.native_calls import CODED
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import check_later_all, node_from_numpy
from picograd.engine.sizes import RUNNABLE
from picograd.engine.tracing import RUNNING
from picograd.engine.update import Alone, have_own_memory, move_on, steps_as
from picograd.engine.watch import PROFILES
from picograd.errors import PicogradError
from picograd.graph import build
from picograd.graph.gradient import WATCHERS
from picograd.graph.node import RESULT, Node
from picograd.graph.row import PASSING
from picograd.graph.starts import starts_of
from picograd.number import LARGEST, computed, given
from picograd.tensor.core.aliasing import is_shown
from picograd.tensor.core.alone import has_alone
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE, WALKS, give_value
from picograd.tensor.core.demands import kept_answer, known_bounds, passed
from picograd.tensor.core.known_values import values_below
from picograd.tensor.core.native_ends import declare_ends, ends_of
from picograd.tensor.core.pieces import (
    IS,
    MADE,
    MANY,
    MET,
    NAMED,
    NEW,
    Facts,
    Told,
    may_cut,
    piece,
    shown_by,
)
from picograd.tensor.core.plain_values import is_same
from picograd.tensor.core.recording import VERSIONS, Recorded, fill, note_view, root_of
from picograd.tensor.core.varying import FACTOR, NUMBER, is_factor
from picograd.tensor.core.ways import LISTS, Computation, Event, FreeStep, Log, Way
from picograd.tensor.making import random

NODE = operator.attrgetter("_node")
NEW_TENSOR = object.__new__
FARTHEST = 8  # computations behind a step
Check = tuple[Any, PicogradError]  # a bool in memory, and what is raised where it is true


class Places:
    """Where a program is: how many computations ago an optimizer stepped, and which one.

    Or which plan ran last, where no optimizer stepped for a while.
    """

    __slots__ = ("count", "owner")
    owner: Any
    count: int


PLACES = Places()
# by optimizers: what is known of the ways behind their steps, and behind each computation then;
# and by plans
KNOWN: "weakref.WeakKeyDictionary[Any, list[Known]]" = weakref.WeakKeyDictionary()


def begin(owner: Any, count: int = 0) -> None:
    """Learn or follow what comes after the step of an optimizer, and a number of computations, or
    after a run of a plan.
    """
    with pending.LOCK:
        stop()
        listed = KNOWN.setdefault(owner, [])
        if len(listed) == count:
            listed.append(Known.behind(owner))
        PLACES.owner, PLACES.count = weakref.ref(owner), count
        EVENTS.after, known = go_on, listed[count]
        known.others, known.is_other = known.others + known.is_other, False
        if known.waits:
            known.waits -= 1
        elif is_watched():
            return
        elif type(owner) in RUNNABLE and known.may_rest():
            EVENTS.after = None
        elif known.ways:
            if CODED.follow is None:
                CODED.count_computation()
            EVENTS.take = Start(known).take
        else:
            learn(known, owner)


def learn(known: Known, owner: Any) -> Log:
    """Watch what comes."""
    told = known.leading, known.may_read, owner, known.is_usual
    EVENTS.learning = log = Log(known.keep, *told)
    EVENTS.take = log.take
    return log


def is_watched() -> bool:
    """Tell whether a trace, or whoever watches gradients, has to see what is recorded."""
    return bool(RUNNING.active or RUNNING.traces or WATCHERS)


def go_on() -> None:
    """Learn or follow what comes after a computation."""
    owner, count = PLACES.owner(), PLACES.count + 1
    EVENTS.after = None
    if type(owner) in RUNNABLE:
        anchor()
    elif owner is not None and count < FARTHEST:
        begin(owner, count)


def anchor() -> None:
    """Learn or follow what comes after the plan that ran last, where it did not run once."""
    plan, EVENTS.computed = EVENTS.computed, None
    if plan is not None and not pending.DEPTH[0] and not is_watched():
        begin(plan)


def follow_plans() -> None:
    """Let ways begin behind plans."""
    EVENTS.is_place, EVENTS.anchor = lambda plan: plan in KNOWN, anchor


def following(update: Callable[[Any], bool]) -> Callable[[Any], None]:
    """Let a function that records a step of an optimizer be the end of a way, and begin the next.

    It tells whether it made updates alone, which others may follow.
    """

    @functools.wraps(update)
    def call(optimizer: Any) -> None:
        is_done = EVENTS.record is not None and finish(optimizer)
        if not is_done and EVENTS.learning is not None:
            EVENTS.learning.optimizer, EVENTS.take = optimizer, None
        is_usual = is_done or update(optimizer)
        EVENTS.expected = None
        if is_usual:
            begin(optimizer)
        else:
            leave()

    return call


def finish(optimizer: Any) -> bool:
    """Compute a step of an optimizer whose way was followed; False where it is to be recorded."""
    with pending.LOCK:
        record = None if EVENTS.take is None else EVENTS.record
        return record is not None and record.follower.end(None, optimizer)


class Start:
    """This class waits for the first event of a way. It keeps nothing alive."""

    def __init__(self, known: Known) -> None:
        self.known = weakref.ref(known)

    def take(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Follow the way from its first event on; MISS for any other."""
        known = self.known()
        if known is None or is_watched():
            return MISS
        with pending.LOCK:
            if getattr(EVENTS.take, "__self__", None) is not self:
                return MISS  # another thread was faster, and follows a way
            if is_waited_for():
                return MISS  # its plan would have to do more
            for way in known.ways:
                if way.events[0].function is not function:
                    continue
                follower = Follower(known, way)
                if way.events[0].is_simple and CODED.first is not None:
                    EVENTS.take, EVENTS.record = CODED.follow, follower.record
                    made = CODED.first(function, args, options)
                    if follower.at:
                        known.is_other = False
                        return made
                    if EVENTS.record is not follower.record:
                        return MISS  # the handler of a signal recorded, and stopped it
                    EVENTS.take, EVENTS.record = self.take, None
                    follower = Follower(known, way)  # one may have stopped the other since
                if follower.is_due(way.events[0], function, args, options):
                    known.is_other, follower.is_busy = False, True
                    if is_cut := may_cut(function, args):  # it may be no part of the way
                        follower.met, follower.record.found = [], []
                    EVENTS.take, EVENTS.record = CODED.follow or follower.take, follower.record
                    return follower.follow(function, args, options, not is_cut)
                follower.record.follower = None
            owner, known.is_other = PLACES.owner(), not known.leading
            is_due = known.branches > 0 and known.others >= PATIENCE << known.unseen
            if not (is_due and known.is_other) or owner is None or may_cut(function, args):
                return MISS
            known.others = 0
            return learn(known, owner).take(function, args, options)


class Follower:
    """This class follows one way, from one step of an optimizer to the next."""

    __slots__ = (
        "at", "begun", "changed", "computed", "count", "distinct", "due", "is_busy", "known",
        "made", "met", "noted", "reads", "record", "stream", "way", "written", "written_here",
    )  # fmt: skip

    def __init__(self, known: Known, way: Way) -> None:
        self.known, self.way, self.at, self.count = known, way, 0, len(way.events)
        self.reads, self.is_busy = 0, False  # computations on the way that were made
        self.due = way.reads[0].at if way.reads else self.count
        self.computed: dict[int, Any] = {}  # by these
        self.written: dict[int, Node] = {}  # by these: what was met, and its leaf since
        self.changed: list[tuple[int, int]] = []  # what was met, and its nodes since
        self.written_here: list[int] = []  # what of it was written
        self.begun = 0  # events whose writes and checks were made
        self.met: list[Any] = []
        self.distinct: set[int] = set()  # those of them that are known to be
        self.made: list[weakref.ref[Any]] = []
        self.stream: Any = None  # of random numbers
        self.noted = -1  # events that were told to the tables when it stopped
        self.record = Record(way.template, self)

    # following

    def take(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Give what a call gives, if it is the one that is due; MISS for any other."""
        with pending.LOCK:
            is_own = get_ident() == self.record.owner
            if EVENTS.record is not self.record or self.is_busy or not is_own:
                stop()
                return MISS
            self.is_busy = True  # the handler of a signal may record
            return self.follow(function, args, options)

    def follow(self, function: Any, args: Any, options: Any, is_known: bool = False) -> Any:
        """Give what a call gives; `is_known` if it is known to be the one that is due."""
        record, at = self.record, self.at
        try:
            is_cut = not is_known and may_cut(function, args)
            if is_cut and (cut := self.aside(function, args)) is not None:
                self.is_busy = False
                return cut
            event = self.way.events[at] if at < self.due else None
            if event is None or not (is_known or self.is_due(event, function, args, options)):
                return self.miss()
            for place, number in event.numbers:
                value = args[place] if isinstance(place, int) else options[place]
                record.drawn[number] = given(value)
            if event.derived and not self.derive(event):
                return self.miss()
            if event.advance:
                self.draw(event)
            WALKS.count += event.walks
            result = self.build(event.result)
            changes = self.changes(event) if event.is_change else None
        except BaseException as error:
            is_stopped = self.way is None and isinstance(error, (TypeError, AttributeError))
            self.miss()
            if is_stopped:  # by the handler of a signal, in the middle
                return MISS
            raise
        self.is_busy, record.reached = False, event.reached
        self.at = at + 1
        if event.is_change:
            self.written_here += [met for met, _ in event.writes]
            self.changed += (*event.writes, *event.shows)
        if EVENTS.record is not record and self.noted <= at:
            return MISS  # a handler stopped it before this event
        if changes is not None:
            self.change(event, changes)
        return result

    def aside(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Cut a piece, which is no part of the way; None where it is none."""
        take, EVENTS.take = EVENTS.take, None
        try:
            return piece(function, args)
        finally:
            if EVENTS.record is self.record:
                EVENTS.take = take

    def miss(self) -> Any:
        """Go on as usual."""
        stop()
        return MISS

    def is_due(
        self, event: Event, function: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> bool:
        """Tell whether a call is an event, values that it looks at included."""
        enabled, regions, epoch = event.modes
        if event.function is not function or len(args) != len(event.args):
            return False
        if event.walks and WATCHERS:
            return False
        if MODE.enabled is not enabled or REGIONS.dtypes != regions or config.epoch != epoch:
            return False
        if not self.fit(event.args, args):
            return False
        if (options or event.options) and not self.fit_named(event.options, options):
            return False
        if event.is_change and not self.are_free(event):
            return False
        if (event.is_change or event.walks) and not self.are_distinct():
            return False
        if event.advance and self.stream not in (None, random.default().stream()):
            return False  # it was seeded in the middle
        if event.copies and not self.copy(event):
            return False
        return not event.looks or self.are_fine(event)

    def are_free(self, event: Event) -> bool:
        """Tell whether nothing else shows what is written, or has gradients; no leaf has hooks."""
        for met, _ in event.writes:
            target = self.met[met]
            if target._views and not self.are_moved(target, event):
                return False
            others = [self.met[at] for kind, at in event.args if kind == MET]
            if any(each._view is not None and root_of(each) is target for each in others):
                return False  # it is checked how they overlap
        for met, _ in event.shows:
            if is_shown(self.met[met]):
                return False
        for each in event.moves:
            moved: Any = self.made[each.number]()
            if not self.are_moved(moved, event):
                return False
            if each.is_apart and moved._view is not None and held(moved._view, "base") != ALONE:
                return False
        for met, _, before in event.gradients:
            leaf = self.met[met]
            known = int(before[0] == MET)  # it is in the list of these
            if leaf._hooks is not None or (leaf._grad is not None and not has_alone(leaf, known)):
                return False
            if not self.fit((before,), (leaf._grad,)):
                return False
            if before[0] == NEW:  # nothing else has it
                self.met[-1] = Alone(leaf._grad._node)
        return True

    def are_distinct(self) -> bool:
        """Tell whether no tensor came in the place of two: writes and gradients are of each."""
        self.distinct.update(map(id, self.met[len(self.distinct) :]))
        return len(self.distinct) == len(self.met)

    def are_moved(self, target: Any, event: Event) -> bool:
        """Tell whether an event renews all views that show a tensor."""
        views = [view for each in target._views or () if (view := each()) is not None]
        moved = [self.made[each.number]() for each in event.moves] if views else []
        return all(any(view is each for each in moved) for view in views)

    def fit(self, wanted: Sequence[Told], values: Iterable[Any]) -> bool:
        """Tell whether arguments are what they were."""
        for (kind, told), value in zip(wanted, values):
            if kind == MADE:
                if value is None or self.made[told]() is not value:
                    return False
            elif kind == IS:
                if value is not told and not is_same(value, told):
                    return False
            elif kind == NEW:
                if not self.meet(told, value):
                    return False
            elif kind == MET:
                if self.met[told] is not value:
                    return False
            elif kind == NUMBER:
                if type(value) is not float or not -LARGEST < value < LARGEST:
                    return False
            elif kind == FACTOR:
                if not is_factor(value):
                    return False
            elif not self.fit_inside(kind, told, value):
                return False
        return True

    def fit_inside(self, kind: int, wanted: Any, value: Any) -> bool:
        """Tell whether a list or a dictionary of arguments is what it was."""
        if kind == NAMED:
            return type(value) is dict and self.fit_named(wanted, value)
        own, several = wanted
        if type(value) is slice is own:
            value, own = (value.start, value.stop, value.step), tuple
        return type(value) is own and len(value) == len(several) and self.fit(several, value)

    def fit_named(self, wanted: list[tuple[str, Told]], given: dict[str, Any]) -> bool:
        """Tell whether options are what they were, in the same order."""
        if [name for name, _ in wanted] != [*given]:
            return False
        return self.fit([told for _, told in wanted], given.values())

    def meet(self, facts: Facts, value: Any) -> bool:
        """Tell whether a tensor that was not met is as another was (`facts_of`), and note it."""
        kind, shape, dtype, device, tracks, is_frozen, is_leaf, is_theirs, views = facts
        if type(value) is not kind:
            return False
        node = value._node
        if node.dtype is not dtype or node.shape != shape or node.device != device:
            return False
        if value._tracks is not tracks or value._is_frozen is not is_frozen:
            return False
        if (value._view is not None and not views) or (tracks and value._hooks is not None):
            return False
        if views or (node.realized is None and type(node.arg) is not Storage):
            shown, end = shown_by(node)
            if shown != views or end is None:
                return False
        is_shared = bool(foreign.SHARED) and foreign.is_shared(foreign.behind_views(node))
        if is_shared is not is_theirs:
            return False
        if (node.leaf is not None and node.leaf() is value) is not is_leaf:
            return False
        self.met.append(value)
        self.record.found.append(node)
        if views:
            below = met_with(node, views)[1:]
            self.met += map(Alone, below)
            self.record.found += below
            if self.way.moving:
                self.note_moved(len(views) + 1)
        return not self.way.shared or self.are_shared(len(views) + 1)

    def note_moved(self, count: int) -> None:
        """Note where the last nodes that were met begin."""
        found, moving = self.record.found, self.way.moving
        for at in range(len(found) - count, len(found)):
            if at in moving:
                self.record.drawn.update(zip(map(id, moving[at]), starts_of(found[at])))

    def are_shared(self, count: int) -> bool:
        """Tell whether the last nodes that were met are of the memory of others, as they were.

        Formulas of gradients tell them by these.
        """
        found, shared = self.record.found, self.way.shared
        last = [at for at in range(max(0, len(found) - count), len(found)) if at in shared]
        return all(is_one_memory(found[at], found[shared[at][0]], shared[at][1]) for at in last)

    def are_fine(self, event: Event) -> bool:
        """Tell whether values that an event looks at are as they must be."""
        try:
            return all(map(self.is_fine, event.looks))
        except PicogradError:  # it is raised where the operation is recorded
            return False

    def is_fine(self, look: Any) -> bool:
        """Tell whether values are there, and as they must be for one look."""
        node = self.record.found[look.met]
        if look.question is None:
            return bool(passed(look.look, known_bounds(node)))

        def ask() -> bool | None:
            return passed(look.look, values_below(node, look.views))

        return bool(ask() if look.views else kept_answer(node, look.question, ask))

    def copy(self, event: Event) -> bool:
        """Copy what others may write, as the event does."""
        for each in event.copies:
            node = self.record.found[each.met]
            values = values_below(node, each.views)
            if values is None or len(self.met) != each.number:
                return False
            copy = node_from_numpy(values, node.dtype, node.device)
            self.met.append(Alone(copy))
            self.record.found.append(copy)
        return True

    def draw(self, event: Event) -> None:
        """Take random numbers, as the event does."""
        generator, drawn = random.default(), self.record.drawn
        self.stream = generator.stream()
        if self.way.stream is not None:
            drawn[id(self.way.stream)] = self.stream
        first = generator.advance(event.advance)
        for scalar, at in event.draws:
            drawn[id(scalar)] = RuntimeScalar(first + at, scalar.renew)

    def derive(self, event: Event) -> bool:
        """Compute numbers of others as the event does; False where one is no argument of a plan."""
        drawn = self.record.drawn
        for number, function, operands in event.derived:
            value = computed(function, [drawn.get(id(each), each) for each in operands])
            if value is None:
                return False
            drawn[id(number)] = value
        return True

    def build(self, told: Told) -> Any:
        """Make what a call gives."""
        kind, wanted = told
        if kind == MADE:
            return self.add(wanted) if wanted == len(self.made) else self.made[wanted]()
        if kind == MANY:
            own, several = wanted
            found = [self.build(each) for each in several]
            return own(found) if own in LISTS else own._make(found)
        return wanted if kind == IS else self.met[wanted]

    def add(self, number: int) -> Any:
        """Make a tensor, whose node stands in."""
        made, found = self.way.made[number], self.record.found
        is_met = made.at < self.way.template.count
        node = found[made.at] if is_met else standing_node(self.record, made.at)
        tensor = NEW_TENSOR(Recorded.kind)
        fill(tensor, node, made.tracks)
        reference = weakref.ref(tensor)
        if made.is_leaf:
            node.leaf = reference
        self.made.append(reference)
        shown = made.shown
        if shown is not None:
            note_view(tensor, self.build(shown.base), shown.function, *shown.operands)
        return tensor

    def changes(self, event: Event) -> list[tuple[Any, Node | None, Any]]:
        """Make what an event gives to tensors: next values, and gradients.

        With those for tensors that were made.
        """
        found: list[tuple[Any, Node | None, Any]] = []
        for each in event.moves:
            target = self.made[each.number]()
            node = standing_node(self.record, each.at)
            node.leaf = weakref.ref(target) if each.is_leaf else None
            found.append((target, node, each))
        for met, at in (*event.writes, *event.shows):
            target = self.met[met]
            node = standing_node(self.record, at)
            node.leaf = weakref.ref(target)
            found.append((target, node, None))
        gradients = [(self.met[met], self.add(number)) for met, number, _ in event.gradients]
        return found + [(leaf, None, gradient) for leaf, gradient in gradients]

    def change(self, event: Event, changes: list[tuple[Any, Node | None, Any]]) -> None:
        """Give tensors that were met their next values, and gradients."""
        self.record.is_awaited |= bool(event.writes or event.shows or event.checks)
        for target, node, gradient in changes:
            if node is None:
                target._grad = gradient
                continue
            if gradient is not None:
                if gradient.is_counted:
                    VERSIONS[node] = VERSIONS.get(target._node, 0) + 1
                target._tracks = gradient.tracks
                if gradient.is_apart:
                    target._view = None
            target._node, target._history = node, None
        for met, _ in event.shows:
            self.met[met]._view = self.met[met]._views = None
            source: Any = self.made[event.args[1][1]]()
            note_view(source, self.met[met], build.detach)

    # stopping

    def settle(self, nodes: list[Any]) -> None:
        """Let tensors be known as those that were recorded are, in that order.

        Nothing is followed for a while.
        """
        self.known.miss(self.way)
        self.noted = self.at
        events, record = self.way.events[: self.at], self.record
        standing, record.standing = record.standing, {}
        for node in standing.values():
            stand_no_more(node)
        for at in self.computed:
            if nodes[at].inputs:  # no tensor has it, but some show it
                nodes[at].realized = self.computed[at]
        for number_of, event in enumerate(events):
            for number in event.made:
                tensor = self.made[number]() if number < len(self.made) else None
                if tensor is not None and tensor._node is nodes[self.way.made[number].at]:
                    pending.adopt(tensor._node, tensor)
            for met, at in event.writes:
                target, older = self.met[met], record.found[met]
                record.found[met] = nodes[at]
                if number_of >= self.begun:
                    target._node, target._history = nodes[at], None
                    pending.move_on(older, nodes[at], target)
            for met, at in event.shows:
                pending.forget(record.found[met], self.met[met])
                record.found[met] = self.met[met]._node = nodes[at]
                pending.track(nodes[at], self.met[met])
                pending.note_write(nodes[at])
            for each in event.moves:
                tensor, node = self.made[each.number](), nodes[each.at]
                if tensor is not None and tensor._node is node:
                    pending.adopt(node, tensor)
                    if each.is_changed:
                        pending.note_write(node, VERSIONS.get(node, 1) - 1)
            if number_of >= self.begun:
                pending.WAITING += [(nodes[at], error) for at, error in event.checks]
            carried.note_gradients(self.served(event, nodes))
        passed = [each for read in self.way.reads[: self.reads] for each in read.passed]
        for at, is_free in [e for e in passed if e[0] < len(nodes) and nodes[e[0]] is not None]:
            carried.note_passed(nodes[at], is_free)
        pending.RECORDED[0] += len(self.made)
        self.way = self.met = self.made = None  # type: ignore[assignment]

    def served(self, event: Event, nodes: list[Any]) -> list[tuple[Any, Node]]:
        """Pair leaves with the gradients that an event gave them, and that wait to be computed."""
        served: list[tuple[Any, Node]] = []
        given = [(met, self.way.made[n].at, before) for met, n, before in event.gradients]
        for met, at, before in [each for each in given if each[1] not in self.computed]:
            node = nodes[at].inputs[-1]  # or of what was added to another
            found = [each for each in (node, *node.inputs) if each.op == RESULT]
            alone = [node] if before == (IS, None) else []  # it has no formula
            served += [(self.met[met], each) for each in found or alone]
        return served

    # the step

    def end(self, asked: list[Node] | None, optimizer: Any = None) -> bool:
        """Compute a step, or what is asked for; False where all is to be recorded."""
        known = self.known
        if get_ident() == self.record.owner and not self.is_busy:
            try:
                for number in self.way.detached:
                    if number < len(self.made) and (tensor := self.made[number]()) is not None:
                        let_go(tensor)
                if self.reads < len(self.way.reads):
                    if self.read(self.way.reads[self.reads], asked):
                        return True
                elif self.finish(optimizer, asked):
                    known.missed, known.pays = 0, True
                    EVENTS.shorts = EVENTS.shorts + 1 if known.is_short else 0
                    return True
            except (TypeError, AttributeError):
                if self.way is not None:  # else the handler of a signal stopped it, before it ran
                    raise
        if self.way is not None:
            if not config.verify and self.at == self.count:
                known.forget(self.way)
            self.miss()
        return False

    def is_asked(self, asked: list[Node] | None, wanted: list[int] | None) -> bool:
        """Tell whether what is asked for is what was."""
        standing = self.record.standing
        if asked is None or wanted is None:
            return asked is wanted
        return len(asked) == len(wanted) and all(
            map(operator.is_, asked, map(standing.get, wanted))
        )

    def finish(self, optimizer: Any, asked: list[Node] | None = None) -> bool:
        """Compute the step, if all is as it was and nothing else is to be computed."""
        way, record = self.way, self.record
        if way.last.is_simple and CODED.finish is not None and not config.verify:
            if CODED.finish(self, asked, user_place(), None):
                return True
        if self.at != self.count or way.events[-1].modes[2] != config.epoch:
            return False
        if not self.is_asked(asked, way.last.asked) or not self.is_same_step(optimizer):
            return False
        ends = ends_of(way)
        memory = ends and ends[0](self)
        if memory is None and not self.is_as_told():
            return False
        if (taken := self.taken(way.last, memory)) is None:
            return False
        if config.verify:
            self.expect(taken, way.last.roots)
            return False
        if (results := self.launch(taken)) is None:
            return False
        EVENTS.computed = taken.plan
        pending.flushed()
        checks = whole(self, self.give, results, ends and ends[1])
        record.follower = None
        check_later_all(checks)
        return True

    def taken(self, wanted: Computation, known: list[Any] | None = None) -> Taken | None:
        """List what a plan takes, if it may run: nothing else is to be computed.

        Its memory may be `known`.
        """
        if RUNNING.active or RUNNING.traces or pending.DEPTH[0]:
            return None
        if carried.is_ahead() is not wanted.is_ahead or not self.is_alone():
            return None
        plan = wanted.plan()
        if plan is None or not PLANS.may_run(plan):
            return None
        memory = known or self.memory(wanted.buffers)
        if known is None and (None in memory or len({*map(id, memory)}) != len(memory)):
            return None
        drawn = self.record.drawn
        scalars = [drawn.get(id(scalar), scalar).value for scalar in wanted.scalars]
        return Taken(plan, memory, scalars, ())

    def read(self, read: Computation, asked: list[Node] | None) -> bool:
        """Compute what is asked for on the way, and go on; False where all is to be recorded."""
        record, take = self.record, EVENTS.take
        if read.is_simple and CODED.finish is not None and not config.verify:
            if CODED.finish(self, asked, user_place(), read):
                return self.go_on(take, [])
        if self.at != read.at or self.way.events[-1].modes[2] != config.epoch:
            return False
        if not (self.is_asked(asked, read.asked) and self.are_alive(read.living)):
            return False
        if not self.are_current() or (taken := self.taken(read)) is None:
            return False
        if config.verify:  # one computation of the way is looked at each time
            self.known.turn += not self.reads
            if self.known.turn % (len(self.way.reads) + 1) == self.reads:
                self.expect(taken, read.roots)
                return False
        if (results := self.launch(taken)) is None:
            return False
        EVENTS.take, EVENTS.record = take, record
        pending.flushed()
        computed = dict(zip(read.roots, results))
        self.computed |= computed
        checks = whole(self, self.give_writes, computed)
        for number, at in zip(read.living, read.nodes):
            if at in computed:
                node = record.standing[at]
                if give_value(self.made[number], node, computed[at]):
                    record.kept[at] = weakref.ref(node)
        return self.go_on(take, checks)

    def go_on(self, take: Any, checks: list[Check]) -> bool:
        """Follow the way behind a computation on it, whose values were given."""
        EVENTS.take, EVENTS.record = take, self.record
        self.record.is_awaited, self.begun = False, self.at
        self.reads += 1
        later = self.way.reads[self.reads :]
        self.due = later[0].at if later else self.count
        if is_waited_for():
            stop()  # the handler of a signal wrote meanwhile
        check_later_all(checks)
        return True

    def are_alive(self, wanted: list[int]) -> bool:
        """Tell whether tensors that were made live, and no others.

        Gradients of what was met, and is gone but for this way, are as gone as that.
        """
        alive = [number for number, each in enumerate(self.made) if each() is not None]
        if alive == wanted:
            return True
        given = [each for event in self.way.events[: self.at] for each in event.gradients]
        gone = {
            number
            for met, number, _ in given
            if sys.getrefcount(self.met[met]) == ALONE and has_alone(self.met[met])
        }
        return [number for number in alive if number not in gone] == wanted

    def launch(self, taken: Taken) -> Any:
        """Run the plan; None where the handler of a signal has stopped this.

        What a handler does meanwhile is recorded; after an error all is.
        """
        depth, take = pending.DEPTH[0], EVENTS.take
        if EVENTS.record is not self.record:
            return None
        try:
            pending.DEPTH[0], EVENTS.take, EVENTS.record = depth + 1, None, None
            return taken.plan.launch(taken.buffers, taken.scalars, user_place())
        except BaseException:
            EVENTS.take, EVENTS.record = take, self.record
            stop()
            raise
        finally:
            pending.DEPTH[0] = depth

    def run(self, known: Any, roots: list[int], buffers: list[Any], numbers: list[Any]) -> bool:
        """Run a plan of the way, and note what it computed; False where it is gone."""
        plan = known()
        if plan is None or not PLANS.may_run(plan) or config.debug or PROFILES:
            return False
        if (results := self.launch(Taken(plan, buffers, numbers, ()))) is None:
            return False
        self.computed |= zip(roots, results)
        return True

    def expect(self, taken: Taken, numbers: Sequence[int]) -> None:
        """Let the step be recorded, which must ask for the same."""
        roots = [self.record.standing.get(at) for at in numbers]
        stop()
        self.known.waits, self.known.missed, self.known.pays = 0, 0, True
        EVENTS.expected = taken.plan, taken.buffers, taken.scalars, roots

    def is_alone(self) -> bool:
        """Tell whether nothing waits, or watches, but what was followed."""
        if config.debug or PROFILES or is_waited_for():
            return False
        tensors = (*self.met, *[each() for each in self.made]) if carried.STARTS else ()
        if not carried.are_started([each._node for each in tensors if each is not None]):
            return False
        waiting = pending.LIVE.pending() if self.way.targets or self.written_here else []
        if not waiting:
            return True
        found = self.record.found
        leaves = {tensor._node for tensor in self.way.targets}
        leaves.update([self.written.get(met, found[met]) for met in self.written_here])
        buffers = {id(leaf_buffer(node)) for node in leaves}
        return not readers_among(waiting, leaves, buffers, leaves)

    def is_same_step(self, optimizer: Any) -> bool:
        """Tell whether an optimizer steps as it did, if one does."""
        found = None if self.way.found < 0 else self.made[self.way.found]()
        return optimizer is None or steps_as(optimizer, self.way.told, found)

    def is_as_told(self) -> bool:
        """Tell whether the same tensors are alive, and all others are as they were."""
        way, made = self.way, self.made
        for parameter, number in way.gradients:
            if parameter._grad is not (None if number < 0 else made[number]()):
                return False
        if not self.are_alive(way.last.living):
            return False
        if not self.are_current():
            return False
        return have_own_memory(way.targets, map(NODE, way.targets))

    def are_current(self) -> bool:
        """Tell whether what was met is as it was, but for what was written on the way."""
        nodes = [*self.record.found]
        for met, at in self.changed:
            nodes[met] = self.record.standing[at]
        return all(map(operator.is_, map(NODE, self.met), nodes))

    def memory(self, several: Sequence[Told]) -> list[Any]:
        """List the memory that the plan takes."""
        found, memory = self.record.found, []
        for kind, value in several:
            if kind == MADE:
                memory.append(self.computed[value])
                continue
            node = found[value] if kind == MET else value._node
            memory.append(node.arg.buffer if type(node.arg) is Storage else leaf_buffer(node))
        return memory

    def give(self, results: list[Any], native: Any) -> list[Check]:
        """Give tensors what the plan computed, and list what it checked."""
        way, record = self.way, self.record
        found, standing, kept = record.found, record.standing, record.kept
        for met in way.old:  # what made them is of an earlier step
            found[met] = as_leaf(found[met])
        record.overwrite(way.written)
        computed = dict(zip(way.last.roots, results))
        self.computed |= computed
        move_on(way.targets, results[len(way.last.roots) :], way.holders, pending.LIVE)
        if native and native(self, results):
            checks = [(computed[at], error) for event in way.events for at, error in event.checks]
        else:
            checks = self.give_results(computed)
        made: dict[int, Node] = {}
        for number, steps in way.free.items():
            at, tensor = self.last(number), self.made[number]()
            if (
                tensor is not None and tensor._tracks and standing[at].leaf is None
            ):  # one graph with what was computed
                kept[at] = weakref.ref(standing[at])
                pending.LIVE.follow(id(standing[at]), id(standing[at]), tensor)
                carried.add_new(standing[at])
                continue
            self.make_free(steps, made)
            pending.adopt(standing[at] if at in standing else found[at], tensor)
        record.standing = {}
        return checks

    def give_results(self, computed: dict[int, Any]) -> list[Check]:
        """Give what was written, and what lives on, what was computed."""
        way, standing = self.way, self.record.standing
        checks = self.give_writes(computed)
        for number in way.last.living:
            at = self.last(number)
            if at in computed and give_value(self.made[number], standing[at], computed[at]):
                self.record.kept[at] = weakref.ref(standing[at])
            if number in way.final and type(standing[at].arg) is Storage:
                standing[at].arg.version = VERSIONS.get(standing[at], 0)
        return checks

    def give_writes(self, computed: dict[int, Any]) -> list[Check]:
        """Give what was met and written since the last computation its memory.

        Lists what was checked since then.
        """
        events, self.begun = self.way.events[self.begun : self.at], self.at
        last = {met: at for event in events for met, at in event.writes}
        for event in events:
            for met, at in event.shows:
                node = self.record.standing[at]
                become_leaf(node, Storage(computed[at]))
                stand_no_more(node)
                self.record.kept[at] = weakref.ref(node)
                pending.LIVE.move(id(self.record.found[met]), id(node), self.met[met])
            for met, at in event.writes:
                older = self.written.get(met, self.record.found[met])
                if last[met] != at:
                    memory_of(older).count_writes()
                elif older is not self.record.standing[at]:  # else it was given
                    self.give_write(self.met[met], older, at, computed[at])
                    self.written[met] = self.record.standing[at]
        return [(computed[at], error) for event in events for at, error in event.checks]

    def last(self, number: int) -> int:
        """Give the last node of a tensor that was made."""
        return self.way.final.get(number, self.way.made[number].at)

    def give_write(self, target: Any, older: Node, at: int, buffer: Any) -> None:
        """Let a node that stands in for a write be the leaf of the memory that was written."""
        storage, node = memory_of(older), self.record.standing[at]
        become_leaf(node, storage)
        older.arg = Overwritten(storage, storage.version)  # last: see `whole`
        stand_no_more(node)
        self.record.kept[at] = weakref.ref(node)  # who reads it may be computed later
        storage.count_writes()
        storage.buffer = buffer
        pending.LIVE.move(id(older), id(node), target)

    def make_free(self, steps: list[FreeStep], made: dict[int, Node]) -> None:
        """Make the nodes of what nothing computes, but for those that are made already.

        No graph is kept below a detach.
        """
        record, template = self.record, self.record.template
        for at, places in [each for each in steps if each[0] not in made]:
            op, _, _, arg, shape, dtype, device = template.steps[at - template.count]
            read = [self.node_at(each, made) for each in places]
            if op not in PASSING:
                read = [as_leaf(each) for each in read]
            inputs, node = tuple(read), record.standing.get(at)
            if node is None:
                node = Node(op, inputs, record.drawn.get(id(arg), arg), shape, dtype, device)
            elif type(node) is not Node:
                node.inputs, node.arg = inputs, record.drawn.get(id(arg), arg)
                stand_no_more(node)
            node.is_asked, made[at] = at in template.asked, node

    def node_at(self, at: int, made: dict[int, Node]) -> Node:
        """Give a node that was met, or made, or a leaf of what was computed and no tensor has."""
        record = self.record
        if at < record.template.count:
            return record.found[at]
        if at in made:
            return made[at]
        if at not in record.standing:
            _, _, _, _, shape, dtype, device = record.template.steps[at - record.template.count]
            storage = Storage(self.computed[at])
            record.standing[at] = Node("buffer", (), storage, shape, dtype, device)
        return record.standing[at]


def is_waited_for() -> bool:
    """Tell whether the next computation has to do more than what is asked for."""
    is_changed = entries(pending.CHANGED) and pending.changed_values()
    return bool(pending.WAITING or entries(pending.WRITES) or is_changed)


declare_ends(Follower)
