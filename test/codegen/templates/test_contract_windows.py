"""Windows of a product's result, reduced over axes of its rows."""

from dataclasses import dataclass

import numpy as np
import pytest
from contractions import loaded, strided, values
from run_cpu import TARGET, Loaded

from picograd.codegen.operands import Windows, analyse
from picograd.codegen.templates.contract_plan import choose, orient, window_rows
from picograd.dtype import float32
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.schedule.verify import verify
from picograd.target import Target

MANY = Target("llvm", "host", 64, threads=16, registers=32)
LOWEST = -1e30


@dataclass(frozen=True)
class Along:
    """Elements along an axis, those of a window, those between windows, and padding."""

    size: int
    kernel: int
    stride: int
    before: int = 0
    after: int = 0

    @property
    def count(self) -> int:
        return (self.before + self.size + self.after - self.kernel) // self.stride + 1

    def place(self, window: Axis, inside: Axis) -> Index:
        return axis_index(window) * self.stride + axis_index(inside) - self.before


@dataclass(frozen=True)
class Sizes:
    """Images of rows, and the windows along their height and width."""

    images: int
    height: Along
    width: Along

    @property
    def rows(self) -> tuple[int, int, int]:
        return self.images, self.height.size, self.width.size


def pooled(sizes: Sizes, n: int, k: int, is_rowwise: bool) -> Kernel:
    """relu(a @ b), stored; the largest of a @ b + 2 in each window, plus 1."""
    axes = tuple(Axis(name, size) for name, size in zip("ahw", sizes.rows, strict=True))
    a, h, w = axes
    p, q = Axis("p", sizes.height.count), Axis("q", sizes.width.count)
    u, v = Axis("u", sizes.height.kernel), Axis("v", sizes.width.kernel)
    j, r = Axis("j", n), Axis("r", k)
    m, windows = int(np.prod(sizes.rows)), a.size * p.size * q.size
    steps = h.size * w.size, w.size, 1
    slots = [Slot(float32, size, "in") for size in (m * k, k * n)]
    slots += [Slot(float32, m * n, "out"), Slot(float32, windows * n, "out")]
    of_a = strided((*axes, r), (*steps, m) if is_rowwise else (*(k * s for s in steps), 1))
    first = loaded(0, of_a, float32, float32)
    second = loaded(1, strided((r, j), (n, 1)), float32, float32)
    rows, kept = (*axes, j), (a, p, q, j)
    whole = Expr("maximum", (Expr("ref", (), 0, float32), const(0.0, float32)), None, float32)
    at = (h, sizes.height.place(p, u)), (w, sizes.width.place(q, v))
    element = Expr("element", (), (0, at), float32)
    raised = Expr("add", (element, const(2.0, float32)), None, float32)
    tests = tuple((index, 0, axis.size - 1) for axis, index in at)
    raised = Expr("guard", (raised, const(LOWEST, float32)), tests, float32)
    more = Expr("add", (Expr("ref", (), 2, float32), const(1.0, float32)), None, float32)
    image = strided(rows, (*(n * step for step in steps), 1))
    place = strided(kept, (p.size * q.size * n, q.size * n, n, 1))
    computes = (
        Compute(rows, (r,), "sum", Expr("mul", (first, second), None, float32), float32),
        Compute(rows, (), None, whole, float32, (2, image)),
        Compute(kept, tuple(x for x in (u, v) if x.size > 1), "max", raised, float32),
        Compute(kept, (), None, more, float32, (3, place)),
    )
    return verify(Kernel("pooled", "conv", tuple(slots), (), (Part(rows, computes),)))


CASES = [
    (Sizes(1, Along(4, 2, 2), Along(6, 2, 2)), 5, 3),
    (Sizes(3, Along(14, 2, 2), Along(27, 3, 3)), 40, 70),
    (Sizes(2, Along(15, 3, 3), Along(180, 2, 2)), 16, 9),
    (Sizes(2, Along(8, 2, 2), Along(8, 2, 2)), 20, 9000),
    (Sizes(3, Along(27, 2, 2), Along(29, 2, 2)), 33, 60),
    (Sizes(1, Along(31, 2, 3), Along(17, 1, 2)), 24, 40),
    (Sizes(2, Along(5, 5, 5), Along(7, 3, 4)), 8, 11),
    (Sizes(1, Along(121, 3, 4), Along(90, 1, 1)), 65, 200),
    (Sizes(2, Along(9, 3, 2), Along(7, 3, 2)), 5, 6),
    (Sizes(2, Along(55, 3, 2), Along(55, 3, 2)), 20, 63),
    (Sizes(1, Along(112, 3, 2, 1, 1), Along(60, 3, 2, 1, 1)), 33, 147),
    (Sizes(2, Along(64, 3, 2, 0, 1), Along(50, 2, 2, 0, 1)), 16, 30),
    (Sizes(2, Along(63, 2, 2, 1, 0), Along(50, 3, 1, 1, 1)), 16, 30),
    (Sizes(1, Along(300, 5, 2, 2, 3), Along(2, 1, 1)), 16, 500),
    (Sizes(1, Along(300, 4, 4, 0, 3), Along(9, 1, 1)), 16, 500),
    (Sizes(1, Along(64, 4, 1, 1, 2), Along(64, 1, 1)), 16, 20),
    (Sizes(1, Along(65, 3, 2), Along(64, 1, 1)), 16, 500),
]


@pytest.mark.parametrize("is_rowwise", [True, False], ids=["rows", "depth"])
@pytest.mark.parametrize("target", [TARGET, MANY], ids=["few", "many"])
@pytest.mark.parametrize(("sizes", "n", "k"), CASES, ids=str)
def test_windows_of_a_product(
    sizes: Sizes, n: int, k: int, target: Target, is_rowwise: bool
) -> None:
    kernel = pooled(sizes, n, k, is_rowwise)
    m = int(np.prod(sizes.rows))
    a, b = values((m, k), float32, 1), values((k, n), float32, 2)
    run = Loaded(kernel, (a.T if is_rowwise else a, b, np.zeros((m, n), np.float32)), target)
    found = run.result()
    product = a.astype(np.float64) @ b
    scale = np.abs(product).max() + 1e-3
    close = dict(atol=1e-5 * scale, rtol=0)
    np.testing.assert_allclose(run.arrays[2].reshape(m, n), np.maximum(product, 0), **close)
    images = product.reshape(*sizes.rows, n)
    np.testing.assert_allclose(found, largest(images, sizes).ravel() + 3, **close)


def largest(images: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Reduce windows one element of them at a time."""
    high, wide = sizes.height, sizes.width
    edges = (0, 0), (high.before, high.after), (wide.before, wide.after), (0, 0)
    padded = np.pad(images, edges, constant_values=LOWEST)
    every = [
        along(along(padded, high, u, 1), wide, v, 2)
        for u in range(high.kernel)
        for v in range(wide.kernel)
    ]
    return np.max(every, axis=0)


def along(padded: np.ndarray, windows: Along, inside: int, axis: int) -> np.ndarray:
    """Take one element of each window along an axis."""
    places = np.arange(windows.count) * windows.stride + inside
    return np.take(padded, places, axis)


def test_the_interpreter_of_loops_agrees() -> None:
    sizes = Sizes(2, Along(7, 2, 2), Along(5, 3, 2, 1))
    kernel = pooled(sizes, 3, 4, False)
    a, b = values((70, 4), float32, 1), values((4, 3), float32, 2)
    slots = [a.ravel(), b.ravel(), np.zeros(210, np.float32), np.zeros(2 * 3 * 2 * 3, np.float32)]
    interpret(kernel, slots)
    images = (a.astype(np.float64) @ b).reshape(2, 7, 5, 3)
    np.testing.assert_allclose(slots[3], largest(images, sizes).ravel() + 3, rtol=1e-4, atol=1e-5)


def test_a_block_holds_whole_windows() -> None:
    sizes = Sizes(3, Along(15, 2, 2), Along(27, 3, 3))
    product = orient(analyse(pooled(sizes, 40, 70, True)), MANY)
    assert window_rows(product) == 2 * 27
    plan = choose(product, MANY)
    assert plan.rows.size % window_rows(product) == 0 and not plan.kept


def test_a_task_walks_down_an_image_whose_windows_share_rows() -> None:
    sizes = Sizes(3, Along(112, 3, 2, 1, 1), Along(60, 3, 2, 1, 1))
    plan = choose(orient(analyse(pooled(sizes, 40, 70, True)), MANY), MANY)
    assert plan.kept == 60 and plan.row_loop.size > 1
    assert [axis.size for axis in plan.task] == [3]


def test_windows_in_a_block_take_rows_of_the_one_before() -> None:
    axis, p = Axis("h", 100), Axis("p", 50)
    first = Windows(axis, p, 2, 3, 1)
    assert (first.late, first.kept, first.step, first.is_beside) == (0, 1, 2, False)
    second = Windows(axis, p, 2, 3, 0)
    assert (second.late, second.kept, second.step) == (1, 2, 2)
    third = Windows(axis, p, 2, 2, 0)
    assert (third.late, third.kept, third.step, third.is_beside) == (0, 0, 2, True)
    assert Windows(axis, Axis("p", 51), 2, 2, 1).kept == 1
