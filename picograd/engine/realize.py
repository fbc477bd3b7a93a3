"""The one driver, read this first: from graph nodes to computed buffers.

    graph_key   which plan?                        engine/plan_key.py
    find_stored a plan on disk?                    engine/stored_plan.py
    schedule    graph -> Plan (kernels)            schedule/schedule.py
    compile     kernels -> executables             engine/compile.py, codegen/pipeline.py
    run         buffers in, launches, buffers out  engine/executable.py

A plan is built once per structural key and set of settings; after that a graph of the same
structure costs one walk, one dictionary look-up and one launch tape.
"""

import ctypes
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from picograd.buffer import Buffer, Storage
from picograd.config import config
from picograd.conversion import from_bits
from picograd.dtype import DType
from picograd.engine.backends import compiling_beside, default_device, get_device, target_for
from picograd.engine.debug import log_copy, log_plan, start_copy, user_place
from picograd.engine.executable import CompiledPlan, Runnable, compile_plan, scalar_values
from picograd.engine.followed import EVENTS, Taken, note_taken
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import GraphKey, graph_key, leaf_buffer, walk_pending, with_scalars
from picograd.engine.size_patterns import is_new, learn, note_stored, plan_by_code, tell_stored
from picograd.engine.sizes import BoundedPlan, bounded_plan
from picograd.engine.stored_plan import find_stored, store_plan
from picograd.engine.tracing import is_tracing
from picograd.engine.watch import PROFILES, tell_span
from picograd.errors import PicogradError, ShapeError
from picograd.graph.complex_numbers import has_complex
from picograd.graph.formula import FOLDED, unfolded
from picograd.graph.node import RESULT, Node
from picograd.graph.room import check_values
from picograd.helpers import on_demand
from picograd.runtime.log import log_action
from picograd.schedule.plan import Plan
from picograd.target import is_host

schedule = on_demand("picograd.schedule.schedule", "schedule")
CHECKS: list[tuple[Buffer, PicogradError]] = []  # bools that must be false, the error if not
CHECK_LIMIT = 256  # that wait until a value of a device is read
NUMPY_AXES = 64
NUMBER_KINDS: dict[str, Any] = {  # by dtype: what reads a number
    "float64": ctypes.c_double, "float32": ctypes.c_float, "bool": ctypes.c_bool,
    "int64": ctypes.c_int64, "int32": ctypes.c_int32, "int16": ctypes.c_int16,
    "int8": ctypes.c_int8, "uint8": ctypes.c_uint8,
}  # fmt: skip


def realize(nodes: Sequence[Node]) -> None:
    """Compute nodes: afterwards `node.realized` is a row-major buffer.

    While `jit` traces this does nothing: the trace realizes everything in one plan at its end.
    """
    if is_tracing():
        return
    roots = pending_roots(nodes)
    if roots:
        realize_roots(roots, graph_key(roots))


def pending_roots(nodes: Sequence[Node]) -> list[Node]:
    """List the nodes that still have to be computed, each once."""
    distinct = {id(node): node for node in nodes}
    return [node for node in distinct.values() if leaf_buffer(node) is None]


def realize_roots(roots: Sequence[Node], found: GraphKey) -> Runnable:
    """Compute pending nodes, whose key was found, through one plan, new or cached."""
    compiled, buffers, scalars = find_plan(found, roots), found.buffers, found.scalars
    if type(compiled) is CompiledPlan:
        buffers = [buffers[number] for number in compiled.input_numbers]
        scalars = [scalars[number] for number in compiled.scalar_numbers]
    if compiled.may_follow:
        note_taken(Taken(compiled, buffers, scalars, roots), len(found.order))
    settle(roots, compiled.run(found.buffers, scalar_values(found.scalars), user_place()))
    return compiled


def realize_beside(roots: Sequence[Node], found: GraphKey) -> None:
    """Compute pending nodes; kernels that are missing may compile while others are planned."""
    with compiling_beside(roots[0].device):
        realize_roots(roots, found)


def find_plan(
    found: GraphKey,
    roots: Sequence[Node],
    limits: Mapping[tuple[int, int], int] | None = None,
    patience: int = 0,
) -> Runnable:
    """Look a plan up by structural key, or make it; with `limits`, one for other sizes too.

    A plan for many sizes runs `patience` times for these, 0: as often as is worth it.
    """
    key = (found.key, config.epoch)
    compiled = PLANS.get(key)
    if compiled is not None and not compiled.is_worn:
        if isinstance(compiled, BoundedPlan):
            compiled.have_patience(patience)
        return compiled
    is_missing = False
    if compiled is None and limits is None:
        bounded = plan_by_code(found) if config.dynamic else None
        if bounded is not None:
            return put_bounded(bounded, key, patience)
        if is_new(found):  # what another process left needs no look at the graph
            stored = find_stored(found)
            is_missing = stored is None
            if stored is not None:
                note_stored(found, stored)
                PLANS.put(key, stored)
                return stored
    whole = roots, found
    if any(node.op == FOLDED for node in found.order):
        roots, found = plain_graph(roots, found)
    if compiled is None:
        check_values(found.order)
    may_vary = config.dynamic or limits is not None
    if compiled is None and may_vary and not has_complex(found.order):
        tell_stored(found)
        bounded = bounded_plan(roots, found, own_plan, limits or {})
        if limits is None:
            learn(*whole, bounded)
        if bounded is not None:
            return put_bounded(bounded, key, patience)
    if compiled is not None and (family := getattr(compiled, "family", None)) is not None:
        family.alone += 1
    return own_plan(roots, found, is_missing)


def put_bounded(plan: BoundedPlan, key: Any, patience: int) -> BoundedPlan:
    """Let the cache of plans own one that was bound to the sizes of a graph."""
    plan.have_patience(patience or plan.least_patience)
    PLANS.put(key, plan)
    return plan


def keep_plan(key: Any, plan: Runnable) -> None:
    """Let the cache of plans own one that was made for something other than a graph."""
    PLANS.put((key, config.epoch), plan)


def plain_graph(roots: Sequence[Node], found: GraphKey) -> tuple[Sequence[Node], GraphKey]:
    """Write out what stands for several nodes; the key stays."""
    roots = unfolded(roots, found.order)
    return roots, replace(found, order=walk_pending(roots))


def own_plan(roots: Sequence[Node], found: GraphKey, is_missing: bool = False) -> CompiledPlan:
    """Find or make the plan of a graph for its own sizes; `is_missing`: the disk has none."""
    key = (found.key, config.epoch)
    compiled = PLANS.get(key)
    if not isinstance(compiled, CompiledPlan):
        compiled = None if is_missing else find_stored(found)
        if compiled is None:
            compiled = compile_plan(make_plan(with_scalars(roots, found)), found)
            store_plan(found, compiled)
        PLANS.put(key, compiled)
    compiled.family = found.family or compiled.family
    return compiled


def make_plan(roots: Sequence[Node]) -> Plan:
    """Schedule a graph for the device that computes most of it."""
    start = time.perf_counter()
    target = target_for(walk_pending(roots))
    plan: Plan = schedule(list(roots), target, verify=bool(config.verify))
    seconds = time.perf_counter() - start
    tell_span("schedule", f"{len(plan.kernels)} kernels", start)
    log_action("schedule", f"{len(plan.kernels)} kernels, {seconds * 1e3:.1f} ms")
    log_plan(roots, plan)
    return plan


def settle(roots: Sequence[Node], results: Sequence[Buffer]) -> None:
    """Hang the computed buffers on their nodes; what looks at a computed one finds an op."""
    for root, buffer in zip(roots, results, strict=True):
        root.realized = buffer
        if root.op == RESULT:
            root.inputs[0].arg.expand(root)


def node_from_numpy(array: np.ndarray[Any, Any], dtype: DType, device: str) -> Node:
    """Make a leaf holding a copy of a NumPy array of `dtype`'s storage type.

    One element that is shown everywhere, as `np.broadcast_to` does, is all that is copied.
    """
    owner = get_device(device)
    buffer = owner.new_buffer(dtype, array.size, user_place())
    start = start_copy(owner)
    if array.size > 1 and not any(array.strides):
        owner.fill(buffer, array.flat[:1].astype(dtype.storage))
    else:
        owner.copy_in(buffer, np.ascontiguousarray(array, dtype=dtype.storage))
    log_copy(start, "host", owner.name, buffer.nbytes, owner)
    return leaf(buffer, array.shape)


def node_over_numpy(array: np.ndarray[Any, Any], dtype: DType) -> Node:
    """Make a CPU leaf of a NumPy array's own memory; a strided or misaligned one is copied."""
    cpu: Any = get_device("cpu")
    return leaf(cpu.adopt(array, dtype), array.shape)


def buffer_view(buffer: Buffer, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Show the memory of a CPU buffer as an array, which keeps the buffer alive."""
    if EVENTS.learning is not None:
        EVENTS.learning.reads += 1
    cpu: Any = get_device(buffer.device)
    raw: np.ndarray[Any, Any] = cpu.view(buffer).view(buffer.dtype.storage)
    return raw[: buffer.count].reshape(shape)


def flat_view(buffer: Buffer) -> np.ndarray[Any, Any]:
    """Show the memory of a CPU buffer in a row, for as long as the caller holds the buffer."""
    if EVENTS.learning is not None:
        EVENTS.learning.reads += 1
    if not buffer.count:
        return np.empty(0, buffer.dtype.storage)
    memory = (ctypes.c_char * buffer.nbytes).from_address(buffer.address)
    return np.frombuffer(memory, buffer.dtype.storage)


def leaf(buffer: Buffer, shape: tuple[int, ...]) -> Node:
    """Make a leaf node over a buffer."""
    return Node("buffer", (), Storage(buffer), shape, buffer.dtype, buffer.device)


def buffer_to_numpy(buffer: Buffer, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Copy a row-major buffer to a new NumPy array; floats that NumPy lacks widen to float32."""
    if EVENTS.learning is not None:
        EVENTS.learning.reads += 1
    if len(shape) > NUMPY_AXES:
        text = f"NumPy has at most {NUMPY_AXES} axes, the tensor has {len(shape)}"
        raise ShapeError("numpy", text, "reshape it first")
    device = get_device(buffer.device)
    if CHECKS:
        run_checks()
    start = start_copy(device)
    raw = device.copy_out(buffer)
    log_copy(start, device.name, "host", buffer.nbytes, device)
    bits: np.ndarray[Any, Any] = raw.view(buffer.dtype.storage)[: buffer.count]
    return from_bits(bits, buffer.dtype).reshape(shape)


def is_watched() -> bool:
    """Tell whether somebody wants to see every computation, or an error waits for the next look."""
    return bool(CHECKS or PROFILES or config.debug >= 2)


def number_in(buffer: Buffer, place: int = 0) -> int | float | None:
    """Read a number of a buffer on the host; None where that is more than a look."""
    if EVENTS.learning is not None:
        EVENTS.learning.reads += 1
    kind = NUMBER_KINDS.get(buffer.dtype.name)
    if kind is None or not is_host(buffer.device) or is_watched():
        return None
    return kind.from_address(buffer.address + place * buffer.dtype.itemsize).value


def numbers_in(buffer: Buffer, shape: tuple[int, ...]) -> Any:
    """Read a few numbers of a row-major buffer as nested lists; None as for `number_in`."""
    if EVENTS.learning is not None:
        EVENTS.learning.reads += 1
    kind = NUMBER_KINDS.get(buffer.dtype.name)
    if kind is None or not is_host(buffer.device) or is_watched():
        return None
    found = (kind * buffer.count).from_address(buffer.address)[:]
    for size in reversed(shape[1:]):
        found = [found[at : at + size] for at in range(0, len(found), size)]
    return found if shape else found[0]


def check_later(buffer: Buffer, error: PicogradError) -> None:
    """Raise an error at the next look at the device where a computed bool is true.

    At once on a CPU, whose values are there; never where there are no values.
    """
    if buffer.device == "meta":
        return
    if is_host(buffer.device):
        look_at(buffer, error)
        return
    CHECKS.append((buffer, error))
    if len(CHECKS) > CHECK_LIMIT:
        run_checks()


def check_later_all(checks: Sequence[tuple[Buffer, PicogradError]]) -> None:
    """Raise errors at the next look at the device, where bools are true."""
    for buffer, error in checks:
        check_later(buffer, error)


def run_checks() -> None:
    """Look at the checks that wait, and raise the error of the first that failed.

    Bools of one byte, nearly all, are read together.
    """
    waiting, CHECKS[:] = CHECKS[:], []
    small = [buffer for buffer, _ in waiting if buffer.nbytes == 1]
    failed: set[int] = set()
    for name in {buffer.device for buffer in small}:
        own = [buffer for buffer in small if buffer.device == name]
        values = get_device(name).read_bytes(own)
        failed |= {id(buffer) for buffer, value in zip(own, values) if value}
    for buffer, error in waiting:
        if buffer.nbytes != 1 or id(buffer) in failed:
            look_at(buffer, error)


def look_at(buffer: Buffer, error: PicogradError) -> None:
    """Raise an error if a computed bool is true."""
    if get_device(buffer.device).copy_out(buffer).any():
        raise type(error)(error.op, error.problem, error.fix)


def synchronize(device: str | None = None) -> None:
    """Wait until a device has done all work given so far."""
    waited = get_device(device or default_device())
    if CHECKS:
        run_checks()
    start = time.perf_counter()
    waited.synchronize()
    log_action("wait", f"{waited.name}  {(time.perf_counter() - start) * 1e6:.1f} us")
