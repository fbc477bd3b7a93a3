"""Batches of sequences of different lengths: padded to one length, or packed end to end."""

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from picograd.dtype import float32, float64, int32, int64
from picograd.engine.tracing import is_tracing, trace_error
from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_known
from picograd.graph.node import Node
from picograd.target import is_gpu
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.known_values import known_values
from picograd.tensor.tensor import Tensor

Array = Any
# the values of batch sizes that were made here, so that they need not be read back
KNOWN: "weakref.WeakKeyDictionary[Node, Array]" = weakref.WeakKeyDictionary()


class PackedSequence(NamedTuple):
    """This class is a batch of sequences without padding, sorted by length, longest first.

    `data` (sum of lengths, ...) holds the first step of all sequences, then the second of those
    that have one, ...; `batch_sizes` (int64, on the CPU) says how many sequences reach each step.
    `sorted_indices` is the order sequences were sorted into, `unsorted_indices` the way back; both
    are None if they came sorted.

    >>> from picograd import Tensor, nn
    >>> packed = nn.utils.rnn.pack_sequence([Tensor([1.0, 2.0]), Tensor([3.0])])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1.0, 3.0, 2.0], [2, 1])
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return is_gpu(self.data.device)

    def to(self, *args: Any, **options: Any) -> "PackedSequence":
        """Move the data to a device or cast it; takes what `Tensor.to` takes."""
        moved = self.data.to(*args, **options)
        if moved is self.data:
            return self
        order = [
            None if each is None else each.to(moved.device)
            for each in (self.sorted_indices, self.unsorted_indices)
        ]
        return PackedSequence(moved, self.batch_sizes, *order)

    def cpu(self) -> "PackedSequence":
        """Move the data to the CPU."""
        return self.to("cpu")

    def cuda(self, device: str = "cuda") -> "PackedSequence":
        """Move the data to a GPU."""
        return self.to(device)

    def float(self) -> "PackedSequence":
        """Cast the data to float32."""
        return self.to("float32")

    def double(self) -> "PackedSequence":
        """Cast the data to float64."""
        return self.to("float64")

    def half(self) -> "PackedSequence":
        """Cast the data to float16."""
        return self.to("float16")

    def long(self) -> "PackedSequence":
        """Cast the data to int64."""
        return self.to("int64")

    def int(self) -> "PackedSequence":
        """Cast the data to int32."""
        return self.to("int32")


def host_values(op: str, given: Any) -> Array:
    """Read whole numbers that the host must know: a list, an array or a tensor."""
    if not isinstance(given, Tensor):
        return np.asarray(given, np.int64)
    if given.node in KNOWN:
        return KNOWN[given.node]
    if given.dtype.kind not in ("int", "uint"):
        raise DTypeError(op, f"lengths are {given.dtype.name}", "use int64")
    if is_tracing():
        problem = "the lengths are not known while a function is traced"
        raise trace_error(op, problem, "pass them as a list, and pack inside the traced function")
    found: Array = given.numpy().astype(np.int64)
    KNOWN[given.node] = found
    return found


def known_tensor(values: Array, device: str = "cpu") -> Tensor:
    """Make an int64 tensor whose values stay known to the host."""
    result = Tensor.of(np.ascontiguousarray(values, np.int64), device=device)
    KNOWN[result.node] = np.asarray(values, np.int64)
    return result


def check_lengths(op: str, lengths: Array, batch: int, steps: int) -> None:
    """Raise unless there is one length from 1 to `steps` for each sequence."""
    if lengths.shape != (batch,):
        problem = f"lengths of shape {lengths.shape} for {batch} sequences"
        raise ShapeError(op, problem, "give one length per sequence")
    if batch and lengths.min() <= 0:
        problem = f"a length of {lengths.min()}"
        raise ValueRangeError(op, problem, "use lengths of 1 and more: leave empty sequences out")
    if batch and lengths.max() > steps:
        problem = f"a length of {lengths.max()} for sequences padded to {steps}"
        raise ShapeError(op, problem, "use lengths up to the padded one")


def places_of(sizes: Array, batch: int) -> Array:
    """Number the places of packed data in a padded (T, B) array; -1 where there is padding."""
    starts = np.cumsum(sizes) - sizes
    columns = np.arange(batch)
    return np.where(columns < sizes[:, None], starts[:, None] + columns, -1)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack (T, B, ...), or (B, T, ...) with batch_first, without the padding.

    `lengths` (B,) is a list or a CPU tensor. With `enforce_sorted` they must not increase; else
    sequences are sorted. Raises ShapeError for lengths that do not fit the input.

    >>> from picograd import Tensor
    >>> packed = pack_padded_sequence(Tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 3, 2], [2, 1])
    """
    name = "pack_padded_sequence"
    need_tensor(name, input)
    counts = host_values(name, lengths)
    padded = input.transpose(0, 1) if batch_first else input
    steps, batch = padded.shape[:2]
    check_lengths(name, counts, batch, steps)
    order = np.argsort(-counts, kind="stable")
    if enforce_sorted and (np.diff(counts) > 0).any():
        problem = f"the lengths {counts.tolist()} increase"
        raise ValueRangeError(name, problem, "sort the batch, or pass enforce_sorted=False")
    ends = counts[order]
    sizes = (np.arange(ends[0] if batch else 0)[:, None] < ends).sum(1)
    times, columns = np.nonzero(places_of(sizes, batch) >= 0)
    flat = padded.reshape(steps * batch, *padded.shape[2:])
    index = known_tensor(times * batch + order[columns], input.device)
    made = PackedSequence(flat.index_select(0, index), known_tensor(sizes))
    if enforce_sorted:
        return made
    pair = (known_tensor(each, input.device) for each in (order, np.argsort(order)))
    return PackedSequence(*made[:2], *pair)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (padded (T, B, ...), or (B, T, ...) with batch_first, and the lengths (B,)).

    T is the longest length, or `total_length` if that is given; places past the end of a sequence
    hold `padding_value`. Raises ValueRangeError if `total_length` is too short.

    >>> from picograd import Tensor
    >>> packed = pack_sequence([Tensor([1.0, 2.0]), Tensor([3.0])])
    >>> pad_packed_sequence(packed, batch_first=True)[0].tolist()
    [[1.0, 2.0], [3.0, 0.0]]
    """
    name = "pad_packed_sequence"
    sizes = host_values(name, sequence.batch_sizes)
    batch = int(sizes[0]) if len(sizes) else 0
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        problem = f"total_length={steps}, but the longest sequence has {len(sizes)} steps"
        raise ValueRangeError(name, problem, "use at least that many, or None")
    places = np.full((steps, batch), -1)
    places[: len(sizes)] = places_of(sizes, batch)
    if sequence.unsorted_indices is not None:
        places = places[:, host_values(name, sequence.unsorted_indices)]
    places = places.T if batch_first else places
    lengths = (places >= 0).sum(1 if batch_first else 0)
    return spread(sequence.data, places, padding_value), known_tensor(lengths)


def spread(data: Tensor, places: Array, padding_value: float) -> Tensor:
    """Read rows of packed data into a padded array; -1 names the padding."""
    index = known_tensor(np.maximum(places, 0).reshape(-1), data.device)
    rows = data.index_select(0, index).reshape(*places.shape, *data.shape[1:])
    if (places >= 0).all():
        return rows
    shape = (*places.shape, *(1,) * (data.ndim - 1))
    return rows.masked_fill(
        Tensor.of(places < 0, device=data.device).reshape(*shape), padding_value
    )


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences (T_i, ...) into (T, B, ...), or (B, T, ...) with batch_first, T the longest.

    The padding goes to the "right" end or the "left".

    >>> from picograd import Tensor
    >>> pad_sequence([Tensor([1, 2]), Tensor([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    name = "pad_sequence"
    check_known(name, "padding_side", padding_side, ("left", "right"))
    listed = list(sequences)
    if not listed:
        raise ValueRangeError(name, "there are no sequences", "pass at least one")
    for each in listed:
        need_tensor(name, each)
        if each.shape[1:] != listed[0].shape[1:] or not each.shape:
            problem = f"sequences of shapes {listed[0].shape} and {each.shape}"
            raise ShapeError(name, problem, "let them differ in length only")
    longest = max(each.shape[0] for each in listed)
    filled = padded_on_host(listed, longest, padding_value, padding_side)
    if filled is not None:
        return Tensor.of(filled if batch_first else np.swapaxes(filled, 0, 1))
    padded = []
    for each in listed:
        missing = longest - each.shape[0]
        ends = (missing, 0) if padding_side == "left" else (0, missing)
        pads = (0, 0) * (each.ndim - 1)
        padded.append(each.pad((*pads, *ends), value=padding_value))
    return Tensor.stack(padded, 0 if batch_first else 1)


def padded_on_host(listed: Sequence[Tensor], longest: int, fill: float, side: str) -> Array | None:
    """Pad sequences that lie in the host's memory (B, T, ...), or give None.

    Which of them need no padding is another pattern in each batch, and would be a plan of its own.
    """
    dtype = listed[0].dtype
    fits = dtype in (float32, float64) or (dtype in (int32, int64) and abs(fill) < 2**31)
    if not fits or any(each.requires_grad or each.dtype != dtype for each in listed):
        return None
    known = [known_values(each.node, each.numel()) for each in listed]
    if any(values is None for values in known):
        return None
    made = np.full((len(listed), longest, *listed[0].shape[1:]), fill, dtype.storage)
    for row, values in zip(made, known, strict=True):
        row[longest - len(values) if side == "left" else 0 :][: len(values)] = values
    return made


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (T_i, ...)."""
    lengths = [each.shape[0] for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, False, enforce_sorted)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Give the order that undoes another one.

    >>> from picograd import Tensor, nn
    >>> nn.utils.rnn.invert_permutation(Tensor([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    return None if permutation is None else permutation.argsort()


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """Take a padded batch apart into sequences (T_i, ...)."""
    counts = host_values("unpad_sequence", lengths)
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    check_lengths("unpad_sequence", np.maximum(counts, 1), rows.shape[0], max(rows.shape[1], 1))
    return [rows[number, : int(count)] for number, count in enumerate(counts)]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Take a packed batch apart into sequences (T_i, ...), in the order they came in."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
