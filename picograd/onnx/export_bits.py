"""Export of what looks at the bits of floats: ONNX has an operator for it from opset 26 on.

Before that only a sign can be asked: `bitcast(x) < 0` -> `x < 0 or 1 / x < 0`, as 1 / -0 is -inf.
"""

from dataclasses import field
from typing import Any

from picograd.dtype import bool_
from picograd.errors import DataError
from picograd.graph.node import Node
from picograd.late_methods import dataclass
from picograd.onnx.export_elementwise import Formula
from picograd.onnx.export_rows import row
from picograd.onnx.values import NAMES
from picograd.onnx.writer import Size, Written

SINCE = 26  # the first opset with BitCast


@dataclass(frozen=True)
class Bits:
    """This class is the bits of a float, of which nothing but the sign can be written."""

    source: Written
    shape: tuple[Size, ...]
    dtype: Any
    refused: DataError = field(repr=False)

    @property
    def name(self) -> str:
        """Raise the error of what reads more than the sign."""
        raise self.refused


@row("bitcast")
def bitcast(e: Any, node: Node, x: Written) -> Any:
    """Read the bits of elements as another dtype."""
    if e.writer.opset < SINCE:
        problem = e.unknown(node).problem
        error = DataError("onnx.export", problem, f"pass opset={SINCE} or a later one")
        return Bits(x, x.shape, node.dtype, error)
    name = e.writer.emit("BitCast", x.name, to=NAMES[node.dtype])
    return Written(name, x.shape, node.dtype)


@row("less")
def less(e: Any, node: Node, x: Any, y: Written) -> Written:
    """Compare; what compares bits with 0 asks for a sign."""
    w, limit = e.writer, node.inputs[1]
    is_sign = isinstance(x, Bits) and x.source.dtype.is_float
    if not is_sign or limit.op != "const" or limit.arg != 0:
        return w.apply("Less", x, y, dtype=bool_)
    source = Formula(w, x.source)
    below = source < 0
    return below.two("Or", source.one("Reciprocal") < 0).value
