"""Work given to a GPU that waits for kernels which are still being compiled.

A first step computes what parameters begin with by one plan, and then makes a plan of its own. The
kernels of the first compile while the second is made:

    with backlog.opened():    kernels that are missing are loaded later, and launches of them wait
        ...
    device.fill(...)          waits behind these
    device.run_tape(...)      all that waits is done first, in order; so before any other call
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

Work = Callable[[], None]


class Backlog:
    """What waits, in order. What fails, or is interrupted, stays for the next time.

    Machine code launches nothing meanwhile: it looks at `runner.running`.
    """

    def __init__(self, runner: Any) -> None:
        self.runner: Any = runner
        self.waiting: deque[Work] = deque()
        self.is_open = False  # whether more may wait
        self.is_working = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let loading, and what needs what is loaded, wait."""
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False

    def add(self, work: Work) -> None:
        """Let work wait."""
        self.waiting.append(work)
        self.runner.running = self

    def takes(self, function: Callable[..., None], *args: Any) -> bool:
        """Let a call wait behind other work; False if there is none, or this is part of it."""
        if self.is_working or not self.waiting:
            return False
        self.add(partial(function, *args))
        return True

    def finish(self) -> None:
        """Do all that waits; nothing, where that is under way."""
        if self.is_working:
            return
        self.is_working = True
        try:
            while self.waiting:
                self.waiting[0]()
                self.waiting.popleft()
            self.runner.running = None
        finally:
            self.is_working = False
