"""The words of `torch.onnx.export` for what `picograd.onnx.export` calls `dynamic` and `opset`.

Names of inputs and outputs are given to the model that was written. Words that say how PyTorch
traces change nothing here.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from picograd.tensor.tensor import Tensor

IDLE = (
    "custom_opsets", "do_constant_folding", "dynamo", "export_params", "fallback",
    "keep_initializers_as_inputs", "operator_export_type", "training", "verbose",
)  # fmt: skip


def is_in_onnx_export() -> bool:
    """Tell that no tracer of PyTorch's runs: modules are written as they compute.

    >>> from picograd.onnx.torch_options import is_in_onnx_export
    >>> is_in_onnx_export()
    False
    """
    return False


def without_package(*given: Any, **options: Any) -> NoReturn:
    """Ask for the package that is not there."""
    raise ImportError("picograd.onnx takes the onnx package: pip install onnx")


def parse_args(*kinds: str) -> Callable[[Any], Any]:
    """Give a decorator that changes nothing: PyTorch's exporter asks functions for nodes by it.

    >>> from picograd.onnx.symbolic_helper import parse_args
    >>> parse_args("v", "f")(len) is len
    True
    """
    return lambda function: function


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Note nothing: modules are written by what they compute, not by functions for nodes."""


unregister_custom_op_symbolic = register_custom_op_symbolic


def shape_as_tensor(x: Tensor) -> Tensor:
    """Make a tensor of the sizes of one, which PyTorch's tracer keeps open.

    >>> from picograd import Tensor
    >>> from picograd.onnx.operators import shape_as_tensor
    >>> shape_as_tensor(Tensor([[1.0, 2.0]])).tolist()
    [1, 2]
    """
    return Tensor(list(x.shape), device=x.device)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """Reshape to sizes that are in a tensor.

    >>> from picograd import Tensor
    >>> from picograd.onnx.operators import reshape_from_tensor_shape
    >>> reshape_from_tensor_shape(Tensor([[1.0, 2.0]]), Tensor([2, 1])).tolist()
    [[1.0], [2.0]]
    """
    return x.reshape(*shape.tolist())


def dynamic_of(
    model: Callable[..., Any], count: int, names: Sequence[str], axes: Mapping[str, Any]
) -> dict[str, dict[int, str]]:
    """Read `dynamic_axes`, by the names that the parameters of the model have.

    Axes in a list get names of their own. Those of outputs follow from the inputs'.
    """
    parameters = list(inspect.signature(getattr(model, "forward", model)).parameters)[:count]
    known = dict(zip(names, parameters)) | {each: each for each in parameters}
    found = {}
    for name, named in axes.items():
        if name in known:
            is_named = isinstance(named, Mapping)
            found[known[name]] = (
                dict(named) if is_named else {axis: f"{name}_axis_{axis}" for axis in named}
            )
    return found


def rename(graph: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Give the inputs and outputs of a graph other names, wherever its nodes have them."""
    pairs = [*zip(graph.input, inputs), *zip(graph.output, outputs)]
    names = {value.name: name for value, name in pairs}
    for value, name in pairs:
        value.name = name
    replace(graph, names)


def replace(graph: Any, names: Mapping[str, str]) -> None:
    """Replace names in the nodes of a graph, and in the bodies of its loops."""
    for node in graph.node:
        for side in (node.input, node.output):
            side[:] = [names.get(each, each) for each in side]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                replace(attribute.g, names)
