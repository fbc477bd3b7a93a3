"""If, Loop and Scan equal ONNX's own tests."""

import numpy as np
import pytest
from node_cases import listed, run
from runtime_support import compare, helper, model_of, output

import picograd.onnx

NAMES = """
if if_seq loop11 loop16_seq_none scan_sum scan9_sum sequence_map_add_2_sequences
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)


def test_a_scan_is_a_loop_of_the_graph() -> None:
    """Sum rows backwards, in a model that jit takes; a state that grows is run step by step."""
    step = helper.make_graph(
        [helper.make_node("Add", ["old", "row"], ["new"]),
         helper.make_node("Identity", ["new"], ["shown"])],
        "step", [output("old"), output("row")], [output("new"), output("shown")],
    )  # fmt: skip
    settings = dict(body=step, num_scan_inputs=1, scan_input_directions=[1])
    node = helper.make_node("Scan", ["start", "x"], ["last", "all"], **settings)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    arrays = {"start": np.ones(3, np.float32), "x": x}
    compare(model_of([node], arrays, [output("last"), output("all")]), arrays)
    grow = helper.make_graph(
        [helper.make_node("Concat", ["old", "row"], ["new"], axis=0),
         helper.make_node("Identity", ["row"], ["shown"])],
        "grow", [output("old"), output("row")], [output("new"), output("shown")],
    )  # fmt: skip
    node = helper.make_node("Scan", ["start", "x"], ["last", "all"], body=grow, num_scan_inputs=1)
    model = picograd.onnx.load(model_of([node], arrays, [output("last"), output("all")]), False)
    start = np.ones((1, 3), np.float32)
    last, rows = model(start, x[:, None])
    assert last.tolist() == np.concatenate([start, x]).tolist() and rows.shape == (4, 1, 3)
