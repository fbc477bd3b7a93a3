"""Module: the base of layers and models; finds its parameters by looking at its attributes.

A parameter, buffer or module may sit in an attribute, or in lists, tuples and dicts in attributes,
at any depth; its name is the path, as in PyTorch: `blocks.0.weight`. No `super().__init__()` is
needed.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from picograd.dtype import to_dtype
from picograd.errors import DTypeError, StateError
from picograd.nn.parameter import Parameter, as_tensor, check_tensor, overwrite, rebind
from picograd.tensor.tensor import Tensor

Self = TypeVar("Self", bound="Module")


class LoadResult(NamedTuple):
    """Names that `load_state_dict(strict=False)` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """This class is the base of every layer: write `forward`, assign parameters to attributes."""

    training: bool = True
    _buffers: Mapping[str, bool] = {}  # attribute name -> is it part of the state dict?

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the output; every module defines its own."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Call `forward`."""
        return self.forward(*inputs, **options)

    def register_buffer(self, name: str, value: Tensor, persistent: bool = True) -> None:
        """Keep a tensor that is state but not trained, such as a running mean."""
        check_tensor("register_buffer", *([] if value is None else [value]))
        self._buffers = {**self._buffers, name: persistent}
        setattr(self, name, value)

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Yield (name, module) for the modules directly inside this one."""
        return ((name, item) for name, item in _members(self) if isinstance(item, Module))

    def children(self) -> Iterator["Module"]:
        """Yield the modules directly inside this one."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """Yield (path, module) for this module and all inside it, each module once."""
        seen: set[int] = set()
        for name, module in _walk(self, prefix):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self) -> Iterator["Module"]:
        """Yield this module and all inside it, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter), a shared parameter once."""
        seen: set[int] = set()
        for name, value in _named_tensors(self):
            if isinstance(value, Parameter) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def parameters(self) -> Iterator[Parameter]:
        """Yield every parameter once, in order of definition."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer) for tensors given to `register_buffer`."""
        return ((n, v) for n, v in _named_tensors(self) if not isinstance(v, Parameter))

    def buffers(self) -> Iterator[Tensor]:
        """Yield every buffer."""
        return (value for _, value in self.named_buffers())

    def state_dict(self) -> dict[str, Tensor]:
        """Map the path of every parameter and persistent buffer to its tensor (not a copy)."""
        return dict(_named_tensors(self, persistent_only=True))

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Overwrite parameters and buffers in place, keeping their device and dtype.

        Raises StateError, with nothing changed, for a wrong shape and, when strict, for missing or
        unexpected names.
        """
        if not isinstance(state, Mapping):
            problem = f"the state is a {type(state).__name__}"
            raise DTypeError("load_state_dict", problem, "pass the dict that nn.load returns")
        own = self.state_dict()
        result = LoadResult(
            [name for name in own if name not in state],
            [name for name in state if name not in own],
        )
        if strict:
            _check_names(result)
        values = {name: as_tensor(state[name], name) for name in own if name in state}
        _check_shapes(own, values)
        overwrite([(own[name], value) for name, value in values.items()])
        return result

    def train(self: Self, mode: bool = True) -> Self:
        """Switch training behaviour (dropout, batch statistics) on or off."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: Self) -> Self:
        """Switch training behaviour off."""
        return self.train(False)

    def to(self: Self, device: Any = None, dtype: Any = None) -> Self:
        """Move parameters and buffers to a device, dtype or both; only floats change dtype.

        The tensors keep their identity, so that an optimizer made before still updates them.
        """
        if dtype is not None and not to_dtype(dtype).is_float:
            problem = f"parameters need a float dtype, got {to_dtype(dtype).name}"
            raise DTypeError(f"{type(self).__name__}.to", problem, "use picograd.float16 or wider")
        for _, value in _named_tensors(self):
            rebind(value, device, dtype if value.dtype.is_float else None)
        return self

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.grad = None

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Freeze (False) or unfreeze all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def apply(self: Self, function: Callable[["Module"], Any]) -> Self:
        """Call `function` on every module inside, innermost first, then on this one."""
        for module in reversed(list(self.modules())):
            function(module)
        return self

    def extra_repr(self) -> str:
        """Describe the settings of this module, as shown between the brackets of its repr."""
        return ""

    def __repr__(self) -> str:
        lines = [
            f"  ({name}): " + repr(child).replace("\n", "\n  ")
            for name, child in self.named_children()
        ]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        body = ([f"  {extra}"] if extra else []) + lines
        return f"{type(self).__name__}(\n" + "\n".join(body) + "\n)"


def _flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, item) of the tensors and modules in nested lists, tuples and dicts."""
    if isinstance(value, (Module, Tensor)):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            yield from _flatten(f"{name}.{position}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(f"{name}.{key}", item)


def _members(module: Module) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(module).items()):
        yield from _flatten(name, value)


def _walk(module: Module, prefix: str) -> Iterator[tuple[str, Module]]:
    yield prefix, module
    for name, child in module.named_children():
        yield from _walk(child, f"{prefix}.{name}" if prefix else name)


def _named_tensors(root: Module, persistent_only: bool = False) -> Iterator[tuple[str, Tensor]]:
    """Yield (path, tensor) of parameters and buffers; a shared tensor appears under each path."""
    for path, module in _walk(root, ""):
        for name, value in _members(module):
            if isinstance(value, Module):
                continue
            persistent = module._buffers.get(name)
            is_buffer = persistent is not None and (persistent or not persistent_only)
            if isinstance(value, Parameter) or is_buffer:
                yield (f"{path}.{name}" if path else name), value


def _check_names(result: LoadResult) -> None:
    kinds = (("missing", result.missing_keys), ("unexpected", result.unexpected_keys))
    problems = [f"{kind} {', '.join(names)}" for kind, names in kinds if names]
    if problems:
        fix = "load a state made by the same model, or pass strict=False"
        raise StateError("load_state_dict", "; ".join(problems), fix)


def _check_shapes(own: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    wrong = [
        f"{name} has shape {tuple(value.shape)}, the model wants {tuple(own[name].shape)}"
        for name, value in values.items()
        if tuple(value.shape) != tuple(own[name].shape)
    ]
    if wrong:
        fix = "build the model with the sizes it was saved with"
        raise StateError("load_state_dict", "; ".join(wrong), fix)
