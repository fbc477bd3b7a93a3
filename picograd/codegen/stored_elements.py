"""Stores of elements that a reduction has at hand, as vectors where several lie side by side."""

from collections.abc import Mapping, Sequence

from picograd.codegen.block_cuda import WIDTHS, WORD, Block, put, write_once
from picograd.codegen.descend import is_guard
from picograd.codegen.layout import Walk
from picograd.codegen.tile import Store
from picograd.schedule.index import Axis, Index, constant, substitute
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
    first = row[0]
    is_next = step.slot == first.slot and step.index == first.index + len(row)
    steps = (first.index.const, *(each for _, each in first.index.terms))
    is_even = not any(each % WIDTHS[0] for each in steps)
    has_words = step.expr.dtype.itemsize == WORD and step.conditions == first.conditions
    return is_next and is_even and has_words and len(row) < WIDTHS[0]


def put_elements(
    block: Block, row: Sequence[Store], found: Walk, values: Mapping[Axis, Index]
) -> None:
    """Store elements that reductions have at hand, a vector at once."""
    if len(row) not in WIDTHS:
        for each in row:
            put_element(block, each, found, values)
        return
    emitter, first = block.emitter, row[0]
    outer = emitter.scopes[-1].mask
    tests = [(substitute(index, values), lo, hi) for index, lo, hi in first.conditions]
    made = [emitter.value(rewrite(each.expr, values)) for each in row]
    mask = emitter.both(outer, emitter.conditions(tests))
    if first.layout is not None:
        mask = emitter.both(write_once(block, first.layout), mask)
    wide = emitter.add("pack", emitter.dtype(made[0]), made, lanes=len(made))
    place = emitter.index(substitute(first.index, values))
    emitter.store(emitter.slots[first.slot], place, wide, mask)


def put_element(block: Block, step: Store, found: Walk, values: Mapping[Axis, Index]) -> None:
    """Store an element that reductions have at hand."""
    emitter = block.emitter
    first_lane = {found.vector[0]: constant(0)} if found.vector else {}
    tests = [
        (substitute(substitute(index, values), first_lane), lo, hi)
        for index, lo, hi in step.conditions
    ]
    outer, expr = emitter.scopes[-1].mask, rewrite(step.expr, values)
    is_guarded = is_guard(expr) and set(step.conditions) <= set(step.expr.arg)
    value = emitter.value(expr) if is_guarded else None  # under the mask of the reductions
    emitter.scopes[-1].mask = mask = emitter.both(outer, emitter.conditions(tests))
    value = emitter.value(expr) if value is None else value
    if step.layout is not None:
        mask = emitter.both(write_once(block, step.layout), mask)
    put(block, emitter.slots[step.slot], substitute(step.index, values), value, mask)
    emitter.scopes[-1].mask = outer
