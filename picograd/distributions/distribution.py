"""Distribution: the base. A class gives its parameters' constraints and its formulas.

Shapes are PyTorch's: `batch_shape` counts independent distributions, `event_shape` is what one draw
is. Values that are known already are checked against the constraints; with `validate_args=True`
they are computed for it, with False nothing is checked.
"""

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from picograd.distributions.constraints import Constraint, dependent_property, is_dependent
from picograd.dtype import default_float
from picograd.engine.tracing import is_tracing
from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.core.autograd import enable_grad, no_grad
from picograd.tensor.core.known_values import known_values
from picograd.tensor.core.recording import grad, read
from picograd.tensor.public import broadcast_tensors
from picograd.tensor.tensor import Tensor
from picograd.typed import Size

Shape = tuple[int, ...]
Sizes = Sequence[int]
LOG_2 = math.log(2.0)
LOG_2_PI = math.log(2.0 * math.pi)
EULER = 0.5772156649015329


def as_tensors(*values: Any) -> list[Tensor]:
    """Broadcast numbers and tensors; numbers take the dtype and device of the tensors."""
    known = [value for value in values if isinstance(value, Tensor)]
    place: dict[str, Any] = dict(dtype=default_float())
    if known:
        dtype = next((x.dtype for x in known if x.dtype.is_float), default_float())
        place = dict(dtype=dtype, device=known[0].device)
    made = [each if isinstance(each, Tensor) else Tensor.of(each, **place) for each in values]
    return list(broadcast_tensors(*made)) if len(made) > 1 else made


def sum_last(value: Tensor, axes: int) -> Tensor:
    """Sum over the last axes."""
    return value.sum(list(range(-axes, 0))) if axes > 0 else value


class Distribution:
    """This class is the base of distributions; see the module docstring."""

    arg_constraints: Any = MappingProxyType({})
    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False
    # False: nothing is checked; True: all. "known" is true, too, for programs that ask
    _validate_args: bool | str = "known"

    def __init__(
        self, batch_shape: Sizes = (), event_shape: Sizes = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape: Shape = tuple(batch_shape)
        self._event_shape: Shape = tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        for name, constraint in self.arg_constraints.items():
            if name in vars(self):
                self._check(f"parameter {name}", getattr(self, name), constraint)

    def _check(self, what: str, value: Any, constraint: Constraint) -> None:
        """Raise ValueRangeError for a value outside a constraint, where that is known or asked."""
        if self._validate_args is False or not isinstance(value, Tensor) or is_tracing():
            return
        is_asked = self._validate_args is True
        home = getattr(type(constraint).check, "__globals__", {}).get("__name__")
        takes_arrays = constraint.takes_arrays and home == Constraint.__module__  # not a user's own
        if is_dependent(constraint) or not (takes_arrays or is_asked):
            return
        bounds = [bound for bound in vars(constraint).values() if isinstance(bound, Tensor)]
        is_known = all(known_values(read(bound)) is not None for bound in bounds)
        if not (is_asked or is_known):
            return
        known: Any = value.detach() if is_asked else known_values(read(value))
        if takes_arrays and isinstance(known, Tensor):
            known = known.numpy()
        if known is not None and not np.all(np.asarray(constraint.check(known))):
            text = f"{what} of shape {value.shape} is not within {constraint!r}"
            raise ValueRangeError(type(self).__name__, text, "pass values inside, not NaN")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Choose whether all distributions compute their values to check them."""
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """The shape of independent distributions."""
        return Size(self._batch_shape)

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return Size(self._event_shape)

    def _extended_shape(self, sample_shape: Sizes = ()) -> Size:
        """Give the shape of draws."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    @dependent_property
    def support(self) -> Any:
        """The constraint that draws are inside."""
        raise self._lacks("support")

    @property
    def mean(self) -> Tensor:
        """The mean of each distribution."""
        raise self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each distribution."""
        raise self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def _lacks(self, what: str) -> Exception:
        return NotImplementedError(f"{type(self).__name__} has no {what}")

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        raise self._lacks("rsample")

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Draw n times."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density, or probability, of values."""
        raise self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        raise self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the values up to which the probability is this."""
        raise self._lacks("icdf")

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        raise self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """Compute exp of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """List all values of a discrete distribution, along a new first axis."""
        raise self._lacks("enumerate_support")

    def expand(self, batch_shape: Sizes, _instance: Any = None) -> Any:
        """Make the distribution with a larger batch shape: parameters are expanded."""
        shape, own = tuple(batch_shape), len(self._batch_shape)
        made: Any = type(self).__new__(type(self)) if _instance is None else _instance
        for name, value in vars(self).items():
            inner = len(value.shape) - own if isinstance(value, Tensor) else -1
            if inner >= 0 and tuple(value.shape[:own]) == self._batch_shape:
                value = value.expand(*shape, *value.shape[own:])
            elif isinstance(value, Distribution):
                value = value.expand((*shape, *value.batch_shape[own:]))
            vars(made)[name] = value
        made._batch_shape = shape
        return made

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Give `expand` of a class an empty object to fill; a class derived from it passes one."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(f"{type(self).__name__} has an __init__ and no expand")
        return type(self).__new__(type(self))

    def _validate_sample(self, value: Any) -> None:
        """Raise for a value that does not fit the shape, or is outside the support."""
        if self._validate_args is False:
            return
        if not isinstance(value, Tensor):
            problem = f"the value is a {type(value).__name__}"
            raise ShapeError("log_prob", problem, "pass a Tensor")
        if not self._fits(value):
            problem = f"a value of shape {value.shape} for events of shape {self._event_shape}"
            fix = f"end its shape with that of batches and events, {self._extended_shape()}"
            raise ShapeError("log_prob", problem, fix)
        self._check("value", value, self.support)

    def _fits(self, value: Tensor) -> bool:
        """Tell whether a shape ends with an event, and its rest meets the batches."""
        shape = tuple(value.shape)
        events, pairs = len(self._event_shape), zip(shape[::-1], self._extended_shape()[::-1])
        is_batched = all(a == b or 1 in (a, b) for a, b in pairs)
        return is_batched and shape[len(shape) - events :] == self._event_shape

    def __repr__(self) -> str:
        parts = []
        for name in self.arg_constraints:
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                shown = value if value.numel() == 1 else value.shape
                parts.append(f"{name}: {shown.item() if isinstance(shown, Tensor) else shown}")
        return f"{type(self).__name__}({', '.join(parts)})"


class Centred(Distribution):
    """This class is the base of distributions whose mean and mode are their location `loc`."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc


class ExponentialFamily(Distribution):
    """This class is the base of exponential families.

    One that gives `_natural_params` and `_log_normalizer` of them has its entropy, and divergences
    of its kind, by derivatives of the latter (Nielsen and Nock, 2010).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._lacks("_natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise self._lacks("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._lacks("_mean_carrier_measure")

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        params = self._natural_params
        value, slopes = normalizer_slopes(self, params)
        for param, slope in zip(params, slopes):
            value = value - sum_last(param * slope, param.ndim - len(self._batch_shape))
        return value - self._mean_carrier_measure


def normalizer_slopes(
    family: ExponentialFamily, params: Sequence[Tensor]
) -> tuple[Tensor, Sequence[Tensor]]:
    """Compute the logarithm of the normalizer, and its derivatives; gradients reach parameters."""
    with enable_grad():
        known = [each if each.requires_grad else each.detach().requires_grad_() for each in params]
        value = family._log_normalizer(*known)
        return value, grad(value.sum(), known, create_graph=True)


def need_one(op: str, **given: Any) -> str:
    """Find the one parameter that was given of several. Raises ValueRangeError otherwise."""
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        text = f"{len(named)} of {', '.join(given)} are given"
        raise ValueRangeError(op, text, "pass one of them")
    return named[0]
