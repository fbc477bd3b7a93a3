"""vmap: a function of one sample becomes a function of a batch (graph/batch.py has the rules).

The function runs once, on tensors that stand for one sample; what it recorded is then rewritten for
the whole batch. Nesting, gradients inside and outside, and pytrees work because nothing else in
picograd knows about it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from picograd.errors import AxisError, ChoiceError, DTypeError, ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph.batch import Batch
from picograd.graph.batch_rules import from_front, to_front
from picograd.graph.host_call import may_fail
from picograd.graph.node import Node
from picograd.tensor.core import autograd, running_vmaps
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.demands import any_of, report
from picograd.tensor.core.recording import Recorded, decided, same_value, wrap
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.pytree import leaves_of, prefix_leaves, rebuilt

P = ParamSpec("P")
R = TypeVar("R")
RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[P, R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """Make a function that applies `func` to every slice along an axis, all at once.

    `in_dims` is the axis of every argument: an int, None (the same for all samples), or a nested
    structure like the arguments; `out_dims` the axis of the results. Arguments and results may be
    nested tuples, lists and dicts of tensors. Keyword arguments are the same for all samples.
    `randomness` says whether samples draw "same" or "different" random numbers, or that drawing is
    an error. `chunk_size` limits how many samples are computed together. A value that Python reads
    inside `func` (`.item()`, `if`) is an error.

    >>> rows = picograd.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> picograd.vmap(picograd.dot)(rows, rows).tolist()
    [5.0, 25.0]
    """
    if not callable(func):
        raise DTypeError("vmap", f"{type(func).__name__} is no function", "pass a function")
    if randomness not in RANDOMNESS:
        text = f"randomness={randomness!r} is unknown"
        raise ValueRangeError("vmap", text, 'use "error", "different" or "same"')
    if chunk_size is not None and chunk_size < 1:
        raise ValueRangeError("vmap", f"chunk_size={chunk_size}", "use None or 1 and more")

    @functools.wraps(func, updated=())
    def batched(*args: P.args, **options: P.kwargs) -> R:
        return mapped_call(func, in_dims, out_dims, randomness, chunk_size, args, options)

    return batched


def mapped_call(
    func: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str, chunk: int | None,
    args: Sequence[Any], options: dict[str, Any],
) -> Any:  # fmt: skip
    """Call a vmapped function; keyword arguments are the same for all samples, as in PyTorch."""
    tree = (list(args), options)
    given = tuple(in_dims) if isinstance(in_dims, (list, tuple)) else in_dims
    if isinstance(given, tuple):
        flat = prefix_leaves("vmap", "in_dims", given, tuple(args))
    else:
        flat = [given] * len(leaves_of(list(args)))
    leaves = leaves_of(tree)
    flat = flat + [None] * (len(leaves) - len(flat))
    axes = [checked_axis("in_dims", axis, leaf) for axis, leaf in zip(flat, leaves)]
    size = batch_size(leaves, axes)
    if chunk is None or chunk >= size:
        return run(func, size, tree, leaves, axes, out_dims, randomness)
    parts = [
        run(func, min(chunk, size - at), tree, cut(leaves, axes, at, chunk), axes, 0, randomness)
        for at in range(0, size, chunk)
    ]
    columns = zip(*(leaves_of(part) for part in parts))
    wanted = axes_of_result(out_dims, parts[0])
    joined = [Tensor.cat(list(each)) for each in columns]
    moved = [
        each if axis == 0 else each.movedim(0, result_axis(axis, each.ndim))
        for each, axis in zip(joined, wanted)
    ]
    return rebuilt(parts[0], moved)


def cut(leaves: Sequence[Any], axes: Sequence[int | None], at: int, chunk: int) -> list[Any]:
    """Take one chunk of every mapped argument."""
    return [
        leaf if axis is None else leaf.narrow(axis, at, min(chunk, leaf.shape[axis] - at))
        for leaf, axis in zip(leaves, axes)
    ]


def checked_axis(what: str, axis: Any, leaf: Any) -> int | None:
    """Read one entry of in_dims for an argument; negative counts from the end."""
    if axis is None:
        return None
    if isinstance(axis, bool) or not isinstance(axis, int):
        text = f"{what} holds a {type(axis).__name__}"
        raise ChoiceError("vmap", text, "use ints and None")
    if not isinstance(leaf, Recorded):
        text = f"{what}={axis} for an argument of type {type(leaf).__name__}"
        raise ValueRangeError("vmap", text, "pass a Tensor, or None in in_dims for this argument")
    if not -leaf.ndim <= axis < leaf.ndim:
        text = f"{what}={axis} for a tensor of shape {leaf.shape}"
        raise ValueRangeError("vmap", text, "name one of its axes")
    return axis % leaf.ndim


def batch_size(leaves: Sequence[Any], axes: Sequence[int | None]) -> int:
    """Find the one size of all mapped axes."""
    sizes = [leaf.shape[axis] for leaf, axis in zip(leaves, axes) if axis is not None]
    if not sizes:
        text = "no argument is mapped" if leaves else "there are no arguments"
        raise ValueRangeError("vmap", text, "give at least one argument an axis in in_dims")
    if len(set(sizes)) > 1:
        raise ShapeError("vmap", f"the mapped axes have sizes {sizes}", "make them equal")
    return int(sizes[0])


def run(
    func: Callable[..., Any], size: int, tree: Any, leaves: Sequence[Any],
    axes: Sequence[int | None], out_dims: Any, randomness: str,
) -> Any:  # fmt: skip
    """Record the function for one sample and rewrite what it returned for the batch."""
    batch = Batch(size, running_vmaps.symbolic)
    with running_vmaps.level(batch, randomness) as level:
        inputs = [
            leaf if axis is None else sample_of(batch, leaf, axis)
            for leaf, axis in zip(leaves, axes)
        ]
        nodes = [None if axis is None else each._node for each, axis in zip(inputs, axes)]
        args, options = rebuilt(tree, inputs)
        result = func(*args, **options)
        wanted = axes_of_result(out_dims, result)
        pairs = zip(leaves_of(result), wanted)
        outputs = [output_node(batch, leaf, axis) for leaf, axis in pairs]
        written = [
            (leaf, from_front(batch.full(each._node), axis))
            for leaf, each, axis, node in zip(leaves, inputs, axes, nodes)
            if axis is not None and each._node is not node
        ]
        checks = [(batch.full(failed), error) for failed, error in level.checks]
    for failed, error in checks:
        report(any_of(failed), error)
    found = [tracked(node) for node in outputs]
    for leaf, node in written:  # the function changed its argument in place
        leaf.copy_(tracked(node))
    if found and may_fail([node for node, _ in batch.done.values()]):
        decided(*found)
    return rebuilt(result, found)


def sample_of(batch: Batch, tensor: Any, axis: int) -> Any:
    """Make the tensor that stands for one slice."""
    source = tensor._node if MODE.enabled or not tensor._tracks else build.detach(tensor._node)
    leaf = batch.sample(to_front(source, axis))
    return wrap(same_value(leaf), tensor._tracks and MODE.enabled)


def output_node(batch: Batch, value: Any, axis: Any) -> Node:
    """Give one result its batch axis."""
    if not isinstance(value, Recorded):
        text = f"the function returned a {type(value).__name__}"
        raise ValueRangeError("vmap", text, "return tensors, nested as you like")
    found = batch.convert([value._node])[0]
    if axis is None:
        if found is not None:
            raise ValueRangeError("vmap", "out_dims=None for a result that differs", "give an axis")
        return value._node
    whole = batch.repeat(value._node) if found is None else found
    return from_front(whole, result_axis(axis, whole.rank))


def axes_of_result(out_dims: Any, result: Any) -> list[Any]:
    """Spread out_dims over the tensors of a result; (1,) serves a single one, too."""
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(result, Recorded):
        (out_dims,) = out_dims
    return prefix_leaves("vmap", "out_dims", out_dims, result)


def result_axis(axis: Any, rank: int) -> int:
    """Read one entry of out_dims."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ChoiceError("vmap", f"out_dims holds a {type(axis).__name__}", "use ints")
    if not -rank <= axis < rank:
        text = f"out_dims={axis} for a result of {rank} axes"
        raise AxisError("vmap", text, f"use {-rank} to {rank - 1}")
    return axis % rank


def tracked(node: Node) -> Any:
    """Make a tensor of a node; it tracks if a tensor that asked for gradients leads to it."""
    if not node.dtype.is_differentiable:
        return wrap(node, False)
    if not MODE.enabled:
        return wrap(build.detach(node), False)
    leaves = (autograd.leaf_of(each) for each in autograd.leaf_nodes([node]))
    return wrap(node, any(leaf is not None and leaf.requires_grad for leaf in leaves))
