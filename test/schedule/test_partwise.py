"""Stores to a part of an array, and of a part that was computed aside."""

import numpy as np
from plan_support import leaf, run

from picograd.dtype import float32
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.parts import put, shown
from picograd.schedule.group import Facts
from picograd.schedule.interpret import interpret
from picograd.schedule.lower import KernelBuilder, Location
from picograd.schedule.plan import PlanSlot
from picograd.schedule.schedule import schedule
from picograd.schedule.updates import Update, aside_kernel
from picograd.schedule.verify import verify
from picograd.target import Target


def test_what_lies_aside_goes_to_its_part() -> None:
    update = Update((("permute", (1, 0)), ("slice", ((1, 3, 1), (0, 6, 2)))), (2, 3))
    node = Node("assign", (leaf(6, 4), leaf(2, 3)), update, (6, 4), float32, "cpu")
    member = Facts(node, 7, target=Facts(node.inputs[0], 0))
    slots = [
        PlanSlot("input", float32, 24, "cpu", (6, 4), (4, 1)),
        PlanSlot("temporary", float32, 6, "cpu", (2, 3), (3, 1)),
    ]
    builder = KernelBuilder({7: Location(0, (4, 1))}, slots, {})
    kernel = verify(aside_kernel(member, Location(1, (3, 1)), builder))
    assert tuple(builder.slots) == (1, 0) and kernel.name == "map_put_2x3"
    part, array = np.arange(6, dtype=np.float32), np.zeros(24, np.float32)
    interpret(kernel, [part, array])
    wanted = np.zeros((6, 4), np.float32)
    wanted.T[1:3, 0:6:2] = part.reshape(2, 3)
    np.testing.assert_array_equal(array.reshape(6, 4), wanted)


def test_a_store_of_a_part_is_a_map_over_it() -> None:
    base, steps = leaf(6, 4), (("slice", ((2, 4, 1), (1, 3, 1))),)
    root = build.assign(base, put(base, shown(base, steps) + 1, steps))
    plan = schedule([root], Target("llvm", "test", 64))
    (kernel,) = plan.kernels
    assert (kernel.name, kernel.hero) == ("map_put_2x2", "map")
    ((compute,),) = [part.computes for part in kernel.parts]
    assert [axis.size for axis in compute.axes] == [2, 2]
    assert compute.store is not None and compute.store[1].lo == 9 and compute.store[1].hi == 14
    assert run(plan)[0].shape == (6, 4)
