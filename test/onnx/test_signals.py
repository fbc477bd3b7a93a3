"""Windows and Fourier transforms equal ONNX's own tests."""

import pytest
from node_cases import listed, of_attributes, run

NAMES = """
hannwindow_symmetric blackmanwindow dft dft_axis dft_irfft stft_with_window
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)


def test_axis_before_it_was_an_input() -> None:
    ones = [[[1.0], [1.0]]]
    sums = [[[2.0, 0.0], [0.0, 0.0]]]
    assert of_attributes("DFT", 17, ones) == of_attributes("DFT", 17, ones, axis=1) == sums
