"""ONNX models: `picograd.onnx.load(path)` is an `nn.Module` with the network of a file.

    model = picograd.onnx.load("resnet18.onnx")
    step = picograd.jit(model)
    scores = step(images)

It takes the `onnx` package: `pip install 'picograd[onnx]'`. Operators are rows of a table
(`picograd.onnx.table`); `picograd.onnx.operator` adds one.
"""

import os
from pathlib import Path
from typing import Any

from picograd.errors import DataError, MissingFileError
from picograd.onnx.torch_options import is_in_onnx_export as is_in_onnx_export
from picograd.onnx.torch_options import register_custom_op_symbolic as register_custom_op_symbolic
from picograd.onnx.torch_options import without_package

try:
    import onnx

    from picograd.onnx.export_model import export as export
    from picograd.onnx.model import Model as Model
    from picograd.onnx.table import operator as operator
except ModuleNotFoundError as error:  # programs import names of PyTorch's exporter all the same
    if error.name != "onnx":
        raise
    globals().update(export=without_package, operator=without_package, onnx=None)


def load(source: Any, check: bool = True) -> "Model":
    """Read a model from a path, bytes, an open file or a `ModelProto`.

    Weights in files beside it are found. Raises MissingFileError, and DataError for what is no ONNX
    model or does not pass `onnx.checker` (unless `check` is False).
    """
    folder = ""
    if onnx is None:
        without_package()
    try:
        if isinstance(source, onnx.ModelProto):
            proto = source
        elif isinstance(source, (bytes, bytearray, memoryview)):
            proto = onnx.load_model_from_string(bytes(source))
        elif hasattr(source, "read"):
            proto = onnx.load_model_from_string(source.read())
        else:
            folder = str(Path(os.fspath(source)).parent)
            proto = onnx.load_model(os.fspath(source))
        if check and proto.ByteSize() < 1 << 30:
            onnx.checker.check_model(proto)
    except FileNotFoundError as error:
        raise MissingFileError("onnx", f"cannot read {source}", "check the path") from error
    except Exception as error:
        said = str(error).splitlines()[0].rstrip(".")
        text = f"this is no ONNX model that its checker accepts: {said}"
        raise DataError("onnx", text, "export it again, or pass check=False") from error
    return Model(proto, folder)
