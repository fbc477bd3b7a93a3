"""A profile in a notebook."""

import numpy as np

import picograd
from picograd import Tensor


def test_kernels_lines_and_memory(cpu_by_default, capsys):
    with picograd.profile(None) as run:
        x = Tensor(np.ones((64, 64), np.float32))
        (x @ x).softmax(1).realize()
    capsys.readouterr()
    text = run._repr_html_()
    assert text.startswith("<div><b>2 kernels") and "contract_64x64 on cpu" in text
    assert "test_profile_html.py" in text and "<svg" in text and "held back by" in text
    assert text.count("<table>") == text.count("</table>") == 2


def test_a_profile_of_nothing(capsys):
    with picograd.profile(None) as run:
        pass
    assert "0 kernels" in run._repr_html_()
