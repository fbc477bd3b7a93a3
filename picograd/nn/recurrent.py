"""RNN, LSTM and GRU over whole sequences: several layers, both directions, dropout between.

The input's part of all gates is one product over all time steps; what remains of a step is a loop
of the graph (`picograd.nn.recurrent_loops`), recorded once for any number of steps. Cells are one
step as modules.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.dtype import DType, float32
from picograd.errors import ShapeError, ValueRangeError, check_known, check_probability
from picograd.graph.room import check_pieces
from picograd.nn import init
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.nn.recurrent_loops import (
    GATES,
    STEPS,
    Input,
    State,
    Weights,
    are_side_by_side,
    over_layers,
    over_time,
)
from picograd.nn.utils.rnn import PackedSequence, host_values, known_tensor, places_of, spread
from picograd.target import is_gpu, is_host
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autocast import get_autocast_dtype, is_autocast_enabled
from picograd.tensor.core.together import together
from picograd.tensor.network.dropout import dropout
from picograd.tensor.tensor import Tensor


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
        self.weight_ih: Parameter = init.uniform_parameter((rows, input_size), bound, *place)
        self.weight_hh: Parameter = init.uniform_parameter((rows, hidden_size), bound, *place)
        self.bias_ih = self.bias_hh = None
        if bias:
            self.bias_ih = init.uniform_parameter((rows,), bound, *place)
            self.bias_hh = init.uniform_parameter((rows,), bound, *place)

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
        unusual = self._unusual(bias=True, nonlinearity="tanh")
        return f"{self.input_size}, {self.hidden_size}{unusual}"


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


class Recurrent(Module):
    """This class holds the weights `weight_ih_l0`, `weight_hh_l0_reverse`, ... and the loops.

    `num_layers` are stacked; `bidirectional` adds a second loop from the end, whose outputs are
    joined to the first's; `dropout` is the chance to zero an output between layers in training.
    """

    mode = "RNN_TANH"

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout: float = float(dropout)
        self.bidirectional: bool = bidirectional
        self.proj_size = proj_size
        counts = dict(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        init.check_sizes(type(self).__name__, 1, **counts)
        check_pieces(type(self).__name__, num_layers, "layers")
        self._check_options()
        for name, shape in self._shapes().items():
            setattr(self, name, init.uniform_parameter(shape, self._bound(), device, dtype))

    def _check_options(self) -> None:
        name = type(self).__name__
        check_probability(name, "dropout", self.dropout)
        if self.dropout and self.num_layers == 1:
            text = f"{name}: dropout={self.dropout} acts between layers, and there is one"
            warnings.warn(f"{text}. Fix: pass num_layers=2 or more, or no dropout", stacklevel=4)
        if self.proj_size and self.mode != "LSTM":
            raise ValueRangeError(name, f"proj_size={self.proj_size}", "use it with LSTM only")
        if not 0 <= self.proj_size < self.hidden_size:
            problem = f"proj_size={self.proj_size} is not below hidden_size={self.hidden_size}"
            raise ValueRangeError(name, problem, "use a smaller one, 0 for none")

    def _bound(self) -> float:
        return 1.0 / math.sqrt(self.hidden_size)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Name the weights in PyTorch's order, with their shapes."""
        hidden, rows = self.hidden_size, GATES[self.mode] * self.hidden_size
        out = self.proj_size or hidden
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(self.num_layers):
            width = self.input_size if layer == 0 else out * (1 + self.bidirectional)
            for suffix in self._suffixes(layer):
                shapes["weight_ih" + suffix] = (rows, width)
                shapes["weight_hh" + suffix] = (rows, out)
                if self.bias:
                    shapes |= {"bias_ih" + suffix: (rows,), "bias_hh" + suffix: (rows,)}
                if self.proj_size:
                    shapes["weight_hr" + suffix] = (out, hidden)
        return shapes

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        """The names of all weights, which programs ask for to draw them."""
        return list(self._shapes())

    @property
    def _all_weights(self) -> list[list[str]]:
        """The names of the weights of each layer and direction."""
        names = self._flat_weights_names
        size = len(names) // (self.num_layers * (1 + self.bidirectional))
        return [names[at : at + size] for at in range(0, len(names), size)]

    def reset_parameters(self) -> None:
        """Draw all weights anew, from +-1 / sqrt(hidden_size)."""
        for name in self._shapes():
            init.uniform_(getattr(self, name), -self._bound(), self._bound())

    def flatten_parameters(self) -> None:
        """Accept PyTorch's call: weights need no particular place in memory here."""

    def run(self, given: Any, state: State | None) -> tuple[Any, State]:
        """Run all layers over (T, B, I); returns (T, B, D H) and the last states (L D, B, H)."""
        name = type(self).__name__
        for part in state or ():
            need_tensor(name, hx=part)
        if isinstance(given, PackedSequence):
            return self._run_packed(given, state)
        need_tensor(name, given)
        if given.ndim not in (2, 3) or given.shape[-1] != self.input_size:
            problem = f"input of shape {tuple(given.shape)}, {self.input_size} features wanted"
            raise ShapeError(name, problem, "give (T, B, I), or (T, I) without a batch")
        if given.ndim == 2:
            state = None if state is None else tuple(part.unsqueeze(1) for part in state)
            y, last = self._layers(given.unsqueeze(1), state, None)
            return y.squeeze(1), tuple(part.squeeze(1) for part in last)
        if not self.batch_first:
            return self._layers(given, state, None)
        y, last = self._layers(given.transpose(0, 1), state, None)
        return y.transpose(0, 1), last

    def _run_packed(self, packed: PackedSequence, state: State | None) -> tuple[Any, State]:
        """Run over sequences of different lengths: past its end the state of one stays."""
        name = type(self).__name__
        sizes = host_values(name, packed.batch_sizes)
        if packed.data.ndim != 2 or packed.data.shape[-1] != self.input_size:
            problem = f"packed data of shape {tuple(packed.data.shape)}"
            raise ShapeError(name, problem, f"pack sequences of {self.input_size} features")
        places = places_of(sizes, int(sizes[0]))
        device = packed.data.device
        inside = Tensor.of(places >= 0, device=device).unsqueeze(-1)  # T B 1
        if state is not None and packed.sorted_indices is not None:
            order = packed.sorted_indices
            state = tuple(part.index_select(1, order) for part in state)
        is_ragged = bool((places < 0).any())
        x = spread(packed.data, places, 0.0)
        y, last = self._layers(x, state, inside if is_ragged else None, True)
        if packed.unsorted_indices is not None:
            back = packed.unsorted_indices
            last = tuple(part.index_select(1, back) for part in last)
        held = known_tensor(np.flatnonzero(places >= 0), device)
        data = y.reshape(-1, y.shape[-1]).index_select(0, held)
        return PackedSequence(data, *packed[1:]), last

    def _first(self, x: Tensor, state: State | None) -> State:
        """Check the given states, or make zeros."""
        count = self.num_layers * (1 + self.bidirectional)
        sizes = [self.proj_size or self.hidden_size, self.hidden_size]
        sizes = sizes[: 1 + (self.mode == "LSTM")]
        wanted = [(count, x.shape[1], size) for size in sizes]
        if state is None:
            return tuple(x.new_zeros(shape) for shape in wanted)
        found = [tuple(part.shape) for part in state]
        if found != wanted:
            problem = f"states of shapes {found}, {wanted} wanted"
            fix = f"give {'(h, c), each ' * (len(sizes) > 1)}(layers * directions, B, H)"
            raise ShapeError(type(self).__name__, problem, fix)
        return state

    def _dtype_inside(self, x: Tensor, is_packed: bool) -> DType:
        """Find the dtype autocast asks for.

        Like PyTorch's, it leaves a GRU on the CPU alone, and an LSTM over packed sequences there:
        only their products are in 16 bits.
        """
        kind = x.device.partition(":")[0]
        is_alone = self.mode == "GRU" or (self.mode == "LSTM" and is_packed and not self.proj_size)
        is_listed = is_gpu(kind) or (is_host(kind) and not is_alone)
        if is_listed and x.dtype is float32 and is_autocast_enabled(kind):
            return get_autocast_dtype(kind)
        return x.dtype

    def _layers(
        self, x: Tensor, state: State | None, inside: Tensor | None, is_packed: bool = False
    ) -> tuple[Tensor, State]:
        """Run all layers over (T, B, I); `inside` (T, B, 1) is false past a sequence's end."""
        if x.shape[0] == 0:
            problem = "a sequence of 0 steps"
            raise ShapeError(type(self).__name__, problem, "give at least one step")
        first, dtype = self._first(x, state), self._dtype_inside(x, is_packed)
        if dtype is not x.dtype:
            x, first = x.cast(dtype), tuple(part.cast(dtype) for part in first)
        is_stack = inside is None and not self.bidirectional
        if is_stack and are_side_by_side(self.mode, self.num_layers, self.hidden_size, x):
            return self._side_by_side(x, first)
        lasts: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self._suffixes(layer):
                start = tuple(part[len(lasts)] for part in first)
                y, last = self._direction(x, start, suffix, inside)
                outputs.append(y)
                lasts.append(last)
            x = outputs[0] if len(outputs) == 1 else Tensor.cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = dropout(x, self.dropout, self.training)
        return x, tuple(Tensor.stack(list(parts), 0) for parts in zip(*lasts))

    def _side_by_side(self, x: Tensor, first: State) -> tuple[Tensor, State]:
        """Run all layers over (T, B, I) in one loop."""
        layers = range(self.num_layers)
        inputs, weights = zip(*[self._weights(f"_l{layer}") for layer in layers])
        factors: list[Tensor] = []
        if self.dropout and self.training:
            ones = x.new_ones((*x.shape[:2], first[0].shape[-1]))
            factors = [dropout(ones, self.dropout) for _ in layers[1:]]
        starts = tuple(zip(*(part.unbind(0) for part in first)))
        given = x.linear(*inputs[0])
        ends, y = over_layers(self.mode, given, starts, inputs, weights, factors)
        return y, tuple(Tensor.stack(list(parts), 0) for parts in zip(*ends))

    def _direction(
        self, x: Tensor, state: State, suffix: str, inside: Tensor | None
    ) -> tuple[Tensor, State]:
        """Run one layer in one direction: (T, B, I) -> (T, B, H)."""
        entering, weights = self._weights(suffix)
        given = x.linear(*entering)  # T B G*H
        is_reverse = suffix.endswith("_reverse")
        last, y = over_time(self.mode, (given, inside), state, weights, is_reverse)
        return (y if inside is None else inside.where(y, 0.0)), last

    def _weights(self, suffix: str) -> tuple[Input, Weights]:
        """Give the weights of one layer in one direction."""
        bias = getattr(self, "bias_ih" + suffix) if self.bias else None
        if self.bias and self.mode != "GRU":  # a GRU's second bias is inside its reset gate
            bias = bias + getattr(self, "bias_hh" + suffix)
        entering = getattr(self, "weight_ih" + suffix), bias
        weight, projection = getattr(self, "weight_hh" + suffix), None
        if self.proj_size:
            projection = getattr(self, "weight_hr" + suffix)
        inner = getattr(self, "bias_hh" + suffix) if self.bias and self.mode == "GRU" else None
        return entering, (weight, inner, projection)

    def extra_repr(self) -> str:
        """Describe the settings."""
        layers = dict(proj_size=0, num_layers=1, bias=True, batch_first=False)
        unusual = self._unusual(**layers, dropout=0.0, bidirectional=False)
        return f"{self.input_size}, {self.hidden_size}{unusual}"


class OfOneState(Recurrent):
    """This class is the base of layers whose state is their output alone."""

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | None = None
    ) -> tuple[Any, Tensor]:
        """Run over time; the first states are zero unless given."""
        y, last = self.run(input, None if hx is None else (hx,))
        return y, last[0]


class RNN(OfOneState):
    """This class is an Elman network h' = tanh(W x + b + U h + c) (Elman, 1990).

    (T, B, I), with batch_first (B, T, I), (T, I) or a PackedSequence -> output (T, B, D H) in the
    same form, last states (L D, B, H). `nonlinearity` is "tanh" or "relu".

    >>> from picograd import Tensor, nn
    >>> output, h = nn.RNN(3, 4, bidirectional=True)(Tensor.ones(5, 2, 3))
    >>> output.shape, h.shape
    ((5, 2, 8), (2, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
        bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        self.nonlinearity: str = nonlinearity
        self.mode: str = mode_of("RNN", nonlinearity)
        options = (num_layers, bias, batch_first, dropout, bidirectional)
        super().__init__(input_size, hidden_size, *options, device=device, dtype=dtype)


class LSTM(Recurrent):
    """This class is a long short-term memory (Hochreiter and Schmidhuber, 1997).

    (T, B, I), with batch_first (B, T, I), (T, I) or a PackedSequence -> output (T, B, D H) in the
    same form, (h, c) of (L D, B, H). `proj_size` maps h to fewer features (Sak et al., 2014).

    >>> from picograd import Tensor, nn
    >>> output, (h, c) = nn.LSTM(3, 4, num_layers=2)(Tensor.ones(5, 2, 3))
    >>> output.shape, h.shape
    ((5, 2, 4), (2, 2, 4))
    """

    mode = "LSTM"

    def forward(
        self, input: Tensor | PackedSequence, hx: Sequence[Tensor] | None = None
    ) -> tuple[Any, State]:
        """Run over time; the first states are zero unless given."""
        return self.run(input, None if hx is None else tuple(hx))


class GRU(OfOneState):
    """This class is a gated recurrent unit (Cho et al., 2014).

    (T, B, I), with batch_first (B, T, I), (T, I) or a PackedSequence -> output (T, B, D H) in the
    same form, last states (L D, B, H).

    >>> from picograd import Tensor, nn
    >>> nn.GRU(3, 4, batch_first=True)(Tensor.ones(2, 5, 3))[0].shape
    (2, 5, 4)
    """

    mode = "GRU"
