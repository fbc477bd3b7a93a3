"""Transform: the base, its inverse, and transforms made of others.

A transform says by `domain` and `codomain` which axes one application reads and writes together.
With `cache_size=1` it remembers its last pair: the inverse of what it just gave is exact, and free.
"""

import math
from collections.abc import Sequence
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import sum_last
from picograd.errors import ShapeError, ValueRangeError, check_known
from picograd.tensor.tensor import Tensor

Shape = tuple[int, ...]


class Transform:
    """This class is the base: a function, its inverse, and log |dy / dx|."""

    bijective: Any = False
    domain: Any
    codomain: Any
    _cached_x_y: tuple[Any, Any] = (None, None)
    _cache_size = 0
    _inv: Any = None

    def __init__(self, cache_size: int = 0) -> None:
        check_known(type(self).__name__, "cache_size", cache_size, (0, 1))
        self._cache_size = cache_size

    @property
    def event_dim(self) -> int:
        """How many axes belong together, where the function keeps that number."""
        if self.domain.event_dim != self.codomain.event_dim:
            text = f"the axes of {self.domain!r} become those of {self.codomain!r}"
            raise ValueRangeError("event_dim", text, "ask domain or codomain for event_dim")
        return int(self.domain.event_dim)

    @property
    def sign(self) -> Any:
        """1 where the function rises, -1 where it falls."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    @property
    def inv(self) -> "Transform":
        """The inverse function."""
        if self._inv is None:
            self._inv = InverseTransform(self)
        return self._inv  # type: ignore[no-any-return]

    def with_cache(self, cache_size: int = 1) -> "Transform":
        """Make the same transform, with or without a memory of its last pair."""
        if self._cache_size == cache_size:
            return self
        made = type(self).__new__(type(self))
        vars(made).update(vars(self))
        made._inv, made._cached_x_y = None, (None, None)
        Transform.__init__(made, cache_size)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_inv"}

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the function.

        >>> from picograd import Tensor
        >>> from picograd.distributions import ExpTransform
        >>> ExpTransform()(Tensor([0.0])).tolist()
        [1.0]
        """
        if self._cache_size and x is self._cached_x_y[0]:
            return self._cached_x_y[1]  # type: ignore[no-any-return]
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and y is self._cached_x_y[1]:
            return self._cached_x_y[0]  # type: ignore[no-any-return]
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute log |dy / dx|, summed over the axes that belong together."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of arguments."""
        return tuple(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class InverseTransform(Transform):
    """This class is the inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """What the function gives."""
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """What the function takes."""
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        """Whether the function has an inverse."""
        return bool(self._inv.bijective)

    @property
    def sign(self) -> Any:
        """That of the function."""
        return self._inv.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Make the inverse of the function with a memory."""
        return self.inv.with_cache(cache_size).inv

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InverseTransform) and bool(self._inv == other._inv)

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the inverse."""
        return self.inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute that of the function, negated."""
        return -self.inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        return self.inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of arguments."""
        return self.inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"InverseTransform({self._inv!r})"


def widened(constraint: Any, event_dim: int) -> Any:
    """Let a constraint hold for every part of events of more axes."""
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


class ComposeTransform(Transform):
    """This class applies transforms, the first one first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]

    @property
    def inv(self) -> Transform:
        """The inverses of the parts, the last one first."""
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv  # type: ignore[no-any-return]

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Make the same chain, each part with or without a memory."""
        same = self._cache_size == cache_size
        return self if same else ComposeTransform(self.parts, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """What the first part takes, with the axes of the part that reads most."""
        if not self.parts:
            return constraints.real
        axes = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            before = axes + part.domain.event_dim - part.codomain.event_dim
            axes = max(before, part.domain.event_dim)
        return widened(self.parts[0].domain, axes)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """What the last part gives, with the axes of the part that reads most."""
        if not self.parts:
            return constraints.real
        axes = self.parts[0].domain.event_dim
        for part in self.parts:
            after = axes + part.codomain.event_dim - part.domain.event_dim
            axes = max(after, part.codomain.event_dim)
        return widened(self.parts[-1].codomain, axes)

    @property
    def bijective(self) -> bool:
        """Whether all parts have inverses."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        """The product of the parts' signs."""
        return math.prod(part.sign for part in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Add those of the parts."""
        if not self.parts:
            return Tensor.zeros_like(x)
        total: Any = 0.0
        axes = self.domain.event_dim
        for part in self.parts:
            after = y if part is self.parts[-1] else part(x)
            found = part.log_abs_det_jacobian(x, after)
            total = total + sum_last(found, axes - part.domain.event_dim)
            axes += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of arguments."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


class IndependentTransform(Transform):
    """This class lets a transform read several axes together."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """What the transform takes, with more axes."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """What the transform gives, with more axes."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        """Whether the transform has an inverse."""
        return bool(self.base_transform.bijective)

    @property
    def sign(self) -> Any:
        """That of the transform."""
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        need_axes(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        need_axes(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Sum that of the transform."""
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_last(found, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of arguments."""
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def need_axes(shape: Sequence[int], count: int) -> None:
    """Raise ShapeError for a shape of fewer axes than one application reads."""
    if len(shape) < count:
        text = f"shape {tuple(shape)} has fewer than {count} axes"
        raise ShapeError("transform", text, "pass whole events")


class SameKind(Transform):
    """This class is the base of transforms without parameters: those of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = Transform.__hash__


class ScalarTransform(SameKind):
    """This class is the base of functions of one number that have an inverse."""

    bijective = True
    domain: Any = constraints.real
    codomain: Any = constraints.real
    sign: Any = 1


identity_transform = ComposeTransform([])
_InverseTransform = InverseTransform
