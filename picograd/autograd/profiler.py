"""Names of torch.autograd.profiler around blocks; `picograd.profile` and DEBUG=1 measure."""

from types import TracebackType
from typing import Any


class record_function:
    """This class names a block, which changes nothing.

    >>> from picograd.autograd.profiler import record_function
    >>> with record_function("forward"):
    ...     pass
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> "record_function":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def __call__(self, function: Any) -> Any:
        """Give a function back."""
        return function
