"""The running vmaps: how random numbers are drawn inside them, and how they leave no trace.

`LEVELS` lists them, the outermost first. Inside one, tensors of one sample exist as symbols: they
are never computed, and those that outlive the outermost vmap are taken off the engine's list.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from picograd.buffer import Sample
from picograd.engine import pending
from picograd.engine.followed import leave
from picograd.engine.tracing import tracing
from picograd.errors import GradientError, PicogradError, ShapeError
from picograd.graph.batch import Batch
from picograd.graph.node import Node, toposort
from picograd.late_methods import dataclass

Shape = tuple[int, ...]


@dataclass(slots=True)
class Level:
    """One running vmap."""

    batch: Batch
    randomness: str
    checks: list[tuple[Node, PicogradError]] = field(default_factory=list)  # of one sample


LEVELS: list[Level] = []


@contextmanager
def symbolic() -> Iterator[None]:
    """Open a block in which samples are symbols: nothing is computed until it ends."""
    with pending.LOCK:
        leave()
        is_outermost = not LEVELS
        before = set(pending.LIVE.identities()) if is_outermost else set()
        try:
            with tracing("vmap"):
                yield
        finally:
            if is_outermost:
                forget_samples(before)


@contextmanager
def level(batch: Batch, randomness: str) -> Iterator[Level]:
    """Run one vmap inside the block."""
    with symbolic():
        LEVELS.append(Level(batch, randomness))
        try:
            yield LEVELS[-1]
        finally:
            LEVELS.pop()


def dependent(nodes: Sequence[Node]) -> set[int]:
    """Find the ids of the nodes under `nodes` that depend on a sample."""
    marked: set[int] = set()
    for node in toposort(nodes, lambda node: node.realized is not None):
        is_sample = isinstance(node.arg, Sample)
        if is_sample or any(id(child) in marked for child in node.inputs):
            marked.add(id(node))
    return marked


def check_write(value: Node) -> None:
    """Raise where every sample would write its own value to a tensor from outside."""
    if LEVELS and id(value) in dependent([value]):
        text = "a tensor from outside vmap would be overwritten by every sample"
        raise GradientError("vmap", text, "return the value, or pass the tensor as an argument")


def check_backward() -> None:
    """Raise for `backward` inside vmap: `grad` of a tensor from outside cannot differ by sample."""
    if LEVELS:
        text = "backward() inside vmap would add every sample's gradient to one grad"
        raise GradientError("backward", text, "use picograd.func.grad inside vmap")


def forget_samples(before: set[int]) -> None:
    """Take tensors off the engine's list that were made since, live on, and depend on a sample."""
    made = [tensor for tensor in pending.live_tensors() if id(tensor._node) not in before]
    marked = dependent([tensor.node for tensor in made])
    for tensor in made:
        if id(tensor.node) in marked:
            pending.forget(tensor.node, tensor)


def draw(op: str, shape: Shape, make: Callable[[Shape], Node]) -> Node:
    """Draw random numbers of a shape: once for all samples, for each its own, or not at all."""
    different: list[Batch] = []
    for running in LEVELS:
        if running.randomness == "error":
            text = "random numbers inside vmap: shall all samples get the same?"
            raise GradientError(op, text, 'pass randomness="different" or "same" to vmap')
        if running.randomness == "different":
            different.append(running.batch)
    node = make((*(batch.size for batch in different), *shape))
    for batch in different:
        node = batch.sample(node)
    return node


def cases_of(given: Sequence[Any]) -> Batch:
    """Open a vectorisation over the first axis of grad_outputs."""
    sizes = {each.shape[0] if each.shape else 0 for each in given if each is not None}
    if len(sizes) != 1 or 0 in sizes:
        text = f"is_grads_batched needs grad_outputs with one leading size, got {sorted(sizes)}"
        raise ShapeError("grad", text, "stack the cases along the first axis")
    return Batch(sizes.pop(), symbolic)
