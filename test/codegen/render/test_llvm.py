"""Compiled LLVM kernels equal the Loop-IR interpreter."""

from math import prod
from typing import Any

import numpy as np
import plain_nodes
import pytest
from cases import BINARY, INTEGER, UNARY, Case, binary, unary
from compare import check_arrays
from harness import TARGET, run

from picograd import Tensor
from picograd.buffer import Buffer, Storage
from picograd.code import ALL, FEW, MIDDLE, TILES
from picograd.codegen.pipeline import generate
from picograd.dtype import bfloat16, float16, float32, float64, int8, int32, int64, uint8
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule.schedule import schedule
from picograd.schedule.verify import verify

FLOATS = [float32, float64, float16, bfloat16]
INTEGERS = [int32, uint8, int64, int8]


def compare(case: Case) -> None:
    verify(case.kernel)
    check_arrays(case, run(case.kernel, case.arrays, case.scalars))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_unary(name: str, dtype: Any) -> None:
    compare(unary(name, dtype))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", FLOATS[:2], ids=lambda d: d.name)
def test_binary(name: str, dtype: Any) -> None:
    compare(binary(name, dtype))


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_integer(name: str, dtype: Any) -> None:
    compare(binary(name, dtype))


def test_a_truncated_value_alone_behind_whole_vectors_is_stored_no_wider() -> None:
    """LLVM wrote the first element of the next row with it, and behind the last row."""
    values = np.random.default_rng(0).standard_normal((16, 33)).astype(np.float32)
    x = Tensor(values).realize()
    found = (x - x.amax(1, keepdims=True)).bfloat16().realize()
    np.testing.assert_allclose(
        found.float().numpy(), values - values.max(1, keepdims=True), rtol=2**-8
    )


def leaf(*shape: int) -> Node:
    return plain_nodes.buffer(Storage(Buffer("cpu", float32, prod(shape), 0)), shape)


def product() -> Node:
    x, w = leaf(33, 70), leaf(65, 70)
    return build.matmul(x, w.permute((1, 0)))


def convolution() -> Node:
    x, w = leaf(2, 1, 16, 12, 12), leaf(1, 32, 16, 3, 3)
    return build.conv(x, w, ConvSpec((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1)))


@pytest.mark.parametrize("make", [product, convolution])
def test_tiles_have_the_same_bits_with_any_passes(make: Any) -> None:
    """A process that runs a kernel often goes from one to the other."""
    (kernel,) = schedule([make()], TARGET).kernels
    assert TILES in generate(kernel, TARGET).source
    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal(slot.size).astype(np.float32) for slot in kernel.slots]
    few, middle, whole = (run(kernel, arrays, passes=passes) for passes in (FEW, MIDDLE, ALL))
    for found in (few, middle):
        for array, wanted in zip(found, whole, strict=True):
            np.testing.assert_array_equal(array, wanted)
