"""Parameter: a tensor that a module trains; and how modules write into the tensors they own."""

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from picograd.device_name import device as device_named
from picograd.engine.tracing import is_tracing
from picograd.errors import GradientError, StateError
from picograd.tensor.core.annotations import Data, DeviceLike, DTypeLike
from picograd.tensor.core.copying import copied
from picograd.tensor.core.operands import compute_known
from picograd.tensor.core.recording import is_view, share, show_memory, undetached
from picograd.tensor.core.subclasses import BETWEEN, NAMED, OPERATORS
from picograd.tensor.tensor import Tensor

# References to what no program can name: to a base those of its view and of the question, to what
# `detach()` was called on one more, to what Parameter(...) was called with those of the calls.
UNNAMED, UNNAMED_SOURCE, UNNAMED_ARGUMENT = 2, 3, 7


def show_each_other(made: Tensor, data: Tensor) -> None:
    """Let a tensor share the memory of the one it was made of, as in PyTorch.

    What shows memory that no program can name any more, `Parameter(randn(2, 3).T)`, is a copy:
    nobody sees the difference, and its updates need not write the rest of that memory.
    """
    if is_tracing():
        return
    whole: Any = undetached(data)
    most = UNNAMED_ARGUMENT if whole is data else UNNAMED_SOURCE
    is_named = sys.getrefcount(whole) > most
    if is_named or not is_view(whole) or sys.getrefcount(whole._view.base) > UNNAMED:
        share(made, whole)


class Parameter(Tensor):
    """This class is a tensor with requires_grad set, found by `Module.parameters()`.

    Arrays of integers become floats: PyTorch's `torch.Tensor([1, 2])` has them already.

    >>> from picograd import Tensor, nn
    >>> weight = nn.Parameter(Tensor([1.0, 2.0]))
    >>> weight.requires_grad
    True
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Make the tensor here if a `__new__` of the user's passes data on."""
        made = super().__new__(cls)
        if (args or options) and cls.__new__ is not Parameter.__new__:
            Parameter.__init__(made, *args, **options)
        return made

    def __init__(
        self, data: Data | None = None, requires_grad: bool = True, *more: Any, **options: Any
    ) -> None:
        if hasattr(self, "_node"):  # `__new__` of a class of the user's made it, of its arguments
            return
        if more or options:
            raise TypeError(f"Parameter takes data and requires_grad, not {[*more, *options]}")
        data = Tensor.zeros(0) if data is None else data
        value = data if isinstance(data, Tensor) else Tensor.of(data)
        if requires_grad and value.dtype.is_integer and value.ndim:
            value = value.float()
        if requires_grad and not value.dtype.is_differentiable:
            text = f"a {value.dtype.name} tensor cannot have a gradient"
            fix = "make it of floats, as Tensor([1.0, 2.0]); n elements are picograd.empty(n)"
            raise GradientError("Parameter", text, fix)
        super().__init__(value.detach(), requires_grad=requires_grad)
        show_each_other(self, value)

    def __deepcopy__(self, memo: Any) -> "Parameter":
        # A copy of a model starts without gradients, each parameter in memory of its own.
        result: Parameter = copied(self, True)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """This class is a tensor that a module keeps as state when it is assigned; it is not trained.

    >>> from picograd import Tensor, nn
    >>> layer = nn.Identity()
    >>> layer.scale = nn.Buffer(Tensor([2.0]))
    >>> list(layer.state_dict())
    ['scale']
    """

    def __init__(self, data: Data, *, persistent: bool = True) -> None:
        value = data if isinstance(data, Tensor) else Tensor.of(data)
        super().__init__(value.detach(), requires_grad=False)
        show_each_other(self, value)
        self.persistent = persistent


class Uninitialized(Tensor):
    """This class waits for its sizes: `materialize` makes it what `becomes` says."""

    becomes: ClassVar[Any]

    @property
    def shape(self) -> Any:
        """Refuse: the sizes are not known."""
        raise StateError(type(self).__name__, "it has no sizes yet", "call materialize first")

    def materialize(
        self, shape: Any, device: DeviceLike | None = None, dtype: DTypeLike | None = None
    ) -> None:
        """Take on sizes, with values of 0; it is an ordinary parameter or buffer from then on."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        made = Tensor.zeros(*sizes, device=device or self.device, dtype=dtype or self.dtype)
        learns = self.requires_grad
        self.__class__ = self.becomes
        self.node = made.node
        del made
        self.requires_grad = learns

    def detach(self) -> Any:
        """Give it itself: a state dict tells by it that there are no values yet."""
        return self

    def __reduce__(self) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __deepcopy__(self, memo: Any) -> Any:
        kind, given = self.__reduce__()
        memo[id(self)] = made = kind(*given)
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def refused(name: str) -> Any:
    """Make the method of an operation that needs sizes and values."""

    def refuse(self: Any, *args: Any, **options: Any) -> Any:
        problem = f"an {type(self).__name__} has no sizes and no values yet"
        raise StateError(name, problem, "call the layer on an input first, or materialize")

    return refuse


for refused_name in {*OPERATORS, *BETWEEN, "item", "mean", "numpy", "sum", "tolist"} - {"copy_"}:
    setattr(Uninitialized, refused_name, refused(NAMED.get(refused_name, refused_name.strip("_"))))


def is_lazy(param: Any) -> bool:
    """Tell whether a parameter or buffer still waits for its sizes.

    >>> from picograd import nn
    >>> nn.parameter.is_lazy(nn.LazyLinear(3).weight)
    True
    """
    return isinstance(param, Uninitialized)


UninitializedTensorMixin = Uninitialized  # PyTorch's name


class UninitializedParameter(Uninitialized, Parameter):
    """This class is a parameter whose sizes the first input will tell.

    >>> from picograd import nn
    >>> weight = nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> type(weight).__name__, weight.shape
    ('Parameter', (2, 3))
    """

    becomes = Parameter

    def __init__(
        self,
        requires_grad: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(Tensor.zeros(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(Uninitialized, Buffer):
    """This class is a buffer whose sizes the first input will tell.

    >>> from picograd import nn
    >>> mean = nn.UninitializedBuffer()
    >>> mean.materialize(3)
    >>> mean.tolist()
    [0.0, 0.0, 0.0]
    """

    becomes = Buffer

    def __init__(
        self,
        requires_grad: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        persistent: bool = True,
    ) -> None:
        super().__init__(Tensor.zeros(0, device=device, dtype=dtype), persistent=persistent)


def as_tensor(value: Any, name: str) -> Tensor:
    """Read one value of a state dict: a tensor or anything a tensor is made from."""
    if isinstance(value, Tensor):
        return value
    try:
        return Tensor.of(value)
    except Exception as error:
        problem = f"{name} is a {type(value).__name__}, not a tensor ({error})"
        raise StateError("load_state_dict", problem, "pass tensors or arrays") from error


def overwrite(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Assign new values in place, converted to each target's device and dtype; then realise."""
    for target, value in pairs:
        target.assign(value.detach().to(target.device).cast(target.dtype))
    if pairs:
        realize([target for target, _ in pairs])


def replace(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Let tensors show the memory of others, of any dtype; they stay the same Python objects."""
    for target, value in pairs:
        show_memory(target, value)
        target.grad = None


def rebind(
    tensor: Tensor, device: DeviceLike | None, dtype: DTypeLike | None, is_empty: bool = False
) -> None:
    """Move a tensor to a device, dtype or both while it stays the same Python object.

    So does its gradient. With `is_empty` one without values becomes one with any.
    """
    value = tensor.detach() if not isinstance(tensor, Uninitialized) else Tensor.detach(tensor)
    if is_empty and value.is_meta:
        value = Tensor.empty_like(value, device=device)
        tensor.node = value.node
    moved = value if device is None else value.to(device)
    moved = moved if dtype is None else moved.cast(dtype)
    if moved is not value:
        gradient, tensor.grad = tensor.grad, None
        tensor.node = moved.node
        if gradient is not None:
            rebind(gradient, device, dtype, is_empty)
            tensor.grad = gradient


def rebind_all(
    tensors: Sequence[Tensor],
    device: DeviceLike | None,
    dtype: DTypeLike | None,
    is_empty: bool = False,
) -> None:
    """Move tensors to a device, and floats to a dtype; what is pending is computed in one plan."""
    place = "meta" if device is None else device_named(device)
    if place != "meta":
        known = (tensor for tensor in tensors if not isinstance(tensor, Uninitialized))
        compute_known([tensor.node for tensor in known if tensor.device != place])
    for tensor in tensors:
        rebind(tensor, device, dtype if tensor.dtype.is_differentiable else None, is_empty)


def realize(tensors: Sequence[Tensor]) -> None:
    """Compute several tensors in one plan, so that the scheduler can fuse them."""
    tensors[0].realize(*tensors[1:])


def as_python(value: Any) -> Any:
    """Turn a number of NumPy's, or a pair or list of them, into Python's; others stay."""
    if type(value) in (tuple, list):
        return type(value)(map(as_python, value))
    return value.item() if isinstance(value, np.generic) else value
