"""The command line: what it prints of a model, and of one that it cannot run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from picograd.onnx.__main__ import main  # noqa: E402


def saved(path: Path, op: str) -> str:
    """Write `op(x @ weight)`."""
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["rows"]),
        helper.make_node(op, ["rows"], ["y"], name="last"),
    ]
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "weight")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(nodes, "net", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, str(path))
    return str(path)


def test_a_model_its_kernels_and_its_time(tmp_path: Path, capsys: Any) -> None:
    path = saved(tmp_path / "net.onnx", "Relu")
    assert main([path, "--size", "n=2", "--runs", "1"]) == 0
    text = capsys.readouterr().out
    for line in ("ai.onnx 17", "input       x: float32 (n, 4)", "output      y: float32 (n, 3)",
                 "nodes       2: MatMul 1, Relu 1", "parameters  1: 12 numbers, 48 B", "kernel",
                 "contract", "ms at (2, 4)"):  # fmt: skip
        assert line in text
    assert main([path, "--explain", "--runs", "1"]) == 0
    assert "== Graph IR" in capsys.readouterr().out


def test_what_is_wrong_is_one_line(tmp_path: Path, capsys: Any) -> None:
    path = saved(tmp_path / "net.onnx", "Relu")
    assert main([path, "--size", "n"]) == 1
    assert main([str(tmp_path / "none.onnx")]) == 1
    assert main([saved(tmp_path / "odd.onnx", "Unheard")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "--size batch=8" in lines[0] and "cannot read" in lines[1]
    assert "Unheard" in lines[2]
