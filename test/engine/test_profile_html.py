"""A profile in a notebook."""

import numpy as np

import picograd
from picograd import Tensor
from picograd.engine.profile_html import POINTS, memory_picture


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


def test_picture_of_many_samples_keeps_the_peak_and_stays_small():
    samples = [(n / 1e5, 1000) for n in range(100_000)]
    samples[54_321] = (0.54321, 1 << 30)
    picture = memory_picture({"cpu": samples, "<cuda>": []}, 1.0)
    assert picture.count(",") < 3 * POINTS and "peak 1.0 GiB" in picture
    assert "&lt;cuda&gt;: peak 0 B" in picture and ",40.0 " in picture
