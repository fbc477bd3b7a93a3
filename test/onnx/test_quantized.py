"""Quantised operators equal ONNX's own tests."""

import pytest
from node_cases import listed, run

NAMES = """
quantizelinear quantizelinear_blocked_symmetric dequantizelinear_axis dynamicquantizelinear
qlinearconv qlinearmatmul_2D_int8_float32 matmulinteger convinteger_with_padding
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)
