"""How the threads of a CUDA block share rows and their elements, and what a row needs once."""

from collections.abc import Iterator, Sequence

from picograd.codegen.layout import Blocked
from picograd.graph.ops import OPS
from picograd.helpers import ceil_div
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of
from picograd.schedule.loop import Expr, dynamics_of

EXPENSIVE, EXPENSIVE_WHOLE = 2, 4  # costs of ops on floats alone, and on integers, too


@dataclass(frozen=True, slots=True)
class Threads:
    """How the threads of a CUDA block share dims (per dimension) and the elements of a row."""

    dims: tuple[int, ...]
    threads: tuple[int, ...]
    vector: tuple[int, ...]
    inner: int
    lanes: int
    is_column: bool = False

    def layout(self, inner: Sequence[Axis] = ()) -> Blocked:
        """Make the layout over (*dims, *inner)."""
        sizes = tuple(axis.size for axis in inner)
        if not sizes:
            return Blocked(self.dims, self.threads, self.vector, self.is_column)
        lanes = self.lanes if sizes[-1] % self.lanes == 0 else 1
        vector = (*(1 for _ in sizes[:-1]), lanes)
        return Blocked(
            (*self.dims, *sizes),
            (*self.threads, *spread(sizes, vector, self.inner)),
            (*self.vector, *vector),
            self.is_column,
        )


def spread(sizes: Sequence[int], vector: Sequence[int], threads: int) -> tuple[int, ...]:
    """Share threads, a power of two, among axes: each takes what it can use, the last one first.

    Those that no axis can use go to the last, where they have no elements.
    """
    found: list[int] = []
    for size, lanes in zip(reversed(sizes), reversed(vector), strict=True):
        found.append(min(threads, threads_along(size, lanes)))
        threads //= found[-1]
    found[0] *= threads
    return tuple(reversed(found))


def threads_along(size: int, lanes: int) -> int:
    """Count the threads that have elements of an axis, as a power of two."""
    return 1 << (ceil_div(size, lanes) - 1).bit_length()


def unconditional(body: Expr) -> Iterator[Expr]:
    """Yield the parts of an expression that are computed whatever its guards say, each once."""
    stack, seen = [body], {id(body)}
    while stack:
        expr = stack.pop()
        yield expr
        inner = expr.args[1:] if expr.op == "guard" else expr.args
        stack += [each for each in inner if id(each) not in seen]
        seen.update(map(id, inner))


def loads_free_of(body: Expr, axes: Sequence[Axis]) -> Iterator[Expr]:
    """Yield the loads of an expression, under no guard, that are the same along some axes."""
    for expr in unconditional(body):
        if expr.op == "load" and is_free_of(expr.arg[1], axes):
            yield expr


def is_free_of(index: Index, axes: Sequence[Axis]) -> bool:
    """Tell whether an index is the same along some axes, and read from no memory."""
    return not any(dynamics_of(index)) and axes_of(index).isdisjoint(axes)


def is_expensive(op: str) -> bool:
    """Tell whether values are rather kept for all elements of a row than computed in each pass."""
    row = OPS.get(op)
    if row is None or not row.is_elementwise:
        return False
    return row.cost >= (EXPENSIVE_WHOLE if "int" in row.dtype_rule.kinds else EXPENSIVE)
