"""Gradients of weights of few rows: which are summed directly, and what they are."""

import numpy as np
import pytest
from contractions import Case, finish, strided, values
from summed_products import with_statistics

from picograd.codegen import interpret_tile
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract_cuda, contract_direct_sums
from picograd.codegen.tile import LastBlock, MainLoop, TileKernel, verify
from picograd.dtype import float32
from picograd.helpers import row_major
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, Slot, const
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a", 132)


def gradient(shape: tuple[int, int, int, int], rows: int, kernel: int) -> Case:
    """dw[o, c, ky, kx] = sum x[n, c, y + ky - p, x + kx - p] dy[n, o, y, x], same padding."""
    n, channels, height, width = shape
    pad = kernel // 2
    bn, y, x = Axis("n", n), Axis("y", height), Axis("x", width)
    o, c, ky, kx = Axis("o", rows), Axis("c", channels), Axis("ky", kernel), Axis("kx", kernel)
    down = axis_index(y) + axis_index(ky) + -pad
    across = axis_index(x) + axis_index(kx) + -pad
    steps = row_major(shape)
    at = strided((bn, c), steps[:2]) + down * steps[2] + across
    load = Expr("load", (), (0, at), float32)
    tests = (down, 0, height - 1), (across, 0, width - 1)
    seen = Expr("guard", (load, const(0.0, float32)), tests, float32)
    sizes = n, rows, height, width
    given = Expr("load", (), (1, strided((bn, o, y, x), row_major(sizes))), float32)
    store = strided((o, c, ky, kx), row_major((rows, channels, kernel, kernel)))
    data, grad = values(shape, float32, 1), values(sizes, float32, 2)
    count = rows * channels * kernel * kernel
    slots = Slot(float32, data.size, "in"), Slot(float32, grad.size, "in")
    operands = (seen, given)
    built = finish(
        "dw",
        "conv",
        (o, c, ky, kx),
        (bn, y, x),
        operands,
        (*slots, Slot(float32, count, "out")),
        store,
    )
    padded = np.pad(data.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (2, 3))
    expected = np.einsum("ncijyx,noyx->ocij", windows, grad.astype(np.float64), optimize=True)
    return Case(built, (data, grad), expected)


@pytest.mark.parametrize(
    "case",
    [
        gradient((2, 4, 20, 30), 3, 3),
        gradient((2, 3, 21, 30), 5, 5),  # chunks of rows, the last beyond the end; patches too
        gradient((3, 2, 1, 900), 1, 7),  # images one below the other, not rows
    ],
)
def test_values(case: Case) -> None:
    c = contract_cuda.arranged(analyse(case.kernel, case.kernel.parts[0]), TARGET)[0]
    plan = contract_direct_sums.plan_of(c)
    assert plan is not None
    part = contract_direct_sums.write_part(plan, TARGET)
    tiles = verify(TileKernel(case.kernel, (part,), contract_direct_sums.THREADS))
    out = np.full(case.kernel.slots[-1].size, np.nan, np.float32)
    interpret_tile.interpret(tiles, [*(each.ravel() for each in case.inputs), out], [])
    np.testing.assert_allclose(out, case.expected.ravel(), rtol=2e-5, atol=2e-4)


def test_gradients_whose_own_sums_are_wanted_are_in_tiles() -> None:
    kernel = with_statistics(gradient((8, 16, 128, 32), 3, 3).kernel)
    (part,) = contract_cuda.build(kernel, TARGET).parts
    assert any(isinstance(step, MainLoop) for step in part.steps)


def test_few_rows_of_many_positions_are_direct() -> None:
    (part,) = contract_cuda.build(gradient((8, 16, 128, 32), 3, 3).kernel, TARGET).parts
    assert isinstance(part.steps[-1], LastBlock)  # blocks share each channel
    assert not any(isinstance(step, MainLoop) for step in part.steps)
    (part,) = contract_cuda.build(gradient((2, 32, 16, 16), 32, 3).kernel, TARGET).parts
    assert any(isinstance(step, MainLoop) for step in part.steps)
