"""PyTorch's `torch.export`: a module with the inputs it was tried on, as one object and file.

What was exported runs the module's own Python, whose kernels are fused anyway; `graph` has its
operations, where `picograd.fx` can trace them. Files are picograd's own: PyTorch does not read
them. `picograd.onnx.export` writes what other programs run.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from picograd.errors import DTypeError, StateError
from picograd.fx import GraphModule, symbolic_trace
from picograd.nn.files_of_objects import load as load_file
from picograd.nn.files_of_objects import save as save_file
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.tensor import Tensor

__all__ = ["Dim", "ExportedProgram", "dims", "export", "load", "save"]


class Dim:
    """This class names a size that varies; all sizes may, whether they are named or not.

    >>> Dim("batch", min=1, max=8)
    Dim('batch', min=1, max=8)
    """

    AUTO = DYNAMIC = STATIC = None

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__, self.min, self.max = name, min, max

    def __repr__(self) -> str:
        return f"Dim({self.__name__!r}, min={self.min}, max={self.max})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Name several sizes that vary."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ExportedProgram:
    """This class is a module that was exported, and the inputs it was tried on."""

    def __init__(self, module: Module, inputs: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        self._module = module
        self.example_inputs = inputs

    def module(self, *given: Any, **options: Any) -> Module:
        """Give the module, which is called with such inputs."""
        return self._module

    @property
    def graph_module(self) -> GraphModule:
        """The module as a graph of its operations. Raises TraceError for what cannot be traced."""
        return symbolic_trace(self._module)

    @property
    def graph(self) -> Any:
        """The operations."""
        return self.graph_module.graph

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by name."""
        return dict(self._module.state_dict())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """List the parameters with their names."""
        return self._module.named_parameters()

    def parameters(self) -> Iterator[Parameter]:
        """List the parameters."""
        return self._module.parameters()

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """List the buffers with their names."""
        return self._module.named_buffers()

    def buffers(self) -> Iterator[Tensor]:
        """List the buffers."""
        return self._module.buffers()

    def run_decompositions(self, *given: Any, **options: Any) -> "ExportedProgram":
        """Give the program itself: operations are decomposed when they are planned."""
        return self

    def __call__(self, *inputs: Any, **options: Any) -> NoReturn:
        """Raise: in PyTorch the program is not called either."""
        raise StateError("export", "an exported program is not called", "call its .module()")


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    **options: Any,
) -> ExportedProgram:
    """Try a module on inputs, and keep both. Raises DTypeError for what is no module.

    >>> import picograd
    >>> program = picograd.export.export(picograd.nn.ReLU(), (picograd.tensor([-1.0, 2.0]),))
    >>> program.module()(picograd.tensor([3.0, -4.0, 5.0])).tolist()
    [3.0, 0.0, 5.0]
    """
    if not isinstance(mod, Module):
        text = f"{type(mod).__name__} is no module"
        raise DTypeError("export", text, "put a function into the forward of an nn.Module")
    if not isinstance(args, tuple):
        text = f"the inputs are a {type(args).__name__}"
        raise DTypeError("export", text, "pass a tuple of what the module is called with")
    named = dict(kwargs or {})
    mod(*args, **named)
    return ExportedProgram(mod, (args, named))


def save(ep: ExportedProgram, f: Any, **options: Any) -> None:
    """Write a program, with its weights, to a file or path."""
    save_file(ep, f)


def load(f: Any, **options: Any) -> ExportedProgram:
    """Read what `save` wrote; it may make any object, so read only files that you trust."""
    program: ExportedProgram = load_file(f, weights_only=False)
    return program
