"""Constructors: what they fold, and every error word by word."""

from collections.abc import Callable

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.dtype import bool_, float16, float32, float64, int32, int64, uint8
from picograd.errors import (
    AxisError,
    DeviceError,
    DTypeError,
    PicogradError,
    ShapeError,
    ValueRangeError,
)
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec

X = leaf(np.ones((3, 4), np.float32))
I = leaf(np.ones((3, 4), np.int32))  # noqa: E741
SPEC = ConvSpec((1,), ((0, 0),), (1,), (1,))
IMAGE, KERNEL = leaf(np.ones((1, 1, 3, 5))), leaf(np.ones((1, 2, 3, 6)))

FOLDED: list[Callable[[], Node]] = [
    lambda: build.reshape(X, (3, 4)),
    lambda: build.reshape(build.reshape(X, (12,)), (3, -1)),
    lambda: build.permute(build.permute(X, (1, 0)), (1, 0)),
    lambda: build.cast(X, float32),
    lambda: X + 0,
    lambda: 0 + X,
    lambda: X - 0,
    lambda: X * 1,
    lambda: 1 * X,
    lambda: X / 1,
    lambda: X.binary("pow", 1),
    lambda: build.expand(X, (3, 4)),
    lambda: build.slice_(X, ((0, 3, 1), (0, 4, 1))),
    lambda: build.pad(X, ((0, 0), (0, 0))),
    lambda: build.flip(X, ()),
    lambda: X.reduce("sum", ()),
    lambda: build.copy(X, "cpu"),
    lambda: build.where(build.const(True, (3, 4), bool_, "cpu"), X, X.const_like(2.0)),
]


@pytest.mark.parametrize("number", range(len(FOLDED)))
def test_trivial_cases_fold(number: int) -> None:
    assert FOLDED[number]() is X


def test_constants_fold() -> None:
    two = build.const(2, (3, 4), float32, "cpu")
    for node, expected in [
        (two + two, 4.0),
        (-two, -2.0),
        (two.cast(int32), 2),
        (build.binary("less", two, two * 2), True),
        (build.reshape(two, (12,)), 2.0),
        (build.const(250, (), uint8, "cpu") + 10, 4),
        (build.const(1, (), float32, "cpu") / 0, float("inf")),
    ]:
        assert node.op == "const"
        assert node.arg == expected
        assert type(node.arg) is type(expected)


def test_folding_does_not_look_behind_a_realized_node() -> None:
    flat = build.reshape(X, (12,))
    flat.realized = X.arg.buffer
    assert build.reshape(flat, (3, 4)).inputs == (flat,)


def test_powers() -> None:
    assert X.binary("pow", 2).op == "mul"
    assert X.binary("pow", 0.5).op == "sqrt"
    assert X.binary("pow", -1).op == "reciprocal"
    assert X.binary("pow", 3).op == "pow"


def test_reducing_axes_of_size_one_is_a_reshape() -> None:
    assert leaf(np.ones((1, 4))).reduce("max", (0,)).op == "reshape"


ERRORS: list[tuple[Callable[[], object], type[PicogradError], str]] = [
    (
        lambda: build.matmul(leaf(np.ones((32, 784))), leaf(np.ones((128, 784)))),
        ShapeError,
        "matmul: inner sizes differ: (32, 784) @ (128, 784). "
        "Fix: transpose the second operand with .T.",
    ),
    (
        lambda: build.reshape(X, (5, -1), "view"),
        ShapeError,
        "view: cannot reshape (3, 4) (12 elements) to (5, -1). "
        "Fix: keep the number of elements, with at most one -1.",
    ),
    (
        lambda: build.flip(X, 2),
        AxisError,
        "flip: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    (
        lambda: build.flip(X, (0, -2)),
        AxisError,
        "flip: axes (0, -2) name one axis twice. Fix: list each axis once.",
    ),
    (
        lambda: build.binary("add", X, I),
        DTypeError,
        "add: operands are float32 and int32. Fix: cast one of them first.",
    ),
    (
        lambda: build.unary("exp", I),
        DTypeError,
        "exp: takes a float dtype, not int32. Fix: cast the operand first.",
    ),
    (
        lambda: build.binary("add", X, leaf(np.ones((4, 3), np.float32))),
        ShapeError,
        "add: shapes differ: (3, 4) and (4, 3). Fix: broadcast them first.",
    ),
    (
        lambda: build.binary("add", X, build.copy(X, "cuda:0")),
        DeviceError,
        'add: operands are on different devices: cpu and cuda:0. Fix: move one with .to("cpu").',
    ),
    (
        lambda: build.where(X, X, X),
        DTypeError,
        "where: the condition is float32. Fix: compare it first.",
    ),
    (
        lambda: build.expand(X, (3, 5)),
        ShapeError,
        "expand: cannot expand (3, 4) to (3, 5). Fix: only axes of size 1 can be expanded.",
    ),
    (
        lambda: build.expand(X, (4,)),
        ShapeError,
        "expand: cannot expand (3, 4) to (4,). Fix: only axes of size 1 can be expanded.",
    ),
    (
        lambda: build.permute(X, (0, 0)),
        ShapeError,
        "permute: (0, 0) repeats an axis. Fix: list every axis once.",
    ),
    (
        lambda: build.conv(IMAGE, KERNEL, SPEC, "conv1d"),
        ShapeError,
        "conv1d: kernel (6,) does not fit input (5,) padded by ((0, 0),). "
        "Fix: pad the input or use a smaller kernel.",
    ),
    (
        lambda: build.cross_entropy(X, leaf(np.ones(4, np.int64))),
        ShapeError,
        "cross_entropy: target of shape (4,) does not fit logits (3, 4). "
        "Fix: the target needs shape (3,).",
    ),
    (
        lambda: build.const(300, (), uint8, "cpu"),
        ValueRangeError,
        "full: 300 does not fit in uint8. Fix: use a wider dtype.",
    ),
    (
        lambda: build.bitcast(X, float16),
        DTypeError,
        "bitcast: float32 and float16 differ in width or are bool. Fix: use dtypes of one width.",
    ),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_name_the_op_the_shapes_and_the_fix(number: int) -> None:
    wrong, kind, message = ERRORS[number]
    with pytest.raises(kind) as caught:
        wrong()
    assert str(caught.value) == message


def test_random_bits_take_an_integer_scalar() -> None:
    offset = build.const(0, (), int64, "cpu")
    assert value(build.random_bits(offset, 1, (2, 3))).shape == (2, 3)
    with pytest.raises(ShapeError):
        build.random_bits(X, 1, (2,))


def test_iota_counts_in_the_dtype_asked_for() -> None:
    assert build.iota((3,), 0, "cpu").dtype is int64
    assert build.const(1, (), float64, "cpu").arg == 1.0


def test_a_product_of_matrices_is_that_of_matmul():
    a, b = leaf(np.ones((3, 4), np.float32)), leaf(np.ones((4, 2), np.float32))
    short, long = build.matrix_product(a, b), build.matmul(a, b)
    for name in ("op", "inputs", "arg", "shape", "dtype", "device"):
        assert getattr(short, name) == getattr(long, name)
