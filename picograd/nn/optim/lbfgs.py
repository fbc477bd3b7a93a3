"""L-BFGS: a quasi-Newton method for small deterministic problems.

Line search by the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6).

A step is long enough when the loss has fallen by C1 of what the first slope promises and the slope
has become C2 times as flat. First steps grow until they enclose such a point, then the interval
shrinks around it; trial points come from the cubic through both ends.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from typing import Any

import numpy as np

from picograd.errors import DTypeError, StateError, ValueRangeError, check_known
from picograd.late_methods import dataclass
from picograd.nn.optim.base import Optimizer
from picograd.nn.parameter import overwrite
from picograd.tensor.core.autograd import enable_grad
from picograd.tensor.tensor import Tensor

C1, C2 = 1e-4, 0.9
# A trial point keeps this share of the interval away from its ends when progress stalls.
MARGIN = 0.1


@dataclass(slots=True)
class Point:
    """A step along the direction: its length, the loss there, the gradient, and the slope."""

    length: float
    loss: float
    gradient: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    slope: float


Evaluate = Callable[[float], Point]


def search(
    evaluate: Evaluate, start: Point, length: float, size: float, tolerance: float, most: int
) -> tuple[Point, int]:
    """Find a point by the strong Wolfe conditions; also count the evaluations.

    `size` is the largest element of the direction: an interval that moves no parameter by more
    than `tolerance` is small enough. At most about `most` points are tried.
    """
    before, point = start, evaluate(length)
    for tried in range(most):
        is_rising = tried > 1 and point.loss >= before.loss
        if is_too_high(point, start) or is_rising:
            return zoom(evaluate, start, (before, point), size, tolerance, (tried, most))
        if abs(point.slope) <= -C2 * start.slope:
            return point, tried + 1
        if point.slope >= 0.0:
            return zoom(evaluate, start, (before, point), size, tolerance, (tried, most))
        gap = point.length - before.length
        bounds = point.length + 0.01 * gap, point.length * 10.0
        before, point = point, evaluate(interpolate(before, point, bounds))
    return (start if start.loss <= point.loss else point), most + 1


def zoom(
    evaluate: Evaluate,
    start: Point,
    ends: tuple[Point, Point],
    size: float,
    tolerance: float,
    tries: tuple[int, int],
) -> tuple[Point, int]:
    """Shrink an interval that encloses a good point; its better end is the answer."""
    low, high = sorted(ends, key=lambda point: point.loss)
    tried, most = tries
    is_stalled = False
    while tried < most and abs(high.length - low.length) * size >= tolerance:
        length, is_stalled = trial(low, high, is_stalled)
        point = evaluate(length)
        tried += 1
        if is_too_high(point, start) or point.loss >= low.loss:
            low, high = sorted((low, point), key=lambda each: each.loss)
            continue
        if abs(point.slope) <= -C2 * start.slope:
            return point, tried + 1
        if point.slope * (high.length - low.length) >= 0.0:
            high = low
        low = point
    return low, tried + 1


def is_too_high(point: Point, start: Point) -> bool:
    """Tell whether the loss fell by less than C1 of what the first slope promises."""
    return point.loss > start.loss + C1 * point.length * start.slope


def trial(low: Point, high: Point, is_stalled: bool) -> tuple[float, bool]:
    """Choose the next length inside an interval, and tell whether it came close to an end."""
    length = interpolate(low, high)
    left, right = sorted((low.length, high.length))
    margin = MARGIN * (right - left)
    if min(right - length, length - left) >= margin:
        return length, False
    if not is_stalled and left < length < right:
        return length, True
    is_right = abs(length - right) < abs(length - left)
    return (right - margin if is_right else left + margin), False


def interpolate(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Find the minimum of the cubic through two points, cut to bounds (Nocedal and Wright, 3.59).

    Where the cubic has none: the middle.
    """
    first, last = sorted((a, b), key=lambda point: point.length)
    least, most = bounds or (first.length, last.length)
    gap = last.length - first.length
    mean = first.slope + last.slope - 3.0 * (last.loss - first.loss) / gap if gap else 0.0
    square = mean * mean - first.slope * last.slope
    if not square >= 0.0:
        return (least + most) / 2.0
    root = math.sqrt(square)
    bottom = last.slope - first.slope + 2.0 * root
    if bottom == 0.0:
        return most
    return min(max(last.length - gap * (last.slope + root - mean) / bottom, least), most)


def _strong_wolfe(
    obj_func: Callable[..., Any], x: Any, t: Any, d: Any, f: Any, g: Any, gtd: Any,
    c1: float = C1, c2: float = C2, tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Any, float, int]:  # fmt: skip
    """Search along d from x, as programs do that import it: loss, gradient, length, evaluations.

    obj_func(x, t, d) gives the loss and the gradient at x + t * d; `gtd` is the first slope.
    Raises ValueRangeError for other conditions than C1 and C2.
    """
    if (c1, c2) != (C1, C2):
        text = f"c1={c1}, c2={c2} are not {C1} and {C2}"
        raise ValueRangeError("_strong_wolfe", text, "leave them out")

    def evaluate(length: float) -> Point:
        loss, gradient = obj_func(x, length, d)
        return Point(length, float(loss), gradient, float(gradient.dot(d)))

    start, size = Point(0.0, float(f), g, float(gtd)), float(d.abs().max())
    found, count = search(evaluate, start, float(t), size, tolerance_change, max_ls)
    return found.loss, found.gradient, found.length, count


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None
) -> float:
    """Find the minimum of the cubic through two lengths, losses and slopes, cut to bounds."""
    first, last = ((x1, f1, g1), (x2, f2, g2))
    none: Any = None  # of the gradient
    a, b = (Point(float(x), float(f), none, float(g)) for x, f, g in (first, last))
    return interpolate(a, b, bounds)


# A pair of less curvature would spoil the estimate of the Hessian.
LEAST_CURVATURE = 1e-10
COUNTS = ("func_evals", "n_iter")  # that a state has before the first direction


@dataclass(slots=True)
class Memory:
    """What L-BFGS remembers: the last steps and how they changed the gradient."""

    func_evals: int = 0
    n_iter: int = 0
    d: Any = None  # the last direction ...
    t: float = 0.0  # ... and how far it went
    old_dirs: list[Any] = field(default_factory=list)  # changes of the gradient
    old_stps: list[Any] = field(default_factory=list)  # steps
    ro: list[float] = field(default_factory=list)  # one over the products of both
    H_diag: float = 1.0
    prev_flat_grad: Any = None
    prev_loss: float = 0.0


class LBFGS(Optimizer):
    """This class follows -H g, with H, the inverse Hessian, from the last steps (Liu and Nocedal).

    `step(closure)` takes up to `max_iter` iterations, in each of which the closure computes the
    loss and its gradients anew. `line_search_fn="strong_wolfe"` chooses the length of steps, which
    is `lr` otherwise. The vectors are float64 on the host: losses have to be read there anyway.
    Source: Nocedal and Wright (2006), algorithm 7.5. One group of parameters only.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.LBFGS([x], lr=0.5)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x * x).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    5.0
    """

    is_formula = True  # its options are checked, though the step is its own

    def __init__(
        self, params: Iterable[Any], lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_known("LBFGS", "line_search_fn", line_search_fn, (None, "strong_wolfe"))
        most = max_iter * 5 // 4 if max_eval is None else max_eval
        options: dict[str, Any] = dict(lr=lr, max_iter=max_iter, max_eval=most)
        options |= dict(tolerance_grad=tolerance_grad, tolerance_change=tolerance_change)
        options |= dict(history_size=history_size, line_search_fn=line_search_fn)
        self.memory: Memory = Memory()
        super().__init__(params, options)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Set the group. Raises ValueRangeError for a second one."""
        if self.param_groups:
            raise ValueRangeError("LBFGS", "there is a second group", "put all tensors in one")
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate; returns the loss before the first iteration.

        >>> from picograd import Tensor, nn
        >>> weight = nn.Parameter(Tensor([3.0]))
        >>> optimizer = nn.optim.LBFGS([weight], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((weight - 1.0) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item(), weight.item()
        (4.0, 1.0)
        """
        if closure is None:
            problem = "the closure is missing"
            raise DTypeError("LBFGS.step", problem, "pass a function that computes the loss")
        with enable_grad():
            first = closure()
        options, memory = self.param_groups[0].options, self.memory
        memory.func_evals += 1
        here = Point(0.0, float(first), self._gradient(), 0.0)
        evaluations = 1
        if _largest(here.gradient) <= options["tolerance_grad"]:
            return first
        for number in range(options["max_iter"]):
            direction = self._direction(here.gradient, options["history_size"])
            memory.prev_flat_grad, memory.prev_loss = here.gradient, here.loss
            memory.d, memory.t = (direction, self._first_length(here.gradient, options["lr"]))
            here = Point(0.0, here.loss, here.gradient, float(here.gradient @ direction))
            if here.slope > -options["tolerance_change"]:
                break
            is_last = number + 1 == options["max_iter"]
            left = options["max_eval"] - evaluations
            # read each time: a closure may clamp what it is given, as it does for pictures
            here, count = self._move(closure, self._read(), here, left, is_last)
            evaluations += count
            memory.func_evals += count
            if is_last or self._is_over(here, evaluations):
                break
        return first

    def _move(
        self, closure: Callable[[], Any], place: Any, here: Point, most: int, is_last: bool
    ) -> tuple[Point, int]:
        """Take one step along the direction; count how often the loss was computed."""
        memory, options = self.memory, self.param_groups[0].options

        def evaluate(length: float) -> Point:
            self._set(place + length * memory.d)
            with enable_grad():
                loss = float(closure())
            gradient = self._gradient()
            return Point(length, loss, gradient, float(gradient @ memory.d))

        if options["line_search_fn"] is None:
            if not is_last:
                return evaluate(memory.t), 1
            self._set(place + memory.t * memory.d)
            return here, 0
        size, tolerance = _largest(memory.d), options["tolerance_change"]
        found, count = search(evaluate, here, memory.t, size, tolerance, most)
        memory.t = found.length
        self._set(place + found.length * memory.d)
        return found, count

    def _is_over(self, here: Point, evaluations: int) -> bool:
        """Tell whether the gradient, the step or the change of the loss is small enough."""
        options, memory = self.param_groups[0].options, self.memory
        least = options["tolerance_change"]
        return (
            evaluations >= options["max_eval"]
            or _largest(here.gradient) <= options["tolerance_grad"]
            or _largest(memory.d * memory.t) <= least
            or abs(here.loss - memory.prev_loss) < least
        )

    def _direction(self, gradient: Any, history_size: int) -> Any:
        """Note the last step, and multiply -gradient by the estimate of the inverse Hessian."""
        memory = self.memory
        memory.n_iter += 1
        if memory.n_iter == 1:
            return -gradient
        change, moved = gradient - memory.prev_flat_grad, memory.d * memory.t
        curvature = float(change @ moved)
        if curvature > LEAST_CURVATURE:
            memory.old_dirs = [*memory.old_dirs, change][-history_size:]
            memory.old_stps = [*memory.old_stps, moved][-history_size:]
            memory.H_diag = curvature / float(change @ change)
            memory.ro = [*memory.ro, 1.0 / curvature][-history_size:]
        pairs = list(zip(memory.old_dirs, memory.old_stps, memory.ro))
        result, weights, part = -gradient, [], np.empty_like(gradient)
        for y, s, ro in reversed(pairs):
            weights.append(float(s @ result) * ro)
            result -= np.multiply(y, weights[-1], out=part)
        result *= memory.H_diag
        for (y, s, ro), weight in zip(pairs, reversed(weights)):
            result += np.multiply(s, weight - float(y @ result) * ro, out=part)
        return result

    def _first_length(self, gradient: Any, lr: float) -> float:
        """Try lr, but start carefully: nothing is known of the curvature."""
        total = float(np.abs(gradient).sum())
        return min(1.0, 1.0 / total) * lr if self.memory.n_iter == 1 else lr

    def _read(self) -> Any:
        """Join the parameters to one vector."""
        parts = [as_line(p, p) for p in self.param_groups[0].parameters]
        return np.concatenate(parts).astype(np.float64)

    def _gradient(self) -> Any:
        """Join the gradients to one vector; missing ones are zeros."""
        parameters = self.param_groups[0].parameters
        return np.concatenate([as_line(p.grad, p) for p in parameters]).astype(np.float64)

    def _set(self, vector: Any) -> None:
        """Write the pieces of a vector into the parameters."""
        parameters = self.param_groups[0].parameters
        ends = np.cumsum([p.numel() * (1 + p.dtype.is_complex) for p in parameters])[:-1]
        pieces = zip(parameters, np.split(vector, ends))
        kinds = [np.complex128 if p.dtype.is_complex else np.float64 for p in parameters]
        overwrite([
            (p, Tensor.of(piece.view(kind).reshape(tuple(p.shape))))
            for (p, piece), kind in zip(pieces, kinds)
        ])  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Describe the memory as the state of the first parameter, as PyTorch does."""
        state, memory = super().state_dict(), self.memory
        if not memory.func_evals:
            return state
        names = COUNTS if memory.d is None else [each.name for each in fields(memory)]
        entry = {name: as_saved(getattr(memory, name)) for name in names}
        return {**state, "state": {0: entry}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state. Raises StateError, with nothing changed, if it does not fit."""
        entry = state_dict.get("state", {}).get(0, {})
        count = sum(p.numel() for p in self.param_groups[0].parameters)
        vectors = {n: _vector(entry[n]) for n in ("d", "prev_flat_grad") if n in entry}
        lists = {n: [_vector(x) for x in entry.get(n, [])] for n in ("old_dirs", "old_stps")}
        if any(v.shape != (count,) for v in (*vectors.values(), *lists["old_dirs"])):
            problem = f"the direction does not have {count} elements"
            raise StateError("LBFGS.load_state_dict", problem, "load a state of these parameters")
        super().load_state_dict({**state_dict, "state": {}})
        ro = [1.0 / float(y @ s) for y, s in zip(lists["old_dirs"], lists["old_stps"])]
        names = (*COUNTS, "t", "H_diag", "prev_loss")
        plain = {name: float(entry[name]) for name in names if name in entry}
        counts = {name: int(plain.pop(name, 0)) for name in COUNTS}
        self.memory = Memory(**counts, **plain, **vectors, **lists, ro=ro)  # type: ignore[arg-type]


def as_saved(value: Any) -> Any:
    """Give what a state dict has for a number, a vector, or a list of them."""
    if isinstance(value, list):
        return [as_saved(each) for each in value]
    return Tensor.of(value) if isinstance(value, np.ndarray) else value


def _vector(value: Any) -> Any:
    """Read a vector of a state dict."""
    return np.asarray(value, np.float64).reshape(-1)


def _largest(vector: Any) -> float:
    return float(np.abs(vector).max(initial=0.0))


def as_line(value: Tensor | None, like: Tensor) -> Any:
    """Read numbers as one line of floats, complex ones as (real, imaginary); None is zeros."""
    if value is None:
        return np.zeros(like.numel() * (1 + like.dtype.is_complex))
    line = np.ascontiguousarray(value.detach().numpy()).reshape(-1)
    return line.view(line.real.dtype)
