"""Windows of a product's result on CUDA: each in the registers of one thread."""

import dataclasses

import numpy as np
import pytest
from contractions import strided, values
from cuda_tools import compile_cuda, compile_host, run_host, source_of
from pooled_products import Along, Sizes, largest, pooled

from picograd.codegen.operands import analyse, arrange
from picograd.codegen.templates import contract_cuda
from picograd.codegen.templates.contract_patches import inside_axes, split_windows, windows_last
from picograd.dtype import float32
from picograd.helpers import row_major
from picograd.schedule.loop import Kernel
from picograd.target import cuda_target

H200 = cuda_target("sm_90a")
PAIR, ONE = Along(6, 2, 2), Along(5, 1, 1)
# Windows of 4 and 2, K split over blocks, several tiles, one window along an axis.
CASES = [
    (Sizes(3, Along(14, 2, 2), Along(10, 2, 2)), 40, 70),
    (Sizes(2, PAIR, ONE), 33, 9),
    (Sizes(2, ONE, PAIR), 16, 4000),
    (Sizes(3, Along(8, 4, 4), ONE), 5, 11),
    (Sizes(40, Along(4, 2, 2), Along(2, 2, 2)), 70, 30),
]


def test_windows_of_a_product() -> None:
    """Stored image or none; operands that run along rows or along K."""
    built, cases = [], [(*case, is_row) for case in CASES for is_row in (True, False)]
    for number, (sizes, n, k, is_row) in enumerate(cases):
        for make in (stored, planar):
            kernel = make(pooled(sizes, n, k, is_row))
            kernel = dataclasses.replace(kernel, name=f"pooled_{number}_{make.__name__}")
            built.append(contract_cuda.build(kernel, H200))
    library = compile_host(built)
    for number, tiles in enumerate(built):
        sizes, n, k, is_row = cases[number // 2]
        m = int(np.prod(sizes.rows))
        a, b = values((m, k), float32, 1), values((k, n), float32, 2)
        found = run_host(library, tiles, {0: a.T if is_row else a, 1: b})
        product = a.astype(np.float64) @ b
        close = dict(atol=1e-5 * (np.abs(product).max() + 1e-3), rtol=0)
        wanted = largest(product.reshape(*sizes.rows, n), sizes) + 3
        if number % 2:
            wanted = np.moveaxis(wanted, -1, 1)
        else:
            np.testing.assert_allclose(found[2].reshape(m, n), np.maximum(product, 0), **close)
        np.testing.assert_allclose(found[3].ravel(), wanted.ravel(), **close)


def stored(kernel: Kernel) -> Kernel:
    """All elements and the windows, columns last."""
    return kernel


def planar(kernel: Kernel) -> Kernel:
    """The windows alone, columns before the height and width of images."""
    (part,) = kernel.parts
    hero, whole, largest_, more = part.computes
    images, p, q, columns = more.axes
    place = strided((images, columns, p, q), row_major([x.size for x in (images, columns, p, q)]))
    more = dataclasses.replace(more, store=(3, place))
    computes = (hero, dataclasses.replace(whole, store=None), largest_, more)
    return dataclasses.replace(kernel, parts=(dataclasses.replace(part, computes=computes),))


@pytest.mark.parametrize(("make", "side"), [(stored, "rows"), (planar, "columns")])
def test_elements_of_a_window_follow_one_another(make, side: str) -> None:
    c = split_windows(analyse(make(pooled(*CASES[0], False))))
    assert not c.windows and c.sizes[1:3] == (3 * 14 * 10, 40)
    arranged, _, _ = arrange(c, H200)
    c = windows_last(arranged)
    inside = inside_axes(c)
    assert [axis.size for axis in inside] == [2, 2]
    assert getattr(c, side)[-2:] == inside


def test_nothing_spills() -> None:
    sizes = Sizes(64, Along(28, 2, 2), Along(28, 2, 2))
    kernel = planar(pooled(sizes, 32, 288, False))
    _, log = compile_cuda(source_of(contract_cuda.build(kernel, H200))[0], "sm_90a")
    assert "0 bytes stack frame, 0 bytes spill stores" in log, log
