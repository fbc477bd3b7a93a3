"""Stores of elements that a reduction has at hand, as vectors where several lie side by side."""

from collections.abc import Mapping, Sequence

from picograd.codegen.block_cuda import WIDTHS, WORD, Block, write_once
from picograd.codegen.layout import Walk
from picograd.codegen.tile import Store
from picograd.schedule.index import Axis, Index, substitute
from picograd.schedule.loop import rewrite


def beside(steps: Sequence[Store], found: Walk) -> list[list[Store]]:
    """Put stores of elements together that make a vector in memory."""
    rows: list[list[Store]] = []
    for step in steps:
        if rows and found.vector is None and goes_on(rows[-1], step):
            rows[-1].append(step)
        else:
            rows.append([step])
    return rows


def goes_on(row: Sequence[Store], step: Store) -> bool:
    """Tell whether a store goes on where others end, of a vector that begins at a multiple."""
    first, most = row[0], WIDTHS[0]
    is_next = step.index == first.index + len(row)
    if step.slot != first.slot or not is_next:
        return False
    is_even = first.index.const % most == 0
    for _, each in first.index.terms:
        is_even &= each % most == 0
    has_words = step.expr.dtype.itemsize == WORD
    is_alike = step.conditions == first.conditions
    return is_even and has_words and is_alike and len(row) < most


def put_elements(block: Block, row: Sequence[Store], values: Mapping[Axis, Index]) -> None:
    """Store elements that reductions have at hand as a vector."""
    emitter = block.emitter
    first = row[0]
    tests = []
    for index, low, high in first.conditions:
        tests.append((substitute(index, values), low, high))
    made = []
    for each in row:
        expr = rewrite(each.expr, values)
        made.append(emitter.value(expr))
    outer = emitter.scopes[-1].mask
    mask = emitter.both(outer, emitter.conditions(tests))
    if first.layout is not None:
        once = write_once(block, first.layout)
        mask = emitter.both(once, mask)
    dtype = emitter.dtype(made[0])
    wide = emitter.add("pack", dtype, made, lanes=len(made))
    place = emitter.index(substitute(first.index, values))
    pointer = emitter.slots[first.slot]
    emitter.store(pointer, place, wide, mask)
