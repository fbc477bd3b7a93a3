"""Lazy layers: they take a size from their first input, and are ordinary layers from then on."""

import inspect
from typing import Any, ClassVar

from picograd.errors import StateError
from picograd.nn import norm
from picograd.nn.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from picograd.nn.family import Family
from picograd.nn.linear import Linear
from picograd.nn.module import Module
from picograd.nn.parameter import (
    Parameter,
    Uninitialized,
    UninitializedBuffer,
    UninitializedParameter,
    overwrite,
)
from picograd.tensor.tensor import Tensor

INSTANCE = {"affine": True, "track_running_stats": True}  # as PyTorch's lazy ones


class LazyModuleMixin:
    """This class lets a module of a program wait for its first input: it stands before `Module`.

    `initialize_parameters` takes that input and materializes what is uninitialized; the module is
    a `cls_to_become` from then on, if there is one.

    >>> from picograd import Tensor, nn
    >>> class Scale(nn.lazy.LazyModuleMixin, nn.Module):
    ...     def __init__(self):
    ...         self.weight = nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.weight.materialize(x.shape[-1:])
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> Scale()(Tensor.ones(2, 3)).shape
    (2, 3)
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Call the module; at the first time it takes its sizes before."""
        module: Any = self
        if not self.has_uninitialized_params():
            return Module.__call__(module, *inputs, **options)
        becomes = self.cls_to_become
        self.initialize_parameters(*inputs, **options)
        if becomes is not None:
            module.__class__ = becomes
        left = [name for name, each in vars(self).items() if isinstance(each, Uninitialized)]
        if left:
            problem = f"{', '.join(left)} has no sizes after initialize_parameters"
            raise StateError(type(self).__name__, problem, "materialize it there")
        return module(*inputs, **options)

    def initialize_parameters(self, *inputs: Any, **options: Any) -> None:
        """Take sizes of the first input: modules of programs define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define initialize_parameters()")

    def has_uninitialized_params(self) -> bool:
        """Tell whether sizes are not known yet."""
        return any(isinstance(each, Uninitialized) for each in vars(self).values())


class Lazy(LazyModuleMixin, Family):
    """This class waits for an input; `kind` is the layer it becomes, `axis` what it measures.

    Its parameters have no sizes until then; an optimizer may hold them already.
    """

    kind: ClassVar[type[Module]]
    size: ClassVar[str]  # the attribute that is the size
    axis: ClassVar[int] = 1
    defaults: ClassVar[dict[str, Any]] = {}  # other than those of the layer

    def __init__(self, *given: Any, **options: Any) -> None:
        bound = vars(type(self))["__signature__"].bind(
            *given, **options
        )  # a wrong one is told here
        left = {name: each for name, each in self.defaults.items() if name not in bound.arguments}
        self.given, self.options = given, {**left, **options}
        place = {name: options[name] for name in ("device", "dtype") if name in options}
        sized = self.layer(bound.arguments.get("groups", 1), device="meta")
        for name, each in vars(sized).items():
            if isinstance(each, Parameter):
                setattr(self, name, UninitializedParameter(**place))
            elif isinstance(each, Tensor) and each.ndim:
                self.register_buffer(name, UninitializedBuffer(**place))
            elif isinstance(each, Tensor):
                self.register_buffer(name, Tensor.zeros((), dtype=each.dtype))
            elif not name.startswith("_"):
                setattr(self, name, 0 if name == self.size else each)

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the parameters of the layer it becomes, but for the size."""
        super().__init_subclass__(**options)
        size, *parameters = inspect.signature(cls.kind).parameters.values()
        cls.size = size.name
        shown = [
            each.replace(default=cls.defaults.get(each.name, each.default)) for each in parameters
        ]
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]

    def layer(self, size: int, **place: Any) -> Module:
        """Make the layer of a size."""
        made: Module = self.kind(size, *self.given, **{**self.options, **place})
        return made

    def extra_repr(self) -> str:
        """Describe the settings, with a size of 0."""
        return str(self.kind.extra_repr(self))

    def forward(self, input: Tensor) -> Any:
        """Become the layer that fits an input, and compute its output."""
        self.initialize_parameters(input)
        return self.forward(input)

    def initialize_parameters(self, input: Tensor, *_: Any, **options: Any) -> None:
        """Become the layer that fits an input: its parameters stay the same objects."""
        place = {"device": input.device, "dtype": input.dtype, **self.options}
        layer = self.layer(input.shape[self.axis], device=place["device"], dtype=place["dtype"])
        for name, each in vars(layer).items():
            own = vars(self).get(name)
            if isinstance(own, Uninitialized):
                own.materialize(each.shape, each.device, each.dtype)
                overwrite([(own, each)])
            elif name == self.size:
                setattr(self, name, each)
        del self.given, self.options
        self.__class__ = self.kind  # type: ignore[assignment]


class LazyLinear(Lazy, kind=Linear, axis=-1):
    """This class becomes a Linear: LazyLinear(out_features, bias).

    >>> from picograd import Tensor, nn
    >>> layer = nn.LazyLinear(3)
    >>> layer(Tensor.ones(2, 5)).shape, layer
    ((2, 3), Linear(in_features=5, out_features=3, bias=True))
    """


class LazyConv1d(Lazy, kind=Conv1d, axis=-2):
    """This class becomes a Conv1d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyConv1d(4, 1)(Tensor.ones(2, 3, 4)).shape
    (2, 4, 4)
    """


class LazyConv2d(Lazy, kind=Conv2d, axis=-3):
    """This class becomes a Conv2d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyConv2d(4, 1)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 4, 4, 4)
    """


class LazyConv3d(Lazy, kind=Conv3d, axis=-4):
    """This class becomes a Conv3d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyConv3d(4, 1)(Tensor.ones(2, 3, 4, 4, 4)).shape
    (2, 4, 4, 4, 4)
    """


def forward_to_size(self: Any, input: Tensor, output_size: Any = None) -> Any:
    """Become the layer that fits an input, and compute its output, of a size."""
    self.initialize_parameters(input)
    return self.forward(input, output_size)


class LazyConvTranspose1d(Lazy, kind=ConvTranspose1d, axis=-2):
    """This class becomes a ConvTranspose1d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyConvTranspose1d(4, 1)(Tensor.ones(2, 3, 4)).shape
    (2, 4, 4)
    """

    forward = forward_to_size


class LazyConvTranspose2d(Lazy, kind=ConvTranspose2d, axis=-3):
    """This class becomes a ConvTranspose2d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyConvTranspose2d(4, 1)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 4, 4, 4)
    """

    forward = forward_to_size


class LazyConvTranspose3d(Lazy, kind=ConvTranspose3d, axis=-4):
    """This class becomes a ConvTranspose3d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyConvTranspose3d(4, 1)(Tensor.ones(2, 3, 4, 4, 4)).shape
    (2, 4, 4, 4, 4)
    """

    forward = forward_to_size


class LazyBatchNorm1d(Lazy, kind=norm.BatchNorm1d):
    """This class becomes a BatchNorm1d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyBatchNorm1d()(Tensor.ones(2, 3, 4)).shape
    (2, 3, 4)
    """


class LazyBatchNorm2d(Lazy, kind=norm.BatchNorm2d):
    """This class becomes a BatchNorm2d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyBatchNorm2d()(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """


class LazyBatchNorm3d(Lazy, kind=norm.BatchNorm3d):
    """This class becomes a BatchNorm3d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyBatchNorm3d()(Tensor.ones(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """


class LazyInstanceNorm1d(Lazy, kind=norm.InstanceNorm1d, axis=-2, defaults=INSTANCE):
    """This class becomes an InstanceNorm1d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyInstanceNorm1d()(Tensor.ones(2, 3, 4)).shape
    (2, 3, 4)
    """


class LazyInstanceNorm2d(Lazy, kind=norm.InstanceNorm2d, axis=-3, defaults=INSTANCE):
    """This class becomes an InstanceNorm2d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyInstanceNorm2d()(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """


class LazyInstanceNorm3d(Lazy, kind=norm.InstanceNorm3d, axis=-4, defaults=INSTANCE):
    """This class becomes an InstanceNorm3d with the channels of its first input.

    >>> from picograd import Tensor, nn
    >>> nn.LazyInstanceNorm3d()(Tensor.ones(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """
