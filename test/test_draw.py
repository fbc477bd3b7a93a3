"""Ancestors' list: M46."""

import subprocess
import sys
import time

import numpy as np
import pytest

from picograd import Tensor, draw, nn
from picograd.draw import draw_dot, picture_of
from picograd.engine.realize import make_plan
from picograd.errors import DataError, DeviceError, ValueRangeError


def small():
    a, b = Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((3, 4), np.float32))
    return (a.dot(b) + 1.0).relu()


@pytest.fixture
def no_graphviz(monkeypatch):
    """A machine with neither the `dot` program nor the wheel that bundles it."""
    monkeypatch.setattr(draw.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "pygraphviz", None)


def test_graph_shows_op_shape_dtype_and_device():
    text = picture_of(small()).text()
    assert text.startswith("digraph picograd {")
    assert 'fillcolor="orange"' in text and "shape=circle" in text
    assert "(2, 4)" in text and "float32 cpu" in text and '[label="relu"' in text


def test_text_is_the_same_in_every_run():
    assert picture_of(small()).text() == picture_of(small()).text()


def test_text_is_always_written(tmp_path, no_graphviz, capsys):
    written = draw_dot(small(), tmp_path / "graphs" / "test")
    assert written == tmp_path / "graphs" / "test.dot" and written.is_file()
    assert not (tmp_path / "graphs" / "test.svg").exists()
    message = capsys.readouterr().err
    assert "text only: to see it, install Graphviz" in message and "picograd[viz]" in message


def test_dot_suffix_writes_text_without_a_message(tmp_path, capsys):
    assert draw_dot(small(), tmp_path / "g.dot") == tmp_path / "g.dot"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["g", "g.svg", "g.png"])
def test_pictures(name, tmp_path):
    if not draw.shutil.which("dot"):
        pytest.importorskip("pygraphviz")
    written = draw_dot(small(), tmp_path / name)
    assert written.name == ("g.svg" if name == "g" else name)
    head = written.read_bytes()[:200]
    assert b"svg" in head or head.startswith(b"\x89PNG") or b"xml" in head
    assert (tmp_path / "g.dot").is_file()


def test_kernels_and_plan():
    tensor = (small() + 1.0).softmax(1)
    kernels, plan = picture_of(tensor, "kernels").text(), picture_of(tensor, "plan").text()
    assert "contract" in kernels and "->" in kernels
    assert "output" in plan and "input" in plan and plan.count("[label") > kernels.count("[label")
    assert picture_of(make_plan([tensor.node])).text() == plan


def test_ten_thousand_nodes_take_less_than_two_seconds(tmp_path, capsys):
    node = Tensor([1.0, 2.0]).node
    for _ in range(5000):  # nodes, because tensors compute what is pending after 10,000 of them
        node = (node + node).unary("sin")
    tensor = Tensor.from_node(node)
    start = time.perf_counter()
    draw_dot(tensor, tmp_path / "large.svg")
    assert time.perf_counter() - start < 2.0
    assert "text only: 20001 nodes are too many for a layout" in capsys.readouterr().err


def test_wrong_use_is_named(tmp_path):
    with pytest.raises(ValueRangeError, match="draw_dot: level='ops' is unknown"):
        draw_dot(small(), tmp_path / "g.svg", level="ops")
    with pytest.raises(ValueRangeError, match="cannot draw an int"):
        draw_dot(3, tmp_path / "g.svg")
    with pytest.raises(ValueRangeError, match="a Linear.*Fix: .*a module with inputs=x"):
        draw_dot(nn.Linear(2, 2), tmp_path / "g.svg")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="draw_dot: cannot write"):
        draw_dot(small(), tmp_path / "file" / "g.svg")


@pytest.mark.parametrize("name", ["g.jpg", "g.sgv", "model.v2"])
def test_an_unknown_format_is_an_error(name, tmp_path):
    with pytest.raises(ValueRangeError, match=r"unknown format \..*use one of \.svg, \.png"):
        draw_dot(small(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("error")
def test_names_numbers_and_gradients_as_in_micrograd(cpu_by_default):
    a = Tensor(2.0, requires_grad=True, name="a")
    b = Tensor(-3.0, requires_grad=True, name="b")
    loss = (a * b + a).tanh()
    loss.name = "loss"
    before = picture_of(loss).text()
    assert 'label="a\\n()\\nfloat32 cpu\\ndata 2.0000"' in before and "\\ngrad" not in before
    assert loss.node.realized is None, "drawing computed it"
    loss.backward()
    text = picture_of(loss).text()
    slope = 1 - np.tanh(-4.0) ** 2
    assert f"a\\n()\\nfloat32 cpu\\ndata 2.0000\\ngrad {slope * -2:.4f}" in text
    assert f"b\\n()\\nfloat32 cpu\\ndata -3.0000\\ngrad {slope * 2:.4f}" in text
    assert "loss\\n()\\nfloat32 cpu\\ndata -0.9993" in text and "data -4.0000" in text
    plain = picture_of(loss, values=False).text()
    assert "data" not in plain and "\\ngrad" in plain


def test_numbers_of_large_tensors_and_graphs_are_left_out(cpu_by_default):
    x = Tensor(np.ones(draw.SMALL + 1, np.float32))
    assert "data" not in picture_of(x + 1).text()
    assert "data" in picture_of((x + 1).sum()).text()
    node = Tensor([1.0]).node
    for _ in range(draw.SHOWN_NODES):
        node = node.unary("sin")
    assert "data" not in picture_of(Tensor.from_node(node)).text()


def test_memory_that_is_not_this_machines_has_no_numbers(monkeypatch, cpu_by_default):
    def fail(nodes):
        raise DeviceError("interpret", "the memory is a GPU's", "copy it")

    monkeypatch.setattr(draw, "interpret", fail)
    assert "data" not in picture_of(Tensor([1.0]) + 1).text()


def test_reductions_show_their_kinds_and_axes():
    x = Tensor(np.ones((2, 3, 4), np.float32))
    text = picture_of([x.sum((0, 2)), x.max(), x.softmax(1)]).text()
    assert '"sum\\naxes 0, 2"' in text and '"max\\naxes 0, 1, 2"' in text
    assert '"softmax\\n1"' in text


class Twice(nn.Module):
    """A module that is called two times, inside another."""

    def __init__(self):
        self.inner = nn.Linear(3, 3)

    def forward(self, x):
        return {"y": self.inner(self.inner(x)), "z": x.exp()}


def test_modules_are_frames_and_parameters_have_their_names():
    model = Twice()
    x = Tensor(np.ones((1, 3), np.float32), name="x")
    text = picture_of(model, inputs=x).text()
    assert text.count('label="inner: Linear"') == 2 and text.count('label="Twice"') == 1
    assert "inner.weight" in text and '"x\\n(1, 3)' in text
    assert "random_bits" not in text, "how parameters were made is not part of it"
    assert text.count("{") == text.count("}")
    outside = [line for line in text.splitlines() if line.startswith("  n") and "label" in line]
    assert ["x" in line for line in outside] == [True]
    with pytest.raises(ValueRangeError, match="inputs are given, but a Tensor is no module"):
        picture_of(x, inputs=x)


def test_a_notebook_shows_the_picture(tmp_path):
    dot = draw_dot(small(), tmp_path / "g.dot")
    assert dot._repr_html_().startswith("<pre>digraph")
    if not draw.shutil.which("dot"):
        pytest.importorskip("pygraphviz")
    assert draw_dot(small(), tmp_path / "g.svg")._repr_html_().startswith("<svg")
    assert draw_dot(small(), tmp_path / "g.png")._repr_html_().startswith('<img src="data:image')
    assert "g.pdf" in draw_dot(small(), tmp_path / "g.pdf")._repr_html_()


def test_ancestor_import_does_not_need_the_program():
    code = "from picograd.draw_utils import draw_dot; print(draw_dot.__name__)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert output.stdout.strip() == "draw_dot", output.stderr


def test_plan_of_computed_tensors(tmp_path):
    with pytest.raises(ValueRangeError, match="computed already, so there is no plan"):
        draw_dot(Tensor([1.0]).realize(), tmp_path / "g.svg", level="plan")


def test_pictures_have_the_permissions_of_open(tmp_path, capsys):
    draw_dot(Tensor([1.0]) + 1, tmp_path / "graph.svg")
    (tmp_path / "own").touch()
    files = [path for path in tmp_path.iterdir() if path.suffix]
    wanted = (tmp_path / "own").stat().st_mode
    assert files and {path.stat().st_mode for path in files} == {wanted}
