"""Compare what a stage made of a case with the Loop-IR interpreter."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from cases import Case

from picograd.conversion import from_bits
from picograd.schedule.interpret import interpret


def widen(array: Any, dtype: Any) -> Any:
    """Floats that NumPy lacks arrive as raw bits and are float32 for the interpreters."""
    is_raw = array.dtype != dtype.numpy and array.dtype == dtype.storage
    return np.copy(from_bits(array, dtype) if is_raw else array)


def inputs(case: Case) -> list[Any]:
    """Fresh arrays of the case, as the interpreters take them."""
    return [widen(a, s.dtype) for a, s in zip(case.arrays, case.kernel.slots, strict=True)]


def expected(case: Case) -> list[Any]:
    """What every slot holds after the kernel, by the Loop-IR interpreter."""
    arrays = inputs(case)
    interpret(case.kernel, arrays, case.scalars)
    return arrays


def check_arrays(case: Case, found: Sequence[Any]) -> None:
    """Compare the slots with the expectation, within the case's tolerance."""
    for want, got, slot in zip(expected(case), found, case.kernel.slots, strict=True):
        tolerance = case.tolerance
        if slot.dtype.bits == 16 and slot.dtype.is_float:
            tolerance = 2.0**-7 if slot.dtype.name == "bfloat16" else 2.0**-10
        got = widen(got, slot.dtype)
        if slot.dtype.is_float:
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)
