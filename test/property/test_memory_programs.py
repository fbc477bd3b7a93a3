"""Random programs about memory equal PyTorch: eager, jitted, and on several threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from drawing import Draw, shortened
from libraries import Picograd
from memory_programs import SHIFTS, MemoryProgram, draw_memory_program, name_of, replay

import picograd
from picograd import Tensor
from picograd.errors import InternalError

CI_PROGRAMS, THREADS = 24, 4
FAILURES = (
    AssertionError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, InternalError,
)  # fmt: skip
Check = Callable[[MemoryProgram, str], None]


def execute(lines: Sequence[str], names: dict[str, Any], library: Picograd) -> dict[str, Any]:
    for line in lines:
        exec(line, {"lib": library}, names)
    return names


def compare(program: MemoryProgram, run: int, tensors: dict[str, Tensor], what: str) -> None:
    wanted = program.narrow[run]
    assert set(tensors) == set(wanted)
    for name, tensor in tensors.items():
        label, value = f"{name} {what}", wanted[name]
        assert tensor.dtype.name == name_of(value.dtype), f"{label} is {tensor.dtype}"
        assert tuple(tensor.shape) == tuple(value.shape), f"{label} has shape {tensor.shape}"
        limit, found = program.tolerance(run, name), tensor.numpy()
        if not value.dtype.is_floating_point:
            np.testing.assert_array_equal(found, value.numpy(), label)
            continue
        wide = value.double().numpy()
        np.testing.assert_allclose(found.astype(np.float64), wide, 0, limit, err_msg=label)


def check_apart(program: MemoryProgram, device: str) -> None:
    """Run a line at a time, and compute every value on its own."""
    compare(program, 0, execute(program.lines, {}, Picograd(device)), "apart")


def check_together(program: MemoryProgram, device: str) -> None:
    tensors = execute(program.lines, {}, Picograd(device))
    Tensor.realize(*tensors.values())
    compare(program, 0, tensors, "together")


def check_jit(program: MemoryProgram, device: str) -> None:
    """Run the program as one function of its leaves: traced, then replayed with other values."""
    if program.depends_on_values():
        return check_together(program, device)
    leaves = [line for line in program.lines if "= lib.leaf(" in line]
    rest = [line for line in program.lines if "= lib.leaf(" not in line and "realize" not in line]

    @picograd.jit
    def function(given: dict[str, Tensor]) -> dict[str, Tensor]:
        return execute(rest, dict(given), Picograd(device))

    for call, run in enumerate((0, 1, 0)):
        given = execute(leaves, {}, Picograd(device, SHIFTS[run]))
        found = function(given)
        compare(program, run, found, f"jitted, call {call}")
        compare_leaves = {name: found.get(name) for name in given}
        assert set(compare_leaves) == set(given)
        for name, tensor in given.items():
            wide = program.narrow[run][name].double().numpy()
            limit = program.tolerance(run, name)
            label = f"argument {name} after call {call}"
            value = tensor.numpy().astype(np.float64)
            np.testing.assert_allclose(value, wide, 0, limit, err_msg=label)


CHECKS = {"apart": check_apart, "together": check_together, "jit": check_jit}


def failure(check: Check, program: MemoryProgram | None, device: str) -> str | None:
    """Tell what is wrong with a program on picograd, or None."""
    try:
        if program is not None:
            check(program, device)
    except FAILURES as error:
        return f"{type(error).__name__}: {error}"
    return None


def describe(check: Check, program: MemoryProgram, device: str, reason: str) -> str:
    lines, reason = shortened(
        program.lines, lambda few: failure(check, replay(few), device), reason
    )
    return "\n".join([*lines, reason])


def numbers(chunk: int, examples: int) -> range:
    count = examples or CI_PROGRAMS
    return range(chunk * count, (chunk + 1) * count)


@pytest.mark.parametrize("mode", CHECKS)
def test_programs_equal_pytorch(chunk: int, examples: int, mode: str, device: str) -> None:
    for number in numbers(chunk, examples):
        program = draw_memory_program(Draw(number))
        reason = failure(CHECKS[mode], program, device)
        if reason is not None:
            text = describe(CHECKS[mode], program, device, reason)
            pytest.fail(f"program {number} {mode}, shortened:\n{text}", pytrace=False)


def test_programs_on_threads_equal_pytorch(chunk: int, examples: int, device: str) -> None:
    """Several threads run programs of their own at once, eager and jitted."""
    modes = tuple(CHECKS)
    drawn = [(number, draw_memory_program(Draw(number))) for number in numbers(chunk, examples)]
    with ThreadPoolExecutor(THREADS) as threads:
        reasons = list(threads.map(lambda e: failure(CHECKS[modes[e[0] % 3]], e[1], device), drawn))
    for (number, program), reason in zip(drawn, reasons):
        text = "\n".join([*program.lines, reason or ""])
        assert reason is None, f"program {number} among threads:\n{text}"
