"""view: a local page that shows how something is computed; `__main__` is the command line.

A package, and imported by `picograd`, so that `picograd.view` is always the function.
"""

from picograd.view.show import view

__all__ = ["view"]
