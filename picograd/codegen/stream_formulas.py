"""stream_formulas: the formulas of a stream written with fewer operations, for GPUs.

    (a / 8) * b * 20    ->    (a * b) * 2.5          numbers are gathered behind a product

A division by a number is a product by its inverse: its last digit may differ.
"""

from dataclasses import replace

from picograd.codegen.stream_masks import is_constant, scaled
from picograd.codegen.streams import binary
from picograd.dtype import float32
from picograd.graph.ops import OPS
from picograd.schedule.loop import Expr, Part, rewrite


def with_few_operations(part: Part) -> Part:
    """Gather the numbers in the formulas of a part."""
    computes = tuple([replace(c, body=rewrite(c.body, {}, gathered)) for c in part.computes])
    return replace(part, computes=computes)


def gathered(expr: Expr) -> Expr | None:
    """Gather the numbers of a product, or of a division by a number, whose parts have theirs."""
    row = OPS.get(expr.op)
    is_float = expr.dtype.is_float and expr.dtype.bits <= float32.bits  # computed in float32
    if row is None or not is_float or len(expr.args) != 2:
        return None
    first, second = expr.args
    if row.linear == (0,) and is_constant(second) and float(second.arg):
        return scaled(first, 1 / float(second.arg))
    if row.linear != (0, 1):
        return None
    if is_constant(first):
        first, second = second, first
    if is_constant(second):
        return scaled(first, float(second.arg))
    (a, left), (b, right) = map(parted, (first, second))
    return None if left * right == 1 else scaled(binary(expr.op, a, b), left * right)


def parted(expr: Expr) -> tuple[Expr, float]:
    """Part an expression and the number that it is multiplied by last."""
    row = OPS.get(expr.op)
    if row is None or row.linear != (0, 1) or not is_constant(expr.args[1]):
        return expr, 1.0
    return expr.args[0], float(expr.args[1].arg)
