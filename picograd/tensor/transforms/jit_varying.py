"""Sizes that vary are followed without being marked: from the second size of an axis on.

    first call    f(ones(4, 8))     a trace of these sizes
    second        f(ones(5, 8))     axis 0 varies: a trace that follows it, as if it were marked
    others        f(ones(n, 8))     the second trace, at its plan for n

The first trace is kept and looked for first, as most calls of most programs have one size.
"""

from collections import OrderedDict
from typing import Any

from picograd.tensor.transforms.jit_sizes import Marks

KEPT = 256  # structures of calls that are remembered; the one seen longest ago goes first


class Varying:
    """This class remembers, by structure of a call, the first one and the axes that vary since."""

    def __init__(self) -> None:
        self.seen: OrderedDict[Any, tuple[Any, set[tuple[int, int]]]] = OrderedDict()
        self.is_any = False  # most functions see one size: nothing is looked up for them

    def find(self, facts: Any) -> tuple[Marks, bool]:
        """List the axes of a call that are known to vary; tells whether its sizes are the first."""
        if not self.is_any:
            return [], True
        first, axes = self.seen.get(family_of(facts), (facts[1], ()))
        return [(tensor, axis, None) for tensor, axis in sorted(axes)], first == facts[1]

    def learn(self, facts: Any) -> Any:
        """Compare a call that needs a trace with the first; gives that one if more axes vary."""
        family, described = family_of(facts), facts[1]
        if family not in self.seen:
            self.seen[family] = described, set()
            while len(self.seen) > KEPT:
                self.seen.popitem(last=False)
            return None
        self.seen.move_to_end(family)
        first, axes = self.seen[family]
        known = len(axes)
        for tensor, (was, now) in enumerate(zip(first, described)):
            for axis, size in enumerate(now[0]):
                if size != was[0][axis]:
                    axes.add((tensor, axis))
        self.is_any |= bool(axes)
        return first if len(axes) > known else None


def family_of(facts: Any) -> Any:
    """Describe a call without the sizes of its tensors."""
    structure, described, *others = facts
    ranks = tuple([(len(shape), *rest) for shape, *rest in described])
    return structure, ranks, *others
