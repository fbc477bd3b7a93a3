"""Values read while picograd.jit traces, and arguments it cannot take."""

from collections.abc import Callable
from typing import Any

import numpy as np
from error_support import Case, check, named

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, ShapeError, TraceError

X = Tensor([1.0, 2.0])


def traced(function: Callable[..., Any], *arguments: Any) -> None:
    picograd.jit(function)(X, *arguments)


def branch(x: Tensor) -> Tensor:
    return x if x.sum() > 0.0 else -x


CASES = [
    Case(
        "item", lambda: traced(lambda x: x.sum().item()), TraceError,
        "item(): the value of a traced tensor is not known while picograd.jit traces, at LINE. "
        "Fix: return the tensor and read it outside the jitted function.",
    ),
    Case(
        "numpy", lambda: traced(lambda x: x.numpy()), TraceError,
        "numpy(): the value of a traced tensor is not known while picograd.jit traces, at LINE. "
        "Fix: return the tensor and read it outside the jitted function.",
    ),
    Case(
        "tolist", lambda: traced(lambda x: x.tolist()), TraceError,
        "tolist(): the value of a traced tensor is not known while picograd.jit traces, at LINE. "
        "Fix: return the tensor and read it outside the jitted function.",
    ),
    Case(
        "float", lambda: traced(lambda x: float(x.sum())), TraceError,
        "item(): the value of a traced tensor is not known while picograd.jit traces, at LINE. "
        "Fix: return the tensor and read it outside the jitted function.",
    ),
    Case(
        "branch", lambda: traced(branch), TraceError,
        "bool(): the value of a traced tensor is not known while picograd.jit traces, at LINE. "
        "Fix: return the tensor and read it outside the jitted function.",
    ),
    Case(
        "asarray", lambda: traced(lambda x: np.asarray(x)), TraceError,
        "numpy(): the value of a traced tensor is not known while picograd.jit traces, at LINE. "
        "Fix: return the tensor and read it outside the jitted function.",
    ),
    Case(
        "mask", lambda: traced(lambda x: x[x > 1.0]), TraceError,
        "indexing with a bool mask: how many elements a bool mask chooses is not known while a "
        "function is traced, at LINE. Fix: choose with where(mask, x, 0), sum x * mask, or write "
        "x[mask] = v.",
    ),
    Case(
        "unhashable array", lambda: traced(lambda x, y: x, np.ones(3)), TraceError,
        "jit: an argument is a NumPy array, whose values a trace would keep for ever. "
        "Fix: pass picograd.Tensor(array).",
    ),
    Case(
        "unhashable set", lambda: traced(lambda x, y: x, [{Tensor.ones(1)}]), TraceError,
        "jit: an argument of type set cannot be hashed, so no trace can be kept. Fix: "
        "pass tensors, numbers, strings, or tuples, lists, dicts and dataclasses of them.",
    ),
    Case(
        "wrong shapes", lambda: traced(lambda x: x @ Tensor.ones(3)), ShapeError,
        "matmul: inner sizes differ: (2,) @ (3,). Fix: the last size of the left operand "
        "must equal the second-last of the right one.",
    ),
    Case(
        "no function", lambda: picograd.jit(3), DTypeError,
        "jit: int is no function. Fix: write @picograd.jit above a function.",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
