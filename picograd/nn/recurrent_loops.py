"""The loops of recurrent layers over time, and one step of RNN, LSTM and GRU in them.

`step` functions take the input's part of the gates already multiplied, so that a layer multiplies
all time steps at once. Gate orders are PyTorch's: LSTM input, forget, cell, output; GRU reset,
update, new. Layers run one after the other (`over_time`), or side by side (`over_layers`).
"""

from collections.abc import Sequence
from typing import Any

from picograd.engine.followed import event
from picograd.target import is_gpu
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.scan import scan

State = tuple[Tensor, ...]
Input = tuple[Tensor, Tensor | None]  # weight and bias of a layer's input
Weights = tuple[Tensor, Tensor | None, Tensor | None]  # of its state, its bias, the projection
# Batches, layers, weights and bytes of a number at most, of which layers run side by side on a GPU
FEW_ROWS, FEW_LAYERS, FEW_WEIGHTS, WIDEST = 128, 4, 1 << 24, 2
GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def rnn_tanh_step(given: Tensor, hidden: Tensor, state: State) -> State:
    """Compute h' = tanh(given + hidden): (B, H) each."""
    return ((given + hidden).tanh(),)


def rnn_relu_step(given: Tensor, hidden: Tensor, state: State) -> State:
    """Compute h' = relu(given + hidden): (B, H) each (Elman, 1990)."""
    return ((given + hidden).relu(),)


def lstm_step(given: Tensor, hidden: Tensor, state: State) -> State:
    """Compute (h', c') of given and hidden (B, 4 H) and c (B, H) (Hochreiter et al., 1997)."""
    enter, forget, cell, leave = (given + hidden).chunk(4, -1)
    kept = forget.sigmoid() * state[1] + enter.sigmoid() * cell.tanh()
    return leave.sigmoid() * kept.tanh(), kept


def gru_step(given: Tensor, hidden: Tensor, state: State) -> State:
    """Compute h' of given and hidden (B, 3 H) and h (B, H) (Cho et al., 2014)."""
    (reset, update, new), (reset_h, update_h, new_h) = (given.chunk(3, -1), hidden.chunk(3, -1))
    candidate = (new + (reset + reset_h).sigmoid() * new_h).tanh()
    return (candidate + (update + update_h).sigmoid() * (state[0] - candidate),)


STEPS = {"RNN_TANH": rnn_tanh_step, "RNN_RELU": rnn_relu_step, "LSTM": lstm_step, "GRU": gru_step}


@event
def over_time(
    mode: str, rows: tuple[Tensor, Tensor | None], state: State, weights: Weights, is_reverse: bool
) -> tuple[State, Tensor]:
    """Run the loop of one direction: the input's part (T, B, G*H), and whether it counts.

    The weights are those of the state, its bias, and the projection.
    """

    def step(state: State, x: Any) -> tuple[State, Tensor]:
        moved = advance_state(mode, x[0], state[0], state, weights, x[1])
        return moved, moved[0]

    return scan(step, state, rows, reverse=is_reverse)


def advance_state(
    mode: str, given: Tensor, own: Tensor, state: State, weights: Weights,
    inside: Tensor | None = None,
) -> State:  # fmt: skip
    """Compute the next state of a layer from its `own` output; where not `inside` it stays."""
    moved = STEPS[mode](given, own.linear(*weights[:2]), state)
    if weights[2] is not None:
        moved = (moved[0].linear(weights[2]), *moved[1:])
    # inside autocast a GRU on the CPU multiplies in 16 bits; its state keeps its dtype
    moved = tuple(new.cast(old.dtype) for new, old in zip(moved, state))
    return moved if inside is None else tuple(inside.where(a, b) for a, b in zip(moved, state))


def are_side_by_side(mode: str, count: int, hidden: int, x: Tensor) -> bool:
    """Tell whether so many layers over x (T, B, I) run in one loop: a step of one fills no GPU."""
    steps, rows = x.shape[:2]
    weights = (2 * count - 1) * GATES[mode] * hidden**2
    is_small = rows <= FEW_ROWS and weights <= FEW_WEIGHTS and x.dtype.itemsize <= WIDEST
    is_stack = 1 < count <= min(FEW_LAYERS, steps - 1)
    return is_stack and is_small and is_gpu(x.device.partition(":")[0])


@event
def over_layers(
    mode: str, given: Tensor, states: Sequence[State], inputs: Sequence[Input],
    weights: Sequence[Weights], factors: Sequence[Tensor],
) -> tuple[Sequence[State], Tensor]:  # fmt: skip
    """Run the loop of all layers: each is a step behind the one before, and beside it.

    The products of a step do not wait for each other, and a GPU that one of them leaves idle does
    them at once. `given` is the first layer's input's part, of more steps than there are layers.
    The first and the last steps, which not all layers take, are outside of the loop. `factors`
    (T, B, H), where there are any, are those of each layer's output as the input of the next.
    """
    late, count = len(states) - 1, given.shape[0]
    first = [x[:late].unbind(0) for x in factors]
    last = [x[count - late :].unbind(0) for x in factors]
    between = [x[late - n : count - n] for n, x in enumerate(factors, 1)]

    def step(states: Any, known: Any, rows: Any, layers: range) -> tuple[State, ...]:
        found, own = list(states), known or outputs(states)
        for layer in layers:
            given = rows[layer].linear(*inputs[layer]) if layer else rows[layer]
            found[layer] = advance_state(mode, given, own[layer], states[layer], weights[layer])
        return tuple(found)

    def copies(states: Any) -> tuple[Any, Any]:
        # Gradients by a layer's own product, its gates and the next layer are added a step later.
        return outputs(states) * (mode == "GRU"), outputs(states)[:-1]

    def whole(carry: Any, x: Any) -> tuple[Any, Tensor]:
        (states, own, below), (row, at) = carry, x
        moved = step(states, own, scaled(row, below, at), range(late + 1))
        return (moved, *copies(moved)), moved[-1][0]

    for number, row in enumerate(given[:late].unbind(0)):
        at = [x[number - n] for n, x in enumerate(first, 1)]
        states = step(states, (), scaled(row, outputs(states), at), range(number + 1))
    carry = states, *copies(states)
    (states, *_), y = scan(whole, carry, (given[late:], between))
    ends = []
    for number in range(1, late + 1):
        at = [x[number - n - 1] for n, x in enumerate(last, 1)]
        states = step(states, (), scaled(None, outputs(states), at), range(number, late + 1))
        ends.append(states[-1][0])
    return states, Tensor.cat([y, Tensor.stack(ends)], 0)


def scaled(given: Any, below: Sequence[Tensor], at: Sequence[Tensor]) -> tuple[Any, ...]:
    """List the inputs of all layers: the first's as given, others times factors if there are."""
    return given, *((x * y for x, y in zip(below, at)) if at else below)


def outputs(states: Sequence[State]) -> tuple[Tensor, ...]:
    """Give the output of each layer's last step."""
    return tuple(state[0] for state in states)
