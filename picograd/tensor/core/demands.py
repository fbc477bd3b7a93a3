"""Demands on integer values: an index lies inside its axis, a divisor is not zero.

PyTorch raises at once, since it computes at once. Here it depends on what is known when:

    bounds prove it (`graph/bounds.py`)    nothing to do: argmax, arange, remainders, clamped values
    values in memory of the CPU            looked at now; the error names the value
    values still to compute                computed now, and looked at on the CPU; elsewhere the
                                           next computation computes a bool too, which the next read
                                           of a value looks at
    `jit` traces                           a bool that every run of the plan computes and looks at
    `vmap` runs                            the same, for all samples
    `scan` runs a step                     the same, for all steps: one more stacked result

`demand` tells whether the values are certain. Where they are not, whoever uses them has to bound
them: the report comes after the kernels ran. What was asked of memory is not asked again before it
is written, and what a recording demands is demanded of the next call's values (`repeated`).
"""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from picograd.buffer import Storage
from picograd.dtype import int64
from picograd.engine import pending
from picograd.engine.followed import EVENTS
from picograd.engine.foreign import VIEWS, is_shared
from picograd.engine.realize import check_later
from picograd.engine.tracing import RUNNING, is_tracing, is_tracing_jit, note_check
from picograd.errors import AxisError, PicogradError, ValueRangeError, check
from picograd.graph.bounds import Bounds, bounds
from picograd.graph.node import Node
from picograd.graph.row import MEMORY
from picograd.target import is_host
from picograd.tensor.core.known_values import CHECKED, LOOKS, STEPS, known_values
from picograd.tensor.core.running_vmaps import LEVELS
from picograd.traced_number import TracedNumber

Array = Any
ALL = 1 << 62
WIDEST = 1 << 22  # values whose bounds are kept: the labels of a large set of pictures
FEW = 64  # values that Python compares faster than NumPy
ANSWERS = 8  # kept of one memory


def kept_answer(node: Node, question: Hashable, ask: Callable[[], Any]) -> Any:
    """Ask what lies in memory, or give the answer of before where nobody wrote since.

    None is no answer. A way that is learnt, or a trace, has to see each question.
    """
    if EVENTS.learning is not None or is_tracing():
        return ask()
    leaf, moves = below_moves(node)
    storage = leaf.arg
    if type(storage) is not Storage or storage.buffer is None or storage.answers is False:
        return ask()
    if is_shared(leaf):
        return ask()
    if moves:
        question = question, moves
    now = storage.moment()
    asked, answers = storage.answers or (now, {})
    found = answers.get(question) if asked == now else None
    if found is None:
        found = ask()
        kept = answers if asked == now and len(answers) < ANSWERS else {}
        storage.answers = now, kept | {question: found}
    return found


def below_moves(node: Node) -> tuple[Node, tuple[Any, ...]]:
    """Follow views down to what they show; gives that, and how they show it."""
    moves: list[Any] = []
    while node.op in VIEWS and node.realized is None and len(moves) < STEPS:
        moves.append((node.op, node.arg))
        node = node.inputs[0]
    return node, tuple(moves)


def demand(
    node: Node,
    question: Hashable,
    look: Callable[[Array], None],
    is_proof: Callable[[Bounds], bool],
    failure: Callable[[Node], tuple[Node, PicogradError]],
) -> bool:
    """Check values now or where they are computed; tells whether they are certain from here on.

    `look` raises for wrong values, `failure` makes a bool that must be false, and the error where
    it is not. Equal questions have equal answers.
    """
    looks, rest = LOOKS.count, (look, is_proof, failure)
    if not kept_answer(node, question, lambda: demand_now(node, question, *rest) or None):
        return False
    if LOOKS.demands is not None:
        LOOKS.count = looks
        LOOKS.demands.append((node, lambda other: demand(other, question, *rest)))
    return True


@pending.locked
def demand_now(
    node: Node,
    question: Hashable,
    look: Callable[[Array], None],
    is_proof: Callable[[Bounds], bool],
    failure: Callable[[Node], tuple[Node, PicogradError]],
) -> bool:
    """Check values that nobody checked before.

    Other threads wait: computing what they recorded would change the graph under the walk.
    """
    reads, values = reads_so_far(), known_values(node)
    if values is None:
        found = bounds(node, bounds_of_leaf)
        if not node.size or (found is not None and is_proof(found)):
            return True
        reads, values = reads_so_far(), known_values(node, ALL)
    if values is None and not is_tracing() and is_host(node.device):
        pending.compute([node])
        values = known_values(node, ALL)
        check(values is not None, "a value was computed and is not there", node)
    if values is not None and EVENTS.learning is not None:
        EVENTS.learning.note_demand(node, question, look, reads)
    if values is not None:
        if node.size:
            look(values)
        return True
    report(*failure(node), node, look=look)
    return False


def answer(node: Node, name: Hashable, question: Callable[[Array], bool]) -> bool | None:
    """Answer a question about values, told by its name; None where they are not known."""
    return kept_answer(node, name, lambda: answer_now(node, name, question))


def answer_now(node: Node, name: Hashable, question: Callable[[Array], bool]) -> bool | None:
    """Answer a question that nobody asked before."""
    reads, values = reads_so_far(), known_values(node)
    found = None if values is None else question(values)
    if values is not None and EVENTS.learning is not None:
        told = name, found
        EVENTS.learning.note_demand(node, told, lambda others: question(others) is found, reads)
    return found


def passed(look: Callable[[Any], Any], values: Any) -> bool | None:
    """Tell whether values are there and a look at them finds nothing; None if not, or it raises."""
    return (values is not None and look(values) is not False) or None


def reads_so_far() -> int:
    """Count the reads of memory since a way is learnt."""
    return 0 if EVENTS.learning is None else int(EVENTS.learning.reads)


def bounds_of_leaf(node: Node) -> Bounds | None:
    """Give the bounds of values in memory."""
    if not node.dtype.is_integer or (node.op not in MEMORY and node.realized is None):
        return None
    reads, found = reads_so_far(), known_bounds(node)
    if found is not None and EVENTS.learning is not None:
        EVENTS.learning.note_demand(node, None, lambda bounds: bounds == found, reads)
    return found


def known_bounds(node: Node) -> Bounds | None:
    """Give the bounds of values in memory, of many where they can be kept."""
    is_kept = type(node.arg) is Storage and not is_tracing() and not is_shared(node)
    most = WIDEST if is_kept else CHECKED

    def ask() -> Bounds | None:
        return bounds_of(known_values(node, most))

    return kept_answer(node, "bounds", ask)


def bounds_of(values: Array) -> Bounds | None:
    """Give the least and the largest of values, None where there are none."""
    return None if values is None or not values.size else (int(values.min()), int(values.max()))


def report(
    failed: Node, error: PicogradError, *beside: Node, look: Callable[[Array], None] | None = None
) -> None:
    """Raise an error where a bool is true; `beside` is computed with it, and what `look` checks.

    Off the CPU, where nobody looks before a value is read, the next computation computes the bool.
    """
    if RUNNING.active[-1:] == ["vmap"] and LEVELS:
        LEVELS[-1].checks.append((failed, error))
    elif RUNNING.active[-1:] == ["picograd.scan"] and RUNNING.steps:
        RUNNING.steps[-1].append((failed, error))
    elif is_tracing_jit():
        note_check(failed, error, beside[0] if beside else None, look)
    elif not is_tracing() and not is_host(failed.device):
        pending.check_beside(failed, error)
    elif not is_tracing():
        pending.compute([*beside, failed])
        check(failed.realized is not None, "a check was not computed", failed)
        if failed.realized is not None:
            check_later(failed.realized, error)


def any_of(wrong: Node) -> Node:
    """Tell whether any element is true."""
    return wrong.reduce("max", tuple(range(len(wrong.shape))))


def outside(index: Node, low: int, stop: int) -> Node:
    """Mark what does not lie in low..stop-1."""
    wide = index.cast(int64)
    is_high = wide.const_like(stop - 1).binary("less", wide)
    return wide.binary("less", low).binary("bitwise_or", is_high)


class Below:
    """This class looks at integers: `look` sees those that are not all in 0..stop-1."""

    __slots__ = ("look", "stop")

    def __init__(self, stop: int, look: Callable[[Array], None]) -> None:
        self.stop, self.look = stop, look

    def __call__(self, values: Array) -> None:
        """Raise for wrong values."""
        if not is_below(values, self.stop):
            self.look(values)


def demand_index(op: str, index: Node, size: int, axis: int, wraps: bool = True) -> bool:
    """Demand that an index names elements of an axis; negative ones count from the end if `wraps`.

    Raises AxisError. Tells whether it is certain.
    """
    low = -size if wraps else 0

    def look(values: Array) -> None:
        check_values(op, values, size, axis, low)

    if not size and index.size and known_values(index) is None:
        raise AxisError(op, "the axis is empty", "nothing can be selected from it")

    def failure(index: Node) -> tuple[Node, PicogradError]:
        text, fix = f"an index is out of range for axis {axis}", "use indices inside the axis"
        if type(size) is not TracedNumber:
            text, fix = f"{text} of size {size}", f"use indices from {low} to {size - 1}"
        return any_of(outside(index, low, size)), AxisError(op, text, fix)

    question, look_at = ("index", low, size), Below(size, look)
    return demand(
        index, question, look_at, lambda found: low <= found[0] and found[1] < size, failure
    )


def check_values(op: str, values: Array, size: int, axis: int, least: int | None = None) -> None:
    """Raise AxisError when a host index is out of range; without `least` negative ones count."""
    least = -size if least is None else least
    if is_below(values, size):
        return
    if values.size and not (least <= values.min() and values.max() < size):
        worst = values.max() if values.max() >= size else values.min()
        text = f"index {int(worst)} is out of range for axis {axis} of size {size}"
        fix = f"use indices from {least} to {size - 1}" if size else "the axis is empty"
        raise AxisError(op, text, fix)


def is_below(values: Array, size: int) -> bool:
    """Tell whether values lie in 0..size-1, in one pass: negative ones have a high bit."""
    if 0 < values.size <= FEW:
        listed = values.ravel().tolist()
        return bool(min(listed) >= 0 and max(listed) < size)
    bare = values.view(f"u{values.dtype.itemsize}") if values.dtype.kind == "i" else values
    return not values.size or bool(np.maximum.reduce(bare, axis=None) < size)


def demand_number(op: str, index: Node, count: int, what: str = "classes") -> bool:
    """Demand that numbers of classes or of rows lie in 0..count-1. Raises AxisError."""

    def look(values: Array) -> None:
        low, high = values.min(), values.max()
        worst = int(high if high >= count else low)
        fix = f"use indices from 0 to {count - 1}"
        raise AxisError(op, f"index {worst} is out of range for {count} {what}", fix)

    def failure(index: Node) -> tuple[Node, PicogradError]:
        fix = f"use indices from 0 to {count - 1}"
        error = AxisError(op, f"an index is out of range for {count} {what}", fix)
        return any_of(outside(index, 0, count)), error

    question, look_at = ("index", 0, count), Below(count, look)
    return demand(
        index, question, look_at, lambda found: 0 <= found[0] and found[1] < count, failure
    )


def demand_labels(op: str, labels: Node, classes: int, ignored: int | None) -> None:
    """Demand that labels lie in 0..classes-1 unless they are to be ignored. Raises AxisError."""

    def error(text: str) -> PicogradError:
        others = "" if ignored is None else f", or {ignored}, which is ignored"
        others = ", or pass ignore_index for others" if ignored == -100 else others
        fix = f"use labels from 0 to {classes - 1}{others}"
        return AxisError(op, f"{text} is out of range for {classes} classes", fix)

    def look(values: Array) -> None:
        wrong = (values < 0) | (values >= classes)
        wrong &= True if ignored is None else values != ignored
        if wrong.any():
            raise error(f"label {values[wrong].flat[0]}")

    def failure(labels: Node) -> tuple[Node, PicogradError]:
        wrong = outside(labels, 0, classes)
        if ignored is not None:
            wrong = wrong.binary("logical_and", labels.cast(int64).binary("not_equal", ignored))
        return any_of(wrong), error("a label")

    question, look_at = ("labels", classes, ignored), Below(classes, look)
    demand(labels, question, look_at, lambda found: 0 <= found[0] and found[1] < classes, failure)


def demand_divisor(op: str, divisor: Any) -> None:
    """Demand that an integer divisor, a node or a number, is not zero. Raises ValueRangeError."""
    text, fix = "an integer is divided by zero", "choose other divisors, or compute in floats"

    def look(values: Array) -> None:
        if not np.all(values):
            raise ValueRangeError(op, text, fix)

    if not isinstance(divisor, Node):
        if not isinstance(divisor, float):
            look(np.asarray(divisor))
    elif not divisor.dtype.is_float:
        demand(
            divisor,
            "divisor",
            look,
            lambda found: found[0] > 0 or found[1] < 0,
            lambda node: (any_of(node.binary("equal", 0)), ValueRangeError(op, text, fix)),
        )
