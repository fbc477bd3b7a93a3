"""Arguments of batched ops: axes counted one further. What rules compute is in test_batch.py."""

import numpy as np
import pytest
from graph_support import leaf

from picograd.errors import GradientError
from picograd.graph import batch_rules
from picograd.graph.ops import OPS


def test_axes_are_counted_further() -> None:
    assert batch_rules.next_order((1, 0), 5) == (0, 2, 1)
    assert batch_rules.next_ranges(((0, 2, 1),), 5) == ((0, 5, 1), (0, 2, 1))
    assert batch_rules.second_next(("sum", 0, 8), 5) == ("sum", 1, 8)
    assert batch_rules.first_windows_next((((0, 2, 1, 1),), (4,)), 5) == (((1, 2, 1, 1),), (4,))


def test_steps_of_a_part_take_the_rules_of_their_ops() -> None:
    rule = OPS["put"].batch_arg
    assert rule is not None
    steps = (("slice", ((0, 2, 1),)), ("reshape", (2, 1)), ("flip", (0,)), ("permute", (1, 0)))
    assert rule(steps, 5) == (
        ("slice", ((0, 5, 1), (0, 2, 1))),
        ("reshape", (5, 2, 1)),
        ("flip", (1,)),
        ("permute", (0, 2, 1)),
    )


def test_what_has_no_meaning_says_why() -> None:
    with pytest.raises(GradientError, match="vmap of buffer.*no batch"):
        batch_rules.refused("no batch")(None, leaf(np.ones(2)), [])
