"""Quantised operators equal ONNX's own tests."""

import numpy as np
import pytest
from node_cases import listed, run
from runtime_support import compare, helper, model_of, onnx, output

NAMES = """
quantizelinear quantizelinear_blocked_symmetric dequantizelinear_axis dynamicquantizelinear
qlinearconv qlinearmatmul_2D_int8_float32 matmulinteger convinteger_with_padding
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)


@pytest.mark.parametrize("directions", [1, 2])
def test_a_recurrent_layer_of_bytes(directions: int) -> None:
    random = np.random.default_rng(0)
    way = "bidirectional" if directions == 2 else "forward"
    arrays = {"x": random.normal(size=(5, 2, 3)).astype(np.float32)}
    weights = {
        "w": random.integers(-127, 127, (directions, 3, 16)).astype(np.int8),
        "r": random.integers(-127, 127, (directions, 4, 16)).astype(np.int8),
        "b": random.normal(size=(directions, 32)).astype(np.float32),
        "ws": np.full(directions, 0.004, np.float32), "wz": np.zeros(directions, np.int8),
        "rs": np.full(directions, 0.003, np.float32), "rz": np.zeros(directions, np.int8),
    }  # fmt: skip
    takes = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    settings = dict(domain="com.microsoft", hidden_size=4, direction=way)
    node = helper.make_node("DynamicQuantizeLSTM", takes, ["y"], **settings)
    initial = [onnx.numpy_helper.from_array(each, name) for name, each in weights.items()]
    compare(model_of([node], arrays, [output("y")], initial), arrays, 1e-3)
