"""Dtypes an operation does not take."""

from error_support import Case, check, named

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, ShapeError, ValueRangeError

X = Tensor.ones(2)
WHOLE = Tensor([1, 2])


def add_float_in_place() -> None:
    x = Tensor([1, 2])
    x += 1.5


def divide_in_place() -> None:
    x = Tensor([1, 2])
    x /= 2


CASES = [
    Case(
        "mean of ints", lambda: WHOLE.mean(), DTypeError,
        "mean: needs a float dtype, got int64. Fix: call .float() first.",
    ),
    Case(
        "var of ints", lambda: WHOLE.var(), DTypeError,
        "var: needs a float dtype, got int64. Fix: call .float() first.",
    ),
    Case(
        "norm of ints", lambda: WHOLE.norm(), DTypeError,
        "norm: needs a float dtype, got int64. Fix: call .float() first.",
    ),
    Case(
        "unknown name", lambda: X.cast("float31"), DTypeError,
        "cast: unknown dtype 'float31'. Fix: use one of bool, uint8, uint16, uint32, "
        "uint64, int8, int16, int32, int64, float8_e4m3fn, float8_e5m2, float16, bfloat16, "
        "float32, float64, complex64, complex128.",
    ),
    Case(
        "text after a device", lambda: X.to("cpu", "float31"), DTypeError,
        "to: 'float31' is no dtype, and the device is 'cpu'. Fix: pass a dtype as "
        "picograd.float32 or its name.",
    ),
    Case(
        "compile of number", lambda: picograd.compile(3), DTypeError,
        "compile: the model must be a module or a function, not int. Fix: pass what is called "
        "with the inputs.",
    ),
    Case(
        "text as dtype", lambda: Tensor([1.0], dtype=str), DTypeError,
        "dtype: <class 'str'> is not a dtype. Fix: pass picograd.float32.",
    ),
    Case(
        "number as dtype", lambda: Tensor([1.0], dtype=3), DTypeError,
        "dtype: 3 is not a dtype. Fix: pass picograd.float32.",
    ),
    Case(
        "scalar too large", lambda: Tensor([1], dtype="uint8") + 2**64, ValueRangeError,
        "add: 18446744073709551616 has more than 64 bits. Fix: pass a float.",
    ),
    Case(
        "and of floats", lambda: X & WHOLE, DTypeError,
        "bitwise_and: needs integers or bool, got float32. Fix: cast first.",
    ),
    Case(
        "not of floats", lambda: ~X, DTypeError,
        "bitwise_not: takes bool or an integer dtype, not float32. Fix: cast the operand "
        "first.",
    ),
    Case(
        "shift of floats", lambda: X << 1, DTypeError,
        "shift_left: needs integers or bool, got float32. Fix: cast first.",
    ),
    Case(
        "sub of bools", lambda: Tensor.of([True]) - Tensor.of([True]), DTypeError,
        "sub: is not defined for bool tensors. Fix: use ^ or logical_xor, or call .int() first.",
    ),
    Case(
        "neg of bool", lambda: -Tensor.of([True]), DTypeError,
        "neg: is not defined for bool tensors. Fix: use ~x or x.logical_not().",
    ),
    Case(
        "where condition", lambda: picograd.where(X, X, 0.0), DTypeError,
        "where: condition must be bool, got float32. Fix: compare it, or call .bool().",
    ),
    Case(
        "int power", lambda: WHOLE**-1, DTypeError,
        "pow: integers to negative integer powers are not allowed. Fix: call .float() first.",
    ),
    Case(
        "pow of text", lambda: X.pow("x"), DTypeError,
        "pow: operand must be a Tensor or a number, not str. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "add float to ints", add_float_in_place, DTypeError,
        "add: in place the result is float32 but the tensor is int64. Fix: write x = x "
        "op y instead.",
    ),
    Case(
        "divide ints", divide_in_place, DTypeError,
        "div: in place the result is float32 but the tensor is int64. Fix: write x = x "
        "op y instead.",
    ),
    Case(
        "assign ints", lambda: Tensor.ones(2).assign(WHOLE), DTypeError,
        "assign: value is int64 but the tensor is float32. Fix: cast it with "
        '.cast("float32").',
    ),
    Case(
        "randn of ints", lambda: Tensor.randn(2, dtype="int32"), DTypeError,
        "randn: needs a float dtype, got int32. Fix: use randint for integers.",
    ),
    Case(
        "full of text", lambda: Tensor.full((2,), "a"), DTypeError,
        "full: fill_value must be a number, not 'a'. Fix: pass a number.",
    ),
    Case(
        "full too large", lambda: Tensor.full((2,), 300, dtype="uint8"), ValueRangeError,
        "full: 300 cannot be converted to uint8 without overflow. Fix: use a number from 0 to 255.",
    ),
    Case(
        "bitcast width", lambda: Tensor.ones(3).bitcast("float64"), ShapeError,
        "bitcast: 3 elements of float32 are no whole float64. Fix: make the last axis a "
        "multiple of 2.",
    ),
    Case(
        "exp of text", lambda: picograd.exp("a"), DTypeError,
        "exp: the input must be a Tensor, not str. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "relu of number", lambda: picograd.relu(3), DTypeError,
        "relu: the input must be a Tensor, not int. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "sum of number", lambda: picograd.sum(3), DTypeError,
        "sum: the input must be a Tensor, not int. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "cat of numbers", lambda: picograd.cat([1, 2]), DTypeError,
        "cat: expected tensors, got int. Fix: wrap it in Tensor(...).",
    ),
    Case(
        "cat of number", lambda: picograd.cat(3), DTypeError,
        "cat: expected a list of tensors, got int. Fix: pass [a, b].",
    ),
    Case(
        "clamp", lambda: X.clamp(), ValueRangeError,
        "clamp: min and max are both None. Fix: pass at least one.",
    ),
    Case(
        "size of text", lambda: Tensor.zeros("a"), DTypeError,
        "zeros: sizes must be ints, not 'a'. Fix: pass ints.",
    ),
    Case(
        "size of float", lambda: Tensor.zeros(2.5), DTypeError,
        "zeros: sizes must be ints, not 2.5. Fix: pass ints.",
    ),
    Case(
        "mm of text", lambda: Tensor.ones(2, 2).mm("a"), DTypeError,
        "mm: the input must be a Tensor, not str. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "linear of number", lambda: X.linear(3), DTypeError,
        "linear: the input must be a Tensor, not int. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "conv2d of number", lambda: Tensor.ones(1, 1, 4, 4).conv2d(3), DTypeError,
        "conv2d: the input must be a Tensor, not int. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "gather of list", lambda: X.gather(0, [0]), DTypeError,
        "gather: the input must be a Tensor, not list. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "index_select of list", lambda: X.index_select(0, [0]), DTypeError,
        "index_select: the input must be a Tensor, not list. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "masked_fill of number", lambda: X.masked_fill(3, 1.0), DTypeError,
        "masked_fill: the mask must be a Tensor, not int. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "split of text", lambda: X.split("a"), DTypeError,
        "split: sizes must be ints, not 'a'. Fix: pass ints.",
    ),
    Case(
        "chunk of float", lambda: X.chunk(1.5), DTypeError,
        "chunk: chunks must be an int, not 1.5. Fix: pass an int.",
    ),
    Case(
        "pad of number", lambda: X.pad(1), DTypeError,
        "pad: padding 1 is no tuple. Fix: give (low, high) of the last axis, then of the "
        "one before.",
    ),
    Case(
        "allclose of text", lambda: X.allclose("a"), DTypeError,
        "allclose: cannot make a tensor of elements like 'a'. Fix: pass numbers, nested "
        "lists or arrays.",
    ),
    Case(
        "plan of number", lambda: picograd.plan(3), DTypeError,
        "plan: the input must be a Tensor, not int. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "explain of number", lambda: picograd.explain(3), DTypeError,
        "explain: the input must be a Tensor, not int. Fix: wrap it in picograd.Tensor(...).",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
