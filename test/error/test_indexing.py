"""Indices out of range or of the wrong kind."""

import numpy as np
from error_support import Case, check, named

from picograd import Tensor
from picograd.errors import AxisError, DTypeError, IndexDTypeError, ShapeError, ValueRangeError

X = Tensor.ones(2, 3)
FAR = Tensor([[5]])


def set_item(index: object, value: object) -> None:
    Tensor.ones(2, 3)[index] = value


CASES = [
    Case(
        "array for a mask", lambda: X.masked_fill(np.ones(3, bool), 0), DTypeError,
        "masked_fill: the mask must be a Tensor, not ndarray. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "array for a mask of masked_scatter", lambda: X.masked_scatter(np.ones(3, bool), X),
        DTypeError,
        "masked_scatter: the mask must be a Tensor, not ndarray. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "int", lambda: X[2], AxisError,
        "getitem: index 2 is out of range for axis 0 of size 2. Fix: use an index from "
        "-2 to 1.",
    ),
    Case(
        "second int", lambda: X[0, 3], AxisError,
        "getitem: index 3 is out of range for axis 1 of size 3. Fix: use an index from "
        "-3 to 2.",
    ),
    Case(
        "negative int", lambda: X[-3], AxisError,
        "getitem: index -3 is out of range for axis 0 of size 2. Fix: use an index from "
        "-2 to 1.",
    ),
    Case(
        "too many", lambda: X[0, 0, 0], AxisError,
        "getitem: 3 indices for 2 axes of (2, 3). Fix: use at most one index per axis.",
    ),
    Case(
        "text", lambda: X["a"], IndexDTypeError,
        "getitem: cannot index with str. Fix: use ints, slices, None, ..., or integer "
        "and bool tensors.",
    ),
    Case(
        "float", lambda: X[1.0], IndexDTypeError,
        "getitem: cannot index with float. Fix: use ints, slices, None, ..., or integer "
        "and bool tensors.",
    ),
    Case(
        "dict", lambda: X[{}], IndexDTypeError,
        "getitem: cannot index with dict. Fix: use ints, slices, None, ..., or integer "
        "and bool tensors.",
    ),
    Case(
        "float tensor", lambda: X[Tensor([0.5])], IndexDTypeError,
        "getitem: index must have an integer dtype, got float32. Fix: call .long(), or .bool() "
        "if it is a mask.",
    ),
    Case(
        "list", lambda: X[[0, 5]], AxisError,
        "getitem: index 5 is out of range for axis 0 of size 2. Fix: use indices from -2 "
        "to 1.",
    ),
    Case(
        "tensor", lambda: X[Tensor([0, 5])], AxisError,
        "getitem: index 5 is out of range for axis 0 of size 2. Fix: use indices from -2 "
        "to 1.",
    ),
    Case(
        "array", lambda: X[np.array([0, -3])], AxisError,
        "getitem: index -3 is out of range for axis 0 of size 2. Fix: use indices from "
        "-2 to 1.",
    ),
    Case(
        "second axis", lambda: X[:, [3]], AxisError,
        "getitem: index 3 is out of range for axis 1 of size 3. Fix: use indices from -3 "
        "to 2.",
    ),
    Case(
        "step", lambda: X[::0], ValueRangeError,
        "getitem: bad slice: slice step cannot be zero. Fix: use ints and a step that is "
        "not 0.",
    ),
    Case(
        "slice of text", lambda: X["a":], DTypeError,
        "getitem: bad slice: slice indices must be integers or None or have an __index__ "
        "method. Fix: use ints and a step that is not 0.",
    ),
    Case(
        "mask", lambda: X[Tensor.of([True, False, True])], AxisError,
        "getitem: mask of shape (3,) does not match axes of shape (2,). Fix: use a mask "
        "of the same sizes.",
    ),
    Case(
        "ragged", lambda: X[[[[0, 1], [0]]]], ShapeError,
        "getitem: the rows of the index [[0, 1], [0]] differ in length. Fix: make them equal.",
    ),
    Case(
        "lists that differ", lambda: X[[0, 1], [0, 1, 2]], AxisError,
        "getitem: indices of shapes (2,), (3,) do not broadcast. Fix: make sizes equal or 1.",
    ),
    Case(
        "empty axis", lambda: Tensor.ones(0, 3)[0], AxisError,
        "getitem: index 0 is out of range for axis 0 of size 0. Fix: the axis is empty.",
    ),
    Case(
        "empty axis by tensor", lambda: Tensor.ones(0, 3)[Tensor([0])], AxisError,
        "getitem: index 0 is out of range for axis 0 of size 0. Fix: the axis is empty.",
    ),
    Case(
        "set int", lambda: set_item(2, 1.0), AxisError,
        "getitem: index 2 is out of range for axis 0 of size 2. Fix: use an index from "
        "-2 to 1.",
    ),
    Case(
        "set shape", lambda: set_item(0, Tensor.ones(4)), ShapeError,
        "setitem: value of shape (4,) does not fit the selected (3,). Fix: assign a "
        "value that broadcasts to it.",
    ),
    Case(
        "set text", lambda: set_item(0, "x"), DTypeError,
        "Tensor: cannot make a tensor of elements like 'x'. Fix: pass numbers, nested "
        "lists or arrays.",
    ),
    Case(
        "set list", lambda: set_item([0, 2], 1.0), AxisError,
        "getitem: index 2 is out of range for axis 0 of size 2. Fix: use indices from -2 "
        "to 1.",
    ),
    Case(
        "set mask", lambda: set_item(Tensor.of([True, False, True]), 1.0), AxisError,
        "getitem: mask of shape (3,) does not match axes of shape (2,). Fix: use a mask "
        "of the same sizes.",
    ),
    Case(
        "gather", lambda: X.gather(1, Tensor([[0, 3], [0, 0]])), AxisError,
        "gather: index 3 is out of range for axis 1 of size 3. Fix: use indices from 0 to 2.",
    ),
    Case(
        "gather rank", lambda: X.gather(1, Tensor([0, 1])), ShapeError,
        "gather: index (2,) and tensor (2, 3) differ in number of axes. Fix: give them "
        "the same number of axes.",
    ),
    Case(
        "gather float", lambda: X.gather(1, Tensor([[0.0]])), IndexDTypeError,
        "gather: index must have an integer dtype, got float32. Fix: call .long() first.",
    ),
    Case(
        "gather axis", lambda: X.gather(2, Tensor([[0]])), AxisError,
        "gather: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "gather larger", lambda: X.gather(1, Tensor([[0], [0], [0]])), ShapeError,
        "gather: index (3, 1) is larger than (2, 3) on axis 0. Fix: only axis 1 may be "
        "larger.",
    ),
    Case(
        "index_select", lambda: X.index_select(0, Tensor([2])), AxisError,
        "index_select: index 2 is out of range for axis 0 of size 2. Fix: use indices "
        "from 0 to 1.",
    ),
    Case(
        "index_select rank", lambda: X.index_select(0, Tensor([[0]])), AxisError,
        "index_select: index (1, 1) is not 1-d. Fix: flatten it.",
    ),
    Case(
        "scatter", lambda: X.scatter(1, FAR, 1.0), AxisError,
        "scatter: index 5 is out of range for axis 1 of size 3. Fix: use indices from 0 "
        "to 2.",
    ),
    Case(
        "scatter_add", lambda: X.scatter_add(1, FAR, Tensor.ones(1, 1)), AxisError,
        "scatter_add: index 5 is out of range for axis 1 of size 3. Fix: use indices "
        "from 0 to 2.",
    ),
    Case(
        "scatter_add source",
        lambda: X.scatter_add(1, Tensor([[0, 1]]), Tensor.ones(1, 1)),
        ShapeError,
        "scatter_add: index (1, 2) is larger than source (1, 1). Fix: give one source "
        "element per index.",
    ),
    Case(
        "take_along_dim", lambda: X.take_along_dim(Tensor([[3]]), 1), AxisError,
        "take_along_dim: index 3 is out of range for axis 1 of size 3. Fix: use indices "
        "from -3 to 2.",
    ),
    Case(
        "one_hot", lambda: Tensor([0, 5]).one_hot(3), AxisError,
        "one_hot: index 5 is out of range for 3 classes. Fix: use indices from 0 to 2.",
    ),
    Case(
        "one_hot negative", lambda: Tensor([0, -1]).one_hot(3), AxisError,
        "one_hot: index -1 is out of range for 3 classes. Fix: use indices from 0 to 2.",
    ),
    Case(
        "one_hot float", lambda: Tensor([0.0]).one_hot(3), IndexDTypeError,
        "one_hot: index must have an integer dtype, got float32. Fix: call .long() first.",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
