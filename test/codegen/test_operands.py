"""Operands: roles of axes, strides and epilogues of contraction kernels."""

import pytest
from contractions import conv, matmul

from picograd.codegen.operands import Contraction, analyse, factors, guarded, stores, strides, swap
from picograd.dtype import float16, float32
from picograd.errors import InternalError
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, const


def names(product: Contraction) -> tuple[str, ...]:
    roles = product.batch, product.rows, product.columns, product.depth
    return tuple(" ".join(axis.name for axis in axes) for axes in roles)


def test_roles_of_a_batched_matmul() -> None:
    product = analyse(matmul((3, 4, 5, 6)).kernel)
    assert names(product) == ("g", "i", "j", "r")
    assert product.sizes == (3, 4, 5, 6)
    assert names(swap(product)) == ("g", "j", "i", "r")
    assert swap(swap(product)) == product


def test_roles_of_a_grouped_conv() -> None:
    product = analyse(conv((2, 5, 6, 3), 4, 3, padding=1, groups=2).kernel)
    assert names(product) == ("g", "n y x", "o", "c ky kx")
    steps = strides(product.a, (*product.rows, *product.depth))
    by_name = {axis.name: step for axis, step in steps.items()}
    assert by_name == {"n": 180, "y": 36, "x": 6, "c": 1, "ky": 36, "kx": 6}


def test_sixteen_bit_operands_are_converted() -> None:
    product = analyse(matmul((1, 2, 3, 4), float16).kernel)
    assert product.dtype is float32
    assert product.a.op == product.b.op == "cast" and product.a.dtype is float32


def test_a_guard_around_the_product_goes_to_the_operand_it_is_about() -> None:
    i, j, r = Axis("i", 4), Axis("j", 5), Axis("r", 6)
    a = Expr("load", (), (0, axis_index(i) * 6 + axis_index(r)), float32)
    b = Expr("load", (), (1, axis_index(r) * 5 + axis_index(j)), float32)
    body = guarded(Expr("mul", (a, b), None, float32), ((axis_index(i) + axis_index(r), 0, 5),))
    kernel = matmul((1, 4, 5, 6)).kernel
    left, right = factors(body, float32, kernel)
    assert left.op == "guard" and right is b
    with pytest.raises(InternalError, match="fill must be 0"):
        factors(Expr("guard", (body, const(1.0, float32)), body.arg, float32), float32, kernel)


def test_conditions_that_always_hold_are_dropped() -> None:
    value = const(1.0, float32)
    axis = Axis("i", 4)
    assert guarded(value, ((axis_index(axis), 0, 3),)) is value
    assert guarded(value, ((axis_index(axis), 1, 3),)).op == "guard"


def test_stores_read_the_finished_sum() -> None:
    product = analyse(matmul((1, 2, 3, 4), with_bias=True).kernel)
    acc = Expr("tile", (), ("c", ()), float32)
    (output,) = stores(product, {}, {0: acc})
    assert output.slot == 3
    assert repr(output.expr) == "maximum(add(c[], s2[j]), 0.0)"
