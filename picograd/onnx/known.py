"""What the host knows of tensors: the sizes, axes and scales that a graph is recorded by."""

from collections.abc import Sequence
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
        if not isinstance(value, Tensor):
            return
        if callable(source) or source.size <= SMALL:
            self.entries[id(value)] = value, value._version, source

    def find(self, value: Any) -> Source:
        """Find what is noted of a value; None if nothing is."""
        entry = self.entries.get(id(value))
        if entry is not None:
            tensor, version, source = entry
            if tensor is value and version == value._version:
                return source
        return None if self.outer is None else self.outer.find(value)

    def has_all(self, values: Sequence[Any]) -> bool:
        """Tell whether there are values, and all are known."""
        given = [value for value in values if value is not None]
        tensors = [value for value in given if not is_held(value)]
        return bool(given) and all(self.find(each) is not None for each in tensors)

    def array(self, value: Any) -> Any:
        """Give the array of a value; what is not known is read."""
        source = self.find(value) if isinstance(value, Tensor) else None
        if source is None:
            return to_array(value)
        return source() if callable(source) else source
