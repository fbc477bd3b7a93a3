"""Rings: what boxes bring to a stage, and what they leave as it is."""

import numpy as np
from box_products import program_of, results, tiles_of
from cuda_tools import matmul_kernel

from picograd.dtype import bfloat16


def test_boxes_are_no_longer_than_the_array():
    """16 of 64 rows arrive: 2 KiB and 8 KiB of the other operand, in each stage."""
    case = dict(m=16, n=72, k=136, dtype=bfloat16, b="nk")
    program = program_of(tiles_of(matmul_kernel(**case), (64, 64)))
    expected = {i.arg for i in program.instructions if i.op == "barrier_expect"}
    left = [i.arg for i in program.instructions if i.op == "unfilled"]
    assert expected == {(16 + 64) * 128} and set(left) == {48 * 128} and len(left) == 10
    want, tile, found = results(case, (64, 64))
    assert np.abs(tile - want).max() < 8e-3 * np.abs(want).max()
    assert np.abs(found - want).max() < 8e-3 * np.abs(want).max()
