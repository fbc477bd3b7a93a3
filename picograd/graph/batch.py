"""Vectorisation, graph -> graph: what was recorded for one sample computes a whole batch.

    sample f32(3) --exp--> f32(3) --sum--> f32()      one sample, recorded by the user's function
    batch  f32(8, 3) -exp-> f32(8, 3) -sum-> f32(8)   what `convert` makes of it

The batch axis is always the first. Only nodes that depend on a sample change; everything else is
used as it is. One op, one rule: `ARGUMENT` for the ops that only count their axes anew, `RULES`
for those that change more, `REFUSED` with the reason; a composite without a rule is expanded.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from picograd.buffer import Sample
from picograd.errors import GradientError, internal
from picograd.graph.composites import CustomGradient
from picograd.graph.gradient import HOOKS
from picograd.graph.node import Node, toposort
from picograd.graph.ops import OPS
from picograd.graph.parts import Step, Steps
from picograd.graph.recurrence import make_body, outcome, placeholder, recur
from picograd.graph.shape import Shape, Window

Guard = Callable[[], AbstractContextManager[Any]]


class Batch:
    """This class is one vectorisation: its size, and what became of the nodes of one sample.

    `done` maps the id of a node to the node, which it keeps alive, and to its batched form: None if
    it is the same for all samples. `guard` opens a block in which a function of samples may run.
    """

    size: int
    guard: Guard

    def __init__(self, size: int, guard: Guard = nullcontext) -> None:
        self.size, self.guard = size, guard
        self.done: dict[int, tuple[Node, Node | None]] = {}
        self.numbers: dict[int, list[int]] = {}  # of the nodes of a batched loop's body

    def sample(self, batched: Node) -> Node:
        """Make the leaf that stands for one slice along the first axis of a node."""
        shape = batched.shape[1:]
        leaf = Node("buffer", (), Sample(), shape, batched.dtype, batched.device)
        self.done[id(leaf)] = leaf, batched
        return leaf

    def convert(self, roots: Sequence[Node]) -> list[Node | None]:
        """Find the batched form of nodes, each input before its users; linear in the graph."""
        done = self.done
        for node in toposort(roots, lambda node: id(node) in done or node.realized is not None):
            if id(node) not in done:
                done[id(node)] = node, self.converted(node)
        return [done[id(root)][1] for root in roots]

    def converted(self, node: Node) -> Node | None:
        """Apply the rule of one node whose inputs are converted."""
        if node.realized is not None:
            return None
        found = [self.done[id(child)][1] for child in node.inputs]
        if all(each is None for each in found):
            return None
        if node in HOOKS:
            text = "a tensor inside has a gradient hook, which sees one sample"
            raise GradientError("vmap", text, "register the hook on a tensor outside")
        if node.op in REFUSED:
            raise GradientError(f"vmap of {node.op}", *REFUSED[node.op])
        if node.op in RULES:
            return RULES[node.op](self, node, found)
        if node.op in ARGUMENT or OPS[node.op].is_elementwise:
            return same_op(self, node, found)
        expand = OPS[node.op].expand
        if expand is None:
            internal(f"{node.op} has no batching rule")
        return self.convert([expand(node)])[0]

    def full(self, node: Node) -> Node:
        """Give the batched form of a node, repeated if it is the same for all samples."""
        (found,) = self.convert([node])
        return self.repeat(node) if found is None else found

    def repeat(self, node: Node) -> Node:
        """Repeat a value that all samples share."""
        return node.reshape((1, *node.shape)).expand((self.size, *node.shape))

    def filled(self, node: Node, found: Sequence[Node | None]) -> list[Node]:
        """Give the batched form of every input of a node."""
        pairs = zip(node.inputs, found)
        return [self.repeat(child) if each is None else each for child, each in pairs]


Found = Sequence[Node | None]  # the batched form of each input, None where samples share it
Rule = Callable[[Batch, Node, Found], Node]


def same_op(batch: Batch, node: Node, found: Found) -> Node:
    """Apply the op to batched inputs, its axes counted one further."""
    argument = ARGUMENT.get(node.op)
    arg = node.arg if argument is None else argument(node, batch.size)
    inputs, shape = (tuple(batch.filled(node, found)), (batch.size, *node.shape))
    return Node(node.op, inputs, arg, shape, node.dtype, node.device)


# ops that only count their axes anew: node, batch size -> argument


def same(node: Node, size: int) -> Any:
    """Keep the argument: it names no axis."""
    return node.arg


def next_axis(node: Node, size: int) -> int:
    """Count one axis further."""
    return int(node.arg) + 1


def next_axes(node: Node, size: int) -> Shape:
    """Count several axes further."""
    return shifted(node.arg)


def first_next(node: Node, size: int) -> tuple[Any, ...]:
    """Count the axis further that leads an argument: (axis, ...)."""
    return (node.arg[0] + 1, *node.arg[1:])


def second_next(node: Node, size: int) -> tuple[Any, ...]:
    """Count the axis further that is second in an argument: (monoid, axis, ...)."""
    return (node.arg[0], node.arg[1] + 1, *node.arg[2:])


def shifted(axes: Shape) -> Shape:
    """Count axes one further."""
    return tuple(axis + 1 for axis in axes)


def shifted_windows(windows: Window) -> Window:
    """Count the axes of windows one further."""
    return tuple((axis + 1, *rest) for axis, *rest in windows)  # type: ignore[misc]


def next_steps(node: Node, size: int) -> Steps:
    """Count the axes of the steps of a part one further."""
    found: list[Step] = []
    for op, arg in node.arg:
        whole = ((0, size, 1), *arg)
        batched = {"slice": whole, "reshape": (size, *arg)}
        if op in batched:
            found.append((op, batched[op]))
        else:
            found.append((op, shifted(arg) if op == "flip" else (0, *shifted(arg))))
    return tuple(found)


ARGUMENT: dict[str, Callable[[Node, int], Any]] = {
    "reshape": lambda node, size: (size, *node.shape),
    "expand": lambda node, size: (size, *node.shape),
    "permute": lambda node, size: (0, *shifted(node.arg)),
    "slice": lambda node, size: ((0, size, 1), *node.arg),
    "flip": next_axes,
    "put": next_steps,
    "pad": lambda node, size: (((0, 0), *node.arg[0]), node.arg[1]),
    "window": lambda node, size: shifted_windows(node.arg),
    "fold": lambda node, size: (shifted_windows(node.arg[0]), node.arg[1]),
    "reduce": lambda node, size: (node.arg[0], shifted(node.arg[1])),
    "copy": same,
    "host_call": same,
    "contiguous": same,
    "detach": same,
    "scan": second_next,
    "scan_chunks": second_next,
    "sort": first_next,
    "sort_keys": first_next,
    "radix_count": same,
    "radix_move": same,
    "relu": same,
    "gelu": same,
    "softmax": next_axis,
    "log_softmax": next_axis,
    "logsumexp": next_axis,
    "cross_entropy": next_axis,
    "argmax": next_axis,
    "argmin": next_axis,
    "max_pool": lambda node, size: shifted_windows(node.arg),
    "var": lambda node, size: (shifted(node.arg[0]), node.arg[1]),
    "layer_norm": next_axes,
}


# rules


def to_front(node: Node, axis: int) -> Node:
    """Move an axis to the front."""
    rest = tuple(at for at in range(node.rank) if at != axis)
    return node.permute((axis, *rest))


def from_front(node: Node, axis: int) -> Node:
    """Move the first axis to a place."""
    rest = tuple(range(1, node.rank))
    return node.permute((*rest[:axis], 0, *rest[axis:]))


def batch_contract(batch: Batch, node: Node, found: Found) -> Node:
    """Give the batch a label of its own: "ij,jk->ik" becomes "bij,jk->bik"."""
    labels_a, labels_b, out = node.arg
    letter = max((*labels_a, *labels_b), default=-1) + 1
    labels = [
        own if each is None else (letter, *own) for own, each in zip((labels_a, labels_b), found)
    ]
    a, b = (child if each is None else each for child, each in zip(node.inputs, found))
    return a.contract(b, (labels[0], labels[1], (letter, *out)))


def batch_conv(batch: Batch, node: Node, found: Found) -> Node:
    """Fold the batch into the rows (inputs differ), the outputs (weights do), or the groups."""
    (x, weight), spec, size = found, node.arg, batch.size
    own_x, own_weight = node.inputs
    n, g, o = node.shape[:3]
    spatial = node.shape[3:]
    if weight is None and x is not None:
        rows = x.reshape((size * n, *own_x.shape[1:]))
        return rows.conv(own_weight, spec).reshape((size, *node.shape))
    if x is None and weight is not None:
        joined = from_front(weight, 1).reshape((g, size * o, *own_weight.shape[2:]))
        y = own_x.conv(joined, spec)
        return to_front(y.reshape((n, g, size, o, *spatial)), 2)
    x, weight = batch.filled(node, found)
    groups = from_front(x, 1).reshape((n, size * g, *own_x.shape[2:]))
    y = groups.conv(weight.reshape((size * g, *own_weight.shape[1:])), spec)
    return to_front(y.reshape((n, size, g, o, *spatial)), 1)


def batched_indices(batch: Batch, node: Node, found: Found, first: int) -> list[Node]:
    """Give the indices of a node, inputs from `first` on, with one more that counts samples."""
    indices = batch.filled(node, found)[first:]
    return [indices[0].iota(0), *indices]


def batch_gather(batch: Batch, node: Node, found: Found) -> Node:
    """Shared indices read every sample; else the sample's number is one more index."""
    x, axes = found[0], node.arg
    if all(each is None for each in found[1:]) and x is not None:
        return to_front(x.gather(node.inputs[1:], shifted(axes)), node.inputs[1].rank)
    if x is None:
        return node.inputs[0].gather(batch.filled(node, found)[1:], axes)
    return x.gather(batched_indices(batch, node, found, 1), (0, *shifted(axes)))


def batch_scatter(batch: Batch, node: Node, found: Found) -> Node:
    """Write into every sample: its number is one more index."""
    base, values = batch.filled(node, found)[:2]
    axes, monoid = node.arg
    indices = batched_indices(batch, node, found, 2)
    inside = indices[len(axes) + 1 :]
    return base.scatter(values, indices[: len(axes) + 1], (0, *shifted(axes)), monoid, *inside)


def batch_batch_norm(batch: Batch, node: Node, found: Found) -> Node:
    """Fold the batch into the channels, which have statistics of their own."""
    x, *others = batch.filled(node, found)
    n, c, *spatial = node.shape
    wide = (n, batch.size * c, *spatial)
    channels = [each.reshape((batch.size * c,)) for each in others]
    y = from_front(x, 1).reshape(wide).composite("batch_norm", node.arg, *channels)
    return to_front(y.reshape((n, batch.size, c, *spatial)), 1)


def batch_custom(batch: Batch, node: Node, found: Found) -> Node:
    """Ask the caller's gradient function for one sample, and vectorise its answer in turn."""
    inputs, vjp = batch.filled(node, found), node.arg.vjp

    def batched_vjp(*given: Node) -> list[Node | None]:
        with batch.guard():
            answers = vjp(*(batch.sample(each) for each in given))
        return [None if each is None else batch.full(each) for each in answers]

    arg, shape = CustomGradient(batched_vjp), (batch.size, *node.shape)
    return Node("custom", tuple(inputs), arg, shape, node.dtype, node.device)


def batch_recur(batch: Batch, node: Node, found: Found) -> Node:
    """Vectorise the body of a loop; what is stacked over time keeps time as the first axis."""
    body, size = node.arg.body, batch.size
    inner, leaves = Batch(size, batch.guard), []
    for leaf in body.leaves:
        wide = placeholder(leaf.arg, (size, *leaf.shape), leaf.dtype, leaf.device)
        inner.done[id(leaf)] = leaf, wide
        leaves.append(wide)
    results = [inner.full(each) for each in body.order]
    first, last = len(body.carries), len(body.carries) + len(body.xs)
    groups = leaves[:first], leaves[first:last], leaves[last:]
    made, numbers = make_body(groups, [results[number] for number in body.nexts], results)
    inputs = batch.filled(node, found)
    inputs[first:last] = [from_front(each, 1) for each in inputs[first:last]]
    loop = recur(made, node.arg.length, node.arg.is_reverse, inputs)
    batch.numbers[id(loop)] = [numbers[id(each)] for each in results]
    return loop


def batch_outcome(batch: Batch, node: Node, found: Found) -> Node:
    """Read what a vectorised loop computes."""
    (kind, number), loop = node.arg, batch.filled(node, found)[0]
    if kind == "stack":
        number = batch.numbers[id(loop)][number]
    result = outcome(loop, kind, number)
    return result if kind == "carry" else to_front(result, 1)


RULES: dict[str, Rule] = {
    "contract": batch_contract,
    "conv": batch_conv,
    "gather": batch_gather,
    "scatter": batch_scatter,
    "batch_norm": batch_batch_norm,
    "custom": batch_custom,
    "recur": batch_recur,
    "outcome": batch_outcome,
}
REFUSED: dict[str, tuple[str, str]] = {
    "flow": ("a cotangent of a loop exists only while its gradient is taken", "report this"),
    "assign": (
        "a tensor from outside would be overwritten by every sample",
        "return the value, or pass the tensor as an argument",
    ),
    "scatter_runs": ("it is what a scatter becomes on CUDA", "report this"),
    "random_bits": (
        "the position in the random stream depends on the sample",
        'draw inside, with randomness="different"',
    ),
}
