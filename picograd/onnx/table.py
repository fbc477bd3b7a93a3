"""The table of ONNX operators: a row is a name, the opset it begins with, and a function.

    @operator("Softmax", since=13)
    def softmax(x: Tensor, axis: int = -1) -> Tensor:

Inputs come by place (None where one is left out), attributes by name, under ONNX's names. An input
is what its annotation says: a `Tensor`; a `list[int]`, or a number, that the host has to know. A
first parameter called `call` gets the `Call`: the opset, how many outputs are wanted; inputs of
such a row that are annotated otherwise stay as they are, others are tensors. An operator without a
row runs the function body that its ONNX schema has.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, get_args

import numpy as np

from picograd.late_methods import dataclass
from picograd.tensor.core.annotations import Scalar
from picograd.tensor.tensor import Tensor

Definition = Callable[..., Any]
Array = Any  # a NumPy array
Reader = Callable[["Call", Any], Any]
Value = Any  # a Tensor, an array of the host, a list of values (a sequence), or None


class Call(Protocol):
    """This class is what a row may ask about the node that it computes."""

    node: Any  # onnx.NodeProto
    opset: int
    outputs: int  # that are wanted

    def host(self, value: Value) -> Array:
        """Give the values of an input on the host, as an array."""

    def once(self, make: Callable[[], Any]) -> Any:
        """Give what is made of the attributes of the node, made once."""

    def tensor(self, value: Value) -> Tensor:
        """Give an input as a tensor."""

    def run(self, graph: Any, inputs: Sequence[Value]) -> list[Value]:
        """Run a subgraph on inputs; it sees the values around the node."""

    def on_host(self, name: str, *inputs: Value, **attributes: Any) -> Value:
        """Let the `onnx` package compute an operator."""

    def hosted(self, inputs: Sequence[Value]) -> list[Value]:
        """Let it compute the node."""

    def expanded(self, inputs: Sequence[Value]) -> list[Value]:
        """Run the function body that the operator's schema has."""


@dataclass(frozen=True)
class Operator:
    """This class is one row."""

    name: str
    since: int  # the first opset that it is true for
    definition: Definition
    takes_call: bool
    domain: str

    def computed(self, call: Any, inputs: Sequence[Value], attributes: Mapping[str, Any]) -> Any:
        """Run the definition on inputs as it wants them."""
        code = self.definition.__code__
        names = code.co_varnames[self.takes_call : code.co_argcount]
        usual = as_it_is if self.takes_call else as_tensor
        words = [self.definition.__annotations__.get(name) for name in names]
        readers = [reader_of(word, usual) for word in words]
        readers += [usual] * len(inputs)
        pairs = zip(readers, inputs)
        given = [None if value is None else read(call, value) for read, value in pairs]
        leading = [call] if self.takes_call else []
        return self.definition(*leading, *given, **attributes)


def as_tensor(call: Call, value: Value) -> Value:
    """Give an input as a tensor."""
    return call.tensor(value)


def as_it_is(call: Call, value: Value) -> Value:
    """Give an input as it is."""
    return value


READERS: dict[Any, Reader] = {
    Tensor: as_tensor,
    list[int]: lambda call, value: ints(call.host(value)),
    bool: lambda call, value: bool(call.host(value).item()),
    int: lambda call, value: int(call.host(value).item()),
    float: lambda call, value: float(call.host(value).item()),
    Scalar: lambda call, value: call.host(value).item(),
}


def reader_of(word: Any, usual: Reader) -> Reader:
    """Find what reads an input by its annotation, or by a part of it: `int | None` is an int."""
    for each in (word, *get_args(word)):
        if isinstance(each, Hashable) and each in READERS:
            return READERS[each]
    return usual


OPERATORS: dict[str, list[Operator]] = {}  # rows by name, the newest first
OWN = ("ai.onnx.ml", "com.microsoft")  # domains with rows of their own
# Text and coded pictures are no tensors: the `onnx` package computes them, and the operators of
# `ai.onnx.ml`, on the host.
HOSTED = frozenset({
    "ImageDecoder", "MelWeightMatrix", "NonMaxSuppression", "RegexFullMatch", "StringConcat",
    "StringNormalizer", "StringSplit", "TfIdfVectorizer", "Unique",
})  # fmt: skip


def operator(*names: str, since: int = 1, domain: str = "") -> Callable[[Definition], Definition]:
    """Add a row for each name; gives the definition back as it is.

    A row without a domain is for all domains but those of `OWN`, whose names mean something else.
    """

    def add(definition: Definition) -> Definition:
        code = definition.__code__
        takes_call = code.co_argcount > 0 and code.co_varnames[0] == "call"
        for name in names:
            rows = OPERATORS.setdefault(name, [])
            rows.append(Operator(name, since, definition, takes_call, domain))
            rows.sort(key=lambda row: -row.since)
        return definition

    return add


def formulas(rows: Mapping[str, Definition]) -> None:
    """Add rows that are one expression each: their inputs are tensors, or lists of them."""
    for name, definition in rows.items():
        operator(name)(definition)


def find_operator(name: str, opset: int, domain: str = "") -> Operator | None:
    """Find the row of an operator for an opset of its domain."""
    rows = [row for row in OPERATORS.get(name, []) if row.since <= opset]
    own = next((row for row in rows if row.domain == domain), None)
    if own is not None or domain in OWN:
        return own
    return next((row for row in rows if not row.domain), None)


def ints(values: Any) -> list[int]:
    """List the ints of an array, a list or a number."""
    return [int(each) for each in np.asarray(values).reshape(-1)]
