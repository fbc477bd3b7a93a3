"""Windows of a product's result, reduced over axes of its rows."""

import numpy as np
import pytest
from contractions import loaded, strided, values
from run_cpu import TARGET, Loaded

from picograd.codegen.operands import analyse
from picograd.codegen.templates.contract_plan import choose, orient, window_rows
from picograd.dtype import float32
from picograd.schedule.index import Axis
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.target import Target

MANY = Target("llvm", "host", 64, threads=16, registers=32)


def pooled(sizes: tuple[int, int, int, int, int], n: int, k: int, is_rowwise: bool) -> Kernel:
    """relu(a @ b) of images of rows, its largest in each window, plus 1; `sizes` of the rows."""
    axes = tuple(Axis(name, size) for name, size in zip("apwqv", sizes, strict=True))
    a, p, w, q, v = axes
    j, r = Axis("j", n), Axis("r", k)
    m = int(np.prod(sizes))
    steps = [int(np.prod(sizes[d + 1 :])) for d in range(5)]
    slots = [Slot(float32, size, "in") for size in (m * k, k * n)]
    slots += [Slot(float32, m * n, "out"), Slot(float32, m * n // (w.size * v.size), "out")]
    of_a = strided((*axes, r), (*steps, m) if is_rowwise else (*(k * s for s in steps), 1))
    first = loaded(0, of_a, float32, float32)
    second = loaded(1, strided((r, j), (n, 1)), float32, float32)
    rows = (*axes, j)
    element = Expr("maximum", (Expr("ref", (), 0, float32), const(0.0, float32)), None, float32)
    more = Expr("add", (Expr("ref", (), 2, float32), const(1.0, float32)), None, float32)
    image = strided(rows, (*(n * step for step in steps), 1))
    place = strided((a, p, q, j), (p.size * q.size * n, q.size * n, n, 1))
    computes = (
        Compute(rows, (r,), "sum", Expr("mul", (first, second), None, float32), float32),
        Compute(rows, (), None, element, float32, (2, image)),
        Compute((a, p, q, j), (w, v), "max", Expr("ref", (), 1, float32), float32),
        Compute((a, p, q, j), (), None, more, float32, (3, place)),
    )
    return Kernel("pooled", "conv", tuple(slots), (), (Part(rows, computes),))


@pytest.mark.parametrize("is_rowwise", [True, False], ids=["rows", "depth"])
@pytest.mark.parametrize("target", [TARGET, MANY], ids=["few", "many"])
@pytest.mark.parametrize(
    ("sizes", "n", "k"),
    [((1, 2, 2, 3, 2), 5, 3), ((3, 7, 2, 9, 3), 40, 70), ((2, 5, 3, 90, 2), 16, 9),
     ((2, 4, 2, 4, 2), 20, 9000)],
    ids=str,
)  # fmt: skip
def test_windows_of_a_product(
    sizes: tuple[int, int, int, int, int], n: int, k: int, target: Target, is_rowwise: bool
) -> None:
    kernel = pooled(sizes, n, k, is_rowwise)
    m = int(np.prod(sizes))
    a, b = values((m, k), float32, 1), values((k, n), float32, 2)
    image = np.zeros((m, n), np.float32)
    run = Loaded(kernel, (a.T if is_rowwise else a, b, image), target)
    found = run.result()
    wanted = np.maximum(a.astype(np.float64) @ b, 0)
    scale = np.abs(wanted).max() + 1e-3
    np.testing.assert_allclose(run.arrays[2].reshape(m, n), wanted, atol=1e-5 * scale, rtol=0)
    windows = run.arrays[2].reshape(*sizes, n).max((2, 4)) + 1
    np.testing.assert_array_equal(found, windows.ravel())


def test_a_block_holds_whole_windows() -> None:
    product = orient(analyse(pooled((3, 7, 2, 9, 3), 40, 70, True)), MANY)
    assert window_rows(product) == 2 * 9 * 3
    assert choose(product, MANY).rows.size % window_rows(product) == 0
