"""The words of `torch.onnx.export`."""

import io
import subprocess
import sys

import numpy as np
import pytest

import picograd
from picograd import nn
from picograd.onnx.torch_options import dynamic_of

onnxruntime = pytest.importorskip("onnxruntime")


def test_a_call_as_programs_write_it() -> None:
    layer, file = nn.Linear(3, 2), io.BytesIO()
    made = picograd.onnx.export(
        layer, picograd.ones(4, 3), input_names=["images"], output_names=["scores"],
        dynamic_axes={"images": {0: "batch"}, "scores": {0: "batch"}}, opset_version=11,
        export_params=True, do_constant_folding=True, verbose=False,
    )  # fmt: skip
    file.write(made.SerializeToString())
    session = onnxruntime.InferenceSession(file.getvalue())
    given = np.ones((5, 3), np.float32)
    (found,) = session.run(["scores"], {"images": given})
    np.testing.assert_allclose(found, layer(picograd.tensor(given)).numpy(), rtol=1e-5)
    assert not picograd.onnx.is_in_onnx_export()


def test_axes_and_words() -> None:
    axes = {"x": [0, 1], "other": {0: "n"}}
    assert dynamic_of(nn.Linear(3, 2), 1, ["x"], axes) == {"input": {0: "x_axis_0", 1: "x_axis_1"}}
    with pytest.raises(TypeError, match="unexpected keyword argument 'dynamic_shape'"):
        picograd.onnx.export(nn.Linear(3, 2), picograd.ones(1, 3), dynamic_shape={})


def test_without_the_package() -> None:
    """Names of PyTorch's exporter are imported by others; what writes and reads says so."""
    script = """
import sys
sys.modules["onnx"] = None
import picograd
from picograd.onnx import symbolic_opset11
from picograd.onnx.symbolic_helper import parse_args
assert parse_args("v")(len) is len and not picograd.onnx.is_in_onnx_export()
picograd.onnx.register_custom_op_symbolic("vision::nms", len, 11)
for call in (picograd.onnx.load, picograd.onnx.export):
    try:
        call("model.onnx")
    except ImportError as error:
        assert "pip install onnx" in str(error)
    else:
        raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
