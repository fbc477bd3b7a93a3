"""Memory shared with other libraries by DLPack: NumPy, PyTorch, JAX, CuPy, on the CPU and on GPUs.

Memory is shared in both directions; it is copied where picograd cannot use it as it is: read-only,
strided, or not aligned for vector loads. On a GPU both sides wait for each other's stream, never
the host: see `hand_over`. Memory goes back to its owner only when the GPU is done with it.
"""

import atexit
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.dtype import int64, to_dtype
from picograd.engine import pending
from picograd.engine.backends import get_device
from picograd.engine.foreign import behind_views, hand_out, is_shared, seen_through, share, shown
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_view, leaf
from picograd.engine.tracing import check_not_tracing
from picograd.errors import DTypeError, ExportError
from picograd.graph import build
from picograd.graph.node import Node, constant
from picograd.runtime import dlpack
from picograd.runtime.dlpack import CPU, CUDA, CUDA_HOST, CUDA_MANAGED
from picograd.target import is_gpu, is_host
from picograd.tensor.core.annotations import DTypeLike

ALIGNED = 16  # bytes of the widest vector load of a kernel
UNSYNCHRONISED = -1  # the stream of a consumer that wants no waiting
LEGACY_STREAM = 1  # CU_STREAM_LEGACY, the stream that `None` means
CLOSING: list[bool] = []  # not empty once the interpreter ends: the driver is no longer there
atexit.register(CLOSING.append, True)
PLACES = {CPU: "cpu", CUDA_HOST: "cpu", CUDA: "cuda", CUDA_MANAGED: "cuda"}


@pending.locked
def export(node: Node, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """Make the capsule of a tensor; ExportError for another device that needs a forbidden copy."""
    check_not_tracing("dlpack")
    own = dlpack.device_pair(node.device)
    wanted = own if dl_device is None else tuple(int(each) for each in dl_device)
    if wanted != own:
        if wanted[0] not in (CPU, CUDA) or copy is False:
            text = f"the tensor is on {node.device}, device {wanted} was asked for"
            raise ExportError("dlpack", text, "move it with .to(...) first")
        name = "cpu" if wanted[0] == CPU else f"cuda:{wanted[1]}"
        node, copy = build.copy(node, get_device(name).name), False
    elif copy:
        node = build.contiguous(node)
    shape = node.shape
    place = place_in(node) if wanted == own else None
    if place is not None:
        node = behind_views(node)
    if leaf_buffer(node) is None:
        pending.compute([node])
    buffer = leaf_buffer(node)
    if buffer is None:
        raise ExportError("dlpack", "the tensor was not computed", "call .realize() on it")
    if not copy and wanted == own:  # from now on others see, and may change, what is there
        hand_out(node)
    hand_over(node.device, stream)
    is_versioned = max_version is not None and tuple(max_version) >= (1, 0)
    is_copied = bool(copy) or wanted != own
    return dlpack.export(buffer, shape, is_versioned, is_copied, idle(node.device), place)


def place_in(node: Node) -> tuple[int, tuple[int, ...]] | None:
    """Find where a view lies in the memory that it shows: bytes before it, and its steps.

    None for what is no view, or shows nothing or another order than forwards.
    """
    base, views = behind_views(node), []
    each = node
    while each is not base:
        views.append(each)
        each = each.inputs[0]
    if leaf_buffer(base) is None and pending.owner(base) is None:
        return None  # nobody has what the view is computed of: it gets memory of its own
    if not views or not node.size or any(view.dtype is not base.dtype for view in views):
        return None
    whole: Any = np.empty(base.shape, f"V{base.dtype.itemsize}")  # none of it is touched
    seen = seen_through(whole, views)
    steps = tuple([step // whole.itemsize for step in seen.strides])
    is_there = seen.shape == node.shape and np.may_share_memory(seen, whole)
    if not is_there or min(steps, default=0) < 0:
        return None
    return address_of(seen) - address_of(whole), steps


def to_dlpack(tensor: Any) -> Any:
    """Give a capsule of a tensor's memory, as older programs hand it over."""
    return tensor.__dlpack__()


def memory_of(tensor: Any) -> "np.ndarray[Any, Any] | None":
    """Show the memory of a CPU tensor, computed first, to code that keeps no view of it.

    None elsewhere. Nobody is told, unlike by `export`: what is computed from it stays lazy.
    """
    node = tensor.realize().node
    if not is_host(tensor.device):
        return None
    if is_shared(behind_views(node)):  # views of NumPy's memory stay what they are
        return shown(node)
    buffer = leaf_buffer(node)
    return None if buffer is None else buffer_view(buffer, tensor.shape)


def hand_over(device: str, stream: Any) -> None:
    """Let a consumer's stream wait for our work: None is the legacy default stream, 2 the thread's.

    -1 asks for no waiting; 0 is ambiguous, and an error.
    """
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
        raise DTypeError("dlpack", f"stream is a {type(stream).__name__}", "pass an int or None")
    if not is_gpu(device) or stream == UNSYNCHRONISED:
        return
    if stream == 0 or (stream is not None and stream < UNSYNCHRONISED):
        raise ExportError("dlpack", f"stream={stream} names no stream", "use 1, 2 or a handle")
    gpu: Any = get_device(device)
    consumer = LEGACY_STREAM if stream is None else stream
    gpu.activate()
    event = gpu.driver.call("cuEventCreate", 2)  # CU_EVENT_DISABLE_TIMING
    gpu.driver.call("cuEventRecord", event, gpu.stream)
    gpu.driver.call("cuStreamWaitEvent", consumer, event, 0)
    gpu.driver.call("cuEventDestroy", event)


def idle(device: str) -> Callable[[], None] | None:
    """Give the function that waits until a GPU is done with everything; nothing for the CPU."""
    if not is_gpu(device):
        return None
    gpu: Any = get_device(device)

    def wait(closing: Sequence[bool] = CLOSING) -> None:
        if not closing:
            gpu.activate()
            gpu.driver.call("cuCtxSynchronize")

    return wait


def imported(source: Any, copy: bool | None = None) -> Node:
    """Make a leaf of the memory of an object with `__dlpack__`, or of a capsule."""
    found = dlpack.take(capsule_of(source))
    if found.kind not in PLACES:
        text = f"memory on a device of type {found.kind} cannot be used"
        raise ExportError("from_dlpack", text, "move it to the CPU or an NVIDIA GPU")
    place = PLACES[found.kind]
    device = place if is_host(place) else f"cuda:{found.number}"
    owner = found.owner
    owner.release = idle(device)
    least = found.dtype.itemsize if is_host(place) else ALIGNED
    is_plain = found.is_row_major and found.address % least == 0
    if is_plain and not found.is_read_only and not copy:
        count = int(np.prod(found.shape, dtype=np.int64))
        buffer = Buffer(device, found.dtype, count, found.address, owner)
        return share(leaf(buffer, found.shape))
    if copy is False:
        text = "the memory is read-only, strided or misaligned: it must be copied"
        raise ExportError("from_dlpack", text, "leave out copy=False")
    return packed(found, device)


def packed(found: dlpack.Imported, device: str) -> Node:
    """Copy memory of any strides into a row-major leaf."""
    if 0 in found.shape:
        count, first = 0, 0
    else:
        ends = [(size - 1) * step for size, step in zip(found.shape, found.strides)]
        first = sum(end for end in ends if end < 0)
        count = sum(abs(end) for end in ends) + 1
    start = found.address + first * found.dtype.itemsize
    span = Buffer(device, found.dtype, count, start, found.owner)
    gpu = get_device(device)
    whole = gpu.new_buffer(found.dtype, count, "copied from another library")
    gpu.copy(whole, span)
    flat = leaf(whole, (count,))
    if found.is_row_major:
        return flat.reshape(found.shape) if found.shape != (count,) else flat
    index = constant(0, found.shape, int64, device)
    place = constant(-first, found.shape, int64, device)
    for axis, step in enumerate(found.strides):
        place = place + index.iota(axis) * step
    node = flat.gather([place], (0,))
    pending.compute([node])
    return node


Way = list[tuple[int, int, slice]]  # axes, the lengths of rows, and which rows


def straightened(array: "np.ndarray[Any, Any]") -> "tuple[np.ndarray[Any, Any], list[int]]":
    """Turn an array so that the longest steps come first, and say how it is turned back.

    A picture whose channels were put first is row-major again.
    """
    turned = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    return array.transpose(turned), sorted(range(array.ndim), key=turned.__getitem__)


def rows_around(array: "np.ndarray[Any, Any]") -> "tuple[np.ndarray[Any, Any], Way, int] | None":
    """Find the memory that a strided array shows, whole rows in a row, and the way to the array.

    It leads along each axis of more than one element, the longest steps first, to a place in the
    shortest row. None where the array shows an element twice, goes backwards, or shows memory of
    no array that has all of it.
    """
    root, width = array, array.itemsize
    while isinstance(root.base, np.ndarray):
        root = root.base
    is_whole = root.flags.forc and root.flags.writeable and not root.dtype.hasobject
    if not (is_whole and array.flags.aligned) or root.nbytes % width:
        return None
    flat = root.reshape(-1, order="A").view(array.dtype)
    start = address_of(array) - address_of(flat)
    axes = [(step, axis) for axis, step in enumerate(array.strides) if array.shape[axis] > 1]
    steps = [step for step, _ in axes]
    if min(steps) <= 0 or any(each % width for each in (start, *steps)):
        return None
    units = [1, *(step // width for step in root.strides if not step % width)]
    offset = start // width
    room = flat.size
    reach = sum((array.shape[axis] - 1) * step for step, axis in axes) // width
    way = Way()
    for length, axis in sorted(axes, reverse=True):
        step = length // width
        last = array.shape[axis] - 1
        reach -= last * step
        fitting = (unit for unit in units if reach < unit and not step % unit)
        unit = max(fitting, default=step)
        row, offset = divmod(offset, unit)
        stride = step // unit
        end = row + last * stride + 1
        if end * unit > room:
            return None
        way.append((axis, unit, slice(row, end, stride)))
        room = unit
    axis, unit, rows = way[0]
    begin, end = rows.start, rows.stop
    way[0] = (axis, unit, slice(0, end - begin, rows.step))
    return flat[begin * unit : end * unit], way, offset


def address_of(array: Any) -> Any:
    """Tell where the first element of an array lies."""
    return array.__array_interface__["data"][0]


def seen_along(flat: Node, way: Way, offset: int, shape: Sequence[int]) -> Node:
    """Record the view of a row of memory that a way of `rows_around` leads to."""
    seen = flat
    for _, unit, rows in way:
        *before, last = whole_of(seen.shape)
        count = last[1] // unit
        used = count * unit
        seen = seen.slice((*before, (0, used, 1)))
        seen = seen.reshape((*seen.shape[:-1], count, unit))
        taken = (rows.start, rows.stop, rows.step)
        seen = seen.slice((*before, taken, (0, unit, 1)))
    longer = seen.shape[:-1]
    seen = seen.slice((*whole_of(longer), (offset, offset + 1, 1)))
    axes = [axis for axis, *_ in way]
    order = tuple([axes.index(axis) for axis in sorted(axes)])
    return seen.reshape(longer).permute(order).reshape(tuple(shape))


def whole_of(shape: Sequence[int]) -> list[tuple[int, int, int]]:
    """List the ranges that take all of a shape."""
    return [(0, size, 1) for size in shape]


def is_capsule(value: Any) -> bool:
    """Tell whether a value is memory handed over by DLPack, of either version."""
    return dlpack.is_capsule(value, dlpack.OLD) or dlpack.is_capsule(value, dlpack.NEW)


def capsule_of(source: Any) -> Any:
    """Ask an object for its capsule, ready for our stream; ExportError if it refuses."""
    if is_capsule(source):
        return source
    ask = getattr(source, "__dlpack__", None)
    where = getattr(source, "__dlpack_device__", None)
    if ask is None or where is None:
        text = f"a {type(source).__name__} does not speak DLPack"
        raise DTypeError("from_dlpack", text, "pass a tensor or array, or use picograd.Tensor(...)")
    kind, number = where()
    options: dict[str, Any] = {}
    if is_gpu(PLACES.get(int(kind), "")):
        gpu: Any = get_device(f"cuda:{int(number)}")
        options["stream"] = int(gpu.stream)
    try:
        try:
            return ask(max_version=(1, 0), **options)
        except TypeError:  # an exporter older than version 1
            return ask(**options)
    except (BufferError, RuntimeError, ValueError) as error:
        text = f"the other library refused: {str(error).strip('.')}"
        raise ExportError("from_dlpack", text, "detach or move the array there first") from None


def is_exporter(value: Any) -> bool:
    """Tell whether a value is an array of another library that speaks DLPack."""
    return not isinstance(value, np.ndarray) and hasattr(type(value), "__dlpack__")


def as_leaf(value: Any, dtype: DTypeLike | None, device: str | None, copy: bool) -> Node:
    """Make a node of another library's array: shared where possible unless `copy`."""
    node = imported(value, copy)
    place = node.device if device is None else device
    node = build.copy(node, place)
    return node if dtype is None else node.cast(to_dtype(dtype))
