"""How tensors print: the numbers as PyTorch shows them, shortened, and what is not the default.

    Tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]], dtype=picograd.float64, device='cuda:0', requires_grad=True)

The rules for numbers: whole ones are printed like `2.`; others with a fixed number of digits, or
with an exponent if the largest is over 1000 times the smallest, over 1e8, or the smallest under
1e-4. All numbers take the width of the widest.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from picograd.dtype import DType, bool_, default_float, int64
from picograd.errors import check_known, check_least
from picograd.html import heading, preformatted, table
from picograd.late_methods import dataclass
from picograd.target import is_host

Array = Any
PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


@dataclass
class Options:
    """What `set_printoptions` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = PRINT_OPTS = Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print: digits, size from which they are shortened, elements at each end.

    `profile` is "default", "short" or "full"; `sci_mode` forces (True) or forbids exponents.

    >>> picograd.set_printoptions(precision=2)
    >>> picograd.Tensor([1.0, 0.123456])
    Tensor([1.00, 0.12])
    >>> picograd.set_printoptions(profile="default")
    """
    if profile is not None:
        check_known("set_printoptions", "profile", profile, PROFILES)
        for name, value in PROFILES[profile].items():
            setattr(OPTIONS, name, value)
        OPTIONS.sci_mode = None
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems,
             "linewidth": linewidth, "sci_mode": sci_mode}  # fmt: skip
    for name, number in given.items():
        if number is not None:
            check_least("set_printoptions", name, number)
            setattr(OPTIONS, name, number)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set options of printing inside a block.

    >>> from picograd.tensor.core.printing import printoptions
    >>> with printoptions(precision=2):
    ...     print(picograd.Tensor([0.123456]))
    Tensor([0.12])
    """
    before = dict(vars(OPTIONS))
    try:
        set_printoptions(**options)
        yield
    finally:
        vars(OPTIONS).update(before)


def shown(array: Array) -> Array:
    """Cut the elements out that are printed of a large array."""
    for axis in range(array.ndim):
        size, edge = array.shape[axis], OPTIONS.edgeitems
        if size > 2 * edge:
            kept = [*range(edge), *range(size - edge, size)]
            array = np.take(array, kept, axis)
    return array


def formatter(values: Array) -> Callable[[Any], str]:
    """Choose how one element is written, so that all numbers have one width.

    As in PyTorch the width is that of the finite floats other than 0.
    """
    if values.dtype.kind == "c":
        return complex_formatter(values)
    counted = values.reshape(-1)
    write: Callable[[Any], str] = str
    if values.dtype.kind == "f":
        write = float_writer(values.astype(np.float64))
        counted = counted[np.isfinite(counted) & (counted != 0)]
    texts = [write(value) for value in counted.tolist()]
    width = max(map(len, texts), default=0)
    return lambda value: write(value).rjust(width)


def complex_formatter(values: Array) -> Callable[[Any], str]:
    """Choose how complex numbers are written: each part in a width of its own."""
    real, imag = formatter(values.real), formatter(np.abs(values.imag))

    def write(value: complex) -> str:
        sign = "-" if math.copysign(1, value.imag) < 0 else "+"
        return f"{real(value.real)}{sign}{imag(abs(value.imag)).strip()}j"

    return write


def float_writer(values: Array) -> Callable[[float], str]:
    """Choose between whole, fixed and exponent notation for floats."""
    plain = np.abs(values[np.isfinite(values) & (values != 0)])
    digits, low, high = OPTIONS.precision, plain.min(initial=np.inf), plain.max(initial=0)
    is_whole = bool((plain == np.floor(plain)).all())
    is_wide = bool(plain.size and (high / 1000 > low or high > 1e8))
    is_wide = is_wide or bool(plain.size and not is_whole and low < 1e-4)
    if OPTIONS.sci_mode is not None:
        is_wide = OPTIONS.sci_mode
    if is_wide:
        return lambda value: f"{value:.{digits}e}"
    if is_whole:
        return lambda value: f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
    return lambda value: f"{value:.{digits}f}"


def ends(tensor: Any, edge: int) -> Any:
    """Cut out what is shown of a tensor that is too large to read: `edge` at each end of an axis.

    One element between them stands for those left out.
    """
    for axis, size in enumerate(tensor.shape):
        if size > 2 * edge + 1:
            first, last = tensor.narrow(axis, 0, edge + 1), tensor.narrow(axis, size - edge, edge)
            tensor = first.cat(last, dim=axis)
    return tensor


def format_array(array: Array, indent: int, is_cut: bool = False) -> str:
    """Format values; lines after the first are indented by `indent` columns.

    `is_cut`: they are the `ends` of more.
    """
    is_short = is_cut or array.size > OPTIONS.threshold
    write = formatter(shown(array) if is_short else array)
    if array.ndim == 0:
        return write(array.item())
    return nested(array, write, indent, is_short)


def _tensor_str(self: Any, indent: int) -> str:
    """Write the values of a tensor, as programs ask `torch._tensor_str` for them."""
    return format_array(self.detach().numpy(), indent)


def nested(array: Array, write: Callable[[Any], str], indent: int, is_short: bool) -> str:
    """Write nested brackets, "..." for what is left out."""
    size, edge = array.shape[0], OPTIONS.edgeitems
    is_cut = is_short and size > 2 * edge
    places = [*range(edge), *range(size - edge, size)] if is_cut else list(range(size))
    if array.ndim == 1:
        texts = [write(array[at].item()) for at in places]
        return vector(texts, edge if is_cut else None, indent)
    rows = [nested(array[at], write, indent + 1, is_short) for at in places]
    if is_cut:
        rows.insert(edge, "...")
    gap = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + gap.join(rows) + "]"


def vector(texts: list[str], cut: int | None, indent: int) -> str:
    """Write one row, broken into lines."""
    width = max(map(len, texts), default=0)
    if cut is not None:
        texts = [*texts[:cut], " ...", *texts[cut:]]
    each_line = max(1, (OPTIONS.linewidth - indent) // (width + 2))
    lines = [texts[at : at + each_line] for at in range(0, len(texts), each_line)]
    gap = ",\n" + " " * (indent + 1)
    return "[" + gap.join(", ".join(line) for line in lines) + "]"


def format_tensor(
    array: Array | None,
    shape: tuple[int, ...],
    dtype: DType,
    device: str,
    requires_grad: bool,
    function: Any = None,
    kind: str = "Tensor",
) -> str:
    """Format a tensor: `Tensor([1., 2.])`; dtype and device only where they are not the default.

    No array: the tensor has a shape and no values. `kind` is the name of its class.
    """
    head, has_numbers = f"{kind}(", array is not None and array.size > 0
    parts = ["..." if array is None else "[]"]
    if array is not None and has_numbers:
        parts = [format_array(array, len(head), array.shape != shape)]
    if not has_numbers and (array is None or len(shape) != 1):
        parts.append(f"size={tuple(shape)}")
    float_ = default_float()
    is_usual = dtype in (float_, int64, bool_, float_.complex) if has_numbers else dtype is float_
    if not is_usual:
        parts.append(f"dtype={dtype!r}")
    if not is_host(device):
        parts.append(f"device='{device}'")
    if function is not None:
        parts.append(f"grad_fn={function!r}")
    elif requires_grad:
        parts.append("requires_grad=True")
    return head + with_suffixes(parts[0], parts[1:], len(head)) + ")"


def with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Add what follows the numbers, on a new line where it does not fit."""
    used = indent + len(text) if "\n" not in text else len(text) - text.rfind("\n")
    for suffix in suffixes:
        if used + len(suffix) + 2 > OPTIONS.linewidth:
            text, used = f"{text},\n{' ' * indent}{suffix}", indent + len(suffix)
        else:
            text, used = f"{text}, {suffix}", used + len(suffix) + 2
    return text


def format_traced(shape: tuple[int, ...], dtype: str, device: str) -> str:
    """Format a tensor whose value is not known while jit traces."""
    return f"Tensor(<traced>, shape={shape}, dtype={dtype}, device='{device}')"


MOST = 12  # rows and columns; of more, the first and the last ones are shown
EDGE = 5
MIDDLE = slice(EDGE, -EDGE)
LEFT_OUT = "…"


def tensor_html(values: Array | None, text: str, facts: str) -> str:
    """Write what a notebook shows of a tensor: facts, and a table, or its text without values."""
    if values is None or values.ndim not in (1, 2) or values.size == 0:
        return heading(facts) + preformatted(text)
    height, width = values.shape if values.ndim == 2 else (1, values.size)
    rows = values.reshape(height, width)
    if height > MOST:
        rows = np.delete(rows, MIDDLE, 0)
    if width > MOST:
        rows = np.delete(rows, MIDDLE, 1)
    write = formatter(rows)
    lines = []
    for row in rows.tolist():
        texts = [write(value).strip() for value in row]
        if width > MOST:
            texts.insert(EDGE, LEFT_OUT)
        lines.append(texts)
    if height > MOST:
        lines.insert(EDGE, [LEFT_OUT] * len(lines[0]))
    return heading(facts) + table([], lines)
