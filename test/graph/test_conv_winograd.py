"""Convolutions of 3 x 3 taps by transformed patches: the same values, with fewer products."""

from dataclasses import replace

import numpy as np
import pytest
from conv_support import leaf, plain_spec, same_value

from picograd import Tensor
from picograd.dtype import float32
from picograd.graph import build, conv_winograd
from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

H100 = cuda_target("sm_90a")
PADDING = ((1, 1), (1, 1)), ((0, 0), (0, 0)), ((2, 2), (2, 2)), ((1, 0), (0, 2))


def numbers(*shape: int, seed: int = 0) -> Node:
    return leaf(*shape, seed=seed).cast(float32)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv_winograd, "LAUNCHED", -1e9)


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("sizes", [(6, 8), (5, 7)])
def test_results_are_those_of_the_convolution(padding, sizes):
    x, weight = numbers(2, 1, 64, *sizes), numbers(1, 64, 64, 3, 3, seed=1)
    assert not same_value(x.conv(weight, plain_spec(2, padding=padding)), H100, 1e-10)


@pytest.mark.parametrize("padding", PADDING[:3])
@pytest.mark.parametrize("sizes", [(6, 8), (5, 7)])
def test_gradients_of_weights(padding, sizes):
    low = padding[0][0]
    x = numbers(64, 1, 2, *sizes)
    given = numbers(1, 64, 2, *(n + 2 * low - 2 for n in sizes), seed=1)
    assert not same_value(x.conv(given, plain_spec(2, padding=padding)), H100, 1e-10)


def test_errors_are_not_far_from_those_of_sums():
    """Of the largest value: 1/2 and 2 as points give more."""
    random = np.random.default_rng(0)
    shapes = (1, 1, 64, 16, 16), (1, 8, 64, 3, 3)
    x, weight = (Tensor(random.normal(size=shape).astype(np.float32)) for shape in shapes)
    node = x.node.conv(weight.node, plain_spec(2, padding=PADDING[0]))
    (made,) = expand_composites([node], target=H100)
    assert not [each for each in toposort([made]) if each.op == "conv"]
    (want,), (found,) = interpret([node], True), interpret([made])
    assert np.abs(found - want).max() < 2e-6 * np.abs(want).max()


def test_what_takes_longer_so_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = numbers(2, 1, 64, 6, 8), numbers(1, 64, 64, 3, 3, seed=1)
    spec = plain_spec(2, padding=PADDING[0])
    for node, target in (
        (x.conv(weight, plain_spec(2, padding=PADDING[0], stride=(2, 2))), H100),
        (x.conv(weight, spec), replace(H100, tf32=True)),
        (numbers(2, 1, 64, 6, 8).conv(numbers(1, 64, 64, 5, 5), spec), H100),
    ):
        assert same_value(node, target)
    monkeypatch.undo()
    assert same_value(x.conv(weight, spec), H100)


def test_no_patches_are_kept_from_the_way_forth():
    """What is made of the image for the gradient runs after the product of the way forth."""
    x, weight = numbers(2, 1, 64, 8, 8), numbers(1, 64, 64, 3, 3, seed=1)
    made = x.conv(weight, plain_spec(2, padding=PADDING[0]))
    columns, rows = (each.permute((2, 1, 0, 3, 4)) for each in (x, made))
    rows = rows.permute((1, 0, 2, 3, 4))
    gradient = columns.conv(rows, plain_spec(2, padding=PADDING[0]))
    assert gradient.shape == (64, 1, 64, 3, 3)
    steps = schedule([made, gradient], H100).steps
    maps = [len(step.slots) for step in steps if step.kernel.hero == "map"]
    made_of = [count for count in maps if count > 36]
    assert made_of == 2 * [2 * (1 + 36)], "of image and weight, and of image and gradient"


@pytest.mark.parametrize(("activation", "kernels"), [("relu", 3), ("gelu", 4)])
def test_light_values_are_computed_where_they_are_transformed(activation, kernels):
    """A norm and its maximum with 0, say: what is dear is stored, as patches read it often."""
    image, weight = numbers(4, 1, 64, 8, 8), numbers(1, 64, 64, 3, 3, seed=1)
    value = getattr(build, activation)(image * numbers(1, 1, 64, 1, 1).expand(image.shape))
    plan = schedule([value.conv(weight, plain_spec(2, padding=PADDING[0]))], H100)
    assert len(plan.kernels) == kernels, plan.reasons


@pytest.mark.parametrize("size", [4, 8])
def test_sums_read_an_image_and_not_what_it_is_made_of(size: int) -> None:
    """Images of one patch are stored in rows: a sum would put them together, of 16 arrays."""
    x, weight = numbers(4, 1, 64, size, size), numbers(1, 64, 64, 3, 3, seed=1)
    made = x.conv(weight, plain_spec(2, padding=PADDING[0]))
    plan = schedule([made.reduce("sum", (0, 3, 4)), made], H100)
    read = [each.slots for each in plan.kernels if each.hero.startswith("reduce")]
    assert read and all(len(slots) <= 6 for slots in read)


@pytest.mark.parametrize(
    ("images", "channels", "size", "is_direct"),
    [
        (8, 512, 4, True), (32, 512, 4, False), (8, 512, 7, False), (8, 256, 7, True),
        (4, 256, 14, False), (8, 128, 14, True), (32, 128, 28, False), (32, 64, 56, False),
    ],
)  # fmt: skip
def test_the_estimate_takes_what_was_faster(
    images: int, channels: int, size: int, is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an H200 (docs/records/0014)."""
    monkeypatch.undo()
    places = images, size, size
    for more in (2, 0):
        assert conv_winograd.is_faster((channels, channels), places, more, H100) != is_direct
