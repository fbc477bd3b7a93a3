"""If, Loop and Scan equal ONNX's own tests."""

import pytest
from node_cases import listed, run

NAMES = """
if if_seq loop11 loop16_seq_none scan_sum scan9_sum sequence_map_add_2_sequences
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)
