"""Which nodes are one value: equal ones, and those that only rename."""

from plan_support import TARGET, check_plan, leaf

from picograd.graph import build
from picograd.graph.node import Node, toposort
from picograd.schedule.schedule import schedule
from picograd.schedule.values import facts_of


def test_equal_nodes_have_the_same_facts() -> None:
    x = leaf(3)
    first, second = build.binary("add", x, x), build.binary("add", x, x)
    found = facts_of(toposort([first, second]), [first])
    assert found[id(first)] is found[id(second)]


def test_another_name_of_a_value_is_no_kernel_unless_it_is_wanted() -> None:
    """`x.flatten(1)` of a matrix is a conversion to the dtype it has; two products read it."""
    x, w, v = leaf(8, 16), leaf(16, 4), leaf(16, 4)
    name = Node("cast", (x,), x.dtype, x.shape, x.dtype, x.device)
    products = [build.matmul(name, w), build.matmul(name, v)]
    assert len(schedule(products, TARGET).kernels) <= 2
    check_plan([*products, name])
