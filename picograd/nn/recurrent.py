"""RNN, LSTM and GRU over whole sequences: several layers, both directions, dropout between.

The input's part of all gates is one product over all time steps. The loop over time is unrolled
into the graph: T steps record about 20 T nodes and, as equal steps share one compiled kernel, take
T launches; scheduling time grows with T. Keep T to a few hundred, or train on pieces.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from picograd.errors import ShapeError, ValueRangeError
from picograd.nn import init
from picograd.nn.functional_basic import dropout
from picograd.nn.module import Module
from picograd.nn.parameter import (
    Parameter,
    check_tensor,
)
from picograd.nn.recurrent_cells import (
    GATES,
    STEPS,
    State,
    mode_of,
)
from picograd.tensor.tensor import Tensor


class PackedSequence(NamedTuple):
    """This class is a batch of sequences of different lengths: padded data, and the lengths.

    Unlike PyTorch's it stays padded (T, B, ...): steps past a sequence's end change nothing.
    """

    data: Tensor
    lengths: Tensor


def pack_padded_sequence(
    input: Tensor,
    lengths: Any,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Mark (T, B, ...), or (B, T, ...) with batch_first, with the lengths (B,) of its sequences.

    Any order of lengths is taken; `enforce_sorted` is ignored.
    """
    data = input.transpose(0, 1) if batch_first else input
    counts = lengths if isinstance(lengths, Tensor) else Tensor(list(lengths))
    if tuple(counts.shape) != (data.shape[1],):
        problem = f"lengths of shape {tuple(counts.shape)} for {data.shape[1]} sequences"
        raise ShapeError(
            "pack_padded_sequence",
            problem,
            "give one length per sequence",
        )
    return PackedSequence(data, counts.to(data.device).cast("int64"))


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return (padded data, lengths); places past the end hold `padding_value`.

    The time axis keeps its padded length (PyTorch cuts it to the longest sequence).
    """
    data, lengths = sequence
    shape = (
        *data.shape[:2],
        *(1,) * (len(data.shape) - 2),
    )
    inside = (_times(data) < lengths).reshape(*shape)
    result = inside.where(data, padding_value)
    return (result.transpose(0, 1) if batch_first else result), lengths


def _times(data: Tensor) -> Tensor:
    return Tensor.arange(data.shape[0], device=data.device).unsqueeze(-1)  # T 1


class Recurrent(Module):
    """This class holds the weights `weight_ih_l0`, `weight_hh_l0_reverse`, ... and the loops."""

    def __init__(
        self,
        mode: str,
        sizes: tuple[int, int],
        options: dict[str, Any],
    ) -> None:
        name = type(self).__name__
        (
            self.mode,
            (self.input_size, self.hidden_size),
        ) = (
            mode,
            sizes,
        )
        self.num_layers, self.bias = (
            options["num_layers"],
            options["bias"],
        )
        self.batch_first, self.dropout = (
            options["batch_first"],
            float(options["dropout"]),
        )
        self.bidirectional = options["bidirectional"]
        self.proj_size = options.get("proj_size", 0)
        counts = dict(
            input_size=sizes[0],
            hidden_size=sizes[1],
            num_layers=self.num_layers,
        )
        init.check_sizes(name, 1, **counts)
        self._check_options(name)
        self._make_weights(options["device"], options["dtype"])

    def _check_options(self, name: str) -> None:
        if not 0.0 <= self.dropout <= 1.0:
            problem = f"dropout={self.dropout} is not a probability"
            raise ValueRangeError(name, problem, "use 0 <= dropout <= 1")
        if not 0 <= self.proj_size < self.hidden_size:
            problem = f"proj_size={self.proj_size} is not below hidden_size={self.hidden_size}"
            raise ValueRangeError(
                name,
                problem,
                "use a smaller one, 0 for none",
            )

    def _make_weights(self, device: Any, dtype: Any) -> None:
        hidden, rows = (
            self.hidden_size,
            GATES[self.mode] * self.hidden_size,
        )
        out = self.proj_size or hidden
        bound = 1.0 / math.sqrt(hidden)
        for layer in range(self.num_layers):
            width = self.input_size if layer == 0 else out * (1 + self.bidirectional)
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width)}
                shapes["weight_hh"] = (rows, out)
                if self.bias:
                    shapes |= {
                        "bias_ih": (rows,),
                        "bias_hh": (rows,),
                    }
                if self.proj_size:
                    shapes["weight_hr"] = (out, hidden)
                for name, shape in shapes.items():
                    value = init.uniform(shape, bound, device, dtype)
                    setattr(
                        self,
                        name + suffix,
                        Parameter(value),
                    )

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    def run(self, given: Any, state: State | None) -> tuple[Any, State]:
        """Run all layers over (T, B, I); returns (T, B, D H) and the last states (L D, B, H)."""
        name = type(self).__name__
        is_packed = isinstance(given, PackedSequence)
        x, lengths = given if is_packed else (given, None)
        check_tensor(name, x)
        is_single = len(x.shape) == 2
        if len(x.shape) not in (2, 3) or x.shape[-1] != self.input_size:
            problem = f"input of shape {tuple(x.shape)}, {self.input_size} features wanted"
            raise ShapeError(
                name,
                problem,
                "give (T, B, I), or (T, I) without a batch",
            )
        if is_single:
            x = x.unsqueeze(1)
            state = None if state is None else tuple(part.unsqueeze(1) for part in state)
        elif self.batch_first and not is_packed:
            x = x.transpose(0, 1)  # T B I
        inside = None if lengths is None else (_times(x) < lengths).unsqueeze(-1)  # T B 1
        y, last = self._layers(x, self._first(x, state), inside)
        if lengths is not None:
            return PackedSequence(y, lengths), last
        if is_single:
            return y.squeeze(1), tuple(part.squeeze(1) for part in last)
        return (y.transpose(0, 1) if self.batch_first else y), last

    def _first(self, x: Tensor, state: State | None) -> State:
        """Check the given states, or make zeros."""
        count = self.num_layers * (1 + self.bidirectional)
        sizes = [
            self.proj_size or self.hidden_size,
            self.hidden_size,
        ][: 1 + (self.mode == "LSTM")]
        wanted = [(count, x.shape[1], size) for size in sizes]
        if state is None:
            place = dict(device=x.device, dtype=x.dtype)
            return tuple(Tensor.zeros(*shape, **place) for shape in wanted)
        found = [tuple(part.shape) for part in state]
        if found != wanted:
            problem = f"states of shapes {found}, {wanted} wanted"
            raise ShapeError(
                type(self).__name__,
                problem,
                "give (layers * directions, B, H)",
            )
        return state

    def _layers(
        self,
        x: Tensor,
        first: State,
        inside: Tensor | None,
    ) -> tuple[Tensor, State]:
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

    def _direction(
        self,
        x: Tensor,
        state: State,
        suffix: str,
        inside: Tensor | None,
    ) -> tuple[Tensor, State]:
        """Run one layer in one direction: (T, B, I) -> (T, B, H)."""
        weight, bias_hh = (
            getattr(self, "weight_hh" + suffix),
            None,
        )
        bias_ih = None
        if self.bias:
            bias_ih, bias_hh = (
                getattr(self, "bias_ih" + suffix),
                getattr(self, "bias_hh" + suffix),
            )
        given = x.linear(getattr(self, "weight_ih" + suffix), bias_ih)  # T B G*H
        step, outputs = STEPS[self.mode], []
        order = list(range(x.shape[0]))
        order = order[::-1] if suffix.endswith("_reverse") else order
        for time in order:
            moved = step(
                given[time],
                state[0].linear(weight, bias_hh),
                state,
            )
            if self.proj_size:
                moved = (
                    moved[0].linear(getattr(self, "weight_hr" + suffix)),
                    *moved[1:],
                )
            if inside is not None:  # past the end of a sequence its state stays
                moved = tuple(inside[time].where(a, b) for a, b in zip(moved, state))
            state = moved
            outputs.append(state[0])
        ordered = outputs if order[:1] == [0] else outputs[::-1]
        y = Tensor.stack(ordered, 0)
        return (y if inside is None else inside.where(y, 0.0)), state

    def extra_repr(self) -> str:
        """Describe the settings."""
        text = f"{self.input_size}, {self.hidden_size}"
        changed = dict(
            num_layers=1,
            bias=True,
            batch_first=False,
            dropout=0.0,
        )
        for name, default in dict(**changed, bidirectional=False, proj_size=0).items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(Recurrent):
    """This class is an Elman network h' = tanh(W x + b + U h + c) (Elman, 1990).

    (T, B, I), with batch_first (B, T, I) -> output (T, B, D H), last states (L D, B, H).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options: dict[str, Any] = dict(
            num_layers=num_layers,
            bias=bias,
            batch_first=batch_first,
        )
        options |= dict(
            dropout=dropout,
            bidirectional=bidirectional,
            device=device,
            dtype=dtype,
        )
        self.nonlinearity = nonlinearity
        super().__init__(
            mode_of("RNN", nonlinearity),
            (input_size, hidden_size),
            options,
        )

    def forward(self, x: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Run over time; the first states are zero unless given."""
        y, last = self.run(x, None if hx is None else (hx,))
        return y, last[0]


class LSTM(Recurrent):
    """This class is a long short-term memory (Hochreiter and Schmidhuber, 1997).

    (T, B, I), with batch_first (B, T, I) -> output (T, B, D H), (h, c) of (L D, B, H).
    `proj_size` maps h to fewer features (Sak et al., 2014).

    >>> from picograd import Tensor, nn
    >>> output, (h, c) = nn.LSTM(3, 4, num_layers=2)(Tensor.ones(5, 2, 3))
    >>> output.shape, h.shape
    ((5, 2, 4), (2, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options: dict[str, Any] = dict(
            num_layers=num_layers,
            bias=bias,
            batch_first=batch_first,
        )
        options |= dict(
            dropout=dropout,
            bidirectional=bidirectional,
            device=device,
            dtype=dtype,
        )
        options["proj_size"] = proj_size
        super().__init__("LSTM", (input_size, hidden_size), options)

    def forward(self, x: Any, hx: Sequence[Tensor] | None = None) -> tuple[Any, State]:
        """Run over time; the first states are zero unless given."""
        return self.run(x, None if hx is None else tuple(hx))


class GRU(Recurrent):
    """This class is a gated recurrent unit (Cho et al., 2014).

    (T, B, I), with batch_first (B, T, I) -> output (T, B, D H), last states (L D, B, H).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options: dict[str, Any] = dict(
            num_layers=num_layers,
            bias=bias,
            batch_first=batch_first,
        )
        options |= dict(
            dropout=dropout,
            bidirectional=bidirectional,
            device=device,
            dtype=dtype,
        )
        super().__init__("GRU", (input_size, hidden_size), options)

    def forward(self, x: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Run over time; the first states are zero unless given."""
        y, last = self.run(x, None if hx is None else (hx,))
        return y, last[0]
