"""Products whose results are reduced in windows, and what they mean."""

from dataclasses import dataclass

import numpy as np
from contractions import loaded, strided

from picograd.dtype import float32
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.schedule.verify import verify

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
