"""Operands of convolutions lie channels-last: what is copied, and what is not."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from picograd import Tensor
from picograd.dtype import bfloat16, float8_e4m3fn, float32
from picograd.graph import build
from picograd.graph.conv_forms import is_weight_gradient
from picograd.graph.gradient import gradient
from picograd.graph.node import Node, toposort
from picograd.graph.shape import ConvSpec
from picograd.schedule.loop import walk
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target

H100, A100 = cuda_target("sm_90a"), cuda_target("sm_80", 108)
SAME = ConvSpec((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))


def leaf(*shape: int) -> Node:
    return Tensor(np.zeros(shape, np.float32)).bfloat16().realize().node


def convolve(x: Node, weight: Node) -> Node:
    """(N, C, H, W) * (O, C, 3, 3), as users write it."""
    image = x.reshape((x.shape[0], 1, *x.shape[1:]))
    made = image.conv(weight.reshape((1, *weight.shape)), SAME)
    return made.reshape((x.shape[0], weight.shape[0], *x.shape[2:]))


def total(node: Node) -> Node:
    return node.reduce("sum", tuple(range(node.rank)))


def copies(plan) -> list[tuple[int, ...]]:
    """Shapes of the temporaries that `contiguous` made."""
    return [slot.shape for slot in plan.slots if slot.kind == "temporary" and slot.shape[-1] == 64]


def test_inputs_and_weights_are_copied_once_for_both_directions():
    x, weight = leaf(4, 64, 8, 8), leaf(64, 64, 3, 3)
    made = convolve(x, weight)
    both = gradient([(total(made * made), Tensor(1.0).bfloat16().realize().node)], [x, weight])
    plan = schedule([total(each) for each in both], H100)
    assert sorted(copies(plan)) == [(4, 8, 8, 64), (64, 3, 3, 64)]


def test_what_a_convolution_gives_is_not_copied():
    x, first, second = leaf(4, 64, 8, 8), leaf(64, 64, 3, 3), leaf(64, 64, 3, 3)
    hidden = convolve(x, first).binary("maximum", 0)
    plan = schedule([total(convolve(hidden, second))], H100)
    assert sorted(copies(plan)) == [(4, 8, 8, 64), (64, 3, 3, 64), (64, 3, 3, 64)]
    (stored,) = [
        slot for slot in plan.slots if slot.shape == (4, 64, 8, 8) and slot.kind != "input"
    ]
    assert stored.strides == (4096, 1, 512, 64)


@pytest.mark.parametrize("between", ["groups", "nearest", "shuffle"])
def test_channels_stay_last_where_dimensions_are_split_and_merged(between):
    x, first, second = leaf(4, 64, 6, 6), leaf(64, 64, 3, 3), leaf(64, 64, 3, 3)
    hidden = convolve(x, first)
    if between == "groups":
        rows = hidden.reshape((4, 8, 8, 36))
        mean = rows.reduce("sum", (2, 3), True).expand(rows.shape)
        hidden = (rows - mean).reshape(hidden.shape)
    elif between == "nearest":
        hidden = hidden.reshape((4, 64, 6, 1, 6, 1)).expand((4, 64, 6, 2, 6, 2))
        hidden = hidden.reshape((4, 64, 12, 12))
    else:
        hidden = hidden.reshape((4, 2, 32, 6, 6)).permute((0, 2, 1, 3, 4)).reshape(hidden.shape)
    hidden = hidden.binary("maximum", 0)
    plan = schedule([total(convolve(hidden, second))], H100)
    stored = [slot for slot in plan.slots if slot.kind == "temporary" and slot.size == hidden.size]
    for slot in stored:
        dimensions = zip(slot.strides, slot.shape, strict=True)
        assert prod(n for step, n in dimensions if step < 64) == 64, "channels are the nearest"
    assert stored


@pytest.mark.parametrize("images", [4, 64])
def test_channels_are_nearest_in_parts_of_a_lone_gradient(images):
    """Sums over windows are for several taps each only where channels are neighbours."""
    x, first, second = leaf(images, 64, 28, 28), leaf(64, 64, 3, 3), leaf(64, 1, 1, 7, 7)
    hidden = convolve(x, first).binary("maximum", 0)
    spec = ConvSpec((1, 1), ((3, 3), (3, 3)), (1, 1), (1, 1))
    lone = hidden.reshape((images, 64, 1, 28, 28)).conv(second, spec)
    made = total(lone * lone)
    (by_weight,) = gradient([(made, Tensor(1.0).bfloat16().realize().node)], [second])
    plan = schedule([total(by_weight)], H100)
    taps = [slot for slot in plan.slots if slot.shape[-2:] == (7, 7) or slot.shape[2:4] == (7, 7)]
    parts = [slot for slot in taps if slot.kind == "temporary"]
    assert parts
    for slot in parts:
        assert slot.shape[slot.strides.index(1)] == 64


def test_a_patch_that_is_larger_than_the_places_of_patches_is_a_kernel():
    x, weight = leaf(4, 1, 3, 224, 224), leaf(1, 64, 3, 16, 16)
    made = x.conv(weight, ConvSpec((16, 16), ((0, 0), (0, 0)), (1, 1), (1, 1)))
    (by_weight,) = gradient([(total(made), Tensor(1.0).bfloat16().realize().node)], [weight])
    convs = [node for node in toposort([by_weight]) if node.op == "conv"]
    assert not is_weight_gradient(made)
    assert [is_weight_gradient(node) for node in convs if node is not made] == [True]


def test_windows_that_overlap_are_not_copied():
    """A stem reads its packed image under windows of 4 x 16 channels, 16 apart."""
    x, weight = leaf(2, 1, 3, 16, 16), leaf(1, 8, 3, 7, 7)
    spec = ConvSpec((2, 2), ((3, 3), (3, 3)), (1, 1), (1, 1))
    plan = schedule([total(x.conv(weight, spec))], H100)
    assert [slot.shape for slot in plan.slots if len(slot.shape) == 4] == [(2, 11, 11, 16)]


def test_arrays_that_lie_channels_last_are_read_as_they_are():
    x, weight = leaf(4, 8, 8, 64), leaf(64, 3, 3, 64)
    order = (0, 3, 1, 2)
    plan = schedule([total(convolve(x.permute(order), weight.permute(order)))], H100)
    assert not copies(plan)


def test_gradients_of_weights_lie_as_their_weights_are_read():
    x, weight = leaf(4, 64, 8, 8), leaf(32, 64, 3, 3)
    made = convolve(x, weight)
    (found,) = gradient([(made, leaf(*made.shape))], [weight])
    plan = schedule([total(found)], H100)
    (kernel,) = [kernel for kernel in plan.kernels if kernel.hero == "conv"]
    assert kernel.parts[0].rows[-1].size == 64, "channels are the nearest axis of the result"


def plain(*shape: int) -> Node:
    return Tensor(np.zeros(shape, np.float32)).realize().node


@pytest.mark.parametrize("is_turned", [False, True])
def test_without_tensor_cores_images_stay_as_they_are_found(is_turned):
    """Pixels are side by side, which threads read, unless channels were in the first image."""
    x = plain(4, 8, 8, 64).permute((0, 3, 1, 2)) if is_turned else plain(4, 64, 8, 8)
    made = convolve(x, plain(32, 64, 3, 3)).binary("maximum", 0)
    far = convolve(made, plain(16, 32, 3, 3)).binary("maximum", 0)
    plan = schedule([total(convolve(far, plain(8, 16, 3, 3)))], H100)
    first, second, *_ = (slot for slot in plan.slots if slot.kind == "temporary")
    assert first.strides == ((2048, 1, 256, 32) if is_turned else (2048, 64, 8, 1))
    assert second.strides == ((1024, 1, 128, 16) if is_turned else (1024, 64, 8, 1))


def test_without_tensor_cores_channels_are_nearest_where_some_are_convolved_alone():
    hidden = convolve(plain(4, 64, 8, 8), plain(32, 64, 3, 3)).binary("maximum", 0)
    lone = hidden.reshape((4, 32, 1, 8, 8)).conv(plain(32, 1, 1, 3, 3), SAME)
    slots = schedule([total(lone)], H100).slots
    (kept,) = (each.strides for each in slots if each.shape == (4, 1, 32, 8, 8))
    assert kept == (2048, 32, 1, 256, 32)


def test_without_tensor_cores_gradients_of_weights_lie_as_weights_do():
    image, given = plain(4, 64, 8, 8), plain(4, 32, 8, 8)
    made = convolve(image, weight := plain(32, 64, 3, 3))
    (found,) = gradient([(made, given)], [weight])
    (kernel, *_) = schedule([total(found * found)], H100).kernels
    assert [axis.size for axis in kernel.parts[0].rows] == [32, 64, 3, 3]


def test_tf32_wants_what_is_summed_nearest():
    """(M, K) @ (K, N): the second operand is copied, and so is one whose rows are summed."""
    asked = replace(H100, tf32=True)
    a, b = plain(256, 512), plain(512, 384)
    product = a.contract(b, ((0, 1), (1, 2), (0, 2)))
    plan = schedule([product], asked)
    assert [slot.shape for slot in plan.slots if slot.kind == "temporary"] == [(384, 512)]
    assert len(schedule([product], H100).kernels) == 1


def test_weights_that_a_step_wrote_are_copied_as_others_are():
    """A second step reads them in both directions, and what it sums lies nearest."""
    asked = replace(H100, tf32=True)
    x, weight, bias = plain(4, 64, 8, 8), plain(64, 64, 3, 3), plain(4, 64, 8, 8)
    for _ in range(2):
        made = convolve(x.binary("mul", bias), weight)
        found, slope = gradient([(total(made * made), Tensor(1.0).realize().node)], [weight, bias])
        weight, bias = build.assign(weight, weight - found), build.assign(bias, bias - slope)
    plan = schedule([weight, bias], asked)
    heroes = [kernel for kernel in plan.kernels if kernel.hero == "conv"]
    products = [part.computes[0] for kernel in heroes for part in kernel.parts]
    forward = [each for each in products if each.axes[0].size == 4]  # both directions
    assert len(forward) == 4
    for compute in forward:
        loads = [expr.arg[1] for expr in walk(compute.body) if expr.op == "load"]
        near = compute.reduce[-1]
        assert len(loads) == 2 and all((near, 1) in index.terms for index in loads), compute


def test_tf32_copies_no_operand_that_meets_few_rows():
    asked = replace(H100, tf32=True)
    product = plain(16, 512).contract(plain(512, 384), ((0, 1), (1, 2), (0, 2)))
    assert len(schedule([product], asked).kernels) == 1


def test_other_targets_copy_nothing():
    plan = schedule([total(convolve(leaf(4, 64, 8, 8), leaf(64, 64, 3, 3)))], A100)
    assert not copies(plan)


def test_float8_wants_what_is_summed_nearest():
    """(M, K) @ (K, N): the second operand is copied, if it is of 8-bit floats."""
    for dtype, count in ((float8_e4m3fn, 1), (bfloat16, 0)):
        a, b = (Tensor(np.zeros((256, 256))).cast(dtype).realize().node for _ in range(2))
        wide = [each.cast(float32) for each in (a, b)]
        made = wide[0].contract(wide[1], ((0, 2), (2, 1), (0, 1)))
        plan = schedule([made], H100)
        assert sum(slot.kind == "temporary" for slot in plan.slots) == count


def test_on_a_cpu_channels_that_are_alone_lie_as_their_image_does():
    cpu = Target("llvm", "test", 64)
    x, mixed = leaf(2, 8, 20, 20), leaf(8, 8, 3, 3)
    weight = leaf(8, 1, 1, 3, 3)
    for image, nearest in (x, 20), (convolve(x, mixed), 8):
        alone = image.reshape((2, 8, 1, 20, 20)).conv(weight, SAME)
        kernels = schedule([alone.reduce("max", (0,))], cpu).kernels
        (part,) = [each.parts[0] for each in kernels if each.hero == "conv"][-1:]
        _, place = next(each.store for each in part.computes if each.store)
        assert min(place.terms, key=lambda term: term[1])[0].size == nearest


@pytest.mark.parametrize("shape", [(64,), (), (8, 8)])
def test_a_product_of_a_vector_that_is_shown_as_a_matrix_beside_a_convolution(shape):
    """What is flattened may have fewer axes than images."""
    x, weight = leaf(4, 64, 8, 8), leaf(64, 64, 3, 3)
    vector = leaf(*shape)
    rows = vector.reshape((1, 1) if not shape else (4, 16))
    product = build.matmul(rows, leaf(rows.shape[1], 8))
    plan = schedule([convolve(x, weight), product], H100)
    assert len(plan.outputs) == 2
