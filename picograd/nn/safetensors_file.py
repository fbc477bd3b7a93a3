"""The safetensors format: 8 bytes of header length, a header in JSON, raw little-endian elements.

The header names every tensor's dtype, shape and place among the elements; the places follow each
other without gaps or overlaps. Source: the specification at github.com/huggingface/safetensors.
"""

import json
from collections.abc import Mapping
from typing import IO, Any

from picograd.dtype import DType, dtype_named
from picograd.helpers import product
from picograd.nn.torch_file import Array, fill
from picograd.nn.torch_pickle import from_storage
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.tensor import Tensor

# Names in the file (the safetensors format) and ours.
FILE_NAMES = {
    "BOOL": "bool", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "I8": "int8",
    "I16": "int16", "I32": "int32", "I64": "int64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F16": "float16", "BF16": "bfloat16", "F32": "float32",
    "F64": "float64", "C64": "complex64",
}  # fmt: skip
IN_FILES = {ours: name for name, ours in FILE_NAMES.items()}
MOST_HEADER = 100_000_000  # bytes, by the specification
MOST_AXES = 64


class Damage(Exception):
    """What is wrong with a file."""


def read_header(file: IO[bytes], size: int) -> tuple[dict[str, Any], dict[str, str], int]:
    """Read a header: the entries by name, the metadata, and how many bytes should follow."""
    start = file.read(8)
    if len(start) < 8:
        raise Damage(f"{len(start)} bytes are too few for a header")
    length = int.from_bytes(start, "little")
    if length > size - 8:
        raise Damage(f"the header should have {length} bytes, {size - 8} are there")
    if length > MOST_HEADER:
        raise Damage(f"a header of {length} bytes is too long")
    try:
        header = json.loads(file.read(length), object_pairs_hook=without_repeats)
    except (ValueError, RecursionError):
        raise Damage("the header is not readable") from None
    if not isinstance(header, dict):
        raise Damage("the header is not readable")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(x, str) for x in metadata.values()):
        raise Damage("the metadata is no text")
    return header, metadata, size - 8 - length


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the dict of a JSON object; ValueError for a name given twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def entry_of(entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Read an entry: dtype, shape, begin, end."""
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        numbers = [begin, end, *shape]
    except (KeyError, TypeError, ValueError):
        raise Damage("the header is not readable") from None
    if not isinstance(dtype, str) or not isinstance(shape, list) or len(shape) > MOST_AXES:
        raise Damage("the header is not readable")
    if any(type(n) is not int or not 0 <= n < 1 << 63 for n in numbers):
        raise Damage("the header is not readable")
    if dtype not in FILE_NAMES:
        raise Damage(f"no picograd dtype for {dtype}")
    return dtype, tuple(shape), begin, end


def check_places(entries: Mapping[str, Any], left: int) -> None:
    """Raise Damage unless the entries fill the rest of the file, one after the other."""
    reached = 0
    wanted = max((end for *_, end in entries.values()), default=0)
    if wanted != left:
        raise Damage(f"the data should have {wanted} bytes, {left} are there")
    for name, (dtype, shape, begin, end) in entries.items():
        if begin != reached:
            raise Damage(f"the data of {name} overlaps another's, or leaves a gap")
        if end - begin != product(shape) * dtype_named(FILE_NAMES[dtype]).itemsize:
            raise Damage("the shapes contradict the data")
        reached = end


def read_tensors(
    file: IO[bytes], size: int, device: DeviceLike | None
) -> tuple[dict[str, Tensor], str]:
    """Read all tensors of a file, and the text that describes a nested state."""
    header, metadata, left = read_header(file, size)
    listed = {name: entry_of(entry) for name, entry in header.items()}
    placed = dict(sorted(listed.items(), key=lambda item: item[1][2:]))
    check_places(placed, left)
    state: dict[str, Tensor] = {}
    for name, (kind, shape, begin, end) in placed.items():
        dtype: DType = dtype_named(FILE_NAMES[kind])
        array: Array = fill(file, end - begin).view(dtype.storage).reshape(shape)
        state[name] = from_storage(array, dtype, device)
    return {name: state[name] for name in listed}, metadata.get("nested", "")


def written_order(state: Mapping[str, Tensor]) -> list[str]:
    """Order names so that every tensor is aligned: wide elements first."""
    return sorted(state, key=lambda name: (-state[name].dtype.itemsize, name))


def header_of(state: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """Write the beginning of a file: length and header, padded to eight bytes."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    place = 0
    for name in written_order(state):
        tensor = state[name]
        end = place + tensor.nbytes
        header[name] = {
            "dtype": IN_FILES[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
