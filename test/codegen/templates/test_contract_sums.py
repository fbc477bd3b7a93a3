"""Reductions of a product's result: rows or columns of all tasks, added up by the last of them."""

import numpy as np
import pytest
from contractions import loaded, strided, values
from run_cpu import TARGET, Loaded

from picograd.codegen.operands import analyse
from picograd.codegen.templates.contract_plan import choose, orient
from picograd.dtype import float32, float64
from picograd.helpers import product
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.target import Target

MANY = Target("llvm", "host", 64, threads=16, registers=32)


def summed(m: int, n: int, k: int, keeps_columns: bool) -> Kernel:
    """relu(a @ b), its sum along one side in float64, and twice that."""
    i, j, r = Axis("i", m), Axis("j", n), Axis("r", k)
    slots = [Slot(float32, size, "in") for size in (m * k, k * n)]
    kept, gone = (j, i) if keeps_columns else (i, j)
    slots += [Slot(float32, m * n, "out"), Slot(float64, kept.size, "out")]
    a = loaded(0, strided((i, r), (k, 1)), float32, float32)
    b = loaded(1, strided((r, j), (n, 1)), float32, float32)
    element = Expr("maximum", (Expr("ref", (), 0, float32), const(0.0, float32)), None, float32)
    wide = Expr("cast", (Expr("ref", (), 1, float32),), None, float64)
    twice = Expr("mul", (Expr("ref", (), 2, float64), const(2.0, float64)), None, float64)
    computes = (
        Compute((i, j), (r,), "sum", Expr("mul", (a, b), None, float32), float32),
        Compute((i, j), (), None, element, float32, (2, strided((i, j), (n, 1)))),
        Compute((kept,), (gone,), "sum", wide, float64),
        Compute((kept,), (), None, twice, float64, (3, axis_index(kept))),
    )
    return Kernel("summed", "contract", tuple(slots), (), (Part((i, j), computes),))


@pytest.mark.parametrize("keeps_columns", [True, False], ids=["columns", "rows"])
@pytest.mark.parametrize("target", [TARGET, MANY], ids=["few", "many"])
@pytest.mark.parametrize(
    "sizes", [(1, 40, 9), (70, 3, 5), (61, 67, 71), (900, 130, 20), (40, 30, 9000)], ids=str
)
def test_sums_of_a_product(
    sizes: tuple[int, int, int], target: Target, keeps_columns: bool
) -> None:
    m, n, k = sizes
    kernel = summed(*sizes, keeps_columns)
    a, b = values((m, k), float32, 1), values((k, n), float32, 2)
    elements = np.zeros((m, n), np.float32)
    run = Loaded(kernel, (a, b, elements), target)
    for task in reversed(range(run.tasks)):
        run.run(task, task + 1)
    shuffled = run.output[:-64].copy()
    found = run.result()
    np.testing.assert_array_equal(shuffled, found)  # the order of tasks changes no bit
    wanted = np.maximum(a.astype(np.float64) @ b, 0)
    scale = np.abs(wanted).max() + 1e-3
    np.testing.assert_allclose(run.arrays[2].reshape(m, n), wanted, atol=1e-5 * scale, rtol=0)
    sums = 2 * run.arrays[2].reshape(m, n).astype(np.float64).sum(0 if keeps_columns else 1)
    np.testing.assert_allclose(found, sums, rtol=1e-12, atol=1e-12 * scale)


def test_the_sizes_reach_every_way_to_share_work() -> None:
    plans = [
        choose(orient(analyse(summed(*sizes, True)), target), target)
        for sizes in ((900, 130, 20), (40, 30, 9000))
        for target in (TARGET, MANY)
    ]
    assert any(plan.is_split for plan in plans)
    assert any(product(axis.size for axis in plan.task) > 1 for plan in plans)
