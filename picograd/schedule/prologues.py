"""prologues: what is computed for a stream over scores right before it is part of its launch.

    q, k = rotated(norm(q)), rotated(norm(k))           blocks share the rows of both
    o = attention(q, k, v)                              each goes on when all are done

On a GPU blocks claim pieces of elementwise work, and of reductions of rows, until none is left
(codegen/templates/attention_ahead.py); then they stream. So norms and rotations of queries and
keys, parts that are joined, pages that are gathered take no launch of their own.
"""

from collections.abc import Sequence

from picograd.helpers import ceil_div, product
from picograd.schedule.assemble import has_reduction
from picograd.schedule.in_place import slots_of
from picograd.schedule.index import Axes
from picograd.schedule.loop import Kernel, Part
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.schedule.recompute import written_by
from picograd.schedule.score_ranges import finding
from picograd.target import Target

NEAR = 8  # launches before a stream that are looked at
ROWS = 128  # that a block has at once
PARTS = 4  # of a launch
MOST_COLUMNS = 1024
HEROES = "map", "reduce.row"


def join_prologues(slots: Sequence[PlanSlot], steps: Sequence[Step], target: Target) -> list[Step]:
    """Let streams compute what launches before them leave for them."""
    done: list[Step] = []
    for step in steps:
        if isinstance(step, KernelLaunch) and has_many_tiles(step.kernel, target):
            before = taken_from(done, step)
            step = finding(step, before, "ahead") if before else step
        done.append(step)
    return done


def has_many_tiles(kernel: Kernel, target: Target) -> bool:
    """Tell whether a kernel streams, with work for all processors."""
    if kernel.hero != "attention" or not target.has_blocks:
        return False
    rows = product(axis.size for axis in kernel.parts[-1].rows)
    return ceil_div(rows, ROWS) >= target.multiprocessors


def taken_from(done: list[Step], stream: KernelLaunch) -> list[KernelLaunch]:
    """Take the launches out of a list that a stream may do: nobody else is in between."""
    found: list[KernelLaunch] = []
    touched: set[int] = set()
    written: set[int] = set()
    wanted = set(stream.slots)
    for number in range(len(done) - 1, max(len(done) - NEAR, 0) - 1, -1):
        step = done[number]
        own = set(written_by(step))
        is_read = not own.isdisjoint(wanted)
        is_free = own.isdisjoint(touched) and written.isdisjoint(slots_of(step))
        if isinstance(step, KernelLaunch) and is_read and is_free and is_plain(step, stream):
            found.insert(0, step)
            del done[number]
            wanted.update(step.slots)
            continue
        touched.update(slots_of(step))
        written |= own
    return found


def is_plain(launch: KernelLaunch, stream: KernelLaunch) -> bool:
    """Tell whether blocks of a stream can share the work of a launch."""
    kernel = launch.kernel
    is_same = launch.device == stream.device and not kernel.scalars
    has_roles = all(slot.role in ("in", "out") for slot in kernel.slots)
    is_short = kernel.hero in HEROES and len(kernel.parts) <= PARTS
    has_windows = kernel.hero == "map" and any(map(has_reduction, kernel.parts))
    is_fit = is_short and is_same and has_roles and not has_windows
    return is_fit and all(map(is_of_rows, kernel.parts))


def is_of_rows(part: Part) -> bool:
    """Tell whether a part works element by element, or on rows each by itself."""
    if part.scatter or part.along or part.ends:
        return False
    rows = set(part.rows)
    every = [compute.reduce for compute in part.computes if compute.reduce]
    return all(is_short_row(over) and rows.isdisjoint(over) for over in every)


def is_short_row(over: Axes) -> bool:
    """Tell whether a warp has a row in registers."""
    return len(over) == 1 and over[0].size <= MOST_COLUMNS
