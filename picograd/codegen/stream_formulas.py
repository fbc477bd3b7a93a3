"""stream_formulas: the formulas of a stream written with fewer operations, for GPUs.

    (a / 8) * b * 20    ->    (a * b) * 2.5          numbers are gathered behind a product

A division by a number is a product by its inverse: its last digit may differ.
"""

from dataclasses import replace

from picograd.codegen.stream_masks import scaled
from picograd.codegen.streams import binary
from picograd.dtype import float32
from picograd.graph.ops import OPS
from picograd.schedule.loop import Compute, Expr, Part, rewrite
from picograd.schedule.score_masks import is_constant


def with_few_operations(part: Part) -> Part:
    """Gather the numbers in the formulas of a part, of products in each factor by itself."""
    computes: list[Compute] = []
    for compute in part.computes:
        body = with_few(compute.body, compute.monoid == "sum")
        computes.append(replace(compute, body=body))
    return replace(part, computes=tuple(computes))


def with_few(body: Expr, is_summed: bool) -> Expr:
    """Gather the numbers in a formula: see `with_few_operations`."""
    row = OPS.get(body.op)
    if body.op == "guard":
        args = [with_few(body.args[0], is_summed), body.args[1]]
    elif is_summed and row is not None and row.linear == (0, 1):
        args = [rewrite(each, {}, gathered) for each in body.args]
    else:
        return rewrite(body, {}, gathered)
    return Expr(body.op, tuple(args), body.arg, body.dtype)


def gathered(expr: Expr) -> Expr | None:
    """Gather the numbers of a product, or of a division by a number, whose parts have theirs."""
    row = OPS.get(expr.op)
    if row is None or not is_computed_in_float32(expr):
        return None
    if row.linear == (0,):
        return multiplied(*expr.args)
    if row.linear != (0, 1):
        return None
    first, second = expr.args
    if is_constant(first):
        first, second = second, first
    if is_constant(second):
        factor = float(second.arg)
        return scaled(first, factor)
    a, left = parted(first)
    b, right = parted(second)
    factor = left * right
    if factor == 1:
        return None
    inner = binary(expr.op, a, b)
    return scaled(inner, factor)


def is_computed_in_float32(expr: Expr) -> bool:
    """Tell whether an expression combines two floats of 32 bits or fewer."""
    dtype = expr.dtype
    is_narrow = dtype.is_float and dtype.bits <= float32.bits
    return is_narrow and len(expr.args) == 2


def multiplied(value: Expr, divisor: Expr) -> Expr | None:
    """Write a division by a number as a product."""
    if not is_constant(divisor):
        return None
    number = float(divisor.arg)
    return scaled(value, 1 / number) if number else None


def parted(expr: Expr) -> tuple[Expr, float]:
    """Part an expression and the number that it is multiplied by last."""
    row = OPS.get(expr.op)
    if row is None or row.linear != (0, 1):
        return expr, 1.0
    inner, factor = expr.args
    if not is_constant(factor):
        return expr, 1.0
    return inner, float(factor.arg)
