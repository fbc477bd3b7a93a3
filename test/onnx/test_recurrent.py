"""Recurrent layers equal ONNX's own tests."""

import numpy as np
import pytest
from node_cases import listed, run
from runtime_support import compare, helper, model_of, output

import picograd
import picograd.onnx
from picograd import Tensor

NAMES = """
lstm_with_peepholes lstm_bidirectional gru_seq_length rnn_seq_length
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)


def test_many_steps_are_one_loop() -> None:
    """Record a long sequence once: the plan does not grow with the steps."""
    random = np.random.default_rng(0)
    shapes = {"x": (200, 2, 3), "w": (1, 16, 3), "r": (1, 16, 4), "b": (1, 32)}
    arrays = {n: random.normal(size=s).astype(np.float32) * 0.3 for n, s in shapes.items()}
    arrays["lengths"] = np.array([200, 120], np.int32)
    node = helper.make_node("LSTM", list(arrays), ["y", "h"], hidden_size=4)
    compare(model_of([node], arrays, [output("y"), output("h")]), arrays)
    model = picograd.onnx.load(model_of([node], arrays, [output("y"), output("h")]), check=False)
    found, _ = model(*(Tensor(each) for each in arrays.values()))
    assert len(str(picograd.plan(found)).splitlines()) < 100
