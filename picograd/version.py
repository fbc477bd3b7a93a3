"""The version: the PyTorch whose names there are, and after the plus picograd's own release.

Programs choose by `torch.__version__ >= "1.8"` what they may call, and read the text in many ways:
split at dots, by `packaging.version`, `startswith("2")`. All of them find NAMES_OF. RELEASE is
the version of the package, as in its metadata.
"""

from typing import Any

RELEASE = "0.1.0"
NAMES_OF = "2.13.0"  # the PyTorch whose names and signatures the tests compare with
cuda = hip = xpu = None  # nothing is compiled before it is needed
debug = False


def numbers_of(text: str) -> tuple[int, ...]:
    """Read the numbers of a release: (2, 13, 0) of "2.13.0+cpu".

    >>> from picograd.version import numbers_of
    >>> numbers_of("1.8.1rc2")
    (1, 8, 1)
    """
    found = []
    for part in text.strip().removeprefix("v").split("."):
        rest = part.lstrip("0123456789")
        digits = part.removesuffix(rest)
        if digits:
            found.append(int(digits))
        if rest or not digits:
            break
    return tuple(found)


class TorchVersion(str):
    """This class is a text that compares as versions do, with texts, and tuples of numbers.

    >>> from picograd.version import TorchVersion
    >>> TorchVersion("2.13.0") >= "2.9", TorchVersion("2.13.0") >= (2, 14)
    (True, False)
    """

    __slots__ = ()

    def _order(self, other: Any) -> int | None:
        """Tell where this is: before (-1), equal (0), after (1); None beside no version."""
        theirs = numbers_of(other) if isinstance(other, str) else other
        if not isinstance(theirs, (tuple, list)) or not theirs:
            return None
        ours = numbers_of(self)
        length = max(len(ours), len(theirs))
        left, right = ((*each, *[0] * (length - len(each))) for each in (ours, theirs))
        return (left > right) - (left < right)

    def __lt__(self, other: Any) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order < 0

    def __le__(self, other: Any) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order <= 0

    def __gt__(self, other: Any) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order > 0

    def __ge__(self, other: Any) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order >= 0


__version__ = TorchVersion(f"{NAMES_OF}+picograd.{RELEASE}")


def show() -> str:
    """Say what this was built with: nothing, as kernels are made when they run.

    >>> import picograd
    >>> picograd.__config__.show()
    'picograd 0.1.0, kernels by LLVM and NVRTC'
    """
    return f"picograd {RELEASE}, kernels by LLVM and NVRTC"
