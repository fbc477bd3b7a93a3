"""Names of devices: strings that know their kind and number, as PyTorch's `torch.device`.

`x.device` is one, and so is whatever a program makes with `picograd.device`; both are the strings
that every function takes.
"""

from collections.abc import Callable
from typing import Any

from picograd.config import config
from picograd.errors import DeviceError

# kinds of devices, and what opens one of a number: the rows are in picograd/engine/backends.py
OPENERS: dict[str, Callable[[int], Any]] = {}
THEIRS = ("mps", "xpu", "xla", "hip", "mtia", "hpu", "vulkan", "privateuseone")


class device(str):
    """This class is the name of a device: "cpu", "cuda", "cuda:1", or a kind and a number.

    It is a string, equal to that string. In a `with` block it is where new tensors are made.
    Raises DeviceError for a kind that there is nowhere.

    >>> import picograd
    >>> where = picograd.device("cuda", 1)
    >>> where.type, where.index, where == "cuda:1"
    ('cuda', 1, True)
    >>> with picograd.device("cpu"):
    ...     picograd.zeros(2).device.type
    'cpu'
    """

    __slots__ = ()

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> "device":
        """Read a name, a number (of a GPU), or a kind and a number."""
        text = f"cuda:{type}" if isinstance(type, int) else str.__str__(str(type))
        text = text.strip() if index is None else f"{text.strip()}:{index}"
        kind, colon, number = text.partition(":")
        is_kind = kind in OPENERS or kind in THEIRS
        if not is_kind or (colon and not number.isdecimal()):
            fix = f"use {', '.join(OPENERS)}, or cuda:1 for the second GPU"
            raise DeviceError("device", f"there is no device {text!r}", fix)
        return str.__new__(cls, text)

    @property
    def type(self) -> str:
        """The kind: "cpu", "cuda"."""
        return str(self).partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number among those of the kind; None where none was given."""
        number = str(self).partition(":")[2]
        return int(number) if number else None

    def __enter__(self) -> "device":
        BEFORE.append(config.device)
        config.device = str(self)
        return self

    def __exit__(self, *error: Any) -> None:
        config.device = BEFORE.pop()

    def __reduce__(self) -> Any:
        return device, (str(self),)


BEFORE: list[str] = []  # the defaults around the `with` blocks that are open


class Names(dict[str, device]):
    """This class finds the name of a device that there is, by its text."""

    def __missing__(self, text: str) -> device:
        self[text] = made = device(text)
        return made


NAMES = Names()
