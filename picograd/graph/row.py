"""Op: one row of the op table, and the dtype rules rows choose from.

A row is everything the graph room knows about one op. `numpy` is its meaning: an elementwise row
takes the arrays of its inputs, every other row takes `(node, *arrays)`. `vjp(gradient, output,
*inputs)` builds the gradients of the inputs out of nodes (None: no gradient). `expand(node)` of a
composite builds the same value out of primitives; `expand_on(node, target)` where the
target decides how.

`cost` is what one element takes, in simple scalar operations: estimates of fusion count it.
`domain` says where tests sample inputs and where the derivative is continuous enough to check.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from picograd.dtype import DType, bool_
from picograd.target import Target


@dataclass(frozen=True, slots=True)
class DTypeRule:
    """Which kinds of dtype an op takes, and whether it returns the same dtype or bool."""

    kinds: tuple[str, ...]
    is_predicate: bool = False
    wanted: str = "any dtype"

    def result(self, dtype: DType) -> DType:
        """Result dtype for inputs of `dtype`."""
        return bool_ if self.is_predicate else dtype


EVERY_KIND = ("bool", "uint", "int", "float")
STORED_KIND = (*EVERY_KIND, "float8")
ANY = DTypeRule(STORED_KIND)
ORDERED = DTypeRule(EVERY_KIND, wanted="any dtype but an 8-bit float")
FACTOR = DTypeRule(("uint", "int", "float", "float8"), wanted="an integer or float dtype")
NUMBER = DTypeRule(("uint", "int", "float"), wanted="an integer or float dtype")
FLOAT = DTypeRule(("float",), wanted="a float dtype")
INTEGER = DTypeRule(("uint", "int"), wanted="an integer dtype")
BITS = DTypeRule(("bool", "uint", "int"), wanted="bool or an integer dtype")
LOGICAL = DTypeRule(("bool",), True, "bool")
COMPARE = DTypeRule(EVERY_KIND, True, "any dtype but an 8-bit float")
EQUALITY = DTypeRule(STORED_KIND, True)
FLOAT_TEST = DTypeRule(("float", "float8"), True, "a float dtype")


@dataclass(frozen=True, slots=True)
class Op:
    """One row: see the module docstring. Kinds: leaf unary binary ternary view reduce contract
    conv index scan sort recur host effect composite. `arity` -1: it takes any number of inputs."""

    name: str
    kind: str
    arity: int
    dtype_rule: DTypeRule
    numpy: Callable[..., Any] | None = None
    vjp: Callable[..., tuple[Any, ...]] | None = None
    expand: Callable[[Any], Any] | None = None
    domain: tuple[float, float] = (-3.0, 3.0)
    expand_on: Callable[[Any, Target], Any] | None = None
    cost: int = 1

    @property
    def may_expand(self) -> bool:
        """Tell whether the op is written with primitives, at least in some cases."""
        return self.expand is not None or self.expand_on is not None

    def expansion(self, node: Any, target: Target) -> Any:
        """Write a composite as primitives; None if it is one."""
        if self.expand_on is not None:
            return self.expand_on(node, target)
        return None if self.expand is None else self.expand(node)

    @property
    def is_elementwise(self) -> bool:
        """Tell whether the op works on each element by itself."""
        return self.kind in ("unary", "binary", "ternary")

    @property
    def is_differentiable(self) -> bool:
        """Tell whether gradients flow through the op."""
        return self.vjp is not None


def table(*rows: Op) -> dict[str, Op]:
    """Index rows by their names."""
    return {row.name: row for row in rows}
