"""A tensor in a notebook."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import TraceError

pytestmark = pytest.mark.usefixtures("cpu_by_default")


def test_one_and_two_dimensions_are_tables():
    text = Tensor([[1.0, 2.5], [3.0, float("nan")]], name="a<b")._repr_html_()
    assert "a&lt;b float32[2, 2] on cpu" in text
    assert text.count("<tr>") == 2 and text.count("<td") == 4
    assert ">2.5000<" in text and ">nan<" in text
    assert Tensor([1, 2, 3])._repr_html_().count("<tr>") == 1
    assert ">True<" in Tensor.of([True])._repr_html_()
    assert ">1.+2.5000j<" in Tensor([1 + 2.5j])._repr_html_()


def test_large_ones_are_cut():
    text = Tensor(np.arange(100.0 * 200).reshape(100, 200))._repr_html_()
    assert text.count("<tr>") == 11 and text.count("<td") == 121 and text.count("…") == 21
    assert ">0.0000e+00<" in text and ">1.9999e+04<" in text
    assert Tensor(np.arange(100.0))._repr_html_().count("<td") == 11


@pytest.mark.parametrize("shape", [(), (2, 1, 2), (0,), (0, 3)])
def test_others_are_text(shape):
    text = Tensor(np.zeros(shape, np.float32))._repr_html_()
    assert "<pre>Tensor(" in text and "<table>" not in text


def test_while_jit_traces_there_is_nothing_to_show():
    with pytest.raises(TraceError):
        picograd.jit(lambda x: x._repr_html_())(Tensor([1.0]))


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_without_values_the_text_is_shown(shape: tuple[int, ...]) -> None:
    x = picograd.empty(*shape, device="meta")
    assert f"{x}" == repr(x) and f"float32{list(shape)} on meta" in x._repr_html_()
