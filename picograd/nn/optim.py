"""Optimizers: SGD, Adam, AdamW, with PyTorch's arithmetic and parameter groups.

The learning rate and all state are tensors on the parameters' device. A step captured by
`picograd.jit` therefore stays right when `optimizer.lr` is set between two steps. One step records
the updates of all parameters and realises them together, so that they can share a kernel.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from picograd.dtype import float32
from picograd.errors import (
    DTypeError,
    GradientError,
    ShapeError,
    StateError,
    ValueRangeError,
    check,
)
from picograd.nn.init import constant
from picograd.nn.parameter import overwrite, realize
from picograd.tensor.tensor import Tensor


class ParameterGroup:
    """This class holds parameters that share options; `group["lr"] = x` sets an option."""

    def __init__(self, parameters: Sequence[Tensor], options: Mapping[str, Any]) -> None:
        self.parameters = list(parameters)
        self.options = dict(options)
        _check_options(self.options)
        device = self.parameters[0].device
        self.rate = constant((), float(options["lr"]), device, float32)
        self.scalars: dict[str, Tensor] = {}  # state shared by the whole group
        self.slots: dict[str, list[Tensor]] = {}  # state per parameter

    def __getitem__(self, name: str) -> Any:
        return self.parameters if name == "params" else self.options[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self.options:
            raise ValueRangeError("optim", f"no option {name!r}", f"use {', '.join(self.options)}")
        if name == "lr":
            _check_rate(name, value)
        self.options[name] = value
        if name == "lr":
            self.options[name] = float(value)
            overwrite([(self.rate, constant((), float(value), self.rate.device, float32))])

    def add_scalar(self, name: str, value: float) -> None:
        """Create a float32 number that lives on the device."""
        self.scalars[name] = constant((), value, self.rate.device, float32)

    def add_slots(self, name: str) -> None:
        """Create zeros like every parameter."""
        self.slots[name] = [_zeros_like(parameter) for parameter in self.parameters]


class Optimizer:
    """This class is the base of optimizers: parameter groups, steps, state dicts."""

    def __init__(self, parameters: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.param_groups = _read_groups(parameters, defaults)
        for group in self.param_groups:
            self.prepare(group)

    def prepare(self, group: ParameterGroup) -> None:
        """Create the state of one group."""
        raise NotImplementedError

    def update(self, group: ParameterGroup, used: list[int]) -> list[tuple[Tensor, Tensor]]:
        """Record (tensor, new value) for the parameters at positions `used` and their state."""
        raise NotImplementedError

    @property
    def lr(self) -> float:
        """Learning rate of the first group; assigning sets it for every group."""
        return float(self.param_groups[0]["lr"])

    @lr.setter
    def lr(self, value: float) -> None:
        for group in self.param_groups:
            group["lr"] = value

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for group in self.param_groups:
            for parameter in group.parameters:
                parameter.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient, in one realisation."""
        changed: list[tuple[Tensor, Tensor]] = []
        for group in self.param_groups:
            used = [i for i, p in enumerate(group.parameters) if p.grad is not None]
            if used:
                changed += self.update(group, used)
        if not changed:
            fix = "call loss.backward() before step()"
            raise GradientError(type(self).__name__, "no parameter has a gradient", fix)
        for tensor, value in changed:
            tensor.assign(value.detach().cast(tensor.dtype))
        realize([tensor for tensor, _ in changed])

    def state_dict(self) -> dict[str, Tensor]:
        """Map names such as `0.exp_avg.3` (group, state, parameter) to tensors, for `nn.save`."""
        state: dict[str, Tensor] = {}
        for number, group in enumerate(self.param_groups):
            state[f"{number}.lr"] = group.rate
            state.update({f"{number}.{name}": value for name, value in group.scalars.items()})
            for name, tensors in group.slots.items():
                state.update({f"{number}.{name}.{i}": t for i, t in enumerate(tensors)})
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Overwrite the state in place. Raises StateError, with nothing changed, if it differs."""
        own, op = self.state_dict(), "Optimizer.load_state_dict"
        fix = "load a state of the same optimizer over the same parameters"
        if own.keys() != state.keys():
            names = ", ".join(sorted(own.keys() ^ state.keys())[:8])
            raise StateError(op, f"names differ: {names}", fix)
        for name, tensor in own.items():
            if tuple(tensor.shape) != tuple(state[name].shape):
                shapes = f"{tuple(state[name].shape)}, not {tuple(tensor.shape)}"
                raise StateError(op, f"{name} has shape {shapes}", fix)
        overwrite([(tensor, state[name]) for name, tensor in own.items()])
        for group in self.param_groups:
            group.options["lr"] = float(group.rate.item())


class SGD(Optimizer):
    """This class is stochastic gradient descent with momentum, Nesterov and weight decay.

    g = grad + weight_decay * p; v = momentum * v + (1 - dampening) * g (v = g at the first step);
    p = p - lr * (g + momentum * v if nesterov else v).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        options = dict(lr=lr, momentum=momentum, dampening=dampening)
        if nesterov and (momentum <= 0 or dampening != 0):
            problem = "nesterov needs momentum > 0 and dampening 0"
            raise ValueRangeError("SGD", problem, "set momentum=0.9")
        super().__init__(params, options | dict(weight_decay=weight_decay, nesterov=nesterov))

    def prepare(self, group: ParameterGroup) -> None:
        """Create the momentum buffers; a group without momentum has no state."""
        if group["momentum"]:
            group.add_slots("momentum_buffer")
            if group["dampening"]:
                # 1 until the first step, then 0: the first velocity is undamped, as in PyTorch.
                group.add_scalar("is_first", 1.0)

    def update(self, group: ParameterGroup, used: list[int]) -> list[tuple[Tensor, Tensor]]:
        """Record the update rule of the class."""
        changed = []
        momentum, share = group["momentum"], 1.0 - group["dampening"]
        is_first = group.scalars.get("is_first")
        weight: Any = share if is_first is None else share + is_first * (1.0 - share)
        for i in used:
            parameter = group.parameters[i]
            direction = _gradient(parameter, group["weight_decay"])
            if momentum:
                buffer = group.slots["momentum_buffer"][i]
                velocity = buffer * momentum + direction * weight
                changed.append((buffer, velocity))
                nesterov = group["nesterov"]
                direction = direction + velocity * momentum if nesterov else velocity
            changed.append((parameter, parameter.detach() - group.rate * direction))
        if is_first is not None:
            changed.append((is_first, is_first * 0.0))
        return changed


class Adam(Optimizer):
    """This class is Adam (Kingma and Ba, 2015); weight decay is added to the gradient.

    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p = p - lr (m / c1) / (sqrt(v / c2) + eps).
    c = 1 - b^t is kept as a moving average of ones, c = b c + (1 - b): in float32 that is exact to
    rounding, where 1 - 0.999^t cancels. All parameters of a group count the same steps.
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def prepare(self, group: ParameterGroup) -> None:
        """Create both moments and the bias corrections."""
        group.add_slots("exp_avg")
        group.add_slots("exp_avg_sq")
        for name in ("step", "correction1", "correction2"):
            group.add_scalar(name, 0.0)

    def update(self, group: ParameterGroup, used: list[int]) -> list[tuple[Tensor, Tensor]]:
        """Record the update rule of the class."""
        (beta1, beta2), eps = group["betas"], group["eps"]
        scalars, decay = group.scalars, group["weight_decay"]
        correction1 = scalars["correction1"] * beta1 + (1.0 - beta1)
        correction2 = scalars["correction2"] * beta2 + (1.0 - beta2)
        step_size, scale = group.rate / correction1, correction2.rsqrt()
        changed = []
        for i in used:
            parameter = group.parameters[i]
            gradient = _gradient(parameter, 0.0 if self.decoupled else decay)
            first, second = group.slots["exp_avg"][i], group.slots["exp_avg_sq"][i]
            mean = first + (gradient - first) * (1.0 - beta1)
            square = second * beta2 + gradient * gradient * (1.0 - beta2)
            change = step_size * mean / (square.sqrt() * scale + eps)
            start = parameter.detach()
            if self.decoupled and decay:
                start = start * (1.0 - group.rate * decay)
            changed += [(first, mean), (second, square), (parameter, start - change)]
        new = (scalars["step"] + 1.0, correction1, correction2)
        return changed + list(zip(scalars.values(), new))


class AdamW(Adam):
    """This class is Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        Adam.__init__(self, params, lr, betas, eps, weight_decay)


def _read_groups(parameters: Iterable[Any], defaults: dict[str, Any]) -> list[ParameterGroup]:
    """Read tensors, or dicts with "params" and options, into groups."""
    if not isinstance(parameters, Iterable):
        problem = f"{type(parameters).__name__} is no list of parameters"
        raise DTypeError("optim", problem, "pass model.parameters()")
    items: list[Any] = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not items:
        raise ValueRangeError("optim", "there are no parameters", "pass model.parameters()")
    groups = items if isinstance(items[0], dict) else [{"params": items}]
    result: list[ParameterGroup] = []
    seen: set[int] = set()
    for group in groups:
        if not isinstance(group, dict) or "params" not in group:
            problem = "a parameter group has no 'params'"
            raise ValueRangeError("optim", problem, 'write {"params": tensors, "lr": 0.1}')
        members = group["params"]
        members = [members] if isinstance(members, Tensor) else list(members)
        options = {**defaults, **{k: v for k, v in group.items() if k != "params"}}
        _check_members(members, seen)
        result.append(ParameterGroup(members, options))
    return result


def _check_members(members: list[Any], seen: set[int]) -> None:
    if not members:
        raise ValueRangeError("optim", "a parameter group is empty", "pass at least one tensor")
    for member in members:
        if not isinstance(member, Tensor) or not member.dtype.is_float:
            raise ValueRangeError("optim", f"cannot train {member!r}", "pass floating tensors")
        if id(member) in seen:
            raise ValueRangeError("optim", "a parameter appears twice", "pass each one once")
        seen.add(id(member))


def _check_options(options: Mapping[str, Any]) -> None:
    for name in ("lr", "eps", "weight_decay", "momentum"):
        _check_rate(name, options.get(name, 0.0))
    betas = options.get("betas", (0.0, 0.0))
    is_pair = isinstance(betas, (tuple, list)) and len(betas) == 2
    if not is_pair or any(not 0.0 <= beta < 1.0 for beta in betas):
        problem = f"betas={betas} are not in [0, 1)"
        raise ValueRangeError("optim", problem, "use (0.9, 0.999)")


def _check_rate(name: str, value: Any) -> None:
    if not isinstance(value, (int, float)):
        problem = f"{name} must be a number, not {type(value).__name__}"
        raise DTypeError("optim", problem, "pass a float")
    if not value >= 0.0:  # NaN too
        what = "negative" if value < 0.0 else "not a number"
        raise ValueRangeError("optim", f"{name}={value} is {what}", "use 0 or more")


def _gradient(parameter: Tensor, weight_decay: float) -> Tensor:
    check(parameter.grad is not None, "an update without a gradient")
    gradient: Tensor = parameter.grad.detach()  # type: ignore[union-attr]
    if gradient.shape != parameter.shape:
        problem = f"gradient {gradient.shape} does not fit its parameter {parameter.shape}"
        raise ShapeError("optim", problem, "give them the same shape")
    return gradient + parameter.detach() * weight_decay if weight_decay else gradient


def _zeros_like(parameter: Tensor) -> Tensor:
    return constant(tuple(parameter.shape), 0.0, parameter.device, parameter.dtype)
