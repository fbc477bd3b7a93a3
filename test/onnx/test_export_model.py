"""Exported models, run by ONNX Runtime: layers, networks, errors."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from export_cases import check, computed, filled, made, reals, run  # noqa: E402

import picograd  # noqa: E402
import picograd.onnx  # noqa: E402
from picograd import Tensor, nn  # noqa: E402
from picograd.errors import DataError, TraceError, ValueRangeError  # noqa: E402
from picograd.tensor.transforms.jit_arguments import signature_of  # noqa: E402

LAYERS = [
    ("Linear(3, 4)", "b,5,3"),
    ("Bilinear(3, 4, 5)", "b,3 b,4"),
    ("Conv1d(3, 4, 3, padding=1, stride=2)", "b,3,9"),
    ("Conv2d(4, 6, 3, padding=1, groups=2, dilation=2)", "b,4,9,8"),
    ("Conv3d(2, 3, 2)", "b,2,4,4,4"),
    ("ConvTranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1)", "b,3,5"),
    ("ConvTranspose2d(4, 6, 3, stride=2, groups=2)", "b,4,5,4"),
    ("ConvTranspose3d(2, 3, 2)", "b,2,3,3,3"),
    ("MaxPool1d(2)", "b,3,8"),
    ("MaxPool2d(3, 2, 1)", "b,3,8,8"),
    ("MaxPool3d(2)", "b,2,4,4,4"),
    ("AvgPool1d(2)", "b,3,8"),
    ("AvgPool2d(3, 2, 1)", "b,3,8,8"),
    ("AvgPool3d(2)", "b,2,4,4,4"),
    ("LPPool2d(2, 2)", "b,2,4,4"),
    ("AdaptiveAvgPool1d(1)", "b,2,8"),
    ("AdaptiveAvgPool2d(3)", "b,2,8,7"),
    ("AdaptiveMaxPool2d(3)", "b,2,8,7"),
    ("BatchNorm1d(3)", "b,3"),
    ("BatchNorm2d(3)", "b,3,4,4"),
    ("LayerNorm(4)", "b,5,4"),
    ("LayerNorm((2, 4), bias=False)", "b,2,4"),
    ("GroupNorm(2, 4)", "b,4,3"),
    ("InstanceNorm2d(3, affine=True)", "b,3,4,4"),
    ("RMSNorm(4)", "b,4"),
    ("LocalResponseNorm(2)", "b,4,3,3"),
    ("Embedding(5, 3)", "5:b,4"),
    ("EmbeddingBag(5, 3)", "5:b,4"),
    ("Dropout(0.5)", "b,3"),
    ("Identity()", "b,3"),
    ("Flatten()", "b,3,4"),
    ("Unflatten(1, (2, 3))", "b,6"),
    ("PixelShuffle(2)", "b,8,3,3"),
    ("PixelUnshuffle(2)", "b,2,4,4"),
    ("ChannelShuffle(2)", "b,4,3,3"),
    ("Upsample(scale_factor=2)", "b,2,3,3"),
    ("Upsample(scale_factor=2, mode='bilinear')", "b,2,3,3"),
    ("ZeroPad2d(1)", "b,2,3,3"),
    ("ReflectionPad2d(1)", "b,2,3,3"),
    ("ReplicationPad1d(1)", "b,2,3"),
    ("ConstantPad1d(1, 2.5)", "b,2,3"),
    ("CircularPad2d(1)", "b,2,3,3"),
    ("Unfold(2)", "b,2,4,4"),
    ("Fold((4, 4), 2)", "b,8,9"),
    ("CosineSimilarity()", "b,4 b,4"),
    ("PairwiseDistance()", "b,4 b,4"),
    ("MultiheadAttention(4, 2, batch_first=True)", "b,3,4 b,3,4 b,3,4"),
    ("TransformerEncoderLayer(4, 2, 8, batch_first=True)", "b,3,4"),
    ("TransformerDecoderLayer(4, 2, 8, batch_first=True)", "b,3,4 b,5,4"),
    ("LSTM(3, 4, 2, batch_first=True, bidirectional=True)", "b,5,3"),
    ("GRU(3, 4, batch_first=True)", "b,5,3"),
    ("RNN(3, 4, batch_first=True)", "b,5,3"),
    ("LSTMCell(3, 4)", "b,3"),
    ("GRUCell(3, 4)", "b,3"),
    ("RNNCell(3, 4)", "b,3"),
    *((f"{name}()", "b,4") for name in (
        "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
        "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "Sigmoid", "SiLU",
        "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
    )),
    ("GELU('tanh')", "b,4"),
    ("Threshold(0.1, 2)", "b,4"),
    ("Softmax(1)", "b,4"),
    ("Softmin(1)", "b,4"),
    ("LogSoftmax(1)", "b,4"),
    ("Softmax2d()", "b,3,2,2"),
    *((f"{name}()", "b,4 b,4") for name in (
        "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss", "PoissonNLLLoss",
    )),
    ("CrossEntropyLoss()", "b,4 4:b"),
    ("CrossEntropyLoss(label_smoothing=0.1)", "b,4 4:b"),
    ("NLLLoss()", "b,4 4:b"),
    ("BCEWithLogitsLoss()", "b,4 +b,4"),
    ("BCELoss()", "+b,4 +b,4"),
    ("KLDivLoss()", "b,4 +b,4"),
    ("CosineEmbeddingLoss()", "b,4 b,4 ?b"),
    ("MarginRankingLoss()", "b b ?b"),
    ("TripletMarginLoss()", "b,4 b,4 b,4"),
    ("HingeEmbeddingLoss()", "b,4 ?b,4"),
    ("MultiMarginLoss()", "b,4 4:b"),
    ("MultiLabelMarginLoss()", "b,4 4:b,4"),
    ("MultiLabelSoftMarginLoss()", "b,4 2:b,4"),
    ("GaussianNLLLoss()", "b,4 b,4 +b,4"),
]  # fmt: skip


@pytest.mark.parametrize("layer, inputs", LAYERS, ids=[layer for layer, _ in LAYERS])
def test_layers_at_another_batch(layer: str, inputs: str) -> None:
    model = filled(eval(f"nn.{layer}", {"nn": nn}))
    arrays, other = (tuple(made(each, n) for each in inputs.split()) for n in (2, 3))
    signature: Any = signature_of(model)
    names = list(signature.parameters)[: len(arrays)]
    check(model, arrays, other, {name: {0: "batch"} for name in names})


class Residual(nn.Module):
    """Two convolutions, and the input again."""

    def __init__(self, channels: int) -> None:
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return (x + self.second(self.norm(self.first(x)).relu())).relu()


def networks() -> dict[str, Any]:
    mlp = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softmax(1))
    cnn = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(6 * 4 * 4, 10), nn.LogSoftmax(1),
    )  # fmt: skip
    resnet = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), Residual(4), Residual(4), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(4, 5),
    )  # fmt: skip
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    return {
        "mlp": (mlp, (2, 6), (5, 6), {"input": {0: "batch"}}),
        "cnn": (cnn, (2, 1, 14, 14), (3, 1, 14, 14), {"input": {0: "batch"}}),
        "resnet": (resnet, (2, 3, 9, 9), (1, 3, 9, 9), {"input": {0: "batch"}}),
        "transformer": (layer, (2, 5, 8), (3, 7, 8), {"src": {0: "batch", 1: "time"}}),
    }


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet", "transformer"])
def test_networks_come_back_the_same(name: str) -> None:
    model, shape, other_shape, dynamic = networks()[name]
    filled(model)
    x, other = reals(*shape), reals(*other_shape)
    exported = check(model, (x,), (other,), dynamic)
    assert {each.name for each in exported.graph.initializer} >= {
        each for each, _ in model.named_parameters()
    }
    loaded, _ = computed(picograd.onnx.load(exported), (other,))
    np.testing.assert_allclose(loaded[0], run(exported, (other,))[0], 2e-4, 2e-5)


def test_functions_and_what_they_return() -> None:
    model = filled(nn.Linear(3, 2))

    def scores(pair: Any, scale: Any) -> dict[str, Any]:
        left, right = pair
        return {"sum": model(left) + right, "scaled": left * scale}

    arrays = reals(2, 3), reals(2, 2), reals(3)
    a, b, c = map(Tensor, arrays)
    for function in (scores, picograd.jit(scores)):
        exported = picograd.onnx.export(function, ((a, b), c))
        assert [each.name for each in exported.graph.input] == ["pair_0", "pair_1", "scale"]
        assert [each.name for each in exported.graph.output] == ["sum", "scaled"]
        names = {each.name for each in exported.graph.initializer}
        assert {"model.weight", "model.bias"} <= names
        found = run(exported, arrays)
        np.testing.assert_allclose(found[0], model(a).numpy() + arrays[1], 1e-5, 1e-6)
        np.testing.assert_allclose(found[1], arrays[0] * arrays[2], 1e-6)


@pytest.mark.parametrize("opset", [18, 21])
def test_opsets(opset: int) -> None:
    x = reals(2, 6)
    exported = check(nn.Sequential(nn.Linear(6, 4), nn.GELU()), (x,), (x,), None, opset=opset)
    assert exported.opset_import[0].version == opset
    assert ("Gelu" in [node.op_type for node in exported.graph.node]) is (opset >= 20)


def test_weights_beside_the_model(tmp_path: Path) -> None:
    model, x = filled(nn.Linear(40, 30)), reals(2, 40)
    path = tmp_path / "net.onnx"
    for external in (False, True):
        picograd.onnx.export(model, Tensor(x), path, external=external)
        assert (tmp_path / "net.onnx.data").exists() is external
        assert (path.stat().st_size < 2000) is external
        assert picograd.onnx.load(path).weights["weight"].shape == (30, 40)
        session = runtime.InferenceSession(str(path))
        np.testing.assert_allclose(
            session.run(None, {"input": x})[0], computed(model, (x,))[0][0], 1e-4, 1e-5
        )


def test_an_open_file() -> None:
    file, layer, x = io.BytesIO(), nn.Linear(3, 2), picograd.ones(4, 3)
    picograd.onnx.export(layer, x, file)
    file.seek(0)
    np.testing.assert_allclose(picograd.onnx.load(file)(x).numpy(), layer(x).numpy(), 1e-6)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    for path, external in ((tmp_path / "none" / "a.onnx", None), (tmp_path, True)):
        with pytest.raises(
            DataError, match=r"onnx\.export: cannot write .*\. Fix: check the folder"
        ):
            picograd.onnx.export(nn.Linear(2, 2), Tensor.ones(1, 2), path, external=external)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path, layer = tmp_path / "a.onnx", nn.Linear(2, 2)
    picograd.onnx.export(layer, Tensor.ones(1, 2), path)
    content = path.read_bytes()
    code = """
import resource, sys, picograd
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
model = picograd.nn.Linear(2, 2)
try:
    picograd.onnx.export(model, picograd.ones(1, 2), sys.argv[1])
except picograd.errors.DataError as error:
    print(error)
"""
    run = [sys.executable, "-c", code, str(path)]
    variables = dict(os.environ, PICOGRAD_CACHE="0", PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(run, capture_output=True, text=True, env=variables, timeout=100)
    assert "cannot write" in done.stdout, done.stderr
    assert path.read_bytes() == content and os.listdir(tmp_path) == ["a.onnx"]


def test_what_cannot_be_exported_says_why() -> None:
    x = Tensor(reals(4, 4))
    with pytest.raises(DataError, match=r"host_call .*float32\(4, 4\).* at .*test_export_model.py"):
        picograd.onnx.export(lambda x: x.inverse(), x)
    with pytest.raises(DataError, match="random_bits.*eval"):
        picograd.onnx.export(lambda x: x * picograd.rand(4), x)
    with pytest.raises(
        TraceError, match=r"depends on x.shape\[0\].*leave that axis out of dynamic"
    ):
        picograd.onnx.export(lambda x: x * 2 if x.shape[0] > 5 else x, x, dynamic={"x": {0: "n"}})
    with pytest.raises(TraceError, match=r"depends on x.shape\[0\]"):
        picograd.onnx.export(lambda x: sum(x[k] for k in range(x.shape[0])), x, dynamic={"x": [0]})
    with pytest.raises(ValueRangeError, match="onnx.export: dynamic marks 'z'"):
        picograd.onnx.export(lambda x: x, x, dynamic={"z": {0: "n"}})
    with pytest.raises(ValueRangeError, match="opset 9 is not one of 18 to"):
        picograd.onnx.export(lambda x: x, x, opset=9)
    total = picograd.zeros(4, 4)
    with pytest.raises(TraceError, match="writes a tensor from outside"):
        picograd.onnx.export(lambda x: total.add_(x), x)
    assert total.sum().item() == 0
    model = nn.Dropout(0.5)
    picograd.onnx.export(model, x)
    assert model.training
