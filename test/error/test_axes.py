"""Axes out of range."""

from error_support import Case, check, named

import picograd
from picograd import Tensor
from picograd.errors import AxisError, DTypeError, ShapeError

X = Tensor.ones(2, 3)
EMPTY = Tensor.ones(0, 3)


CASES = [
    Case(
        "sum", lambda: X.sum(dim=2), AxisError,
        "sum: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "sum negative", lambda: X.sum(axis=-3), AxisError,
        "sum: axis -3 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    *(
        Case(
            f"{name} of no axes", call, AxisError,
            f"{name}: axis 0 of a tensor without axes. Fix: add one with .unsqueeze(0).",
        )
        for name, call in (
            ("size", lambda: Tensor(2.0).size(0)), ("stride", lambda: Tensor(2.0).stride(0)),
            ("roll", lambda: Tensor(2.0).roll(1, 0)),
            ("repeat_interleave", lambda: Tensor(2.0).repeat_interleave(2, 0)),
        )
    ),
    Case(
        "sum twice", lambda: X.sum(dim=(0, 0)), AxisError,
        "sum: axes (0, 0) name one axis twice. Fix: list each axis once.",
    ),
    Case(
        "sum float", lambda: X.sum(dim=1.0), DTypeError,
        "sum: axis must be an int or a tuple of ints, not 1.0. Fix: pass axis=0 or "
        "axis=(0, 1).",
    ),
    Case(
        "sum both spellings", lambda: X.sum(dim=0, axis=1), DTypeError,
        "sum: both axis and dim were given. Fix: pass one of them.",
    ),
    Case(
        "mean", lambda: X.mean(dim=5), AxisError,
        "mean: axis 5 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "var", lambda: X.var(2), AxisError,
        "var: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "softmax", lambda: X.softmax(dim=2), AxisError,
        "softmax: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "log_softmax", lambda: X.log_softmax(2), AxisError,
        "log_softmax: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "argmax", lambda: X.argmax(dim=2), AxisError,
        "argmax: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "max", lambda: X.max(dim=3), AxisError,
        "max: axis 3 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "cumsum", lambda: X.cumsum(2), AxisError,
        "cumsum: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "permute twice", lambda: X.permute(0, 0), ShapeError,
        "permute: (0, 0) repeats an axis. Fix: list every axis once.",
    ),
    Case(
        "permute few", lambda: X.permute(0), ShapeError,
        "permute: (0,) does not order 2 axes. Fix: list every axis once.",
    ),
    Case(
        "permute range", lambda: X.permute(0, 2), AxisError,
        "permute: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "transpose", lambda: X.transpose(0, 2), AxisError,
        "transpose: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "squeeze", lambda: X.squeeze(4), AxisError,
        "squeeze: axis 4 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "unsqueeze", lambda: X.unsqueeze(4), AxisError,
        "unsqueeze: axis 4 is out of range for 3 axes. Fix: use an axis from -3 to 2.",
    ),
    Case(
        "flatten order", lambda: X.flatten(1, 0), AxisError,
        "flatten: start axis 1 comes after end axis 0. Fix: swap them.",
    ),
    Case(
        "flatten range", lambda: X.flatten(0, 5), AxisError,
        "flatten: axis 5 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "flip", lambda: X.flip(2), AxisError,
        "flip: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "split", lambda: X.split(1, dim=2), AxisError,
        "split: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "cat", lambda: picograd.cat([Tensor.ones(2), Tensor.ones(2)], dim=1), AxisError,
        "cat: axis 1 is out of range for 1 axes. Fix: use an axis from -1 to 0.",
    ),
    Case(
        "stack", lambda: picograd.stack([Tensor.ones(2), Tensor.ones(2)], dim=2), AxisError,
        "stack: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "size", lambda: X.size(2), AxisError,
        "size: axis 2 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "max of nothing", lambda: EMPTY.max(), AxisError,
        "max: has no value over an empty axis of (0, 3). Fix: check .numel() first.",
    ),
    Case(
        "max of empty axis", lambda: EMPTY.max(dim=0), AxisError,
        "max: has no value over an empty axis of (0, 3). Fix: check .numel() first.",
    ),
    Case(
        "argmax of nothing", lambda: EMPTY.argmax(), AxisError,
        "argmax: has no value over an empty axis of (0, 3). Fix: check .numel() first.",
    ),
    Case(
        "norm order", lambda: X.norm(p="max"), DTypeError,
        "norm: unknown order 'max'. Fix: pass a number.",
    ),
    Case(
        "len of scalar", lambda: len(Tensor(1.0)), DTypeError,
        "len(): a zero-dim tensor has no length. Fix: use .numel().",
    ),
    Case(
        "iter of scalar", lambda: list(Tensor(1.0)), DTypeError,
        "iter(): a zero-dim tensor has no elements to visit. Fix: use .item().",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
