"""descend: append an expression to a program, arguments first, without recursion.

An expression may be as deep as a kernel is large, so what waits for its arguments lies on a list.
An entry is an expression and the mask it is computed under: a guard computes its value under a mask
of its own, and its fill under that of its reader.
"""

from typing import Any, Protocol

from picograd.dtype import DType, bool_
from picograd.schedule.loop import Condition, Expr, dynamic_children, dynamics_of

Entry = tuple[Expr, int | None]
Key = tuple[int, int | None]  # of an entry: the identity of its expression, and the mask


class Emitter(Protocol):
    """What the emitter offers to the walk: see `picograd/codegen/emit.py`."""

    scopes: list[Any]

    def known(self, expr: Expr, mask: int | None) -> int | None:
        """Find a value that was appended."""

    def recall(self, key: Any) -> int | None:
        """Find a memoised value that is seen here."""

    def remember(self, key: Any, value: int) -> int:
        """Memoise a value."""

    def evaluate(self, expr: Expr, args: list[int]) -> int:
        """Append one expression, given its arguments."""

    def is_lanewise(self, expr: Expr) -> bool:
        """Tell whether an expression is computed lane by lane."""

    def lane_by_lane(self, expr: Expr) -> int:
        """Append an expression once per lane."""

    def conditions(self, conditions: tuple[Condition, ...]) -> int | None:
        """Append the tests of a guard."""

    def both(self, a: int | None, b: int | None) -> int | None:
        """And two masks."""

    def apply(self, op: str, *args: int, dtype: DType | None = None) -> int:
        """Append an elementwise operation."""

    def dtype(self, value: int) -> DType:
        """Find the dtype of a value."""


def descend(emitter: Emitter, root: Expr) -> int:
    """Append an expression under the present mask and return its value."""
    scope = emitter.scopes[-1]
    mask = scope.mask
    found = Descent(emitter).run((root, mask))
    scope.mask = mask
    return found


class Descent:
    """This class appends one expression: `values` are ready, `tests` are those of guards."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter: Emitter = emitter
        self.scope: Any = emitter.scopes[-1]
        self.values: dict[Key, int] = {}
        self.tests: dict[Key, tuple[int | None, int | None]] = {}

    def run(self, root: Entry) -> int:
        """Append everything below an entry, arguments from left to right, and the entry."""
        stack = [root]
        while stack:
            entry = stack[-1]
            if not self.is_ready(entry):
                waiting = self.waiting(entry)
                if waiting:
                    stack += reversed(waiting)
                    continue
                self.append(entry)
            stack.pop()
        return self.value(root)

    def is_ready(self, entry: Entry) -> bool:
        """Tell whether the value of an entry is known, here or in an open scope."""
        expr, mask = entry
        key = id(expr), mask
        if key in self.values:
            return True
        found = self.emitter.known(expr, mask)
        if found is not None:
            self.values[key] = found
        return found is not None

    def value(self, entry: Entry) -> int:
        """The value of an entry that is ready."""
        return self.values[id(entry[0]), entry[1]]

    def waiting(self, entry: Entry) -> list[Entry]:
        """What must be appended before an entry."""
        expr, self.scope.mask = entry
        if self.emitter.is_lanewise(expr) or expr.op in ("tile", "ref"):
            return []
        if is_guard(expr):
            return self.waiting_guard(entry)
        is_read = expr.op in ("load", "index")
        below = dynamic_children(expr) if is_read else expr.args
        return self.missing([(each, entry[1]) for each in below])

    def missing(self, entries: list[Entry]) -> list[Entry]:
        """Those entries that are not ready."""
        return [each for each in entries if not self.is_ready(each)]

    def waiting_guard(self, entry: Entry) -> list[Entry]:
        """What a guard waits for: what its tests read, then its value, then its fill."""
        expr, mask = entry
        key = id(expr), mask
        if key not in self.tests:
            read = [d.expr for test in expr.arg for d in dynamics_of(test[0])]
            waiting = self.missing([(each, mask) for each in read])
            if waiting:
                return waiting
            self.tests[key] = self.masks_of(Expr("guard", (), expr.arg, bool_), mask)
        condition, inner = self.tests[key]
        wanted = [(expr.args[0], inner)]
        if condition is not None and not is_plain(expr):
            wanted.append((expr.args[1], mask))
        return self.missing(wanted)

    def masks_of(self, tests: Expr, mask: int | None) -> tuple[int | None, int | None]:
        """Append tests, and these under a mask, once: values under them are shared.

        Under a mask that has the tests in it they hold: a search reads by what it read, again and
        again behind the same tests.
        """
        emitter = self.emitter
        if emitter.recall((tests, mask, "held")) is not None:
            return None, mask
        alone = tests, mask, "alone"
        under = tests, mask, "under"
        condition = emitter.recall(alone)
        if condition is not None:
            return condition, emitter.recall(under)
        condition = emitter.conditions(tests.arg)
        inner = emitter.both(mask, condition)
        if condition is not None and inner is not None:
            emitter.remember(alone, condition)
            emitter.remember(under, inner)
            emitter.remember((tests, inner, "held"), condition)
        return condition, inner

    def append(self, entry: Entry) -> None:
        """Append an expression whose arguments are ready."""
        expr, mask = entry
        emitter, self.scope.mask = self.emitter, mask
        if emitter.is_lanewise(expr):
            value = emitter.lane_by_lane(expr)
        elif is_guard(expr):
            value = self.guard(expr, mask)
        else:
            has_args = expr.op not in ("tile", "ref")
            below = expr.args if has_args else ()
            args = [self.value((arg, mask)) for arg in below]
            value = emitter.evaluate(expr, args)
        self.values[id(expr), mask] = value
        if expr.op != "const":
            emitter.remember((expr, mask), value)

    def guard(self, expr: Expr, mask: int | None) -> int:
        """Append the choice between the value of a guard and its fill."""
        condition, inner = self.tests[id(expr), mask]
        value = self.value((expr.args[0], inner))
        if condition is None or is_plain(expr):
            return value  # what a load gives under a false mask is 0
        fill, dtype = self.value((expr.args[1], mask)), self.emitter.dtype(value)
        return self.emitter.apply("where", condition, value, fill, dtype=dtype)


def is_guard(expr: Expr) -> bool:
    """Tell whether an expression is a value under tests, or a fill."""
    return expr.op == "guard"


def is_plain(guard: Expr) -> bool:
    """Tell whether a guard is a load or 0: the mask alone says so."""
    value, fill = guard.args
    is_zero = fill.op == "const" and fill.arg == 0 and str(fill.arg)[0] != "-"
    return value.op == "load" and is_zero
