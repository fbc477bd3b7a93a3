"""Windows of a product's result, reduced over axes of its rows."""

from dataclasses import dataclass

import numpy as np
import pytest
from contractions import loaded, strided, values
from run_cpu import TARGET, Loaded

from picograd.codegen.operands import analyse
from picograd.codegen.templates.contract_plan import choose, orient, window_rows
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.schedule.verify import verify
from picograd.target import Target

MANY = Target("llvm", "host", 64, threads=16, registers=32)
Along = tuple[int, int, int]  # elements, of a window, and from one window to the next


@dataclass(frozen=True)
class Sizes:
    """Images of rows, and the windows along their height and width."""

    images: int
    height: Along
    width: Along

    @property
    def rows(self) -> tuple[int, int, int]:
        return self.images, self.height[0], self.width[0]

    @property
    def counts(self) -> tuple[int, int]:
        high, wide = ((n - k) // stride + 1 for n, k, stride in (self.height, self.width))
        return high, wide


def pooled(sizes: Sizes, n: int, k: int, is_rowwise: bool) -> Kernel:
    """relu(a @ b), stored; the largest of a @ b + 2 in each window, plus 1."""
    axes = tuple(Axis(name, size) for name, size in zip("ahw", sizes.rows, strict=True))
    a, h, w = axes
    p, q = (Axis(name, size) for name, size in zip("pq", sizes.counts, strict=True))
    u, v = Axis("u", sizes.height[1]), Axis("v", sizes.width[1])
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
    at = (h, axis_index(p) * sizes.height[2] + axis_index(u))
    at = at, (w, axis_index(q) * sizes.width[2] + axis_index(v))
    element = Expr("element", (), (0, at), float32)
    raised = Expr("add", (element, const(2.0, float32)), None, float32)
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
    (Sizes(1, (4, 2, 2), (6, 2, 2)), 5, 3),
    (Sizes(3, (14, 2, 2), (27, 3, 3)), 40, 70),
    (Sizes(2, (15, 3, 3), (180, 2, 2)), 16, 9),
    (Sizes(2, (8, 2, 2), (8, 2, 2)), 20, 9000),
    (Sizes(3, (27, 2, 2), (29, 2, 2)), 33, 60),
    (Sizes(1, (31, 2, 3), (17, 1, 2)), 24, 40),
    (Sizes(2, (5, 5, 5), (7, 3, 4)), 8, 11),
    (Sizes(1, (121, 3, 4), (90, 1, 1)), 65, 200),
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
    (_, tall, down), (_, wide, right) = sizes.height, sizes.width
    high, across = sizes.counts
    every = [
        images[:, u : u + down * high : down, v : v + right * across : right][:, :high, :across]
        for u in range(tall)
        for v in range(wide)
    ]
    return np.max(every, axis=0)


def test_the_interpreter_of_loops_agrees() -> None:
    sizes = Sizes(2, (7, 2, 2), (5, 2, 2))
    kernel = pooled(sizes, 3, 4, False)
    a, b = values((70, 4), float32, 1), values((4, 3), float32, 2)
    slots = [a.ravel(), b.ravel(), np.zeros(210, np.float32), np.zeros(36, np.float32)]
    interpret(kernel, slots)
    images = (a.astype(np.float64) @ b).reshape(2, 7, 5, 3)
    np.testing.assert_allclose(slots[3], largest(images, sizes).ravel() + 3, rtol=1e-4, atol=1e-5)


def test_a_block_holds_whole_windows() -> None:
    product = orient(analyse(pooled(Sizes(3, (15, 2, 2), (27, 3, 3)), 40, 70, True)), MANY)
    assert window_rows(product) == 2 * 27
    assert choose(product, MANY).rows.size % window_rows(product) == 0
