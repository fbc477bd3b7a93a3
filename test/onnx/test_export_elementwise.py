"""Every elementwise op of the op table as ONNX operators, run by ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import picograd.onnx  # noqa: E402
from picograd import Tensor  # noqa: E402
from picograd.graph.elementwise import ELEMENTWISE  # noqa: E402
from picograd.graph.interpret import interpret  # noqa: E402
from picograd.graph.node import Node  # noqa: E402
from picograd.onnx.export_elementwise import ROWS  # noqa: E402
from picograd.tensor.core.recording import apply  # noqa: E402

RANDOM = np.random.default_rng(0)
NAMES = [name for name in ELEMENTWISE if name not in ("cast", "bitcast", "where")]


def test_all_have_a_row_but_the_bits_of_a_number() -> None:
    assert ELEMENTWISE.keys() - ROWS.keys() == {"bitcast"}


@pytest.mark.parametrize("name", NAMES)
def test_ops(name: str) -> None:
    row = ELEMENTWISE[name]
    kinds, (low, high) = row.dtype_rule.kinds, row.domain
    arrays = [RANDOM.uniform(low, high, 12) for _ in range(row.arity)]
    kind = "float32" if "float" in kinds else "bool" if kinds == ("bool",) else "int32"
    arrays = [each > 0 if kind == "bool" else each.astype(kind) for each in arrays]
    dtype = row.dtype_rule.result(Tensor(arrays[0]).dtype)

    def op(*nodes: Any) -> Any:
        return Node(name, nodes, None, nodes[0].shape, dtype, nodes[0].device)

    def function(x: Any, y: Any = None, z: Any = None) -> Any:
        return apply(op, *(each for each in (x, y, z) if each is not None))

    model = picograd.onnx.export(function, tuple(map(Tensor, arrays)))
    session = runtime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, dict(zip(names, arrays)))[0]
    wanted = interpret([function(*map(Tensor, arrays))._node])[0]
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("name", ["log1p", "expm1"])
def test_formulas_near_zero_and_far_away(name: str) -> None:
    x = np.array([1e-8, -1e-8, 1e-4, 20.0, 1e30 if name == "log1p" else -50.0], np.float32)
    model = picograd.onnx.export(lambda x: getattr(x, name)(), Tensor(x))
    found = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, getattr(np, name)(x.astype(np.float64)), 1e-6)


def test_edges_of_pairs() -> None:
    x = np.array([0.0, 1.0, -1.0, 0.0, 3e30], np.float32)
    y = np.array([0.0, 0.0, 0.0, -2.0, 4e30], np.float32)
    model = picograd.onnx.export(lambda x, y: (x.atan2(y), x.hypot(y)), (Tensor(x), Tensor(y)))
    feeds = {"x": x, "y": y}
    angle, length = runtime.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(angle, np.arctan2(x, y), 1e-6)
    np.testing.assert_allclose(length, np.hypot(x, y), 1e-6)
