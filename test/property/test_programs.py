"""Random programs compute on the device what PyTorch and the graph interpreter compute."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawing import Draw, shortened
from libraries import Picograd
from programs import Program, draw_program, replay

from picograd import Tensor
from picograd.errors import InternalError
from picograd.graph.interpret import interpret

CI_PROGRAMS = 20
# what a wrong value, a refused line and a bug of ours raise
FAILURES = (AssertionError, RuntimeError, ValueError, TypeError, LookupError, InternalError)
Check = Callable[[Program], None]


def failure(check: Check, program: Program | None) -> str | None:
    """Tell what is wrong with a program on picograd, or None."""
    try:
        if program is not None:
            check(program)
    except FAILURES as error:
        return f"{type(error).__name__}: {error}"
    return None


def find_failure(check: Check, program: Program) -> str | None:
    """Return a short program that fails as this one does, and what it says; None if all is well."""
    reason = failure(check, program)
    if reason is None:
        return None
    lines, reason = shortened(program.lines, lambda few: failure(check, replay(few)), reason)
    return "\n".join([*lines, reason])


def check_many(numbers: range, make: Callable[[Draw], Program], check: Check) -> None:
    """Check the programs of these numbers; the first that fails is shortened and shown."""
    for number in numbers:
        found = find_failure(check, make(Draw(number)))
        if found is not None:
            pytest.fail(f"program {number}, shortened:\n{found}", pytrace=False)


def run(program: Program, device: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    library = Picograd(device)
    for line in program.lines:
        exec(line, {"lib": library}, names)
    return names


def compare(program: Program, name: str, found: Any, what: str) -> None:
    wanted = program.values[name]
    label = f"{name} by {what}"
    assert tuple(found.shape) == tuple(wanted.shape), label
    if not wanted.dtype.is_floating_point:
        np.testing.assert_array_equal(found, wanted.numpy(), label)
        return
    tolerance = program.tolerance(name)
    found = found.astype(np.float64)
    np.testing.assert_allclose(found, wanted.numpy(), tolerance, tolerance, err_msg=label)


def check_program(program: Program, device: str, together: bool) -> None:
    tensors: dict[str, Tensor] = run(program, device)
    assert set(tensors) == set(program.values)
    if device == "cpu":
        exact = interpret([tensor.node for tensor in tensors.values()], float64=True)
        for name, value in zip(tensors, exact):
            compare(program, name, value, "the graph interpreter")
    if together:
        Tensor.realize(*tensors.values())
    for name, tensor in tensors.items():
        is_float = program.values[name].dtype.is_floating_point
        assert tensor.dtype.is_float == is_float, f"{name} is {tensor.dtype}"
        compare(program, name, tensor.numpy(), device)


@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
@pytest.mark.parametrize("least", [0, 30], ids=["short", "thirty lines"])
def test_programs_equal_pytorch(
    chunk: int, examples: int, least: int, together: bool, device: str
) -> None:
    count = examples or CI_PROGRAMS
    check_many(
        range(chunk * count, (chunk + 1) * count),
        lambda draw: draw_program(draw, least=least),
        lambda program: check_program(program, device, together),
    )
