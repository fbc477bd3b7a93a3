"""nests: which steps share a loop nest on a CPU, and how conditions become bounds of its loops."""

from collections.abc import Iterator, Sequence

from picograd.codegen.dot import Dot
from picograd.codegen.linearize_cpu_pack import is_turn, sharing
from picograd.codegen.tile import Accumulate, Assign, For, LastBlock, Step, Store, When
from picograd.helpers import product
from picograd.schedule.index import Index, axes_of, axis_index
from picograd.schedule.loop import Condition, Expr, walk
from picograd.schedule.monoid import identity

UNROLLED = 16  # reductions up to this size run inside the loops over their dims, without a loop
REREAD = 8  # where elements are read again: caches do not keep many streams of one distance
SMALL_WINDOW = 64  # and up to this size where there are too many dims to keep a sum each at hand
VECTOR = 16  # elements of a vector: LLVM makes none of a loop over fewer, nor smaller ones
FEW_VECTORS = 7  # of sums of rows that are worked on at once
MANY_COLUMNS = 64  # of which those beyond the last whole vector take little time
FEW_SUMS = 1024  # that stay in the first-level cache: then the loop over them is the innermost


def reads_of(step: Step) -> Iterator[tuple[str, tuple[Index, ...]]]:
    """Yield every tile read of a step and of the steps inside it."""
    if isinstance(step, For | When | LastBlock):
        for inner in step.body:
            yield from reads_of(inner)
    elif isinstance(step, Dot):
        yield from ((name, ()) for name in tiles_of(step))
    elif isinstance(step, Assign | Accumulate | Store):
        for expr in walk(step.expr):
            if expr.op == "tile":
                yield expr.arg


def tiles_of(step: Dot) -> Iterator[str]:
    """Name the tiles that a product is of."""
    yield step.acc
    if step.a_place is None:
        yield step.a
    if step.b_place is None:
        yield step.b


def is_pointwise(step: Accumulate) -> bool:
    """Tell whether a reduction is a window: a few elements at every point of its dims.

    Few vectors of sums stay in registers in the loop over the elements.
    """
    count = product(a.size for a in step.dims)
    if step.dims and step.dims[-1].size == VECTOR and count <= FEW_VECTORS * VECTOR:
        return False
    if not step.over and step.expr.op == "guard":
        return False  # added to what is there, where the guard holds: bounds of a loop
    is_whole = step.is_first or not step.over  # what is added to is in memory
    is_few = count <= FEW_SUMS
    is_again = {"load", "tile"} <= {expr.op for expr in walk(step.expr)}
    fewest = REREAD if is_again else UNROLLED
    most = fewest if is_few else SMALL_WINDOW
    return bool(step.dims) and is_whole and product(a.size for a in step.over) <= most


def may_store_beside(store: Store, head: Accumulate, sums: set[str]) -> bool:
    """Tell whether elements may be stored in the loops that reduce them: no sum is whole there."""
    is_element = store.dims == (*head.over, *head.dims)
    return is_element and all(name not in sums for name, _ in reads_of(store))


def group_length(steps: Sequence[Step], first: int) -> int:
    """Count the steps from `first` on that can share one loop nest."""
    head = steps[first]
    written: set[str] = set()
    if not isinstance(head, Accumulate | Assign | Store):
        return 1
    if isinstance(head, Assign) and head.layout is not None:
        return sharing(steps, first, head.dims)
    if is_turn(head):
        return 1  # turning has loops of its own
    is_reduction = isinstance(head, Accumulate) and not is_pointwise(head)
    count, conditions = 0, None
    for step in steps[first:]:
        if isinstance(head, Accumulate) and is_reduction and isinstance(step, Store):
            if not may_store_beside(step, head, written):
                break
            count += 1
            continue
        if not isinstance(step, Accumulate | Assign | Store) or step.dims != head.dims:
            break
        is_wide = isinstance(step, Accumulate) and not is_pointwise(step)
        over = [s.over for s in (head, step) if isinstance(s, Accumulate)]
        if is_wide != is_reduction or (is_wide and over[0] != over[1]):
            break
        if isinstance(step, Store):
            if conditions is not None and step.conditions != conditions:
                break
            conditions = step.conditions
            is_uniform = all(axes_of(c[0]).isdisjoint(step.dims) for c in conditions)
            if conditions and is_uniform and count:
                break
        here = tuple(axis_index(d) for d in step.dims)
        reads = [(name, read) for name, read in reads_of(step) if name in written]
        if (is_wide and reads) or any(read != here for _, read in reads):
            break
        written.add(getattr(step, "tile", ""))
        count += 1
    return count


def split_guards(steps: Sequence[Accumulate]) -> tuple[list[Expr], tuple[Condition, ...]]:
    """Take off guards that only keep out what adds nothing, if all steps have the same ones."""
    first = steps[0].expr
    for step in steps:
        if step.expr.op != "guard" or step.expr.arg != first.arg:
            return [s.expr for s in steps], ()
        fill = step.expr.args[1]
        if fill.op != "const" or fill.arg != identity(step.monoid, step.expr.dtype):
            return [s.expr for s in steps], ()
    return [step.expr.args[0] for step in steps], first.arg


def stretches(size: int, is_column: bool) -> list[tuple[int, int]]:
    """Cut a loop over elements of a row, or over columns, into some that LLVM makes vectors of.

    Columns are whole vectors, then pieces of 8, 4, 2 and 1: those left over are not taken one by
    one. Rows of up to half a vector are worked on side by side.
    """
    half = VECTOR // 2
    if not is_column:
        return [(0, half), (half, size)] if half < size < VECTOR else [(0, size)]
    if size <= half or size >= MANY_COLUMNS:
        return [(0, size)]
    whole, rest = size - size % VECTOR, size % VECTOR
    found = [(0, whole)] if whole else []
    for length in (8, 4, 2, 1):
        if rest & length:
            found.append((whole, whole + length))
            whole += length
    return found
