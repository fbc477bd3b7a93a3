"""Recurrent layers equal ONNX's own tests."""

import pytest
from node_cases import listed, run

NAMES = """
lstm_with_peepholes lstm_bidirectional gru_seq_length rnn_seq_length
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)
