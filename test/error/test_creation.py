"""Data no tensor can be made of, and bad arguments of creation."""

import numpy as np
from error_support import Case, check, named

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, GradientError, ShapeError, ValueRangeError

CASES = [
    Case(
        "ragged", lambda: Tensor([[1, 2], [3]]), ShapeError,
        "Tensor: ragged list: data[1] has 1 element but data[0] has 2 elements. Fix: "
        "make all rows the same length.",
    ),
    Case(
        "ragged number last", lambda: Tensor([[1, 2], 3]), ShapeError,
        "Tensor: ragged list: data[1] has a number but data[0] has 2 elements. Fix: make "
        "all rows the same length.",
    ),
    Case(
        "ragged number first", lambda: Tensor([1, [2, 3]]), ShapeError,
        "Tensor: ragged list: data[1] has 2 elements but data[0] has a number. Fix: make "
        "all rows the same length.",
    ),
    Case(
        "ragged deep", lambda: Tensor([[[1], [2, 3]]]), ShapeError,
        "Tensor: ragged list: data[0][1] has 2 elements but data[0][0] has 1 element. "
        "Fix: make all rows the same length.",
    ),
    Case(
        "ragged tensors", lambda: Tensor([Tensor.ones(2), Tensor.ones(3)]), ShapeError,
        "Tensor: ragged list: data[1] has 3 elements but data[0] has 2 elements. Fix: "
        "make all rows the same length.",
    ),
    Case(
        "text", lambda: Tensor("abc"), DTypeError,
        "Tensor: cannot make a tensor of elements like 'a'. Fix: pass numbers, nested "
        "lists or arrays.",
    ),
    Case(
        "texts", lambda: Tensor(["a", "b"]), DTypeError,
        "Tensor: cannot make a tensor of elements like 'a'. Fix: pass numbers, nested "
        "lists or arrays.",
    ),
    Case(
        "None", lambda: Tensor(None), DTypeError,
        "Tensor: cannot make a tensor of NoneType. Fix: pass numbers, nested lists or an "
        "array.",
    ),
    Case(
        "list of None", lambda: Tensor([None]), DTypeError,
        "Tensor: cannot make a tensor of elements like None. Fix: pass numbers, nested "
        "lists or arrays.",
    ),
    Case(
        "mixed", lambda: Tensor([[1.0, "a"]]), DTypeError,
        "Tensor: cannot make a tensor of elements like 'a'. Fix: pass numbers, nested "
        "lists or arrays.",
    ),
    Case(
        "object", lambda: Tensor(object()), DTypeError,
        "Tensor: cannot make a tensor of object. Fix: pass numbers, nested lists or an array.",
    ),
    Case(
        "dict", lambda: Tensor({"a": 2}), DTypeError,
        "Tensor: cannot make a tensor of dict. Fix: pass numbers, nested lists or an array.",
    ),
    Case(
        "bytes", lambda: Tensor([b"a"]), DTypeError,
        "Tensor: cannot make a tensor of elements like b'a'. Fix: pass numbers, nested "
        "lists or arrays.",
    ),
    Case(
        "array of dates", lambda: Tensor(np.array(["2020-01-01"], "datetime64[D]")), DTypeError,
        "Tensor: arrays of dtype datetime64[D] have no picograd dtype. Fix: convert it with "
        ".astype(numpy.float32).",
    ),
    Case(
        "text array", lambda: Tensor(np.array(["x"])), DTypeError,
        "Tensor: arrays of dtype <U1 have no picograd dtype. Fix: convert it with "
        ".astype(numpy.float32).",
    ),
    Case(
        "object array", lambda: Tensor(np.array([1, "x"], dtype=object)), DTypeError,
        "Tensor: arrays of dtype object have no picograd dtype. Fix: convert it with "
        ".astype(numpy.float32).",
    ),
    Case(
        "int too large", lambda: Tensor.of(1 << 70), DTypeError,
        "Tensor: 1180591620717411303424 does not fit int64. Fix: pass a float.",
    ),
    Case(
        "list of int too large", lambda: Tensor([1 << 70]), DTypeError,
        "Tensor: 1180591620717411303424 does not fit int64. Fix: pass numbers, nested "
        "lists or arrays.",
    ),
    Case(
        "arange step", lambda: Tensor.arange(0, 5, 0), ValueRangeError,
        "arange: step 0 is 0 in int64. Fix: pass a positive or negative step.",
    ),
    Case(
        "arange direction", lambda: Tensor.arange(5, 0), ValueRangeError,
        "arange: stop 0 is not reached from 5 by steps of 1. Fix: change the sign of step.",
    ),
    Case(
        "arange nan", lambda: Tensor.arange(float("nan")), ValueRangeError,
        "arange: start 0, stop nan and step 1 are not all finite. Fix: pass finite numbers.",
    ),
    Case(
        "arange infinite", lambda: Tensor.arange(float("inf")), ValueRangeError,
        "arange: start 0, stop inf and step 1 are not all finite. Fix: pass finite numbers.",
    ),
    Case(
        "arange text", lambda: Tensor.arange("a"), DTypeError,
        "arange: start must be a number, not 'a'. Fix: pass a number.",
    ),
    Case(
        "linspace", lambda: Tensor.linspace(0, 1, -1), ValueRangeError,
        "linspace: -1 numbers are not possible. Fix: use at least 0.",
    ),
    Case(
        "eye", lambda: Tensor.eye(-1), ShapeError,
        "eye: negative size in (-1, -1). Fix: sizes count elements.",
    ),
    Case(
        "randint", lambda: Tensor.randint(5, 5, (2,)), ValueRangeError,
        "randint: the range [5, 5) is empty. Fix: pass low < high.",
    ),
    Case(
        "randperm", lambda: picograd.randperm(-1), ValueRangeError,
        "randperm: -1 numbers are not possible. Fix: use at least 0.",
    ),
    Case(
        "normal", lambda: Tensor.normal(2, std=-1), ValueRangeError,
        "normal: std=-1 is negative. Fix: use 0 or more.",
    ),
    Case(
        "uniform", lambda: Tensor.uniform(2, low="a"), DTypeError,
        "uniform: low must be a number, not 'a'. Fix: pass a number.",
    ),
    Case(
        "seed", lambda: picograd.manual_seed("a"), ValueRangeError,
        "manual_seed: invalid literal for int() with base 10: 'a'. Fix: pass a whole number.",
    ),
    Case(
        "seed that is a list", lambda: picograd.manual_seed([1]), DTypeError,
        "manual_seed: the seed must be an int, not list. Fix: pass a whole number.",
    ),
    Case(
        "large seed", lambda: picograd.manual_seed(2**64), ValueRangeError,
        f"manual_seed: the seed {2**64} has more than 64 bits. Fix: pass a smaller one.",
    ),
    Case(
        "gradient of ints", lambda: Tensor([1], requires_grad=True), GradientError,
        "requires_grad: an int64 tensor cannot have a gradient. Fix: use a float dtype.",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
