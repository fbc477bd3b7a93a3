"""Memory that several processes see: that of tensors after `share_memory_`.

It is mapped, and comes to a forked process as it is. `multiprocessing` hands it to one that it
starts otherwise among the arguments of `Process`; in queues and pipes tensors are copies.
"""

import ctypes
import sys
import weakref
from typing import Any

from picograd.buffer import Buffer, Storage
from picograd.dtype import dtype_named
from picograd.engine import pending
from picograd.engine.foreign import behind_views, hand_out, note_shared
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import leaf
from picograd.engine.tracing import check_not_tracing
from picograd.errors import ExportError
from picograd.graph.node import Node
from picograd.target import is_host
from picograd.tensor.core import aliasing
from picograd.tensor.core.copying import lay_open
from picograd.tensor.core.recording import Recorded, made, root_of, show_memory, start

ALIGNED = 64  # bytes of a cache line


class Mapped:
    """This class owns mapped memory, and is pickled for a process that is being started."""

    def __init__(self, nbytes: int) -> None:
        from multiprocessing.sharedctypes import RawArray  # most programs need none

        self.array = RawArray(ctypes.c_ubyte, nbytes + ALIGNED)

    @property
    def address(self) -> int:
        """Where it begins here: mapped memory begins at a page, a part of it anywhere."""
        return -(-ctypes.addressof(self.array) // ALIGNED) * ALIGNED


def memory_behind(tensor: Any) -> tuple[Node, Buffer | None]:
    """Find the node whose memory a tensor shows, and that memory if it was computed."""
    node = behind_views(root_of(tensor)._node)
    return node, leaf_buffer(node)


@pending.locked
def move(tensor: Any) -> None:
    """Move the memory of a tensor, and of all views of it, to where other processes see it."""
    check_not_tracing("share_memory_")
    if not is_host(tensor.device):
        text = f"the tensor is on {tensor.device}, and other processes see memory of the CPU alone"
        raise ExportError("share_memory_", text, "move it with .cpu() first")
    lay_open(tensor)
    node, buffer = memory_behind(tensor)
    if buffer is None or isinstance(buffer.handle, Mapped):
        return
    hand_out(node)  # what was recorded before reads what it was
    mapped = Mapped(buffer.nbytes)
    moved = Buffer(buffer.device, buffer.dtype, buffer.count, mapped.address, mapped)
    ctypes.memmove(moved.address, buffer.address, buffer.nbytes)
    if type(node.arg) is Storage:
        node.arg.count_writes()
        node.arg.buffer = moved
    else:
        node.realized = moved
    note_shared(moved)


def is_moved(tensor: Any) -> bool:
    """Tell whether other processes see the memory of a tensor."""
    buffer = memory_behind(tensor)[1]
    return buffer is not None and isinstance(buffer.handle, Mapped)


def handed(tensor: Any, asked: bool | None) -> Any:
    """Describe a tensor for a process that is being started; None where it is to be copied."""
    context: Any = sys.modules.get("multiprocessing.context")
    if context is None or context.get_spawning_popen() is None or not is_moved(tensor):
        return None
    buffer: Any = memory_behind(tensor)[1]
    place = aliasing.offset_of(tensor)
    if place is None:
        return None
    layout = tuple(tensor.shape), tuple(tensor.stride()), place
    memory = buffer.handle, buffer.dtype.name, buffer.count
    return attached, (type(tensor), memory, tensor.dtype.name, layout, asked)


def attached(kind: Any, memory: Any, dtype: str, layout: Any, asked: bool | None) -> Any:
    """Make the tensor that `handed` described, over the same memory."""
    mapped, name, count = memory
    buffer = Buffer("cpu", dtype_named(name), count, mapped.address, mapped)
    note_shared(buffer)
    shape, steps, place = layout
    whole = made(leaf(buffer, (count,)))
    if name != dtype:
        whole = whole.view(dtype_named(dtype))
    result: Recorded = kind.__new__(kind)
    start(result, whole._node.const_like(0), False)
    result._node.leaf = weakref.ref(result)
    result._tracks, result._is_frozen = bool(asked), asked is False
    show_memory(result, whole.as_strided(shape, steps, place))
    return result
