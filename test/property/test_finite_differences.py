"""Gradients of random programs that write through views equal finite differences in float64."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from drawing import Draw
from libraries import Picograd, PyTorch
from memory_programs import MemoryProgram, draw_memory_program, extended
from memory_vocabulary import GRADIENT_STATEMENTS
from test_memory_programs import describe, failure, numbers

import picograd
from picograd.graph.interpret import interpret

torch = pytest.importorskip("torch")

CI_PROGRAMS = 20
STEP = 1e-5  # an error of STEP^2 by the curvature, one of 1e-16 / STEP by rounding
ODD_SEEDS = range(1, 20, 2)  # fractions: no leaf is at a corner


def draw_gradient_program(draw: Draw) -> MemoryProgram:
    """Draw a program of float64 values whose derivative PyTorch finds as finite differences do.

    Elsewhere there is a corner (of a maximum, say), or `detach` stops a part of the derivative.
    What is written through `.data` PyTorch's autograd does not see: the derivative of a maximum
    is then that of another value, and may equal the differences by chance.
    """
    while True:
        program = draw_memory_program(draw, 9, GRADIENT_STATEMENTS, ("float64",), ODD_SEEDS)
        is_hidden = any(".data" in line for line in program.lines)
        if not is_hidden and not program.depends_on_values() and is_smooth(program):
            return program


def is_smooth(program: MemoryProgram) -> bool:
    try:
        slope, measured, limit = slopes(program, PyTorch(torch.float64), torch.autograd.grad, read)
    except RuntimeError:
        return False  # a leaf is written, or nothing leads to one
    return abs(slope - measured) <= 0.1 * limit


def loss(lines: Sequence[str], library: Any, step: float = 0.0) -> tuple[list[Any], Any]:
    """Run a program with its leaves moved by a step; returns them and a weighted sum of all."""
    names: dict[str, Any] = {}
    leaves: list[Any] = []
    for line in lines:
        exec(line, {"lib": library}, names)
        if "= lib.leaf(" in line:
            name = line.split(" ")[0]
            shape = tuple(names[name].shape)
            way = library.leaf(shape, 51 + 2 * len(leaves), "float64")
            leaves.append((names[name] + way * step).detach())
            leaves[-1].requires_grad_()
            names[name] = leaves[-1] * 1  # a leaf cannot be written
    total: Any = 0
    for number, value in enumerate(names.values()):
        weight = library.leaf(tuple(value.shape), 2 * number + 21, "float64")
        total = total + (value * weight).sum()
    return leaves, total


def read(tensors: Sequence[Any]) -> list[np.ndarray]:
    return [tensor.detach().numpy() for tensor in tensors]


def interpreted(tensors: Sequence[Any]) -> list[np.ndarray]:
    """Compute without kernels: the derivatives are the same, and thousands take minutes."""
    return interpret([tensor.node for tensor in tensors], float64=True)


def slopes(
    program: MemoryProgram, library: Any, grad: Any, compute: Any
) -> tuple[float, float, float]:
    """Return the slope in one direction by gradients, by differences, and how far it may be off."""
    leaves, total = loss(program.lines, library)
    parts = []
    for number, each in enumerate(grad(total, leaves, allow_unused=True)):
        if each is not None:
            parts.append(each * library.leaf(tuple(each.shape), 51 + 2 * number, "float64"))
    moved = [loss(program.lines, library, step)[1] for step in (STEP, -STEP)]
    *found, high, low = [float(value.sum()) for value in compute([*parts, *moved])]
    slope, scale = sum(found), 1.0 + sum(abs(each) for each in found)
    return slope, (high - low) / (2 * STEP), 1e-5 * scale + 1e-9 * abs(high)


def check_slopes(program: MemoryProgram, device: str) -> None:
    compare_slopes(program, device, read)


def check_derivatives(program: MemoryProgram, device: str) -> None:
    compare_slopes(program, device, interpreted)


def compare_slopes(program: MemoryProgram, device: str, compute: Any) -> None:
    slope, measured, limit = slopes(program, Picograd(device), picograd.grad, compute)
    assert abs(slope - measured) <= limit, f"slope {slope}, by differences {measured}"
    wanted, _, _ = slopes(program, PyTorch(torch.float64), torch.autograd.grad, read)
    assert abs(slope - wanted) <= limit, f"slope {slope}, PyTorch's {wanted}"


def test_gradients_equal_finite_differences(chunk: int, examples: int, device: str) -> None:
    for number in numbers(chunk, examples):
        program = draw_gradient_program(Draw(number))
        on_kernels = number % 8 == 0 or device != "cpu"
        check = check_slopes if on_kernels else check_derivatives
        reason = failure(check, program, device)
        if reason is not None:
            text = describe(check, program, device, reason)
            pytest.fail(f"program {number}, shortened:\n{text}", pytrace=False)


def test_wrong_gradients_are_found(device: str) -> None:
    """The comparison is able to fail."""
    program = MemoryProgram()
    for line in ("t0 = lib.leaf((2, 3), 1, 'float64')", "t1 = t0[1]", "t1.sin_()"):
        assert extended(program, line)
    check_slopes(program, device)
    program.lines[2] = "t1.copy_(t1.detach().sin())"
    with pytest.raises(AssertionError, match="by differences"):
        check_slopes(program, device)
