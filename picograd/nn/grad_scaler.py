"""Gradient scaling: keeps small gradients of float16 from becoming 0.

The loss is multiplied by a scale and gradients are divided by it again. If one is not finite the
step is skipped and the scale lowered; after many good steps it rises. All of that happens on the
device: a skipped step is a step that writes the old values, so nothing waits for the host.
"""

from collections.abc import Mapping
from typing import Any

from picograd.dtype import float16, float32, int32
from picograd.engine.backends import default_device, is_usable
from picograd.engine.tracing import note_change
from picograd.errors import DTypeError, GradientError, StateError, ValueRangeError
from picograd.nn.init import constant_values
from picograd.nn.optim.base import Optimizer
from picograd.nn.parameter import overwrite, realize
from picograd.target import is_gpu
from picograd.tensor.core.alone import change_gradient
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.tensor import Tensor

STATE = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")


class GradScaler:
    """This class scales losses and steps optimizers (Micikevicius et al., 2018, section 3.2).

    `scaler.scale(loss).backward()`, then `scaler.step(optimizer)` and `scaler.update()`. Gradients
    that are not finite multiply the scale by `backoff_factor`; `growth_interval` steps without
    them by `growth_factor`. With `enabled=False` everything passes unchanged.

    >>> import picograd
    >>> from picograd import Tensor, nn
    >>> weight = nn.Parameter(Tensor([1.0]))
    >>> optimizer, scaler = nn.optim.SGD([weight], lr=0.5), picograd.GradScaler(init_scale=8.0)
    >>> scaler.scale((weight * 2.0).sum()).backward()
    >>> weight.grad.tolist()
    [16.0]
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.tolist(), scaler.get_scale()
    ([0.0], 8.0)
    """

    def __init__(
        self,
        device: DeviceLike | None = None,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if growth_factor <= 1.0:
            problem = f"growth_factor={growth_factor} is not above 1"
            raise ValueRangeError("GradScaler", problem, "use 2.0")
        if not 0.0 < backoff_factor < 1.0:
            problem = f"backoff_factor={backoff_factor} is not between 0 and 1"
            raise ValueRangeError("GradScaler", problem, "use 0.5")
        place = default_device() if device is None else str(device)
        if is_gpu(place) and not is_usable("cuda:0"):  # as PyTorch
            place, enabled = "cpu", False
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval: int = growth_interval
        self.enabled: bool = enabled
        self.factor: Tensor = constant_values((), float(init_scale), place, float32)
        self.good_steps: Tensor = constant_values((), 0, place, int32)
        self.found: dict[int, Tensor] = {}  # by optimizer: whether a gradient is not finite
        self.stepped: set[int] = set()

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        note_change()

    def _trace_state(self) -> dict[str, Any]:
        """List what a trace of `picograd.jit` that uses the scaler may depend on."""
        return dict(self.__dict__)

    def scale(self, outputs: Any) -> Any:
        """Multiply a loss, or losses in nested lists and tuples, by the scale."""
        if not self.enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self.factor.to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(each) for each in outputs])
        problem = f"{type(outputs).__name__} is no tensor"
        raise DTypeError("GradScaler.scale", problem, "pass a loss, or a list of them")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the scale now, for example to clip them before `step`.

        Raises GradientError if that was done since the last `update`, ValueRangeError for float16
        gradients: master weights, and so their gradients, are float32.
        """
        if not self.enabled:
            return
        if id(optimizer) in self.found:
            problem = "the gradients of this optimizer are unscaled already"
            raise GradientError("GradScaler.unscale_", problem, "call update() after each step")
        owners = [p for group in optimizer.param_groups for p in group.parameters]
        inverse, flags = 1.0 / self.factor, []
        for owner in owners:
            if owner.grad is None:
                continue
            if owner.grad.dtype is float16:
                problem = "a gradient is float16"
                fix = "keep parameters in float32 and compute inside autocast"
                raise ValueRangeError("GradScaler.unscale_", problem, fix)
            gradient = change_gradient(owner, lambda each: each * inverse.to(each.device))
            flags.append(gradient.isfinite().all().logical_not().to(self.factor.device))
        if not flags:
            fix = "call scale(loss).backward() before step()"
            raise GradientError("GradScaler", "no parameter has a gradient", fix)
        self.found[id(optimizer)] = flags[0] if len(flags) == 1 else Tensor.stack(flags).any()

    def step(self, optimizer: Optimizer) -> Any:
        """Unscale the gradients if need be, and step unless one of them is not finite."""
        if not self.enabled:
            return optimizer.step()
        if id(optimizer) in self.stepped:
            problem = "this optimizer has taken its step already"
            raise GradientError("GradScaler.step", problem, "call update() after each step")
        if id(optimizer) not in self.found:
            self.unscale_(optimizer)
        self.stepped.add(id(optimizer))
        optimizer.found_inf = self.found[id(optimizer)]
        try:
            return optimizer.step()
        finally:
            optimizer.found_inf = None

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what the optimizers found, or set it."""
        if not self.enabled:
            return
        if new_scale is None and not self.found:
            problem = "no optimizer has looked at its gradients"
            raise GradientError("GradScaler.update", problem, "call step() or unscale_() first")
        if new_scale is not None:
            value = new_scale if isinstance(new_scale, Tensor) else Tensor(float(new_scale))
            overwrite([(self.factor, value.reshape(()))])
        else:
            self._adapt(list(self.found.values()))
        self.found, self.stepped = {}, set()

    def _adapt(self, flags: list[Tensor]) -> None:
        """Lower the scale after a bad step, raise it after enough good ones."""
        is_bad = flags[0] if len(flags) == 1 else Tensor.stack(flags).any()
        count = self.good_steps.detach() + 1
        is_due = count >= self.growth_interval
        raised = self.factor.detach() * self.growth_factor
        risen = (is_due & raised.isfinite()).where(raised, self.factor.detach())
        factor = is_bad.where(self.factor.detach() * self.backoff_factor, risen)
        self.good_steps.assign((is_bad | is_due).where(0, count).cast(int32))
        self.factor.assign(factor.cast(float32))
        realize([self.factor, self.good_steps])

    def get_scale(self) -> float:
        """Read the scale; 1 if disabled."""
        return float(self.factor.item()) if self.enabled else 1.0

    def get_growth_factor(self) -> float:
        """Tell what the scale grows by."""
        return self.growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale grows by."""
        self.growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Tell what the scale shrinks by."""
        return self.backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale shrinks by."""
        self.backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Tell after how many good steps the scale grows."""
        return self.growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps the scale grows."""
        self.growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Tell whether anything is scaled."""
        return self.enabled

    def state_dict(self) -> dict[str, Any]:
        """Return what is needed to continue later, under PyTorch's names; empty if disabled."""
        if not self.enabled:
            return {}
        values = (self.growth_factor, self.backoff_factor, self.growth_interval)
        return dict(zip(STATE, (self.get_scale(), *values, int(self.good_steps.item()))))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state. Raises StateError for one of a disabled scaler."""
        if not self.enabled:
            return
        missing = [name for name in STATE if name not in state_dict]
        if missing:
            problem = f"the state has no {missing[0]!r}"
            raise StateError("GradScaler", problem, "load the state of an enabled scaler")
        scale, *settings, good_steps = (state_dict[name] for name in STATE)
        self.growth_factor, self.backoff_factor, self.growth_interval = settings
        pairs = [(self.factor, float(scale)), (self.good_steps, int(good_steps))]
        overwrite([(tensor, Tensor.of(value)) for tensor, value in pairs])
