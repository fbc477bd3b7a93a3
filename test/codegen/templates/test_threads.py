"""How the threads of a CUDA block share the elements that they reduce."""

import pytest

from picograd.codegen.templates.threads import is_expensive, spread
from picograd.graph.ops import OPS
from picograd.helpers import ceil_div, product


@pytest.mark.parametrize(
    "sizes, vector, threads, wanted",
    [
        ((16, 784), (1, 4), 256, (1, 256)),  # one row of 196 vectors
        ((7, 2, 14, 2), (1, 1, 1, 1), 32, (1, 1, 16, 2)),  # windows of a pool: none stays idle
        ((7, 2, 14, 2), (1, 1, 1, 1), 256, (4, 2, 16, 2)),
        ((100, 3), (1, 1), 8, (2, 4)),
        ((2, 2), (1, 1), 64, (2, 32)),  # more threads than elements
        ((5000,), (4,), 1, (1,)),
    ],
)
def test_threads_go_where_the_elements_are(sizes, vector, threads, wanted) -> None:
    found = spread(sizes, vector, threads)
    assert found == wanted
    assert product(found) == threads
    steps = [ceil_div(s, t * v) for s, t, v in zip(sizes, found, vector, strict=True)]
    if product(sizes) > threads * product(vector):
        assert product(steps) * threads * product(vector) < 2.5 * product(sizes)


def test_what_is_rather_kept_is_told_by_its_cost() -> None:
    dear = {op for op in OPS if is_expensive(op)}
    assert dear >= {"exp", "div", "sqrt", "pow", "silu", "portable_cos_turn", "atan2"}
    assert not dear & {"add", "where", "floordiv", "mod", "gather", "random_bits", "softmax"}
    assert not is_expensive("load")
