"""Products of tiles in flat memory: rows that are apart, pairs of K in turn, sums that are kept."""

import numpy as np
import pytest

from picograd.codegen.tile_products import TileProduct, unpaired
from picograd.conversion import from_bits, to_bits
from picograd.dtype import bfloat16


def test_unpaired_undoes_what_packing_does() -> None:
    b = np.arange(8 * 3).reshape(8, 3)
    pairs = np.stack([b[0::2], b[1::2]], axis=2).reshape(4, 6)
    assert np.array_equal(unpaired(pairs, 3), b)


@pytest.mark.parametrize("is_first", [True, False])
def test_add(is_first: bool) -> None:
    product = TileProduct(1, 2, 2, acc_row=40, a_row=70, b_row=66, is_first=is_first)
    generator = np.random.default_rng(0)
    a = to_bits(generator.standard_normal(5 + 16 * 70).astype(np.float32), bfloat16)
    b = to_bits(generator.standard_normal(3 + 32 * 66).astype(np.float32), bfloat16)
    before = generator.standard_normal(7 + 16 * 40).astype(np.float32)
    acc = before.copy()
    product.add((acc, 7), (a, 5), (b, 3))
    left = from_bits(a[5:].reshape(16, 70)[:, :64], bfloat16)
    right = unpaired(from_bits(b[3:].reshape(32, 66)[:, :64], bfloat16), 32)
    expected = before[7:].reshape(16, 40).copy()
    expected[:, :32] = left @ right + (0 if is_first else expected[:, :32])
    np.testing.assert_allclose(acc[7:].reshape(16, 40), expected, rtol=1e-5, atol=1e-5)
    assert np.array_equal(acc[:7], before[:7])
