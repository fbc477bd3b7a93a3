"""The loops of recurrent layers over time, and one step of RNN, LSTM and GRU in them.

`step` functions take the input's part of the gates already multiplied, so that a layer multiplies
all time steps at once. Gate orders are PyTorch's: LSTM input, forget, cell, output; GRU reset,
update, new. Layers run one after the other (`over_time`), or side by side (`over_layers`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from picograd.engine.followed import event
from picograd.target import is_gpu
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.scan import scan

State = tuple[Tensor, ...]
Input = tuple[Tensor, Tensor | None]  # weight and bias of a layer's input
Weights = tuple[Tensor, Tensor | None, Tensor | None]  # of its state, its bias, the projection
# Layers run side by side on a GPU up to these
FEW_ROWS = 128  # of a batch
FEW_LAYERS = 4
FEW_WEIGHTS = 1 << 24
WIDEST = 2  # bytes of a number
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
    added = enter.sigmoid() * cell.tanh()
    kept = forget.sigmoid() * state[1] + added
    return leave.sigmoid() * kept.tanh(), kept


def gru_step(given: Tensor, hidden: Tensor, state: State) -> State:
    """Compute h' of given and hidden (B, 3 H) and h (B, H) (Cho et al., 2014)."""
    reset, update, new = given.chunk(3, -1)
    reset_h, update_h, new_h = hidden.chunk(3, -1)
    candidate = (new + (reset + reset_h).sigmoid() * new_h).tanh()
    share = (update + update_h).sigmoid()
    return (candidate + share * (state[0] - candidate),)


STEPS = {"RNN_TANH": rnn_tanh_step, "RNN_RELU": rnn_relu_step, "LSTM": lstm_step, "GRU": gru_step}


@event
def over_time(
    mode: str, rows: tuple[Tensor, Tensor | None], state: State, weights: Weights, is_reverse: bool
) -> tuple[State, Tensor]:
    """Run the loop of one direction: the input's part (T, B, G*H), and whether it counts.

    The weights are those of the state, its bias, and the projection.
    """

    def step(state: State, x: Any) -> tuple[State, Tensor]:
        given, inside = x
        moved = advance_state(mode, given, state[0], state, weights, inside)
        return moved, moved[0]

    return scan(step, state, rows, reverse=is_reverse)


def advance_state(
    mode: str,
    given: Tensor,
    own: Tensor,
    state: State,
    weights: Weights,
    inside: Tensor | None = None,
) -> State:
    """Compute the next state of a layer from its `own` output; where not `inside` it stays."""
    weight, bias, projection = weights
    moved = STEPS[mode](given, own.linear(weight, bias), state)
    if projection is not None:
        moved = (moved[0].linear(projection), *moved[1:])
    # inside autocast a GRU on the CPU multiplies in 16 bits; its state keeps its dtype
    moved = tuple(new.cast(old.dtype) for new, old in zip(moved, state))
    if inside is None:
        return moved
    return tuple(inside.where(new, old) for new, old in zip(moved, state))


def are_side_by_side(mode: str, count: int, hidden: int, x: Tensor) -> bool:
    """Tell whether so many layers over x (T, B, I) run in one loop: a step of one fills no GPU."""
    steps, rows = x.shape[:2]
    if not 1 < count <= min(FEW_LAYERS, steps - 1):
        return False
    matrices = 2 * count - 1
    weights = matrices * GATES[mode] * hidden**2
    if rows > FEW_ROWS or weights > FEW_WEIGHTS:
        return False
    kind = x.device.partition(":")[0]
    return x.dtype.itemsize <= WIDEST and is_gpu(kind)


class Stack(NamedTuple):
    """This class is the layers that run side by side: what multiplies their inputs and states."""

    mode: str
    inputs: Sequence[Input]
    weights: Sequence[Weights]

    def step(
        self,
        states: Sequence[State],
        row: Tensor | None,
        at: Sequence[Tensor],
        layers: range,
        own: Sequence[Tensor] = (),
        below: Sequence[Tensor] = (),
    ) -> tuple[State, ...]:
        """Take one step of some layers: `row` is the first one's input, `at` the others' factors.

        `own` and `below` are copies of the outputs, as a layer's own and as the next one's input.
        """
        own = own or outputs(states)
        below = below or own
        if at:
            below = [x * factor for x, factor in zip(below, at)]
        found = list(states)
        for layer in layers:
            given: Any = row
            if layer:
                given = below[layer - 1].linear(*self.inputs[layer])
            weights = self.weights[layer]
            found[layer] = advance_state(self.mode, given, own[layer], states[layer], weights)
        return tuple(found)

    def copies(self, states: Sequence[State]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """Copy the outputs, so that gradients by what reads them are added a step later.

        Of a GRU its gates read them beside its own product and the next layer.
        """
        found = outputs(states)
        if self.mode == "GRU":
            return found, found[:-1]
        return (), found[:-1]


@event
def over_layers(
    mode: str,
    given: Tensor,
    states: Sequence[State],
    inputs: Sequence[Input],
    weights: Sequence[Weights],
    factors: Sequence[Tensor],
) -> tuple[Sequence[State], Tensor]:
    """Run the loop of all layers: each is a step behind the one before, and beside it.

    The products of a step do not wait for each other, and a GPU that one of them leaves idle does
    them at once. `given` is the first layer's input's part, of more steps than there are layers.
    The first and the last steps, which not all layers take, are outside of the loop. `factors`
    (T, B, H), where there are any, are those of each layer's output as the input of the next.
    """
    stack = Stack(mode, inputs, weights)
    late = len(states) - 1
    count = given.shape[0]
    first = [x[:late].unbind(0) for x in factors]
    last = [x[count - late :].unbind(0) for x in factors]
    between = [x[late - n : count - n] for n, x in enumerate(factors, 1)]

    def whole(carry: Any, x: Any) -> tuple[Any, Tensor]:
        states, own, below = carry
        row, at = x
        moved = stack.step(states, row, at, range(late + 1), own, below)
        return (moved, *stack.copies(moved)), moved[-1][0]

    for number, row in enumerate(given[:late].unbind(0)):
        at = [x[number - n] for n, x in enumerate(first, 1)]
        states = stack.step(states, row, at, range(number + 1))
    carry = (states, *stack.copies(states))
    ended, y = scan(whole, carry, (given[late:], between))
    states = ended[0]
    ends = []
    for number in range(1, late + 1):
        at = [x[number - n - 1] for n, x in enumerate(last, 1)]
        states = stack.step(states, None, at, range(number, late + 1))
        ends.append(states[-1][0])
    return states, Tensor.cat([y, Tensor.stack(ends)], 0)


def outputs(states: Sequence[State]) -> tuple[Tensor, ...]:
    """Give the output of each layer's last step."""
    return tuple(state[0] for state in states)
