"""ONNX operators with a state: RNN, GRU, LSTM."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.onnx.table import Call, operator
from picograd.onnx.values import is_held
from picograd.tensor.public import arange, stack, where
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.scan import scan

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "relu": lambda x, a, b: x.relu(),
    "tanh": lambda x, a, b: x.tanh(),
    "sigmoid": lambda x, a, b: x.sigmoid(),
    "affine": lambda x, a, b: x * a + b,
    "leakyrelu": lambda x, a, b: where(x < 0, x * a, x),
    "thresholdedrelu": lambda x, a, b: where(x > a, x, x.zeros_like()),
    "scaledtanh": lambda x, a, b: (x * b).tanh() * a,
    "hardsigmoid": lambda x, a, b: (x * a + b).clamp(0, 1),
    "elu": lambda x, a, b: where(x < 0, (x.exp() - 1) * a, x),
    "softsign": lambda x, a, b: x / (1 + x.abs()),
    "softplus": lambda x, a, b: x.exp().log1p(),
}
NUMBERS = {  # alpha and beta where a model gives none
    "leakyrelu": (0.01, 0.0), "hardsigmoid": (0.2, 0.5), "elu": (1.0, 0.0),
    "thresholdedrelu": (1.0, 0.0), "affine": (1.0, 0.0), "scaledtanh": (1.0, 1.0),
}  # fmt: skip
Cell = Callable[..., list[Tensor]]


def chosen(names: Any, alphas: Any, betas: Any, default: list[str], direction: int) -> list[Any]:
    """Choose the functions of one direction."""
    count = len(default)
    given = [each.lower() for each in names or default * 2][direction * count :][:count]
    alphas, betas = list(alphas or []), list(betas or [])
    found = []
    for place, name in enumerate(given):
        first, second = NUMBERS.get(name, (0.0, 0.0))
        at = direction * count + place
        a = alphas[at] if at < len(alphas) else first
        b = betas[at] if at < len(betas) else second
        found.append(lambda x, name=name, a=a, b=b: FUNCTIONS[name](x, a, b))
    return found


def layer(
    call: Call, cell: Cell, gates: int, default: list[str], inputs: Sequence[Any],
    activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None,
    direction: str = "forward", hidden_size: int = 0, layout: int = 0,
) -> Any:  # fmt: skip
    """Run a cell over time, forwards, backwards or both; outputs, and last states.

    Inputs are the sequence, weights of it and of the state, biases, lengths, and first states.
    """
    x, w, r, bias, lengths, *states = inputs
    x, hidden = x.transpose(0, 1) if layout else x, r.shape[-1]
    (steps, batch), count = x.shape[:2], w.shape[0]
    zeros = Tensor(np.zeros((batch, hidden), np.float32)).to(x.dtype)
    is_whole = lengths is None or (is_held(lengths) and (lengths == steps).all())
    ends = None if is_whole else call.tensor(lengths)
    rows, lasts = [], []
    for d in range(count):
        backwards = direction == "reverse" or d == 1
        b = None if bias is None else (bias[d][: gates * hidden], bias[d][gates * hidden :])
        now = [zeros if each is None else (each[:, d] if layout else each[d]) for each in states]
        projected = x @ w[d].T + (0 if b is None else b[0])
        functions = chosen(activations, activation_alpha, activation_beta, default, d)
        fixed = (r[d], None if b is None else b[1], functions, d)
        outputs, last = over_time(cell, projected, now, fixed, ends, backwards)
        rows.append(outputs)
        lasts.append(last)
    y = stack(rows, 1)  # (steps, directions, batch, hidden)
    finals = [stack([last[k] for last in lasts], 0) for k in range(len(states))]
    if layout:
        y, finals = y.permute(2, 0, 1, 3), [each.transpose(0, 1) for each in finals]
    return (y, *finals)


def over_time(
    cell: Cell, x: Tensor, state: list[Any], fixed: Any, ends: Tensor | None, backwards: bool
) -> tuple[Tensor, list[Tensor]]:
    """Run a cell over the steps of one direction; a sample that has ended keeps its state."""

    def step(old: list[Tensor], row: tuple[Tensor, Tensor]) -> tuple[list[Tensor], Tensor]:
        given, time = row
        new = cell(given, old, *fixed)
        if ends is None:
            return new, new[0]
        is_there = (time < ends)[:, None]
        kept = [where(is_there, one, before) for one, before in zip(new, old)]
        return kept, where(is_there, new[0], 0.0)

    last, outputs = scan(step, state, (x, arange(x.shape[0])), reverse=backwards)
    return outputs, last


@operator("RNN")
def rnn(call: Call, *inputs: Any, clip: float | None = None, **settings: Any) -> Any:
    """Elman's cell."""

    def cell(p: Any, states: Any, weight: Any, b: Any, f: Any, d: int) -> list[Tensor]:
        value = p + states[0] @ weight.T + (0 if b is None else b)
        return [f[0](clipped(value, clip))]

    return layer(call, cell, 1, ["Tanh"], filled(inputs, 6), **settings)


@operator("GRU")
def gru(
    call: Call,
    *inputs: Any,
    clip: float | None = None,
    linear_before_reset: int = 0,
    **settings: Any,
) -> Any:
    """Gated recurrent unit; gates in the order update, reset, hidden."""
    size = inputs[2].shape[-1]

    def cell(p: Any, states: Any, weight: Any, b: Any, f: Any, d: int) -> list[Tensor]:
        old = states[0]
        gates = p[:, : 2 * size] + old @ weight[: 2 * size].T
        gates = gates if b is None else gates + b[: 2 * size]
        update, reset = f[0](clipped(gates, clip)).split(size, 1)
        last = weight[2 * size :].T
        own = 0 if b is None else b[2 * size :]
        inner = reset * (old @ last + own) if linear_before_reset else (reset * old) @ last + own
        new = f[1](clipped(p[:, 2 * size :] + inner, clip))
        return [(1 - update) * new + update * old]

    return layer(call, cell, 3, ["Sigmoid", "Tanh"], filled(inputs, 6), **settings)


@operator("LSTM")
def lstm(
    call: Call,
    *inputs: Any,
    clip: float | None = None,
    input_forget: int = 0,
    rounded: Callable[[Tensor], Tensor] = lambda hidden: hidden,
    **settings: Any,
) -> Any:
    """Long short-term memory; gates in the order input, output, forget, cell.

    `rounded` is applied to the hidden state before its product, by quantised forms.
    """
    size = inputs[2].shape[-1]
    *given, peepholes = filled(inputs, 8)

    def cell(p: Any, states: Any, weight: Any, b: Any, f: Any, d: int) -> list[Tensor]:
        old, kept = states
        gates = p + rounded(old) @ weight.T + (0 if b is None else b)
        i, o, g, c = clipped(gates, clip).split(size, 1)
        peeps = None if peepholes is None else peepholes[d].split(size)
        if peeps is not None:
            i, g = i + peeps[0] * kept, g + peeps[2] * kept
        i = f[0](i)
        g = 1 - i if input_forget else f[0](g)
        new = g * kept + i * f[1](c)
        o = f[0](o if peeps is None else o + peeps[1] * new)
        return [o * f[2](new), new]

    return layer(call, cell, 4, ["Sigmoid", "Tanh", "Tanh"], given, **settings)


def filled(inputs: Sequence[Any], count: int) -> list[Any]:
    """Give None for inputs that a model leaves out at the end."""
    return [*inputs, *[None] * (count - len(inputs))]


def clipped(x: Tensor, limit: float | None) -> Tensor:
    """Limit what goes into a gate."""
    return x if not limit else x.clamp(-limit, limit)
