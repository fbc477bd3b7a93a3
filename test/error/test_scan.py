"""Wrong steps for picograd.scan, and packed sequences that do not fit."""

from typing import Any

from error_support import Case, check, named

import picograd
from picograd import Tensor
from picograd.errors import DeviceError, DTypeError, ShapeError, TraceError, ValueRangeError
from picograd.nn.utils import rnn

X = Tensor.ones(3, 2)
KEPT = Tensor([1.0, 1.0])


def scanned(f: Any) -> Any:
    return picograd.scan(f, Tensor([1.0, 2.0]), X)


def changing(carry: Tensor, x: Tensor) -> Any:
    KEPT.add_(carry)
    return carry, x


def random_and_custom(carry: Tensor, x: Tensor) -> Any:
    return carry, picograd.checkpoint(lambda x: x * picograd.rand(2), x)


CASES = [
    Case(
        "no pair", lambda: scanned(lambda c, x: c), DTypeError,
        "scan: f returned a Tensor. Fix: return a tuple (carry, y).",
    ),
    Case(
        "another shape", lambda: scanned(lambda c, x: (c[:1], x)), ShapeError,
        "scan: carry 0 went into f as float32(2,) and came out as float32(1,). "
        "Fix: keep shape, dtype and device; cast init or the result.",
    ),
    Case(
        "another dtype", lambda: scanned(lambda c, x: (c.double(), x)), DTypeError,
        "scan: carry 0 went into f as float32(2,) and came out as float64(2,). "
        "Fix: keep shape, dtype and device; cast init or the result.",
    ),
    Case(
        "value read", lambda: scanned(lambda c, x: (c, x.sum().item())), TraceError,
        "item(): the value of a traced tensor is not known while picograd.scan traces, at LINE. "
        "Fix: return it in y and read it after the loop; choose with where, not if.",
    ),
    Case(
        "write outside", lambda: scanned(changing), TraceError,
        "scan: f changed a tensor from outside in place: (2,). "
        "Fix: return the new value in the carry.",
    ),
    Case(
        "random in a checkpoint", lambda: scanned(random_and_custom), TraceError,
        "scan: random numbers and a custom gradient in one step. "
        "Fix: draw the numbers before, and pass them as xs.",
    ),
    Case(
        "two devices", lambda: scanned(lambda c, x: (c, x.to("null"))), DeviceError,
        "scan: the loop uses cpu and null. Fix: move everything to one device before it.",
    ),
    Case(
        "lengths increase", lambda: rnn.pack_padded_sequence(X, [1, 3]), ValueRangeError,
        "pack_padded_sequence: the lengths [1, 3] increase. "
        "Fix: sort the batch, or pass enforce_sorted=False.",
    ),
]  # fmt: skip


@named(CASES)
def test_error(case: Case) -> None:
    check(case)
