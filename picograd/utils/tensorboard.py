"""TensorBoard's writer: the one of the package tensorboardX, which must be installed."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.tree_specs import tree_map_only

try:
    from tensorboardX import SummaryWriter as Writer
except ImportError as error:
    raise ImportError("for TensorBoard install tensorboardX: pip install tensorboardX") from error

__all__ = ["SummaryWriter"]


class SummaryWriter(Writer):  # type: ignore[misc]
    """This class writes what TensorBoard shows; tensors among the arguments become arrays."""

    def add_graph(self, *given: Any, **options: Any) -> None:
        """Warn: models have no graph of PyTorch's nodes."""
        warnings.warn("add_graph: no graph is written; picograd.view shows one", stacklevel=2)


def taking_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of the writer, which knows PyTorch's tensors alone, take those here."""

    @wraps(method)
    def write(self: Any, *given: Any, **options: Any) -> Any:
        known = tree_map_only(Tensor, Tensor.__array__, (given, options))
        return method(self, *known[0], **known[1])

    return write


for name in dir(Writer):
    if name.startswith("add_") and name != "add_graph":
        setattr(SummaryWriter, name, taking_tensors(getattr(Writer, name)))
