"""Arrays whose memory runs across rows: which are copied before a chain works on the rows."""

import numpy as np
import pytest
from plan_support import leaf

from picograd import Tensor
from picograd.graph.node import Node
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target

CPU = Target("llvm", "host", 64)


def centred(x: Node, axis: int) -> Node:
    """Subtract the greatest of each row."""
    most = x.reduce("max", (axis,))
    shape = tuple(1 if d == axis else size for d, size in enumerate(x.shape))
    return x - most.reshape(shape).expand(x.shape)


def kernels(root: Node, target: Target = CPU) -> list[str]:
    return [kernel.hero for kernel in schedule([root], target).kernels]


@pytest.mark.parametrize(
    ("order", "axis"), [((2, 1, 0), 1), ((2, 0, 1), 2), ((2, 0, 1), 1), ((0, 2, 1), 0)]
)
def test_memory_across_rows_is_copied_first(order: tuple[int, ...], axis: int) -> None:
    x = leaf(40, 32, 24)
    root = centred(x.permute(order), axis)
    assert kernels(root)[0] == "map" and len(kernels(root)) == 2
    assert len(kernels(root, cuda_target("sm_90a"))) == 1, "a GPU reads through its cache"
    values = np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    (found,) = interpret_plan(schedule([root], CPU), [values.ravel()])
    turned = values.transpose(order)
    assert np.array_equal(found.reshape(turned.shape), turned - turned.max(axis, keepdims=True))


@pytest.mark.parametrize(("order", "axis"), [((2, 1, 0), 0), ((0, 2, 1), 1), ((1, 2, 0), 2)])
def test_memory_along_rows_or_columns_is_read_where_it_is(
    order: tuple[int, ...], axis: int
) -> None:
    assert len(kernels(centred(leaf(40, 32, 24).permute(order), axis))) == 1


def test_few_elements_and_sums_alone_are_read_where_they_are() -> None:
    turned = leaf(40, 32, 24).permute((2, 1, 0))
    assert len(kernels(turned.reduce("sum", (1,)))) == 1, "it chooses the order of its rows"
    assert len(kernels(centred(leaf(20, 32, 24).permute((2, 1, 0)), 1))) == 1, "in the cache"
    assert len(kernels(centred(leaf(7, 500, 24).permute((2, 1, 0)), 1))) == 1, "no vectors"


def test_what_is_computed_from_it_is_followed() -> None:
    turned = leaf(40, 32, 24).permute((2, 1, 0))
    assert kernels(centred(turned * turned, 1))[0] == "map"
    other = leaf(24, 32, 40)
    assert (
        len(kernels(other - turned.reduce("max", (1,)).reshape((24, 1, 40)).expand(other.shape)))
        == 1
    )


def test_running_sums_read_a_copy() -> None:
    x = Tensor.rand(40, 32, 24).realize().permute(2, 1, 0)
    assert kernels(x.cumsum(1).node)[0] == "map"
