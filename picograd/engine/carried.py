"""Values that are carried from one computation to the next: which are stored, and when.

A loop that updates values by others, and reads few of them, leaves live tensors behind whose values
were not asked for. Such a value was computed on the way and not stored (it *passed*), or is made of
some that were (it *waits*: the hidden state of an LSTM of which the cell state is read). Whatever
reads it later would compute all of that again, and the longer the loop runs the more.

So the computation that reads it stores it (`read_again`). And the place that asked for the earlier
one is remembered: from then on what is asked for there stores all such values (`read_ahead`), so
that no work is done twice, and the plan at one read does not depend on when the last one was.

What tensors that ask for gradients start from, random numbers mostly, is needed again by all that
reads them. It is stored before anything else is computed from it (`starts`), so that the first plan
of a network is that of its later steps.

Gradients that `backward` recorded are stored by the first computation that meets the graph they
are of (`gradients_beside`): the loss, or one of them. Else each that is read computes it all again.
Where they are no results of a formula (sizes that vary, a rule of the user's), it is one of them.

A program may hold any number of tensors that nobody asked for yet: the first values of another
network, or results for later. Each computation has to know which of them read what is about to be
written, and which read what it computes. A node never changes what it reads, so that is looked up
once, and again when some of it was computed meanwhile (`below`).

`NEW` are the nodes that tensors got since the last computation. Callers hold `pending.LOCK`.
"""

import weakref
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from itertools import chain
from operator import attrgetter
from sys import getrefcount
from typing import Any
from weakref import ref

from picograd.buffer import Storage
from picograd.engine.debug import user_spot
from picograd.engine.live import pairs_of
from picograd.engine.plan_key import GraphKey, is_gone, leaf_buffer, walk_pending
from picograd.engine.tracing import RUNNING
from picograd.engine.update import Alone
from picograd.engine.waiting import Groups
from picograd.errors import GradientError
from picograd.graph import build
from picograd.graph.node import RESULT, Node, Standing
from picograd.graph.row import WRITES
from picograd.helpers import reached
from picograd.late_methods import dataclass

NEAR = 16  # nodes that are looked at
INPUTS, REALIZED = attrgetter("inputs"), attrgetter("realized")
INNER, MEMORY = attrgetter("inner"), attrgetter("memory")


@dataclass(frozen=True, slots=True)
class Below:
    """What is still to be computed below a node, and the memory and writes where that ends."""

    inner: tuple[Node, ...]
    memory: tuple[Node, ...]

    def is_present(self) -> bool:
        """Tell whether nothing of it was computed meanwhile."""
        return all(map(INPUTS, self.inner)) and not any(map(REALIZED, self.inner))

    def reads(self, written: Set[Node], buffers: Set[int]) -> bool:
        """Tell whether it reads memory by some nodes, or of buffers, which are given by id."""
        memory = self.memory
        if not written.isdisjoint(memory):
            return True
        try:
            return not buffers.isdisjoint(map(id, map(leaf_buffer, memory)))
        except GradientError:  # some is gone: whoever asks for the node hears of it
            held = [id(leaf_buffer(each)) for each in memory if not is_gone(each)]
            return not buffers.isdisjoint(held)


KNOWN: "weakref.WeakKeyDictionary[Node, Below]" = weakref.WeakKeyDictionary()
# Looking there takes no Python.
ENTRIES: dict[Any, Below] = KNOWN.data  # type: ignore[attr-defined]


def below(node: Node, told: Container[Node] = ()) -> Below:
    """Find what a waiting node is made of, as far as memory, writes, and what is told elsewhere."""
    found = KNOWN.get(node)
    if found is None or not found.is_present():
        found = look_below(node, told)
        if not any(each in told for each in found.memory):
            KNOWN[node] = found
    return found


def look_below(node: Node, told: Container[Node] = ()) -> Below:
    """Walk what a node is made of, as far as memory and writes, and what is told elsewhere."""
    inner, memory = [], []  # type: ignore[var-annotated]
    stack = [*node.inputs]
    for each in reached(stack):
        is_inner = each.realized is None and each.inputs and each.op not in WRITES
        if is_inner and each not in told:
            inner.append(each)
            stack += each.inputs
        elif each.inputs or (not is_gone(each) and leaf_buffer(each) is not None):
            memory.append(each)
    return Below(tuple(inner), tuple(memory))


def readers_among(
    nodes: Sequence[Node], written: Set[Node], buffers: Set[int], told: Container[Node] = ()
) -> list[Node]:
    """List the waiting nodes that are made of some nodes, or of buffers, which are given by id.

    Which of the nodes that are `told` are is said by `written`: it does not look below them.
    """
    known = [ENTRIES.get(ref(node)) or below(node, told) for node in nodes]
    together = Below(  # most often nothing is read: all are asked at once
        tuple(chain.from_iterable(map(INNER, known))),
        tuple(chain.from_iterable(map(MEMORY, known))),
    )
    if together.is_present() and not together.reads(written, buffers):
        return []
    return [node for node in nodes if below(node, told).reads(written, buffers)]


def complete(nodes: Sequence[Node], seen: Set[Node], writes: Container[Node]) -> list[Node]:
    """List the nodes that may be computed with what is `seen`: they bring along none of the
    `writes` that wait, which would lack their readers, nor what another device is to compute.
    """

    def is_complete(node: Node) -> bool:
        found = below(node, seen)
        is_one = all(each.device == node.device for each in found.inner)
        return is_one and not any(
            each in writes and each not in seen for each in (node, *found.memory)
        )

    return [node for node in nodes if node in seen or is_complete(node)]


def forget_hints() -> None:
    """Forget what is computed beside what is asked for: nothing needs it."""
    SPOTS.clear()
    GRADIENTS.clear()
    STARTS.clear()


def is_wide(node: Node) -> bool:
    """Tell whether a node is a view of more elements than the memory or constant it shows."""
    size = node.size
    while node.op in FREE and node.realized is None:
        node = node.inputs[0]
    return (node.realized is not None or node.op in LEAVES_OF_THE_GRAPH) and size > node.size


def is_near(node: Node, before: Node) -> bool:
    """Tell whether a value is seen to be computed of another: from a few nodes."""
    waiting = [node]
    for _ in range(NEAR):
        if not waiting:
            return False
        found = waiting.pop(0)
        if found is before:
            return True
        waiting += found.inputs
    return False


def held(owner: Any, name: str) -> int:
    """Count the references to what an attribute holds."""
    return getrefcount(getattr(owner, name))


ALONE = held(Alone(object()), "_node")  # differs between versions of Python


def let_go(tensor: Any) -> None:
    """Let a tensor that was detached from what waits, and nobody else has, show that no more."""
    view = tensor._view
    if view is None or view.function is not build.detach or RUNNING.traces:
        return
    is_alone = held(view, "base") == ALONE
    base, node = view.base, view.base._node
    is_waiting = node.realized is None and (type(node) is Standing or node.inputs)
    if is_alone and is_waiting and base._view is None and not base._version:
        tensor._view = None


def let_go_all(keys: Iterable[int], live: Any) -> None:
    """Let detached tensors, by the identities of their nodes, show no more what nobody else has.

    Before it is asked what lives on: what they let go does not.
    """
    for tensor in live.owners(keys):
        let_go(tensor)


MANY = [NEAR]  # values that wait, where those without a tensor are looked for
MANY_PASSED = [NEAR]  # values that passed, where those that were stored since are looked for
GROUPS = Groups()
Bases = dict[Node, tuple[Node, bool]]  # of views: what they show, and whether with its gradients
Waiting = tuple[int, "weakref.ref[Any]"]  # tracks no gradients, and the tensor that shows it
LEAVES_OF_THE_GRAPH = ("const", "iota", "scalar", "buffer")
FREE = ("reshape", "permute", "expand", "slice", "detach")  # never a kernel of their own
ASKING = -1
HOPS = 8  # carried values whose past is kept
FARTHEST = 1000  # nodes that are looked at for what waits, at one computation
SPOTS_LIMIT = 256

PASSED: "weakref.WeakKeyDictionary[Node, int]" = weakref.WeakKeyDictionary()  # see `note`
WAITING: "weakref.WeakKeyDictionary[Node, Waiting]" = weakref.WeakKeyDictionary()  # see `waiting`
ASKED: "weakref.WeakKeyDictionary[Node, int]" = weakref.WeakKeyDictionary()  # where, of PASSED
NEW: dict[int, None] = {}
STARTS: "list[weakref.ref[Any]]" = []  # tensors that ask for gradients and may have no memory yet
CLEARED = 256  # so many are looked through: nobody may have computed them
GRADIENTS: "weakref.WeakKeyDictionary[Node, list[weakref.ref[Any]]]" = weakref.WeakKeyDictionary()
SPOTS: dict[int, None] = {}  # at which values are stored that were missed later


def entries(table: Any) -> dict[Any, Any]:
    """Give the dictionary behind a weak one: looking there takes no Python.

    Entries may be of what is gone a moment ago.
    """
    return table.data


def nodes_of(table: Any) -> list[Node]:
    """List the nodes that a weak dictionary has, taken in one step of the interpreter.

    The handler of a signal, or what is let go, may record or compute while somebody walks over it.
    """
    references = list(entries(table))
    return [node for reference in references if (node := reference()) is not None]


def add_new(node: Node) -> None:
    """Note that a tensor got a node, the last one: a node that is gone may have had its place."""
    NEW.pop(id(node), None)
    NEW[id(node)] = None


def add_start(tensor: Any) -> None:
    """Note a leaf that asks for gradients and is not in memory; those that are gone are let go."""
    STARTS.append(weakref.ref(tensor))
    if len(STARTS) % CLEARED == 0:
        STARTS[:] = [each for each in STARTS if each() is not None]


def starts(order: Sequence[Node]) -> list[Node]:
    """List what leaves that ask for gradients start from, where a graph reads it: made of nothing
    that is in memory, and not there yet.
    """
    owners = [tensor for reference in STARTS if (tensor := reference()) is not None]
    owners = [each for each in owners if each.is_leaf and leaf_buffer(each.node) is None]
    read = set(map(id, order)) if owners else set()
    unread = [each for each in owners if id(each.node) not in read]
    STARTS[:] = [weakref.ref(each) for each in unread]
    here = [each.node for each in owners if id(each.node) in read]
    return [node for node in here if is_made_of_nothing(node)]


def are_started(nodes: Iterable[Node]) -> bool:
    """Tell whether no leaf that asked for gradients and is not in memory is among some nodes.

    Those that are in memory are forgotten.
    """
    if not STARTS:
        return True
    owners = [tensor for reference in STARTS if (tensor := reference()) is not None]
    waiting = [each for each in owners if leaf_buffer(each.node) is None]
    STARTS[:] = map(weakref.ref, waiting)
    return not waiting or {id(each.node) for each in waiting}.isdisjoint(map(id, nodes))


def is_made_of_nothing(root: Node) -> bool:
    """Tell whether a node reads no memory: constants, counters and random numbers alone."""
    return all(node.realized is None and node.op != "buffer" for node in walk_pending([root]))


def read_again(order: Sequence[Node]) -> list[Node]:
    """List the values a graph reads that an earlier computation could have stored, in order.

    `note` meets them in the order of their addresses.
    """
    if not entries(PASSED):
        return []
    passed = entries(PASSED)  # far more than a graph has: those of each step of a loop
    again = [node for node in order if ref(node) in passed and is_pending(node)]
    for node in again:
        if PASSED[node] and node in ASKED:
            SPOTS[ASKED[node]] = None
            while len(SPOTS) > SPOTS_LIMIT:
                del SPOTS[next(iter(SPOTS))]
    return again


def is_ahead() -> bool:
    """Tell whether values were missed that were asked for at this place of the user's."""
    return bool(SPOTS) and user_spot() in SPOTS


def read_ahead(
    order: Sequence[Node], roots: Sequence[Node], asked: Sequence[Node], live: Any
) -> list[Node]:
    """List the values to store with a graph, if it is asked for at a place where some were missed.

    Not those with a graph behind them: what `backward` needs it computes again. What is made of
    roots that were `asked` for is one of them, or every other step of a sequence that grows would
    store it.
    """
    if not is_ahead():
        return []
    numbers = {id(node): number for number, node in enumerate(order)}
    stored = set(map(id, roots))
    passed = passing(order, live)
    free = {node: kind for node, kind in passed if kind and id(node) not in stored}
    ahead = sorted(free.items(), key=lambda pair: numbers[id(pair[0])])
    beside = stored.difference(map(id, asked))
    ahead += [pair for pair in waiting(order, numbers, live, beside) if pair[1]]
    place = order[-1].device if order else ""
    ahead = [pair for pair in ahead if pair[0].device == place]
    for node, kind in ahead:
        PASSED.setdefault(node, kind)
    return [node for node, _ in ahead]


def note_gradients(served: Sequence[tuple[Any, Node]]) -> None:
    """Remember the leaves whose gradients are results of one formula, or were recorded at once."""
    apart = [weakref.ref(leaf) for leaf, node in served if node.op != RESULT]
    for leaf, node in served:
        if node.op == RESULT:
            GRADIENTS.setdefault(node.inputs[0], []).append(weakref.ref(leaf))
        elif len(apart) > 1 and is_pending(node):
            GRADIENTS[node] = apart


def met(seen: Container[Node]) -> list[Node]:
    """List the formulas of gradients that were seen, or that read what was seen of their graph."""
    return [
        whole
        for whole in formulas_waited_for()
        if whole in seen or any(node.inputs and node in seen for node in whole.inputs)
    ]


def formulas_waited_for() -> list[Node]:
    """List the formulas of which gradients wait, and forget those that were computed otherwise."""
    if not entries(GRADIENTS):
        return []
    found = nodes_of(GRADIENTS)
    lists = {leaves_of(whole): whole for whole in found}  # of many that were recorded at once, one
    waited_for = {key for key, whole in lists.items() if gradients_of([whole])}
    waiting = [whole for whole in found if leaves_of(whole) in waited_for]
    for whole in set(found).difference(waiting):
        GRADIENTS.pop(whole, None)
    return waiting


def gradients_beside(seen: Container[Node], asked: Sequence[Node]) -> list[Node]:
    """List the gradients to store with a graph whose nodes were seen: each formula's once.

    Those that are asked for are left out: they keep their order.
    """
    formulas = met(seen)
    found = gradients_of(formulas)
    for whole in formulas:
        GRADIENTS.pop(whole, None)
    known = set(asked)
    return [each for each in found if each not in known]


def leaves_of(whole: Node) -> tuple[int, str]:
    """Name the list of leaves whose gradients are of a formula, and where that is."""
    return id(GRADIENTS.get(whole)), whole.device


def gradients_of(formulas: Sequence[Node]) -> list[Node]:
    """List the gradients of formulas that wait, as far as they can be stored with them."""
    found: dict[Node, None] = {}
    for whole in {leaves_of(whole): whole for whole in formulas}.values():
        for reference in GRADIENTS.get(whole, ()):
            leaf = reference()
            node = None if leaf is None or leaf._grad is None else leaf._grad._node
            if node is not None and node.device == whole.device and leaf_buffer(node) is None:
                found[node] = None
    return [*found]


def kept_sources(writes: Sequence[Node], order: Sequence[Node], live: Any) -> list[Node]:
    """List what is made of contents about to be overwritten, takes no gradient, and is read by what
    gradients of live tensors pass through: `backward` could not compute it again.

    Masks and indices that are written now will be written again: those count as well. What asks
    for gradients does not: a step that overwrites it comes after them.
    """
    writes = [each for each in writes if not is_asking(each)]
    written = {each.inputs[0] for each in writes}
    written.update([each for each in writes if not each.dtype.is_differentiable])
    stale: set[Node] = set()
    for node in order if written else ():
        if node.realized is None and node.op not in WRITES:
            if not (stale.isdisjoint(node.inputs) and written.isdisjoint(node.inputs)):
                stale.add(node)
    reached: set[Node] = set()
    for node in reversed(order) if stale else ():
        tensor = live.get(id(node))
        if node in reached or (tensor is not None and tensor.requires_grad):
            reached.update(node.inputs)
    stale &= reached
    read = between(order) if stale else ()
    return [node for node in order if node in stale and node in read]


def is_asking(node: Node) -> bool:
    """Tell whether a leaf asks for gradients at a node."""
    leaf = None if node.leaf is None else node.leaf()
    return leaf is not None and bool(leaf.requires_grad)


def is_detached(node: Node) -> bool:
    """Tell whether a node passes a value on, and no gradient back."""
    return node.op == "detach"


def between(order: Sequence[Node]) -> set[Node]:
    """Find what takes no gradient and is read, views aside, by what passes one to a leaf."""
    passing: set[Node] = set()
    found: set[Node] = set()
    for node in order:
        is_open = node.dtype.is_differentiable and not is_detached(node)
        if is_asking(node):
            passing.add(node)
        elif is_open and node.leaf is None and not passing.isdisjoint(node.inputs):
            passing.add(node)
            for each in node.inputs:
                while each.op in FREE and each not in passing:
                    each = each.inputs[0]
                found.add(each)
    return found - passing


def note(found: GraphKey, live: Any) -> None:
    """Remember what live tensors hold that was computed on the way, or is made of such values.

    `PASSED` has 0 for what tracks gradients, `ASKING` where a leaf asks for them (the next weights
    of a loop), else a number (`cut_past`).
    """
    noted = [each for each in passing(found.order, live) if each[0].realized is None]
    noted += waiting(found.order, found.numbers, live, set())
    spot = user_spot() if noted else 0
    for node, is_free in noted:
        note_passed(node, is_free, spot)


def note_passed(node: Node, is_free: int, spot: int = 0) -> None:
    """Remember what was computed on the way and not stored, and the place that asked."""
    forget(entries(PASSED), MANY_PASSED, is_stored)
    PASSED[node], ASKED[node] = is_free, spot or user_spot()
    WAITING.pop(node, None)


def is_stored(node: Node | None, is_free: int) -> bool:
    """Tell whether what passed tracks gradients and is stored now."""
    return is_free <= 0 and node is not None and not is_pending(node)


def asked_plainly(nodes: Sequence[Node], live: Any) -> list[Node]:
    """List what was asked for of nodes, and tracks no gradients: others may wait that read it.

    The next value of a loop does, and what that is made of would stay in memory (`cut_past`).
    """
    tensors = [(node, live.get(id(node))) for node in nodes]
    found = [node for node, tensor in tensors if tensor is not None and not tensor._tracks]
    for node in found:
        PASSED.setdefault(node, 1)
    return found


def note_living(nodes: Sequence[Node]) -> None:
    """Remember plain values that live on, and that machine code computed on the way."""
    spot = user_spot()
    for node in nodes:
        note_passed(node, 1, spot)


def passing(order: Sequence[Node], live: Any) -> list[tuple[Node, int]]:
    """List what live tensors hold that a graph computes, and whether it tracks no gradients.

    Not what costs nothing to compute again: views of what is stored.
    """
    reference_of = live.waiting.get
    bases: Bases = {}
    let_go_all((*map(id, order), *NEW), live)
    found = []
    for node in order:
        reference = reference_of(id(node))
        tensor = None if reference is None else reference()
        if tensor is not None and is_pending(node):
            found.append(shown(node, tensor, bases))
    return [each for each in found if is_pending(each[0])]


def waiting(
    order: Sequence[Node], numbers: Mapping[int, int], live: Any, stored: set[int]
) -> list[tuple[Node, int]]:
    """List what live tensors hold that reads what a graph computes, but for what is `stored`.

    A node that its tensor left stays in a graph: what it is made of may be overwritten meanwhile.
    """
    table = entries(WAITING)
    bases: Bases = {}
    new = []
    for key in list(NEW):
        tensor = None if key in numbers else live.get(key)
        if tensor is not None:
            node, is_free = shown(tensor.node, tensor, bases)
            if is_pending(node) and id(node) not in numbers:
                if ref(node) not in table:
                    new.append(node)
                WAITING[node] = is_free, weakref.ref(tensor)
    NEW.clear()
    forget(table, MANY, lambda _, held: held[1]() is None)  # has no tensor any more
    GROUPS.shrink(table)  # nodes that are gone left the table themselves
    if not table:
        return []
    near = [node for node in GROUPS.take_near(order, new) if ref(node) in table]
    near = [node for node in near if id(node) not in numbers and node.realized is None]
    GROUPS.add(near)  # `note` asks again, and some of them are only near
    left = [FARTHEST + len(near)]
    found = []
    for node in near:
        is_free, owner = table[ref(node)]
        if is_shown(node, owner(), bases) and reads(node, numbers, stored, left):
            found.append((node, is_free))
    return found


def forget(table: dict[Any, Any], many: list[int], is_past: Callable[[Any, Any], bool]) -> None:
    """Forget entries of a table that are past: graphs of loops keep all nodes alive.

    All are looked at where they are twice as many as were left the last time.
    """
    if len(table) < many[0]:
        return
    for reference, held in pairs_of(table):
        if is_past(reference(), held):
            table.pop(reference, None)
    many[0] = 2 * len(table) + NEAR


def shown(node: Node, tensor: Any, bases: Bases) -> tuple[Node, int]:
    """Find what a live tensor's node is a view of, and what `PASSED` has for it.

    `bases` keeps what is found on the way: views of views are walked once.
    """
    path = []
    let_go(tensor)
    while node.op in FREE and node.realized is None and node not in bases:
        path.append(node)
        node = node.inputs[0]
    base, is_whole = bases.get(node, (node, True))
    for each in reversed(path):
        is_whole = is_whole and each.op != "detach"
        bases[each] = base, is_whole
    if tensor.requires_grad and not tensor.is_leaf:
        return base, 0
    node = tensor.node
    while is_detached(node) and node is not base:
        node = node.inputs[0]
    is_cut = node is base and is_pending(base)
    if tensor.requires_grad:
        return tensor.node if is_cut else base, ASKING
    is_cut = is_cut and tensor._view is None and base.op != RESULT  # gradients: see `met`
    return (tensor.node, 1) if is_cut else (base, int(is_whole))


def is_shown(node: Node, tensor: Any, bases: Bases) -> bool:
    """Tell whether a tensor, or None, still shows a node."""
    return tensor is not None and shown(tensor.node, tensor, bases)[0] is node


def is_pending(node: Node) -> bool:
    """Tell whether a node is still to be computed."""
    return node.realized is None and node.op not in LEAVES_OF_THE_GRAPH


def reads(node: Node, numbers: Mapping[int, int], stored: set[int], left: list[int]) -> bool:
    """Tell whether a node is made of what a graph computes on the way; `left` nodes are visited."""
    stack, seen = [node], {id(node)}
    while stack and left[0] > 0:
        left[0] -= 1
        for source in stack.pop().inputs:
            if id(source) in seen or id(source) in stored or not is_pending(source):
                continue
            if id(source) in numbers:
                return True
            seen.add(id(source))
            stack.append(source)
    return False


def become_leaf(node: Node, storage: Storage) -> None:
    """Turn a write, or a leaf, into a leaf of a storage: the one change a node may undergo."""
    node.op = "buffer"
    node.inputs = ()
    node.arg = storage
    node.realized = None


def cut_past(found: GraphKey, beside: Sequence[Node], asked: Sequence[Node]) -> None:
    """Let go what carried values were computed from, or a loop's past would stay in memory.

    No gradient passes a `detach`. A value that tracks none, and that no tensor has any more, keeps
    its past for `HOPS` values: `backward` of a small script serves leaves that did not ask.
    """
    past, stored = [leaf for leaf in found.leaves if leaf.op != "buffer"], [*beside, *asked]
    if not past and not stored:
        return
    for node in found.order if past else ():
        if is_detached(node) and node.inputs[0].realized is not None:
            source = node.inputs[0]
            kind = source.shape, source.dtype, source.device
            node.inputs = (Node("buffer", (), Storage(source.realized), *kind),)
    carried = [leaf for leaf in past if PASSED.get(leaf, 0) > 0]
    hops = 1 + max([PASSED[leaf] for leaf in carried], default=0)
    if hops > HOPS:
        hops = 1
        for leaf in carried:
            become_leaf(leaf, Storage(leaf.realized))
    for node in stored:
        if PASSED.get(node, 0) > 0:
            PASSED[node] = hops


def kept_calls(order: Sequence[Node], roots: Sequence[Node]) -> list[Node]:
    """List the host calls a graph computes on the way whose values are worth their memory."""
    calls = [node for node in order if node.op == "host_call" and node.realized is None]
    asked = {id(node) for node in roots} if calls else ()
    return [node for node in calls if node.arg.row.is_kept and id(node) not in asked]
