"""One step of RNN, LSTM and GRU: the arithmetic, and the cells as modules.

`step` functions take the input's part of the gates already multiplied, so that a layer multiplies
all time steps at once. Gate orders are PyTorch's: LSTM input, forget, cell, output; GRU reset,
update, new.
"""

import math

from picograd.errors import ShapeError, check_known
from picograd.nn import init
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.together import together
from picograd.tensor.tensor import Tensor

State = tuple[Tensor, ...]
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
    share = (update + update_h).sigmoid()
    return (candidate + share * (state[0] - candidate),)


STEPS = {"RNN_TANH": rnn_tanh_step, "RNN_RELU": rnn_relu_step, "LSTM": lstm_step, "GRU": gru_step}


@together
def advanced(
    mode: str, x: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None,
    bias_hh: Tensor | None, *state: Tensor,
) -> State:  # fmt: skip
    """Compute the next state of a cell."""
    given, hidden = x.linear(weight_ih, bias_ih), state[0].linear(weight_hh, bias_hh)
    return STEPS[mode](given, hidden, state)


class Cell(Module):
    """This class is one step: weights weight_ih (G H, I), weight_hh (G H, H) and two biases."""

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    mode = "RNN_TANH"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        names = dict(input_size=input_size, hidden_size=hidden_size)
        init.check_sizes(type(self).__name__, 1, **names)
        bound, rows = 1.0 / math.sqrt(hidden_size), GATES[self.mode] * hidden_size
        place = (device, dtype)
        self.weight_ih: Parameter = Parameter(init.uniform((rows, input_size), bound, *place))
        self.weight_hh: Parameter = Parameter(init.uniform((rows, hidden_size), bound, *place))
        self.bias_ih = self.bias_hh = None
        if bias:
            self.bias_ih = Parameter(init.uniform((rows,), bound, *place))
            self.bias_hh = Parameter(init.uniform((rows,), bound, *place))

    def reset_parameters(self) -> None:
        """Draw all weights anew, from +-1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def advance(self, x: Tensor, state: State | None) -> State:
        """Compute the next state of x (B, I), or (I,)."""
        name = type(self).__name__
        need_tensor(name, x)
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            problem = f"input of shape {tuple(x.shape)}, {self.input_size} features wanted"
            raise ShapeError(name, problem, "give (B, I) or (I,)")
        wanted = (*x.shape[:-1], self.hidden_size)
        if state is None:
            zeros = Tensor.zeros(*wanted, device=x.device, dtype=x.dtype)
            state = (zeros, zeros)
        for part in state:
            need_tensor(name, part)
            if tuple(part.shape) != wanted:
                problem = f"a state of shape {tuple(part.shape)} for an input of {tuple(x.shape)}"
                raise ShapeError(name, problem, f"give {wanted}")
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        return advanced(self.mode, x, *weights, *state)

    def extra_repr(self) -> str:
        """Describe the settings."""
        text = f"{self.input_size}, {self.hidden_size}"
        text = text if self.bias else f"{text}, bias=False"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(Cell):
    """This class is one step of an Elman network: (B, I), h (B, H) -> h' (B, H).

    >>> from picograd import Tensor, nn
    >>> nn.RNNCell(2, 3)(Tensor.ones(5, 2)).shape
    (5, 3)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.nonlinearity: str = nonlinearity
        self.mode: str = mode_of("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Advance one step; the first state is zero unless given."""
        return self.advance(input, None if hx is None else (hx,))[0]


class LSTMCell(Cell):
    """This class is one step of an LSTM: (B, I), (h, c) -> (h', c').

    >>> from picograd import Tensor, nn
    >>> hidden, cell = nn.LSTMCell(2, 3)(Tensor.ones(5, 2))
    >>> hidden.shape, cell.shape
    ((5, 3), (5, 3))
    """

    mode = "LSTM"

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> State:
        """Advance one step; the first states are zero unless given."""
        return self.advance(input, hx)


class GRUCell(Cell):
    """This class is one step of a GRU: (B, I), h (B, H) -> h' (B, H).

    >>> from picograd import Tensor, nn
    >>> nn.GRUCell(2, 3)(Tensor.ones(5, 2)).shape
    (5, 3)
    """

    mode = "GRU"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Advance one step; the first state is zero unless given."""
        return self.advance(input, None if hx is None else (hx,))[0]


def mode_of(op: str, nonlinearity: str) -> str:
    """Find PyTorch's name of an Elman network with a nonlinearity."""
    check_known(op, "nonlinearity", nonlinearity, ("tanh", "relu"))
    return "RNN_" + nonlinearity.upper()
