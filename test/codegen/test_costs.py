"""Operations and bytes that reports show: what the mathematics needs, counted by hand here."""

from collections.abc import Callable

import numpy as np
import pytest
from cases import binary, unary
from structured import column_sum

import picograd
from picograd import Tensor
from picograd.codegen.costs import costs
from picograd.nn import functional


def make(*shape: int, dtype: str = "float32") -> Tensor:
    values = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) % 3
    return Tensor(values, device="cpu").cast(dtype).realize()


def counted(*tensors: Tensor) -> tuple[int, int]:
    """Sum the operations and bytes of every kernel of a plan."""
    found = [costs(launch.kernel) for launch in picograd.plan(*tensors).plan.steps]
    return sum(flops for flops, _ in found), sum(moved for _, moved in found)


def test_by_hand_made_kernels() -> None:
    assert costs(unary("exp", size=100).kernel) == (100, 800)
    assert costs(binary("add", size=100).kernel) == (100, 1200)
    assert costs(column_sum(50, 10).kernel) == (500 + 10 + 500, 4 * (500 + 10 + 10 + 500))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (17, 33, 65), (1, 100, 7)])
def test_a_product_of_matrices_is_2mnk(m: int, n: int, k: int, dtype: str) -> None:
    a, b = make(m, k, dtype=dtype), make(k, n, dtype=dtype)
    size = a.dtype.itemsize
    assert counted(a @ b) == (2 * m * n * k, size * (m * k + k * n + m * n))
    assert counted(a.T.realize().T @ b)[0] == 2 * m * n * k


FLOPS: dict[str, tuple[Callable[[], Tensor], int]] = {
    "a cast": (lambda: make(100).cast("bfloat16"), 0),
    "calculated in a wider dtype": (lambda: make(100, dtype="bfloat16") * make(1), 100),
    "a choice": (lambda: (make(100) > 1).where(make(100), 0.0), 0),
    "a chain": (lambda: (make(100) * 2 + 1).exp(), 300),
    "integers": (lambda: make(100, dtype="int32") * 3 + 1, 0),
    "padding": (lambda: make(100).pad((3, 5)), 0),
    "only what a guard lets through": (lambda: picograd.cat([make(10).exp(), make(30).sin()]), 40),
    "a copy in another order": (lambda: make(10, 20).T.contiguous(), 0),
    "a broadcast row is calculated once": (lambda: make(1, 50).exp() + make(20, 50), 50 + 1000),
    "softmax: max, sub, exp, sum, div": (lambda: make(8, 16).softmax(1), 5 * 8 * 16),
    "a lookup": (lambda: make(50, 8)[Tensor([3, 1, 3], device="cpu").realize()], 0),
    "a running sum": (lambda: make(3, 20).cumsum(1), 60),
    "a convolution": (
        lambda: functional.conv2d(make(2, 3, 9, 9), make(4, 3, 3, 3), padding=1),
        2 * 2 * 4 * 9 * 9 * 3 * 3 * 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOPS)
def test_operations(name: str) -> None:
    build, wanted = FLOPS[name]
    assert counted(build())[0] == wanted


LOOKUP = 4 * (3 * 8) + 8 * 3 + 4 * (3 * 8)  # the rows found, the numbers of rows, the result
BYTES: dict[str, tuple[Callable[[], Tensor], int]] = {
    "a broadcast input": (lambda: make(1, 50) + make(20, 50), 4 * (50 + 1000 + 1000)),
    "one element of many, broadcast": (lambda: make(1000)[5:6].expand(300) * 2, 4 * (1 + 300)),
    "an input twice": (lambda: make(100) * 2 + make(100).exp(), 4 * 300),
    "a slice": (lambda: make(10, 20)[:, 3:7] * 2, 4 * (40 + 40)),
    "every other": (lambda: make(100)[::2] * 2, 4 * (50 + 50)),
    "reversed": (lambda: make(100).flip(0) * 2, 4 * (100 + 100)),
    "neighbours": (lambda: (x := make(100))[1:] - x[:-1], 4 * (100 + 99)),
    "windows that overlap": (lambda: make(100).unfold(0, 5, 1).sum(1), 4 * (100 + 96)),
    "a transpose": (lambda: make(10, 20).T.contiguous(), 4 * 400),
    "a reshaped transpose": (lambda: make(10, 20).T.reshape(4, 50) * 2, 4 * 400),
    "padding": (lambda: make(100).pad((3, 5)), 4 * (100 + 108)),
    "parts put together": (lambda: picograd.cat([make(10), make(30)]), 4 * (40 + 40)),
    "a part of a part": (lambda: picograd.cat([make(100)[:10], make(30)]), 4 * (40 + 40)),
    "softmax": (lambda: make(8, 16).softmax(1), 4 * 2 * 128),
    "softmax of a slice": (lambda: make(8, 32)[:, :16].softmax(1), 4 * 2 * 128),
    "a lookup": (lambda: make(50, 8)[Tensor([3, 1, 3], device="cpu").realize()], LOOKUP),
    "a convolution": (
        lambda: functional.conv2d(make(2, 3, 9, 9), make(4, 3, 3, 3), padding=1),
        4 * (2 * 3 * 81 + 4 * 27 + 2 * 4 * 81),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_bytes(name: str) -> None:
    build, wanted = BYTES[name]
    assert counted(build())[1] == wanted


def test_a_scatter_counts_the_rows_it_updates() -> None:
    rows, index = make(10, 4), Tensor([1, 2, 2], device="cpu").realize()
    copy = 4 * (40 + 40)  # the old rows stay as they are
    updates = 8 * 3 + 4 * 12  # row numbers, and what is added
    assert counted(rows.index_add(0, index, make(3, 4))) == (12, copy + updates + 4 * (12 + 12))
