"""show: `picograd.view`, and the server behind it.

Little is imported until it is used: programs that show nothing pay nothing for it.
"""

import os
from threading import Event
from typing import Any

from picograd.helpers import on_demand
from picograd.runtime.log import say

gather = on_demand("picograd.view.gather", "gather")
save_run = on_demand("picograd.view.gather", "save_run")
open_browser = on_demand("webbrowser", "open")
start_server = on_demand("picograd.view.server", "Server")

SERVERS: list[Any] = []  # of this process: at most one


class Viewer(str):
    """This class is the address of a page, which is there until `close` or the program's end."""

    __slots__ = ()

    def close(self) -> None:
        """Stop serving pages of this process."""
        while SERVERS:
            SERVERS.pop().close()

    def wait(self) -> None:
        """Keep the program, and so the page, until the user interrupts it."""
        say(f"{self}\nServing until interrupted (Ctrl-C).")
        try:
            Event().wait()
        except KeyboardInterrupt:
            self.close()

    def _repr_html_(self) -> str:
        return f'<a href="{self}" target="_blank" rel="noreferrer">{self}</a>'


def view(
    thing: Any,
    *arguments: Any,
    target: str = "",
    runs: int = 1,
    save: str | os.PathLike[str] | None = None,
    browser: bool = True,
) -> Viewer:
    """Show how something is computed on a page of this machine; returns the page's address.

    `thing` is a tensor or tensors not computed yet, a plan, a module or a function (a jitted one
    too) with its `arguments`, which is called, or a file that `save` wrote. The page draws
    kernels with the arrays between them and the reasons of fusion, their stages down to machine
    code, their times if they ran, and memory. A second call adds a run to the page, which compares
    any two.

    A function is called `runs` times, and of the times the least are shown; the first run of new
    code takes longer. `target` as in `picograd.explain`, for what has not run; `browser=False`
    opens no window. The page is served on this machine alone, under an address that holds a random
    token, until the program ends: `.wait()` of the result keeps a script from ending.

    >>> import picograd
    >>> from picograd import Tensor
    >>> page = picograd.view(Tensor([[1.0, 2.0]]).softmax(1), browser=False)
    >>> page.startswith("http://127.0.0.1:")
    True
    >>> page.close()
    """
    return show(gather(thing, arguments, target, runs), save, browser)


def show(run: Any, save: str | os.PathLike[str] | None = None, browser: bool = True) -> Viewer:
    """Show a run on the page of this process, and save it."""
    if save is not None:
        save_run(run, save)
    if not SERVERS:
        SERVERS.append(start_server())
    number = SERVERS[0].add(run)
    page = Viewer(f"{SERVERS[0].url}#run={number}")
    if browser:
        open_browser(page)
    return page
