"""What a mask chose while a function is traced: how many elements is not known, so it has no shape.

`x[mask] += 1` and `x[mask] = x[mask].sqrt() * 2` read such elements, compute with each, and write
them back: all of that has the shape of the tensor. So `x[mask]` is kept as the whole region and the
mask, and elementwise functions compute the region. Whatever asks for the elements themselves, or
for their shape, raises TraceError.
"""

from collections.abc import Callable
from typing import Any

from picograd.engine.debug import user_line
from picograd.errors import ShapeError, TraceError
from picograd.tensor.core.arguments import selector
from picograd.tensor.core.recording import Recorded, apply
from picograd.tensor.indexing import masking, selecting
from picograd.tensor.indexing.masking import Region
from picograd.tensor.tensor import Tensor

UNARY = (
    "__neg__", "__abs__", "__invert__", "abs", "acos", "asin", "atan", "ceil", "clamp", "clip",
    "cos", "detach", "erf", "exp", "expm1", "float", "floor", "half", "double", "gelu", "int",
    "log",
    "log10", "log1p", "log2", "long", "neg", "reciprocal", "relu", "round", "rsqrt",
    "sigmoid",
    "sign", "silu", "sin", "sinh", "cosh", "sqrt", "square", "tan", "tanh", "to", "trunc",
)  # fmt: skip
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BINARY = (
    *(f"__{turned}{name}__" for turned in ("", "r") for name in ARITHMETIC),
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmod", "remainder", "atan2",
    "__and__", "__or__", "__xor__", "lerp",
)  # fmt: skip
IN_PLACE = tuple(f"__i{name}__" for name in ARITHMETIC)


class Chosen(Tensor):
    """This class is the elements of a tensor that a mask chose; see the module docstring."""

    __slots__ = ("region", "whole")

    def __new__(cls, *given: Any) -> Any:
        """Make no tensor of the graph: nothing computes it."""
        return object.__new__(cls)

    def __init__(self, source: Any, region: Region) -> None:
        self.region: Region = region
        part = apply(selecting.read, source, list(region.items))
        self.whole: Any = apply(safe_where, part, region)

    @property
    def _node(self) -> Any:  # type: ignore[override]
        raise self.unknown()

    @property
    def _tracks(self) -> Any:  # type: ignore[override]
        raise self.unknown()

    def unknown(self) -> TraceError:
        """Word the error of who asks for the elements."""
        text = "how many elements a bool mask chooses is not known while a function is traced"
        line = user_line()
        fix = "choose with where(mask, x, 0), sum x * mask, or write x[mask] = v"
        return TraceError("indexing with a bool mask", f"{text}, at {line}" if line else text, fix)

    def like(self, whole: Any) -> "Chosen":
        """Give other values of the same places."""
        made: Any = object.__new__(Chosen)
        made.region, made.whole = self.region, whole
        return made  # type: ignore[no-any-return]

    def operand(self, value: Any) -> Any:
        """Read the other operand: of the same places, or one that broadcasts to them."""
        if isinstance(value, Chosen):
            if value.whole.shape != self.whole.shape or not self.region.is_like(value.region):
                raise self.unknown()
            return value.whole
        if not isinstance(value, Recorded):
            return value
        after = self.region.split(self.whole.shape)[1]
        if len(value.shape) > len(after) and value.shape[-len(after) - 1] != 1:
            raise self.unknown()
        return apply(align, value, self.region, self.whole.shape)

    def write_to(self, target: Any, items: Any) -> None:
        """Write the values where an equal mask holds in a tensor."""
        region = masking.region_of(target.shape, selector(items))
        if region is None or not self.region.is_like(region):
            raise self.unknown()
        part = apply(selecting.read, target, list(region.items))
        if part.shape != self.whole.shape:
            text = f"places of shape {self.whole.shape} do not fit those of {part.shape}"
            raise ShapeError("setitem", text, "use masks of tensors of one shape")
        target[region.items] = apply(choose, part, self.whole, region)

    def sum(self, *given: Any, **options: Any) -> Any:
        """Add the elements up; of some axes of them nothing is known."""
        if given or options:
            raise self.unknown()
        return apply(zeroed, self.whole, self.region).sum()

    def mean(self, *given: Any, **options: Any) -> Any:
        """Average the elements: NaN if there are none."""
        if given or options:
            raise self.unknown()
        total = apply(zeroed, self.whole, self.region).sum()
        return total / apply(count, self.whole, self.region).to(total.dtype)


def safe_where(whole: Any, region: Region) -> Any:
    """Put a number that no function minds where the mask does not hold: nothing reads it."""
    value = 0.5 if whole.dtype.is_float else 1
    return region.wide(whole.shape).where(whole, whole.const_like(value))


def zeroed(whole: Any, region: Region) -> Any:
    """Put zeros where the mask does not hold."""
    return region.wide(whole.shape).where(whole, whole.const_like(0))


def count(whole: Any, region: Region) -> Any:
    """Count the elements that the mask chose."""
    places, each = masking.count_of(region, whole.shape)
    return places * each


def align(value: Any, region: Region, shape: Any) -> Any:
    """Broadcast an operand to the region, as to the elements that the mask chose."""
    return masking.aligned(region, shape, value)


def choose(part: Any, whole: Any, region: Region) -> Any:
    """Take the new values where the mask holds, the old ones elsewhere."""
    return region.wide(part.shape).where(whole.cast(part.dtype), part)


def elementwise(name: str) -> Callable[..., Any]:
    """Make a method that computes every element apart."""
    function = getattr(Tensor, name)

    def method(self: Chosen, *given: Any, **options: Any) -> Any:
        operands = [self.operand(each) for each in given]
        named = {key: self.operand(each) for key, each in options.items()}
        found = function(self.whole, *operands, **named)
        return found if found is NotImplemented else self.like(found)

    return method


def in_place(name: str) -> Callable[..., Any]:
    """Make a method that changes the elements, which are a copy of those of the tensor."""
    function = getattr(Tensor, f"__{name[3:]}")

    def method(self: Chosen, other: Any) -> Any:
        found = function(self.whole, self.operand(other))
        if found is NotImplemented:
            return found
        self.whole = found.to(self.whole.dtype)
        return self

    return method


for each in (*UNARY, *BINARY):
    setattr(Chosen, each, elementwise(each))
for each in IN_PLACE:
    setattr(Chosen, each, in_place(each))
Recorded._masked = Chosen
