"""one_row: products of one row on a GPU, as each token of a decoder has them.

A tile of tensor cores would be empty but for that row, so the product is a sum along K for each row
of the matrix (`codegen/templates/contract_few.py`), which takes what reading the matrix takes. Such
sums may share a launch, or a reader, where tiles may not: they have no shared memory of their own.
"""

from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.schedule.channels_last import multiplied
from picograd.schedule.group import Facts
from picograd.schedule.heroes import uses_tensor_cores
from picograd.schedule.repack import SUMMED, roles_of, steps_of
from picograd.schedule.values import is_leaf
from picograd.target import Target

HALF = 16  # bits
VIEWS = Role.VIEW, Role.PASS


def is_of_one_row(facts: Facts, target: Target) -> bool:
    """Tell whether a product is one row of 16-bit floats, and a matrix that lies along K."""
    node = facts.node
    if not target.has_blocks or node.row.role is not Role.CONTRACT:
        return False
    if not uses_tensor_cores(facts, target):
        return False
    first, second = multiplied(node.inputs)
    if not first.dtype.bits == second.dtype.bits == HALF:
        return False
    is_left = is_row(node, 0) and lies_along(second, roles_of(node, 1))
    return is_left or (is_row(node, 1) and lies_along(first, roles_of(node, 0)))


def is_row(node: Node, number: int) -> bool:
    """Tell whether an operand has no dimension that is not summed."""
    roles = roles_of(node, number)
    shape = node.inputs[number].shape
    wide = [role for size, role in zip(shape, roles, strict=True) if size > 1]
    return set(wide) <= {SUMMED}


def lies_along(value: Node, roles: tuple[str, ...]) -> bool:
    """Tell whether an operand is in memory, where its neighbours are those that are summed."""
    base = value
    while not is_leaf(base) and base.row.role in VIEWS:
        base = base.inputs[0]
    found = steps_of(value) if is_leaf(base) else None
    if found is None:
        return False
    steps, _ = found
    summed = [d for d, role in enumerate(roles) if role == SUMMED and value.shape[d] > 1]
    return any(steps[d] == 1 for d in summed)
