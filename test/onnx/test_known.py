"""What the host knows of tensors: it ends with a write, and follows computations."""

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import helper, numpy_helper
from runtime_support import compare, model_of, output

from picograd import Tensor
from picograd.onnx.known import Known


def test_a_written_tensor_is_read_anew() -> None:
    x, outer = Tensor([1.0, 2.0]), Known()
    outer.remember(x, np.array([1.0, 2.0]))
    inner = Known(outer)
    assert inner.has_all([x, None, np.array(3)]) and not inner.has_all([None])
    assert inner.array(x).tolist() == [1.0, 2.0]
    x += 1
    assert not inner.has_all([x]) and inner.array(x).tolist() == [2.0, 3.0]
    assert inner.array(np.array(3)) == 3


def test_what_computes_an_array_is_asked_late() -> None:
    asked: list[int] = []
    x, known = Tensor([1.0]), Known()
    known.remember(x, lambda: asked.append(1) or np.array([5.0]))
    assert not asked and known.array(x).tolist() == [5.0] and asked == [1]
    known.remember(Tensor.zeros(100), np.zeros(100))
    assert len(known.entries) == 1


def test_sizes_through_floats() -> None:
    """Let a size go through floats, as scales of pictures do: half of it, rounded down."""
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Cast", ["sizes"], ["reals"], to=1),
        helper.make_node("Mul", ["reals", "half"], ["halves"]),
        helper.make_node("Floor", ["halves"], ["whole"]),
        helper.make_node("Cast", ["whole"], ["ends"], to=7),
        helper.make_node("Slice", ["x", "starts", "ends"], ["y"]),
    ]
    arrays = {"half": np.array(0.5, np.float32), "starts": np.array([0, 0])}
    initial = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    (found,) = compare(model_of(nodes, {"x": x}, [output("y")], initial), {"x": x})
    assert found.shape == (2, 3)
