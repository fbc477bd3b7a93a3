"""What the host knows of tensors: the sizes, axes and scales that a graph is recorded by."""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.onnx.values import is_held, to_array
from picograd.tensor.tensor import Tensor

SMALL = 64  # elements of a constant whose values are kept on the host too

Source = Any  # an array, or a function that computes it


class Known:
    """This class keeps arrays, or what computes them, beside tensors; `outer` is asked after it.

    Gradients go through the tensors; the arrays are for what Python has to know. A tensor that was
    written to since is read anew.
    """

    def __init__(self, outer: "Known | None" = None) -> None:
        self.entries: dict[int, tuple[Tensor, int, Source]] = {}
        self.outer = outer

    def remember(self, value: Any, source: Source) -> None:
        """Note the array of a tensor, or a function that computes it."""
        if isinstance(value, Tensor) and (callable(source) or source.size <= SMALL):
            self.entries[id(value)] = value, value._version, source

    def find(self, value: Any) -> Source:
        """Find what is noted of a value; None if nothing is."""
        entry = self.entries.get(id(value))
        if entry is not None and entry[0] is value and entry[1] == value._version:
            return entry[2]
        return self.outer.find(value) if self.outer is not None else None

    def has_all(self, values: Sequence[Any]) -> bool:
        """Tell whether there are values, and all are known."""
        given = [value for value in values if value is not None]
        return bool(given) and all(is_held(each) or self.find(each) is not None for each in given)

    def array(self, value: Any) -> Any:
        """Give the array of a value; what is not known is read."""
        source = self.find(value) if isinstance(value, Tensor) else None
        found: Callable[[], Any] | Any = source
        if source is None:
            return to_array(value)
        return found() if callable(found) else found
