"""The interpreter's own conversions, and where it reads values from."""

import numpy as np
import plain_nodes
import pytest
from graph_support import leaf, value

from picograd.buffer import Buffer, Storage
from picograd.conversion import convert
from picograd.dtype import bfloat16, float16, float32, uint8
from picograd.errors import DeviceError
from picograd.graph import build
from picograd.graph.interpret import interpret

torch = pytest.importorskip("torch")


def test_bfloat16_rounds_as_pytorch() -> None:
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 10_000, dtype=np.uint64).astype(np.uint32)
    x = np.concatenate([bits.view(np.float32), np.float32([np.inf, -np.inf, np.nan, 0, -0.0])])
    expected = torch.tensor(x).to(torch.bfloat16).to(torch.float32).numpy()
    np.testing.assert_array_equal(convert(x, bfloat16), expected)


def test_float64_keeps_what_16_bits_would_lose() -> None:
    x = leaf(np.float32([1.0]), float16)
    assert value(x + 1e-5) == 1
    assert value(x + 1e-5, True) == 1 + 1e-5


def test_floats_saturate_as_integers() -> None:
    x = leaf(np.float32([-1.0, 300.0, np.nan]))
    assert value(build.cast(x, uint8)).tolist() == [0, 255, 0]


def test_memory_is_read_by_address() -> None:
    data = np.float32([1, 2, 3])
    held = Buffer("cpu", float32, 3, data.ctypes.data)
    np.testing.assert_array_equal(value(plain_nodes.buffer(Storage(held), (3,))), data)
    half = data.astype(np.float32).view(np.uint32) >> np.uint32(16)
    short = half.astype(np.uint16)
    held = Buffer("cpu", bfloat16, 3, short.ctypes.data)
    np.testing.assert_array_equal(value(plain_nodes.buffer(Storage(held), (3,))), data)


def test_values_stand_for_leaves_elsewhere() -> None:
    x = plain_nodes.buffer(Storage(Buffer("cuda:0", float32, 2, 0)), (2,))
    with pytest.raises(DeviceError):
        interpret([x])
    np.testing.assert_array_equal(interpret([x + 1], values={x: np.float32([1, 2])})[0], [2, 3])


def test_realized_nodes_are_not_computed_again() -> None:
    x = leaf(np.float32([1, 2]))
    y = x + 1
    y.realized = leaf(np.float32([7, 8])).arg.buffer
    np.testing.assert_array_equal(value(y * 2), [14, 16])
