"""Memory that nothing else holds: a plan may write new values where the old ones are."""

from typing import Any

from picograd.buffer import Buffer, Storage
from picograd.runtime.memory import Allocation
from picograd.tensor.core.alone import ALONE, held
from picograd.tensor.tensor import Tensor


def own_memory(owner: Any, shape: tuple[int, ...]) -> Buffer | None:
    """Give the memory of a tensor's gradient, if all that leads to it is the tensor itself."""
    if held(owner, "_grad") != ALONE:
        return None
    gradient: Any = owner._grad
    is_plain = type(gradient) is Tensor and not gradient._tracks and gradient._view is None
    if not is_plain or gradient._hooks is not None or gradient._history is not None:
        return None
    if held(gradient, "_node") != ALONE:
        return None
    node = gradient._node
    if type(node.arg) is not Storage or node.shape != shape or held(node, "arg") != ALONE:
        return None
    storage = node.arg
    if held(storage, "buffer") != ALONE:
        return None
    buffer: Any = storage.buffer
    if type(buffer.handle) is not Allocation or held(buffer, "handle") != ALONE:
        return None
    storage.count_writes()
    return buffer  # type: ignore[no-any-return]
