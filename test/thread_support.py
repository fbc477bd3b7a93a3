"""Work in several threads at once, whose errors are the test's."""

import threading
from collections.abc import Callable
from typing import Any


def run_in_threads(work: Callable[[int], Any], count: int) -> None:
    """Call `work` with 0, 1, ..., each in a thread; raise the first error of any."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
