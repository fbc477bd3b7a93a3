"""explain: every stage of an expression; `__main__` is the command line.

A package, and imported by `picograd`, so that `picograd.explain` is always the function.
"""

from picograd.tensor.core.inspect import explain

__all__ = ["explain"]
