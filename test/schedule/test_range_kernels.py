"""Kernels that find ranges: what they find is what a mask shows, element by element."""

from itertools import product

import numpy as np
import pytest
from attention_forms import documents, masked
from plan_support import TARGET, VALUES, leaf
from test_score_ranges import GRAIN, PLACES, ROWS, of_kind, operands, small

from picograd.dtype import bool_, int32, int64
from picograd.schedule.interpret import interpret
from picograd.schedule.interpret_plan import allocate
from picograd.schedule.schedule import schedule

__all__ = ["small"]  # a fixture


def found_by(output, rows, count):
    """The first and the last grain of places of each grain of rows, as the kernel finds them.

    They are the first of `count` arrays; the last one comes behind them.
    """
    plan = schedule([output], TARGET)
    memory = allocate(plan, [VALUES[node].copy() for node in plan.inputs])
    for step in plan.steps:
        if step.kernel.hero == "attention":
            break
        interpret(step.kernel, [memory[slot] for slot in step.slots])
    *found, last = [memory[slot] for slot in step.slots[-count:]]
    return [*(each.reshape(-1, -(-rows // GRAIN)) for each in found[:2]), last]


def ends_of(seen):
    """The same of a mask, looked at element by element."""
    grains = [seen[r : r + GRAIN].any(0) for r in range(0, len(seen), GRAIN)]
    shown = [np.flatnonzero(each) // GRAIN for each in grains]
    none = -(-seen.shape[1] // GRAIN)
    return [x[0] if x.size else none for x in shown], [x[-1] + 1 if x.size else 0 for x in shown]


@pytest.mark.parametrize("dtype", [int32, int64])
def test_documents_are_found_exactly(dtype):
    np.random.seed(1)
    made = []
    q, k, v = operands()
    k, v = leaf(2, 4, ROWS, 4), leaf(2, 4, ROWS, 4)
    output = documents(q, k, v, lambda shape: made.append(of_kind(dtype)(shape)) or made[0])
    own = VALUES[made[0]]
    seen = (own[:, None] == own) & np.tri(ROWS, dtype=bool)
    firsts, stops, _ = found_by(output, ROWS, 4)
    np.testing.assert_array_equal((firsts[0], stops[0]), ends_of(seen))


def test_masks_in_memory_are_found_exactly():
    np.random.seed(2)
    masks = []

    def see(s, at):
        masks.append(leaf(2, ROWS, PLACES, dtype=bool_, below=2))
        VALUES[masks[0]][:, 8:24] = VALUES[masks[0]][:, :, 20:] = False
        VALUES[masks[0]][1, 24:, :8] = True
        return at(masks[0], 0, 2, 3)

    firsts, stops, cells = found_by(masked(*operands(), see), ROWS, 3)
    counts = [range(0, size, GRAIN) for size in (ROWS, PLACES)]
    cells = cells.reshape(2, *map(len, counts))
    for mask, first, stop, own in zip(VALUES[masks[0]], firsts, stops, cells, strict=True):
        np.testing.assert_array_equal((first, stop), ends_of(mask))
        for (r, row), (c, column) in product(*map(enumerate, counts)):
            block = mask[row : row + GRAIN, column : column + GRAIN]
            assert own[r, c] == int(block.any()) + int(block.all())
