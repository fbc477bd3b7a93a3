"""Rows: the newest one that an opset has; operators are added by users."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

import picograd.onnx  # noqa: E402
from picograd import Tensor  # noqa: E402
from picograd.onnx.table import OPERATORS, find_operator, ints, operator  # noqa: E402


def test_rows_are_chosen_by_opset() -> None:
    old, new = find_operator("Softmax", 12), find_operator("Softmax", 13)
    assert old is not None and new is not None and (old.since, new.since) == (1, 13)
    assert find_operator("Unheard", 20) is None and ints(np.array([[1, 2]])) == [1, 2]


def test_users_add_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATORS, "Thrice", [])

    @operator("Thrice")
    def thrice(x: Tensor, more: float = 0.0) -> Tensor:
        return x * 3 + more

    node = helper.make_node("Thrice", ["x"], ["y"], domain="mine", more=1.0)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([node], "net", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = picograd.onnx.load(helper.make_model(graph, opset_imports=opsets), check=False)
    assert model(np.ones(2, np.float32)).tolist() == [4.0, 4.0]


class Host:
    host, tensor = staticmethod(np.asarray), staticmethod(Tensor)


def test_inputs_are_what_their_annotations_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATORS, "Told", [])

    @operator("Told")
    def told(x: Tensor, by: int | None, sizes: list[int], more: Any = None) -> Any:
        return x, by, sizes, more

    values = [np.ones(2, np.float32), np.array([3]), np.array([4, 5])]
    x, by, sizes, more = OPERATORS["Told"][0].computed(Host(), values, {"more": "text"})
    assert isinstance(x, Tensor) and (by, sizes, more) == (3, [4, 5], "text")
    assert OPERATORS["Told"][0].computed(Host(), [values[0], None, values[2]], {})[1] is None

    @operator("Told", since=2)
    def told_of_call(call: Any, x: Any, by: float) -> Any:
        return x, by

    x, by = OPERATORS["Told"][0].computed(Host(), values[:2], {})
    assert x is values[0] and type(by) is float


def test_domains_with_names_of_their_own() -> None:
    assert find_operator("Relu", 20, "com.microsoft") is None
    assert find_operator("Relu", 20, "somebody") is find_operator("Relu", 20)
    row = find_operator("Scaler", 1, "ai.onnx.ml")
    assert row is not None and find_operator("Scaler", 20) is None
