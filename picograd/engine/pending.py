"""Which tensors are alive and not yet computed, and what must be computed together.

In-place writes make this necessary: when a write runs, every live tensor recorded before it that
still reads the old contents has to be computed in the same plan ("a reader recorded before sees
the old value"). Writes run with the first computation that follows them, whatever it asks for: a
training step then is one plan, and the same plan at every step. A value that lived through one
computation and is read by the next is stored by it, so that no work is done a third time. And work
that nobody asks for is bounded: after `BUDGET` recorded operations, or `CHAIN` writes of a tensor,
everything pending is computed, so that a loop of a million lazy additions has constant memory. That
happens where it did the last time, so that every round of a loop leaves the same graph: one plan.

The tables are those of the whole process, in the order of recording, so that two runs of a program
ask for the same plans. Whoever reads or changes them holds `LOCK`: a thread computes the pending
writes of all, hence the tensors of other threads must not change meanwhile.

Tensors are seen here as objects with a `node`, `requires_grad` and a method `settle`; they are held
weakly.
"""

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Container, Sequence
from typing import Any, ParamSpec, TypeVar

from picograd.buffer import Overwritten, Storage, memory_of
from picograd.engine import carried, crossing, host_calls, quick, realize, small, update
from picograd.engine.carried import FREE, LEAVES_OF_THE_GRAPH, become_leaf, entries, readers_among
from picograd.engine.collector import undisturbed
from picograd.engine.debug import PACKAGE, user_place
from picograd.engine.followed import EVENTS, end_way, is_unwatched, leave
from picograd.engine.live import LiveTable
from picograd.engine.native_calls import CODED
from picograd.engine.plan_key import graph_key, leaf_buffer, walk_pending
from picograd.engine.quick import Walk
from picograd.engine.realize import CHECK_LIMIT, check_later, pending_roots, realize_roots
from picograd.engine.refused import forget_lost, forget_refused
from picograd.engine.small import HOPS, SmallGraph
from picograd.engine.tracing import is_tracing
from picograd.engine.update import Update
from picograd.errors import GradientError, PicogradError, check
from picograd.graph.node import CROSSING, Node

BUDGET = 10_000  # operations recorded since the last flush; a training step records about 1000
CHAIN = 64  # writes of a whole tensor that may wait: a loop carries state that nobody reads
MEMORY = ("buffer", "assign")  # ops of nodes that have memory
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LOCK = EVENTS.lock = threading.RLock()
FORKING = threading.local()
LIVE = LiveTable()
WRITES: "weakref.WeakKeyDictionary[Node, None]" = weakref.WeakKeyDictionary()  # to memory
CHANGED: "weakref.WeakKeyDictionary[Node, None]" = weakref.WeakKeyDictionary()  # of no memory yet
WRITTEN = entries(WRITES)
BY_TARGET: "weakref.WeakValueDictionary[int, Node]" = weakref.WeakValueDictionary()  # of WRITES
RECORDED = [0]  # operations since the last flush
FLUSHED = [0]  # operations before it
IS_DUE = [False]  # a chain of writes is long
WAITING: list[tuple[Node, PicogradError]] = []  # see `check_beside`
DEPTH = [0]  # computations under way: one interrupts another, in the handler of a signal
PLACES: list[Any] = [None, None]  # where work was computed last: the lines, and what was written


def locked(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let one thread at a time run a function that reads or changes the tables."""

    @functools.wraps(function)
    def alone(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        with LOCK:
            return function(*args, **options)

    return alone


def new_lock() -> None:
    """Replace the lock in a forked process: a thread that is gone may hold it."""
    global LOCK
    LOCK = EVENTS.lock = threading.RLock()
    DEPTH[0] = 0


def rest(longest: float = 20.0) -> None:
    """Wait before a fork until no other thread computes or compiles, nor begins to.

    The process that is forked has these tables, and LLVM's locks, as they are now. At most
    `longest` seconds: what computes may wait for the thread that forks.
    """
    FORKING.rests = LOCK.acquire(timeout=longest)


os.register_at_fork(before=rest, after_in_child=new_lock)
os.register_at_fork(after_in_parent=lambda: LOCK.release() if FORKING.rests else None)


def retire(write: Node) -> None:
    """Make a computed write the leaf of its storage; leaves of older contents name nothing now.

    Graphs that read an older leaf get an error instead of the new contents.
    """
    older, count = write.inputs[0], 1
    chain = [older]
    while older.op == "assign":
        older, count = older.inputs[0], count + 1
        chain.append(older)
    storage = memory_of(older)
    for number, node in enumerate(chain):
        become_leaf(node, Overwritten(storage, storage.version + count - 1 - number))
        WRITES.pop(node, None)
    WRITES.pop(write, None)
    storage.count_writes(count)
    storage.buffer = write.realized
    become_leaf(write, storage)


def next_leaf(node: Node) -> Node:
    """Give the leaf of a realized node's memory that is about to be written outside the graph.

    The node is retired; a computed one forgets its buffer, and would be computed again.
    """
    if node.op != "buffer":
        buffer, node.realized = node.realized, None
        return Node("buffer", (), Storage(buffer), node.shape, node.dtype, node.device)
    storage: Storage = node.arg
    node.arg = Overwritten(storage, storage.version)
    storage.count_writes()
    return Node("buffer", (), storage, node.shape, node.dtype, node.device)


def before_writes(nodes: Sequence[Node], is_left: Any = lambda node: False) -> None:
    """Compute what live tensors still have to read of memory that others will write.

    Nodes of which `is_left` is true are to see what they write.
    """
    leave()
    readers = [node for node in readers_of(nodes, waiting_nodes(), Walk()) if not is_left(node)]
    if readers:
        compute(readers)


def note_start(tensor: Any) -> bool:
    """Note a leaf that asks for gradients, True: what it starts from may be stored early."""
    if leaf_buffer(tensor.node) is None:
        carried.add_start(tensor)
    return True


def note_write(node: Node, version: int = 0) -> None:
    """Remember the value a tensor was given in place: the next computation stores it.

    `version` counts the writes to a tensor that has no memory yet.
    """
    if node.op == "assign":
        WRITES[node] = None
        BY_TARGET[id(node.inputs[0])] = node
    else:
        CHANGED[node] = None
    note_chain(node, version)


def move_on(current: Node, after: Node, tensor: Any) -> None:
    """Let a tensor that is a leaf of memory have the write to it, which the next computation runs.

    The caller holds `LOCK`.
    """
    LIVE.follow(id(current), id(after), tensor)
    carried.add_new(after)
    WRITES[after] = None
    BY_TARGET[id(current)] = after
    note_chain(after, 0)


def note_chain(node: Node, version: int) -> None:
    """See whether a tensor was written so often that everything should be computed.

    Of all tensors that a loop writes it is always the same one that decides.
    """
    count = version
    while node.op == "assign" and node.arg is None and count < 2 * CHAIN:
        node, count = node.inputs[0], count + 1
    mark = id(node.arg) if node.op == "buffer" else None
    if count >= 2 * CHAIN or (count >= CHAIN and PLACES[1] in (None, mark)):
        IS_DUE[0], PLACES[1] = True, mark


def recorded() -> int:
    """Count the operations recorded since the start, and tensors that were given what waits."""
    return FLUSHED[0] + RECORDED[0]


def track(node: Node, tensor: Any) -> None:
    """Remember which tensor owns a node."""
    LIVE.set(node, tensor)
    if node.inputs:
        carried.add_new(node)


def adopt(node: Node, tensor: Any) -> bool:
    """Give a node to a tensor, unless that cannot be: another has it, or it is being overwritten.

    An operation that gives its operand back may find it computed by another thread meanwhile.
    """
    key, table = id(node), LIVE.data
    with LOCK:
        if node.realized is not None:
            return False
        if (found := table.get(key)) is not None:
            if found() is not None:
                return False
            table.pop(key, None)  # the handler of a signal may have swept it
        if node.op in MEMORY and is_overwritten(node):
            return False
        table[key] = weakref.ref(tensor)
        if node.inputs:
            FLUSHED[0] += 1  # also of what no operation made, as a copy: it may read memory
            LIVE.waiting.pop(key, None)  # of a node that is gone
            LIVE.waiting[key] = table[key]
            carried.add_new(node)
    return True


def forget(node: Node, tensor: Any) -> None:
    """Drop the entry of a node its tensor no longer has."""
    if LIVE.get(id(node)) is tensor:
        LIVE.drop(id(node))  # another thread may have moved the tensor meanwhile


def drop(node: Node, tensor: Any) -> None:
    """Take a tensor that a failed trace recorded off the tables, with its writes."""
    forget(node, tensor)
    while node.op == "assign":
        WRITES.pop(node, None)
        node = node.inputs[0]


def owner(node: Node) -> Any:
    """Find the live tensor whose node this is, or None."""
    return LIVE.get(id(node))


def is_overwritten(node: Node) -> bool:
    """Tell whether a write that is still to run takes the memory of a leaf.

    A view of a view may come back as the leaf itself, after its own tensor moved on.
    """
    if not entries(WRITES) or node.op not in MEMORY:
        return False
    with LOCK:
        write = BY_TARGET.get(id(node))
        return write is not None and write in WRITES and write.inputs[0] is node


def is_over_budget() -> bool:
    """Count one recorded operation and tell whether it is time to compute what is pending."""
    RECORDED[0] += 1
    if RECORDED[0] == BUDGET + 1 and all(is_shown(node, ()) for node in LIVE.pending()):
        leave()  # or what is learnt of the way would hold all that is gone
        flushed()  # a loop that reads elements: all of it is memory, or gone
    is_late = IS_DUE[0] or RECORDED[0] > BUDGET
    return is_late and not is_tracing() and (IS_DUE[0] or (is_unwatched() and is_place()))


def is_place() -> bool:
    """Tell whether work was computed here the last time; after half a budget more any place is."""
    frame: Any = sys._getframe(3)
    lines: list[Any] = []
    while frame is not None:
        lines.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back if frame.f_code.co_filename.startswith(PACKAGE) else None
    if PLACES[0] not in (None, lines) and RECORDED[0] < BUDGET * 1.5:
        return False
    PLACES[0] = lines
    return True


def live_tensors() -> list[Any]:
    """List every live tensor, in the order of recording."""
    return LIVE.tensors()


def waiting_nodes() -> list[Node]:
    """List the nodes of live tensors, and of checks, that wait to be computed."""
    carried.let_go_all([*LIVE.waiting], LIVE)
    return [*LIVE.pending(), *(failed for failed, _ in WAITING if leaf_buffer(failed) is None)]


def flushed() -> None:
    """Begin to count recorded operations anew."""
    if len(carried.NEW) > 2 * BUDGET:  # nothing was computed but by replays of traces
        carried.NEW.clear()
    FLUSHED[0] += RECORDED[0]
    RECORDED[0], IS_DUE[0] = 0, False
    if len(LIVE.data) > LIVE.limit:
        LIVE.sweep()


def enter(leaf: Node, tensor: Any) -> None:
    """Remember which tensor owns a new leaf. What is gone is let go: replays compute nothing else.

    The caller holds `LOCK`.
    """
    LIVE.set(leaf, tensor)
    if len(LIVE.data) > LIVE.limit:
        LIVE.sweep()


@locked
def realize_all() -> None:
    """Compute all that live tensors still wait for, unless this interrupts who may do so."""
    leave()
    if DEPTH[0]:
        return
    stored: dict[int, Node] = {}
    for node in LIVE.pending():
        if not is_shown(node, stored):
            stored[id(node)] = node
    compute(list(stored.values()))


def is_shown(node: Node, stored: Container[int]) -> bool:
    """Tell whether a node is memory, or few views away from it: storing it would only cost memory.

    A view may also be larger than any memory. What is `stored` will be memory.
    """
    for _ in range(HOPS):
        if node.op in LEAVES_OF_THE_GRAPH or node.realized is not None or id(node) in stored:
            return True
        if node.op not in FREE:
            return False
        node = node.inputs[0]
    return False


@locked
def flush_assigns() -> None:
    """Run the in-place writes that are still to run, unless this interrupts who may run them."""
    writes = pending_writes() if entries(WRITES) and not DEPTH[0] else []
    if writes:
        compute(writes)
    else:
        flushed()


@locked
def check_beside(failed: Node, error: PicogradError) -> None:
    """Let the next computation on its device compute a bool, which must be false, beside."""
    WAITING.append((failed, error))
    if len(WAITING) > CHECK_LIMIT:
        compute_checks()


@locked
def compute_checks() -> None:
    """Compute the bools that wait for a computation."""
    while WAITING and not is_tracing():
        compute([WAITING[0][0]])


def compute(nodes: Sequence[Node]) -> None:
    """Compute nodes, with what has to run in the same plan, and let their tensors settle."""
    with LOCK:
        native = CODED.compute
        if EVENTS.after is not None or EVENTS.learning is not None:
            end_way(nodes, compute_now)
        elif not (native and native(nodes, user_place(3))):
            end_way(nodes, compute_anew)
        elif EVENTS.computed is not None:
            EVENTS.anchor()


def with_writes(nodes: Sequence[Node]) -> list[Node]:
    """Add the writes that are still to run to nodes that are still to be computed."""
    is_one = len(nodes) == 1 == len(WRITTEN) and nodes[0] in WRITES
    together = nodes if is_one else dict.fromkeys([*nodes, *pending_writes()])
    return [x for x in together if x.realized is None and (x.inputs or x.op not in MEMORY)]


def compute_now(nodes: Sequence[Node]) -> None:
    """Compute nodes, whatever is known of where a program is."""
    native = None if EVENTS.is_watched else CODED.compute
    if not (native and native(nodes, user_place())):
        compute_anew(nodes)


def compute_anew(nodes: Sequence[Node]) -> None:
    """Compute nodes that machine code does not."""
    flushed()
    CODED.count_computation()
    if is_tracing():
        return
    graph = None
    if WRITTEN and not (EVENTS.is_watched or WAITING or DEPTH[0] or entries(CHANGED)):
        graph = small.small_graph(*with_writes(nodes))
    elif not (WRITTEN or EVENTS.is_watched or WAITING or (DEPTH[0] and entries(CHANGED))):
        changed = changed_values() if entries(CHANGED) else []
        if not changed and len(nodes) == 1 and nodes[0].op in MEMORY and not nodes[0].inputs:
            return
        if together := small.with_changed(nodes, changed, LIVE):
            if not changed and host_calls.compute(nodes, LIVE):
                return
            graph = small.small_graph(*together)
            if graph is not None and small.compute(graph, LIVE):
                return
    compute_with_checks(nodes, graph)


@locked
def compute_updates(updates: Sequence[Update]) -> bool:
    """Compute updates, and all that was written before; False, and nothing, where that cannot be.

    They are for one device, and all that waits to be written is on it.
    """
    device = updates[0].whole.device
    writes = [*pending_writes(), *changed_values(), *(each.whole for each in updates)]
    is_one = all(node.device == device for node in writes)
    if is_tracing() or not is_one or not all(each.can_write() for each in updates):
        return False
    flushed()
    compute_with_checks([], None, updates)
    return True


def compute_with_checks(
    nodes: Sequence[Node], graph: SmallGraph | None, updates: Sequence[Update] = ()
) -> None:
    """Compute nodes, and the bools that wait for a computation on their device."""
    first, depth = nodes[0] if nodes else updates[0].whole if updates else None, DEPTH[0]
    # of what this interrupts none: that may be about to compute them
    own = [] if depth else WAITING
    checks = [each for each in own if first and each[0].device == first.device]
    together = [*nodes, *(failed for failed, _ in checks)]
    try:
        DEPTH[0] = depth + 1
        while entries(CROSSING):
            found = crossing.sources(with_readers(together, updates)[2].order)
            if not found:
                break
            leave()  # no way tells of it
            graph = None
            compute_all(found, graph)
        compute_all(together, graph, updates)
    except Exception as problem:
        waiting = [] if depth else [*pending_writes(), *changed_values(), *waiting_nodes()]
        forget_refused(problem, waiting, WAITING, LIVE, WRITES, CHANGED)
        raise
    finally:
        DEPTH[0] = depth
    if checks:
        WAITING[:] = [each for each in WAITING if each not in checks]
    for failed, error in checks:
        buffer = leaf_buffer(failed)
        check(buffer is not None, "a check was not computed", failed)
        if buffer is not None:
            check_later(buffer, error)


@undisturbed
def compute_all(
    nodes: Sequence[Node], graph: SmallGraph | None, updates: Sequence[Update] = ()
) -> None:
    """Compute nodes, with what was written before; `graph` is that under them if it is small."""
    wanted, roots, walk = with_readers(nodes, updates)
    if carried.STARTS and store_starts(walk.order, roots):
        graph, (wanted, roots, walk) = None, with_readers(nodes, updates)
    if roots or updates:
        order, again = walk.order, []  # what is about to be read, or kept
        if DEPTH[0] == 1:  # else it is of what this interrupts
            again = [*carried.read_again(order), *carried.kept_calls(order, roots)]
            again += carried.read_ahead(order, roots, nodes, LIVE)
            again += carried.kept_sources(pending_writes(), order, LIVE)
            if entries(carried.GRADIENTS) and not updates:
                again += carried.gradients_beside(walk.seen, wanted)
        if again := carried.complete(again, walk.seen, WRITES):
            wanted = [*again, *wanted]
            roots = pending_roots(wanted)
            walk.add(roots)  # most are in it
        found = walk.key(roots)
        if updates:
            buffers = quick.run(updates, roots, found)
            realize.settle(roots, buffers[: len(roots)])
            update.settle(updates, buffers[len(roots) :], LIVE)
        else:
            plan = realize_roots(roots, found)
            if graph is not None:
                small.note(graph, roots, found, plan)
        carried.cut_past(found, again, carried.asked_plainly(nodes, LIVE))
        carried.note(found, LIVE)
    settle(wanted)


def store_starts(order: Sequence[Node], roots: Sequence[Node]) -> bool:
    """Compute what leaves start from before what reads it; False if there is nothing to do."""
    started = carried.starts(order)
    if not started or set(map(id, roots)) <= set(map(id, started)):
        return False
    realize_roots(started, graph_key(started))
    settle(started)
    return True


@locked
def compute_starts(nodes: Sequence[Node]) -> None:
    """Compute what leaves start from; what else was written waits, unless they come of that.

    A GPU may do so while what reads them is planned.
    """
    leave()
    found = graph_key(nodes)
    if any(node in WRITES for node in found.order):
        compute(nodes)
    else:
        realize.realize_beside(nodes, found)
        settle(nodes)


def pending_writes() -> list[Node]:
    """List the in-place writes that are still to run; an interrupt may leave others listed."""
    return [x for x in carried.nodes_of(WRITES) if x.realized is None and x.inputs]


def changed_values() -> list[Node]:
    """List the values given in place to tensors without memory, as far as they still have them.

    The others are let go: a graph may hold their nodes for as long as it lives.
    """
    found = []
    for node in carried.nodes_of(CHANGED):
        if id(node) in LIVE and leaf_buffer(node) is None:
            found.append(node)
        else:
            CHANGED.pop(node, None)
    return found


def with_readers(
    nodes: Sequence[Node], updates: Sequence[Update] = ()
) -> tuple[list[Node], list[Node], Walk]:
    """Add to the nodes asked for what runs with them: what was written in place before.

    All pending writes join (a write may read what another overwrites), and every live tensor that
    reads contents about to be overwritten, first. Only for another device they wait, as long as
    nothing asked for depends on one, and where this interrupts another computation, which may be
    about to run them: twice would be wrong. `updates` are of one device. The second list is those
    of them that are to be computed, the third what is under these and the updates.
    """
    writes = pending_writes() if entries(WRITES) else []
    changed = changed_values() if entries(CHANGED) else []
    if DEPTH[0] > 1 and (writes or changed):
        wanted = {id(node) for node in walk_pending(nodes)}
        writes, changed = ([n for n in each if id(n) in wanted] for each in (writes, changed))
    if not updates and not (nodes and (writes or changed)):
        return quick.by_itself(nodes)
    if not updates and len({node.device for node in (*nodes, *writes, *changed)}) > 1:
        wanted = {id(node) for node in walk_pending(nodes)}
        changed = [node for node in changed if node.device == nodes[0].device]
        if not any(id(node) in wanted for node in writes):
            return quick.by_itself([*nodes, *changed])
    walk = Walk()
    for each in updates:
        walk.add_update(each)
    walk.add(writes[::-1])
    walk.add([*changed, *pending_roots(nodes)])
    pending = waiting_nodes() if writes or updates else []
    written = [node.inputs[0] for node in writes]
    written += [leaf for each in updates for leaf in each.written()]
    try:
        readers = readers_of(written, pending, walk)
    except GradientError:
        if not forget_lost([*writes, *changed], WRITES, CHANGED):
            raise  # what is asked for
        return with_readers(nodes, updates)
    walk.add(readers)
    together = [*(node for node in readers if node.op != "assign"), *nodes, *writes, *changed]
    return together, pending_roots(together), walk


def readers_of(written: Sequence[Node], pending: Sequence[Node], walk: Walk) -> list[Node]:
    """List the pending nodes that read, other than through a write, what will be written.

    One walk over what is listed, marking a node when one of its inputs is marked; of pending nodes
    that are not listed it is known what they read.
    """
    marked = set(written)
    buffers = {id(leaf_buffer(node)) for node in written}
    buffers.discard(id(None))
    for node in walk.order:
        inputs = node.inputs
        if inputs and node.realized is None:
            if node.op != "assign" and not marked.isdisjoint(inputs):
                marked.add(node)
        elif id(leaf_buffer(node)) in buffers:
            marked.add(node)
    beside = [node for node in pending if node not in walk.seen]
    marked.update(readers_among(beside, marked, buffers, walk.seen))
    return [node for node in pending if node in marked]


def settle(nodes: Sequence[Node]) -> None:
    """Tell the tensors of computed nodes, so that they let their graphs go."""
    for node in nodes:
        if node.op == "assign" and node.realized is not None:
            retire(node)
        tensor = LIVE.get(id(node))
        if tensor is not None:
            tensor.settle()
