"""Windows of a product's result, reduced over axes of its rows."""

import numpy as np
import pytest
from contractions import values
from pooled_products import Along, Sizes, largest, pooled
from run_cpu import TARGET, Loaded

from picograd.codegen.operands import Windows, analyse
from picograd.codegen.templates.contract_plan import choose, orient, window_rows
from picograd.dtype import float32
from picograd.schedule.index import Axis
from picograd.schedule.interpret import interpret
from picograd.target import Target

MANY = Target("llvm", "host", 64, threads=16, registers=32)

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
