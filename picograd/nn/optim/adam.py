"""Adam and AdamW, and the numbers of moving averages that other optimizers share.

Descendants of Adam: NAdam (Nesterov), RAdam (rectified), Adamax (infinity norm),
SparseAdam (rows that are read).

LAMB: Adam with a step length per layer, for large batches.
"""

import math
from collections.abc import Iterable
from typing import Any

from picograd.nn.optim.base import Optimizer, Result, Slots
from picograd.nn.optim.group import Numbers, Options, given_options
from picograd.number import converted
from picograd.tensor.tensor import Tensor


def average_numbers(options: Options) -> dict[str, float]:
    """Compute what moving averages with `betas` need; all in double precision, on the host.

    `rest` is 1 - beta, which would cancel in float32; `log` serves `correction`.
    """
    numbers = {}
    for number, beta in enumerate(options["betas"], 1):
        numbers[f"beta{number}"] = converted(float, beta)
        numbers[f"rest{number}"] = 1.0 - beta
        numbers[f"log{number}"] = math.log(beta) if beta else -math.inf
    return numbers


def correction(step: Tensor, log_beta: Tensor) -> Tensor:
    """Compute 1 - beta^step, the weight a moving average has gathered, without cancellation."""
    return -((step * log_beta).expm1())


def corrected(n: Numbers, step: Tensor) -> tuple[Tensor, Tensor]:
    """Correct the bias of both averages: the step size, and the root of the second's weight."""
    root = correction(step, n["log2"]).sqrt()
    return n["lr"] * root / correction(step, n["log1"]), root


def average(old: Tensor, new: Tensor, rest: Tensor) -> Tensor:
    """Move an average towards a new value by `rest`."""
    return old + (new - old) * rest


class Averaging(Optimizer):
    """This class is the base of optimizers with two averages, `betas` and a step count."""

    _shared = {"step": 0.0}

    second = "exp_avg_sq"

    def slots(self, options: Options) -> dict[str, float]:
        """Name both moments."""
        return {"exp_avg": 0.0, self.second: 0.0}

    def numbers(self, options: Options) -> dict[str, float]:
        """Add the numbers of both averages."""
        return super().numbers(options) | average_numbers(options)


class Adam(Averaging):
    """This class is Adam (Kingma and Ba, 2015).

    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p = p - lr (m / c1) / (sqrt(v / c2) + eps) with
    c = 1 - b^t; the root of c2 is moved to lr and eps, so that it costs nothing per element.
    `amsgrad` divides by the largest v so far (Reddi et al., 2018). Weight decay is added to the
    gradient, or with `decoupled_weight_decay` shrinks the parameter, as in AdamW.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.9, 1.9]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def slots(self, options: Options) -> dict[str, float]:
        """Name both moments, and the largest second moment for amsgrad."""
        slots = super().slots(options)
        return slots | {"max_exp_avg_sq": 0.0} if options["amsgrad"] else slots

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Correct the bias of both averages."""
        step = shared["step"] + 1.0
        step_size, root = corrected(n, step)
        return {**n, "step_size": step_size, "eps": n["eps"] * root}, {"step": step}

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        mean = average(state["exp_avg"], g, n["rest1"])
        square = state["exp_avg_sq"] * n["beta2"] + g * g * n["rest2"]
        new = {"exp_avg": mean, "exp_avg_sq": square}
        if options["amsgrad"]:
            square = new["max_exp_avg_sq"] = state["max_exp_avg_sq"].maximum(square)
        change = n["step_size"] * mean / (square.sqrt() + n["eps"])
        return p - change, new


class AdamW(Adam):
    """This class is Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.AdamW([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.899, 1.898]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, **given_options(locals()), decoupled_weight_decay=True)


# Dozat (2016) lets the momentum rise as 1 - 0.96^(t * momentum_decay) / 2.
LOG_RISE = -0.040821994520255166  # log(0.96)
# Below this length of the approximated average the variance has no finite estimate (Liu et al.).
SHORTEST = 5.0


class NAdam(Averaging):
    """This class is Adam with Nesterov's momentum (Dozat, 2016).

    mu_t = b1 (1 - 0.96^(t * momentum_decay) / 2); the step mixes the gradient and the first moment
    that the next step will see: (1 - mu_t) g / (1 - mu_1...mu_t) + mu_t+1 m / (1 - mu_1...mu_t+1).

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.NAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.894, 1.894]
    """

    _shared = {"step": 0.0, "mu_product": 1.0}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def numbers(self, options: Options) -> dict[str, float]:
        """Add the rise of the momentum."""
        return super().numbers(options) | {"rise": (LOG_RISE * options["momentum_decay"])}

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Weigh gradient and momentum."""
        step = shared["step"] + 1.0
        mu = n["beta1"] * (1.0 - 0.5 * (step * n["rise"]).exp())
        following = n["beta1"] * (1.0 - 0.5 * ((step + 1.0) * n["rise"]).exp())
        product = shared["mu_product"] * mu
        weights = {
            "of_gradient": n["lr"] * (1.0 - mu) / (1.0 - product),
            "of_mean": n["lr"] * following / (1.0 - product * following),
            "scale": correction(step, n["log2"]).rsqrt(),
        }
        return {**n, **weights}, {"step": step, "mu_product": product}

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        mean = average(state["exp_avg"], g, n["rest1"])
        square = state["exp_avg_sq"] * n["beta2"] + g * g * n["rest2"]
        move = g * n["of_gradient"] + mean * n["of_mean"]
        p = p - move / (square.sqrt() * n["scale"] + n["eps"])
        return p, {"exp_avg": mean, "exp_avg_sq": square}


class RAdam(Averaging):
    """This class is Adam without its warm-up: the rate is rectified (Liu et al., 2020).

    While the second moment has seen too few gradients (rho <= 5), p = p - lr m / c1; afterwards
    the step is Adam's times the rectification, a function of rho = rho_inf - 2 t b2^t / c2.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.RAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.8, 1.6]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def numbers(self, options: Options) -> dict[str, float]:
        """Add the longest length of the approximated average, and the constant part of the root."""
        longest = 2.0 / (1.0 - options["betas"][1]) - 1.0
        bound = (longest - 4.0) * (longest - 2.0)
        share = longest / bound if bound else 0.0
        return super().numbers(options) | {"longest": longest, "share": share}

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Correct biases, and rectify once the average is long enough."""
        step = shared["step"] + 1.0
        bias = correction(step, n["log2"])
        length = n["longest"] - 2.0 * step * (1.0 - bias) / bias
        is_long = length > SHORTEST
        known = is_long.where(length, SHORTEST + 1.0)
        root = ((known - 4.0) * (known - 2.0) * n["share"] / known * bias).sqrt()
        rate = n["lr"] / correction(step, n["log1"])
        more = {"is_long": is_long, "rate": rate, "rectified": rate * root}
        return {**n, **more}, {"step": step}

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        mean = average(state["exp_avg"], g, n["rest1"])
        square = state["exp_avg_sq"] * n["beta2"] + g * g * n["rest2"]
        adaptive = n["rectified"] / (square.sqrt() + n["eps"])
        p = p - mean * n["is_long"].where(adaptive, n["rate"])
        return p, {"exp_avg": mean, "exp_avg_sq": square}


class Adamax(Averaging):
    """This class is Adam with the infinity norm (Kingma and Ba, 2015, section 7).

    u = max(b2 u, |g| + eps); p = p - lr (m / c1) / u.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.Adamax([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.9, 1.9]
    """

    second = "exp_inf"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Correct the bias of the first average."""
        step = shared["step"] + 1.0
        return {**n, "step_size": n["lr"] / correction(step, n["log1"])}, {"step": step}

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        mean = average(state["exp_avg"], g, n["rest1"])
        largest = (state["exp_inf"] * n["beta2"]).maximum(g.abs() + n["eps"])
        p = p - n["step_size"] * mean / largest
        return p, {"exp_avg": mean, "exp_inf": largest}


class SparseAdam(Averaging):
    """This class is Adam for tables of which a step reads few rows, as PyTorch's of that name.

    A row whose gradient is 0 stays, and so do its moments, where Adam would move it by what they
    remember. p = p - lr sqrt(c2) / c1 m / (sqrt(v) + eps).

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([[1.0], [2.0]]))
    >>> optimizer = nn.optim.SparseAdam([x], lr=0.1)
    >>> (x[:1] * x[:1]).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.flatten().tolist()]
    [0.9, 2.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Correct the bias of both averages."""
        step = shared["step"] + 1.0
        step_size, _ = corrected(n, step)
        return {**n, "step_size": step_size}, {"step": step}

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        is_read = g != 0
        if g.ndim > 1:
            rows = is_read.flatten(1).any(1)
            is_read = rows.reshape(-1, *(1,) * (g.ndim - 1))
        mean = average(state["exp_avg"], g, n["rest1"])
        square = average(state["exp_avg_sq"], g * g, n["rest2"])
        move = mean / (square.sqrt() + n["eps"])
        kept = {
            "exp_avg": is_read.where(mean, state["exp_avg"]),
            "exp_avg_sq": is_read.where(square, state["exp_avg_sq"]),
        }
        return is_read.where(p - n["step_size"] * move, p), kept


class LAMB(Adam):
    """This class scales Adam's direction by |p| / |direction| (You et al., 2020, arXiv 1904.00962).

    r = (m / c1) / (sqrt(v / c2) + eps) + weight_decay p; p = p - lr |p| / |r| r, with a ratio of 1
    where either norm is 0. The norms are 2-norms over one parameter: a "layer" of the paper.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.LAMB([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.843, 1.841]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 1e-2,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, maximize=maximize)

    def decay(self, p: Tensor, g: Tensor, n: Numbers, options: Options) -> tuple[Tensor, Tensor]:
        """Leave both: weight decay is part of the direction."""
        return p, g

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        moved, new = super().update(p * 0.0, g, state, n, options)
        direction = p * n["weight_decay"] - moved / n["lr"]
        lengths = (p * p).sum().sqrt(), (direction * direction).sum().sqrt()
        is_usual = (lengths[0] > 0.0) & (lengths[1] > 0.0)
        ratio = is_usual.where(lengths[0] / lengths[1], 1.0)
        return p - n["lr"] * ratio * direction, new
