"""Updates of optimizers equal ONNX's own tests."""

import pytest
from node_cases import listed, run

NAMES = """
adam adagrad_multiple nesterov_momentum
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)
