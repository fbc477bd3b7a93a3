"""Windows and Fourier transforms equal ONNX's own tests."""

import pytest
from node_cases import listed, run

NAMES = """
hannwindow_symmetric blackmanwindow dft dft_axis dft_irfft stft_with_window
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)
