"""Gradients of random differentiable programs in float64 equal PyTorch's."""

from typing import Any

import numpy as np
import pytest
from drawing import Draw
from libraries import Picograd, PyTorch
from programs import Program, add_leaf, add_line
from test_programs import check_many
from vocabulary import SMOOTH_STATEMENTS

import picograd

torch = pytest.importorskip("torch")

CI_PROGRAMS = 30


def draw_smooth_program(draw: Draw, length: int = 10) -> Program:
    """Draw a program of float64 values without writes, casts and jumps."""
    program = Program()
    for _ in range(draw.integer(1, 2)):
        add_leaf(draw, program, ("float64",))
    for _ in range(draw.integer(1, length)):
        add_line(draw, program, SMOOTH_STATEMENTS)
    return program


def run(program: Program, library: Any) -> tuple[list[Any], Any]:
    """Run a program; returns its leaves and a weighted sum of all its values."""
    names: dict[str, Any] = {}
    leaves: list[Any] = []
    total: Any = 0
    for line in program.lines:
        exec(line, {"lib": library}, names)
        value = names[line.split(" ")[0]]
        if "= lib.leaf(" in line:
            value.requires_grad_()
            leaves.append(value)
        weight = library.leaf(tuple(value.shape), 2 * len(names) + 1, "float64")
        total = total + (value * weight).sum()
    return leaves, total


def check_gradients(program: Program, device: str) -> None:
    leaves, total = run(program, PyTorch(torch.float64))
    wanted = torch.autograd.grad(total, leaves)
    ours, sum_of_ours = run(program, Picograd(device))
    found = picograd.grad(sum_of_ours, ours)
    found[0].realize(*found[1:])
    for number, (got, want) in enumerate(zip(found, wanted, strict=True)):
        label = f"gradient of leaf {number}"
        assert got.dtype is picograd.float64, label
        scale = max(1.0, float(want.abs().max()) if want.numel() else 1.0)
        limit = 1e-6 * scale  # nested float32 constants of the program are exact in both
        np.testing.assert_allclose(got.numpy(), want.numpy(), limit, limit, err_msg=label)


def test_gradients_equal_pytorch(chunk: int, examples: int, device: str) -> None:
    count = examples or CI_PROGRAMS
    check_many(
        range(chunk * count, (chunk + 1) * count),
        draw_smooth_program,
        lambda program: check_gradients(program, device),
    )
