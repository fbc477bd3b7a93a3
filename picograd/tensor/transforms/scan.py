"""scan: a loop over time recorded once, whatever the number of steps (graph/recurrence.py).

The function of one step runs once, on tensors that stand for the carry and for one slice of each
input; what it recorded becomes the body. What it reads from outside are constants of the loop.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from picograd.dtype import int64
from picograd.engine import pending
from picograd.engine.followed import leave_unless_inside
from picograd.engine.tracing import noting_checks, tracing
from picograd.errors import (
    DeviceError,
    DTypeError,
    PicogradError,
    ShapeError,
    TraceError,
    ValueRangeError,
    check_callable,
)
from picograd.graph.composites import CustomGradient
from picograd.graph.host_call import may_fail
from picograd.graph.node import Node, toposort
from picograd.graph.recurrence import (
    close,
    make_body,
    outcome,
    placeholder,
    recur,
    rows_of,
    stacked,
)
from picograd.graph.room import check_size
from picograd.graph.row import SCALARS
from picograd.graph.shape import is_shape
from picograd.late_methods import dataclass
from picograd.number import WHOLE
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.demands import any_of, report
from picograd.tensor.core.recording import Recorded, decided, read, wrap
from picograd.tensor.making import random
from picograd.tensor.public import cat
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.pytree import leaves_of, mapped, rebuilt


@dataclass(eq=False, slots=True)
class Step:
    """What one call of the function recorded."""

    carries: list[Node]
    results: list[Node]
    result_tree: Any
    is_tracking: bool
    index: Node  # the number of the step, for random numbers
    taken: dict[int, int]  # counters a step takes, by the identity of their scalar
    checks: list[tuple[Node, PicogradError]]  # what must be false in every step


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Run `carry, y = f(carry, x)` over the leading axis of `xs`; return the last carry and all y.

    `init`, `xs` and what `f` returns may be nested tuples, lists and dicts of tensors; `xs` may be
    None if `length` is given, y may be None. The carry keeps its structure, shapes and dtypes; y
    gets a leading axis. `reverse` starts at the last row; rows keep their places. `f` runs once:
    the graph, and the time to schedule it, do not grow with the number of steps. Gradients flow to
    `init`, `xs` and the tensors `f` reads. Random numbers differ from step to step. Raises
    ShapeError or DTypeError when the carry changes, TraceError when `f` reads a value or changes
    a tensor from outside in place. After `jax.lax.scan`.

    >>> total, sums = picograd.scan(lambda c, x: (c + x, c + x), 0.0, picograd.arange(4).float())
    >>> total.item(), sums.tolist()
    (6.0, [0.0, 1.0, 3.0, 6.0])
    """
    check_callable("scan", f, "pass a function (carry, x) -> (carry, y)")
    rows = [as_rows(leaf) for leaf in leaves_of(xs)]
    given = [row for row in rows if row is not None]
    count = count_steps(given, length)
    starts = [as_carry(leaf, given) for leaf in leaves_of(init)]
    step, leaves = traced(f, (init, xs), (starts, rows), count)
    for each in step.results:
        check_size("scan", (count, *each.shape), each.dtype.itemsize)
    if count == 0:
        empty = [no_rows(node) for node in step.results]
        return rebuilt(init, starts), rebuilt(step.result_tree, finish(step, empty))
    inputs = ([read(start) for start in starts], [read(row) for row in given])
    loop, found = record(step, leaves, inputs, count, reverse)
    last, stacks = found[: len(starts)], found[len(starts) :]
    report_steps(step, stacks[len(step.results) :], found)
    carries, results = wrapped(step, last), finish(step, stacks)
    if may_fail([loop]):
        decided(*carries, *(result for result in results if result is not None))
    return rebuilt(init, carries), rebuilt(step.result_tree, results)


def report_steps(step: Step, failures: Sequence[Node], beside: Sequence[Node]) -> None:
    """Raise the errors of what a step checks; `beside` is computed with it."""
    for (_, error), failed in zip(step.checks, failures):
        report(any_of(failed), error, *beside)


def no_rows(node: Node) -> Node:
    """Make what no step has stacked."""
    row = node.const_like(0).broadcast_to((1, *node.shape))
    return rows_of(row, 0, 0)


def as_rows(value: Any) -> Any:
    """Check one leaf of xs: a tensor with a leading axis, or None."""
    if value is None:
        return None
    if not isinstance(value, Recorded):
        problem = f"xs holds a {type(value).__name__}"
        raise DTypeError("scan", problem, "pass tensors with one row per step")
    if not value.shape:
        problem = "xs holds a tensor without axes"
        raise ShapeError("scan", problem, "give every x a leading axis of steps")
    return value


def as_carry(value: Any, rows: Sequence[Any]) -> Any:
    """Check one leaf of the carry; a number becomes a tensor where the xs are."""
    if isinstance(value, Recorded):
        return value
    if isinstance(value, (bool, int, float)):
        return Tensor.of(value, device=rows[0].device if rows else None)
    problem = f"the carry holds a {type(value).__name__}"
    raise DTypeError("scan", problem, "carry tensors and numbers")


def count_steps(rows: Sequence[Any], length: int | None) -> int:
    """Find the number of steps all xs agree on."""
    wanted = int(length) if type(length) in WHOLE else length  # type: ignore[arg-type]
    sizes = [row.shape[0] for row in rows] + ([] if wanted is None else [wanted])
    if not sizes:
        raise ValueRangeError("scan", "the number of steps is not known", "give xs or length")
    count = sizes[0]
    if any(size != count for size in sizes[1:]):
        problem = f"the number of steps is one of {sorted(set(sizes))}"
        raise ShapeError("scan", problem, "give all xs as many rows, and length that number")
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValueRangeError("scan", f"length={count!r}", "use a whole number of steps")
    return count


def leaf_of(kind: str, node: Node, shape: tuple[int, ...]) -> Node:
    """Make the placeholder of a carry or of a slice of an x."""
    return placeholder(kind, shape, node.dtype, node.device)


def traced(
    f: Callable[..., Any],
    trees: tuple[Any, Any],
    given: tuple[Sequence[Any], Sequence[Any]],
    count: int,
) -> tuple[Step, tuple[list[Node], list[Node]]]:
    """Record a step, and what stands in it for the carry and for the rows of each input.

    Once more for gradients if the function reads something from outside that asks for them.
    """
    starts, rows = given
    carries = [leaf_of("carry", start._node, start.shape) for start in starts]
    slices = [row if row is None else leaf_of("x", row._node, row.shape[1:]) for row in rows]
    is_asked = any(x._tracks for x in (*starts, *rows) if x is not None)
    step = trace(f, trees, (carries, slices), count, is_asked)
    if step.is_tracking and not is_asked:
        step = trace(f, trees, (carries, slices), count, True)
    return step, (carries, [leaf for leaf in slices if leaf is not None])


def trace(
    f: Callable[..., Any], trees: tuple[Any, Any], leaves: tuple[Sequence[Any], Sequence[Any]],
    count: int, tracks: bool,
) -> Step:  # fmt: skip
    """Call the function once on tensors that stand for the values of a step."""

    def stand_in(leaf: Node | None) -> Any:
        return None if leaf is None else wrap(leaf, tracks and leaf.dtype.is_float)

    held = [leaf for each in leaves for leaf in each if leaf is not None]
    with (
        pending.LOCK, guarded(held), random.repeated(count) as taken, noting_checks() as checks,
        tracing("picograd.scan"),
    ):  # fmt: skip
        carry = rebuilt(trees[0], [stand_in(leaf) for leaf in leaves[0]])
        x = rebuilt(trees[1], [stand_in(leaf) for leaf in leaves[1]])
        result = f(carry, x)
        if not isinstance(result, tuple) or len(result) != 2:
            problem = f"f returned a {type(result).__name__}"
            raise DTypeError("scan", problem, "return a tuple (carry, y)")
        device = held[0].device if held else None
        carries = [as_result("carry", leaf, device) for leaf in leaves_of(result[0])]
        check_carry(trees[0], result[0], leaves[0], carries)
        ys = [as_result("y", leaf, device) for leaf in leaves_of(result[1]) if leaf is not None]
        asked = any(tensor._tracks for tensor in (*carries, *ys))
        tracking = MODE.enabled and asked
        nodes = ([tensor._node for tensor in carries], [tensor._node for tensor in ys])
        place = nodes[0][0].device if carries else nodes[1][0].device if ys else "cpu"
        index = placeholder("x", (), int64, place)
        return Step(*nodes, result[1], tracking, index, taken, checks)


def as_result(what: str, value: Any, device: str | None) -> Any:
    """Read one leaf of what the function returned."""
    if isinstance(value, Recorded):
        return value
    if isinstance(value, (bool, int, float)):
        return Tensor.of(value, device=device)
    problem = f"the {what} that f returned holds a {type(value).__name__}"
    raise DTypeError("scan", problem, "return tensors and numbers")


def check_carry(before: Any, after: Any, leaves: Sequence[Node], carries: Sequence[Any]) -> None:
    """Raise unless the carry comes out of a step as it went in."""
    if mapped(lambda leaf: 0, before) != mapped(lambda leaf: 0, after):
        problem = f"the carry of {len(leaves)} tensors came out with another structure"
        raise DTypeError("scan", problem, "return a carry like init")
    for number, (leaf, found) in enumerate(zip(leaves, carries, strict=True)):
        is_shaped = is_shape(leaf.shape, found.shape)
        if not is_shaped or leaf.dtype is not found.dtype or leaf.device != found.device:
            error = DTypeError if is_shaped else ShapeError
            was, now = (f"{each.dtype.name}{each.shape}" for each in (leaf, found))
            problem = f"carry {number} went into f as {was} and came out as {now}"
            raise error("scan", problem, "keep shape, dtype and device; cast init or the result")


@contextmanager
def guarded(leaves: Sequence[Node]) -> Iterator[None]:
    """See to it that nothing outside depends on the stand-ins of a step afterwards."""
    leave_unless_inside()
    before = {id(t._node): (t, t._node, t._tracks) for t in pending.live_tensors()}
    try:
        yield
        changed = [each for each in before.values() if each[0]._node is not each[1]]
        changed = [each for each in changed if depends(each[0]._node, leaves, before)]
        for tensor, node, tracks in changed:
            pending.WRITES.pop(tensor._node, None)
            tensor._move(node)
            tensor._tracks = tracks
        if changed:
            problem = f"f changed a tensor from outside in place: {changed[0][0].shape}"
            raise TraceError("scan", problem, "return the new value in the carry")
    finally:
        for tensor in pending.live_tensors():
            if id(tensor._node) not in before and depends(tensor._node, leaves, before):
                pending.forget(tensor._node, tensor)


def depends(node: Node, leaves: Sequence[Node], known: dict[int, Any]) -> bool:
    """Tell whether a node was computed from the stand-ins of a step."""
    wanted = {id(leaf) for leaf in leaves}
    walk = toposort([node], lambda each: id(each) in known and id(each) not in wanted)
    return any(id(each) in wanted for each in walk)


def record(
    step: Step, leaves: tuple[Sequence[Node], Sequence[Node]],
    inputs: tuple[Sequence[Node], Sequence[Node]], count: int, is_reverse: bool,
) -> tuple[Node, list[Node]]:  # fmt: skip
    """Make the body and the loop; the loop, and the last carries, then the stacked results."""
    failed = [node for node, _ in step.checks]
    roots = fresh_numbers([*step.carries, *step.results, *failed], step)
    closed, constants = close(roots, [*leaves[0], *leaves[1], step.index])
    reached = {id(node): node for node in toposort(closed)}
    check_devices([*reached.values(), *leaves[0], *leaves[1]])
    steps = Node("iota", (), 0, (count,), int64, step.index.device)
    rows = [*zip(leaves[1], inputs[1]), (step.index, steps)]
    rows = [(leaf, node) for leaf, node in rows if id(leaf) in reached]
    outer = {id(node): node for node in toposort(roots)}
    nexts, results = closed[: len(step.carries)], closed[len(step.carries) :]
    slices = [leaf for leaf, _ in rows]
    body, numbers = make_body((leaves[0], slices, list(constants.values())), nexts, results)
    fixed = [outer[key] for key in constants]
    loop = recur(body, count, is_reverse, [*inputs[0], *(node for _, node in rows), *fixed])
    last = [outcome(loop, "carry", number) for number in range(len(nexts))]
    return loop, last + [stacked(loop, numbers[id(node)]) for node in results]


def check_devices(nodes: Sequence[Node]) -> None:
    """Raise DeviceError unless a loop stays on one device."""
    places = sorted({node.device for node in nodes})
    if len(places) > 1:
        problem = f"the loop uses {' and '.join(places)}"
        raise DeviceError("scan", problem, "move everything to one device before it")


def fresh_numbers(roots: Sequence[Node], step: Step) -> list[Node]:
    """Let random numbers drawn in a step move on with every step."""
    if not step.taken:
        return list(roots)
    done: dict[int, Node] = {}
    for node in toposort(roots):
        if type(node.arg) is CustomGradient:
            problem = "random numbers and a custom gradient in one step"
            raise TraceError("scan", problem, "draw the numbers before, and pass them as xs")
        if node.op in SCALARS and id(node.arg) in step.taken:
            moved = (step.index * step.taken[id(node.arg)]).cast(node.dtype)
            done[id(node)] = node + moved
            continue
        done[id(node)] = node.with_inputs(tuple([done[id(child)] for child in node.inputs]))
    return [done[id(root)] for root in roots]


def wrapped(step: Step, nodes: Sequence[Node]) -> list[Any]:
    """Make tensors of results."""
    return [wrap(node, step.is_tracking and node.dtype.is_float) for node in nodes]


def finish(step: Step, nodes: Sequence[Node]) -> list[Any]:
    """Make tensors of the stacked results; None stays None."""
    found = iter(wrapped(step, nodes))
    return [None if leaf is None else next(found) for leaf in leaves_of(step.result_tree)]


Combine = Callable[[Any, Any], Any]


def associative_scan(
    combine_fn: Combine,
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
    additional_inputs: Any = (),
) -> Any:
    """Combine the elements of tensors along an axis, each with all before it.

    `combine_fn(earlier, later)` must be associative; `xs` may be a tree of tensors. Every step
    combines what lies twice as far apart. Raises ShapeError for axes of different sizes.

    >>> from picograd import Tensor
    >>> associative_scan(lambda a, b: a * b, Tensor([1.0, 2.0, 3.0]), 0).tolist()
    [1.0, 2.0, 6.0]
    """
    sizes = {x.shape[dim] for x in leaves_of(xs)}
    if len(sizes) != 1:
        text = f"axis {dim} has sizes {sorted(sizes)}"
        raise ShapeError("associative_scan", text, "make them equal")
    size, distance = sizes.pop(), 1
    found = mapped(lambda x: x.flip(dim), xs) if reverse else xs
    while distance < size:
        earlier = mapped(lambda x: x.narrow(dim, 0, size - distance), found)  # noqa: B023
        later = mapped(lambda x: x.narrow(dim, distance, size - distance), found)  # noqa: B023
        first = [x.narrow(dim, 0, distance) for x in leaves_of(found)]
        rest = leaves_of(combine_fn(earlier, later))
        found = rebuilt(found, [cat(pair, dim=dim) for pair in zip(first, rest)])
        distance *= 2
    return mapped(lambda x: x.flip(dim), found) if reverse else found
