"""Functions of complex numbers: made of parts, taken apart, conjugated.

Arithmetic and elementary functions take them as they are (picograd/graph/complex_rules.py).
"""

import math

from picograd.errors import DTypeError, ShapeError
from picograd.graph import complex_numbers
from picograd.graph.build_composite import check_dtype
from picograd.graph.complex_rules import angle as angle_of
from picograd.graph.complex_rules import conjugate, direction
from picograd.graph.node import Node
from picograd.graph.row import DTypeRule
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.function import composed, recorded
from picograd.tensor.core.operands import floating, pair
from picograd.tensor.core.recording import apply
from picograd.tensor.math import elementwise

PARTS = DTypeRule(("float",), wanted="parts of float32 or float64")


def check_parts(op: str, *parts: Node) -> None:
    """Raise DTypeError unless numbers can be parts of complex ones."""
    check_dtype(op, PARTS, parts)
    if parts[0].dtype.bits < 32:
        text = f"takes float32 or float64, not {parts[0].dtype.name}"
        raise DTypeError(op, text, "call .float() first")


@recorded("complex", method=False)
def of_parts(real: Node, imag: Node) -> Node:
    """Make complex numbers of real and imaginary parts: float32 or float64, both of one dtype.

    >>> picograd.complex(Tensor([1.0]), Tensor([2.0])).tolist()
    [(1+2j)]
    """
    check_parts("complex", real, imag)
    a, b = pair("complex", real, imag)
    return a.paired(b)


@recorded(method=False)
def polar(abs: Node, angle: Node) -> Node:
    """Make complex numbers of sizes and angles: float32 or float64, both of one dtype.

    >>> picograd.polar(Tensor([2.0]), Tensor([0.0])).tolist()
    [(2+0j)]
    """
    check_parts("polar", abs, angle)
    size, turn = pair("polar", abs, angle)
    return (size * turn.unary("cos")).paired(size * turn.unary("sin"))


@recorded(method=False, view="always")
def view_as_real(x: Node) -> Node:
    """Show complex numbers as real ones with a last axis of (real, imaginary).

    >>> picograd.view_as_real(Tensor([1 + 2j])).tolist()
    [[1.0, 2.0]]
    """
    need_complex("view_as_real", x)
    return complex_numbers.view_as_real(x)


@recorded(method=False, view="always")
def view_as_complex(x: Node) -> Node:
    """Show real numbers with a last axis of (real, imaginary) as complex ones.

    >>> picograd.view_as_complex(Tensor([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    check_parts("view_as_complex", x)
    if x.shape[-1:] != (2,):
        text = f"the last axis of {x.shape} is not of size 2"
        raise ShapeError("view_as_complex", text, "stack real and imaginary parts along it")
    return complex_numbers.view_as_complex(x)


def need_complex(op: str, x: Node) -> None:
    """Raise DTypeError for real numbers."""
    if not x.dtype.is_complex:
        raise DTypeError(op, f"takes a complex dtype, not {x.dtype.name}", "use picograd.complex")


def real_part(x: Node) -> Node:
    """Show the real parts."""
    need_complex("real", x)
    return x.parts()[0]


def imaginary_part(x: Node) -> Node:
    """Show the imaginary parts."""
    need_complex("imag", x)
    return x.parts()[1]


@composed("conj", "conj_physical")
def conj(input: Tensor) -> Tensor:
    """Compute the complex conjugate; a real tensor is its own.

    >>> Tensor([1 + 2j]).conj().tolist()
    [(1-2j)]
    """
    return apply(conjugate, input) if input.dtype.is_complex else input


@recorded()
def angle(x: Node) -> Node:
    """Compute the angle to the positive real axis: pi for negative numbers, 0 for positive ones.

    >>> Tensor([1j, -1.0]).angle().tolist()
    [1.5707..., 3.1415...]
    """
    if x.dtype.is_complex:
        return angle_of(x)
    x = floating("angle", x)
    turned = x.binary("less", 0.0).where(x.const_like(math.pi), 0.0)
    return x.unary("isnan").where(x * 0.0, turned)  # NaN, whose gradient is 0


@recorded(in_place=True)
def sgn(x: Node) -> Node:
    """Compute -1, 0 or 1, of complex numbers x / |x|.

    >>> Tensor([-3.0, 0.0]).sgn().tolist(), Tensor([3 + 4j]).sgn().tolist()
    ([-1.0, 0.0], [(0.6...+0.8...j)])
    """
    return direction(x) if x.dtype.is_complex else elementwise.sign(x)


@composed()
def is_complex(input: Tensor) -> bool:
    """Tell whether the dtype is complex.

    >>> Tensor([1j]).is_complex(), Tensor([1.0]).is_complex()
    (True, False)
    """
    return input.dtype.is_complex


@composed(method=False)
def real(input: Tensor) -> Tensor:
    """Show the real parts: a view, or the tensor itself if it is real.

    >>> picograd.real(Tensor([1 + 2j])).tolist()
    [1.0]
    """
    return input.real


@composed(method=False)
def imag(input: Tensor) -> Tensor:
    """Show the imaginary parts, a view. Raises DTypeError (a RuntimeError) for real numbers.

    >>> picograd.imag(Tensor([1 + 2j])).tolist()
    [2.0]
    """
    return input.imag
