"""Operands whose rows begin between lines of the cache: which are copied, and what comes out."""

from dataclasses import replace

import numpy as np
import pytest
from plan_support import leaf as float_leaf

from picograd import Tensor
from picograd.codegen.pipeline import generate
from picograd.dtype import bfloat16, float8_e4m3fn, int8
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule import repack as subject
from picograd.schedule.cost import RowState
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.repack import layout_of
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

H100, A100 = cuda_target("sm_90a"), cuda_target("sm_80", 108)
TF32 = replace(H100, tf32=True)
ROLES = "own", "summed"


def leaf(*shape: int) -> Node:
    return Node("buffer", (), Tensor.zeros(1).realize().node.arg, shape, bfloat16, "cuda:0")


def copies(roots, target=H100) -> list[tuple[int, ...]]:
    """Shapes of the temporaries of a plan."""
    plan = schedule(roots, target)
    return sorted(slot.shape for slot in plan.slots if slot.kind == "temporary")


def product(a: Node, b: Node) -> Node:
    return a.contract(b, ((0, 2), (2, 1), (0, 1)))


def test_rows_that_no_box_can_have_are_copied():
    a, b = leaf(4095, 4097), leaf(4097, 4093)
    assert copies([product(a, b)]) == [(4095, 4160), (4160, 4096)]
    assert copies([product(a, leaf(4093, 4097).permute((1, 0)))]) == [(4093, 4160), (4095, 4160)]
    assert copies([product(leaf(4096, 4097), leaf(4097, 4096))]) == [(4096, 4160)]


def test_nothing_is_copied_where_that_takes_longer():
    assert not copies([product(leaf(4096, 4096), leaf(4096, 4096))]), "rows are lines"
    assert not copies([product(leaf(1000, 1000), leaf(1000, 1000))]), "boxes are brought soon"
    assert not copies([product(leaf(65, 63), leaf(63, 65))]), "it is soon done"
    assert not copies([product(leaf(8, 4097), leaf(4097, 4093))]), "boxes would be empty"
    assert not copies([product(leaf(4095, 4097), leaf(4097, 4093))], A100), "it has no boxes"


def test_zeros_at_the_end_of_rows_are_multiplied():
    """Boxes of rows that end amid a chunk are brought later; both operands end in zeros."""
    a, b = leaf(4095, 4097), leaf(4093, 4097).permute((1, 0))
    kernel = schedule([product(a, b)], H100).kernels[-1]
    assert {axis.size for axis in kernel.parts[0].computes[0].reduce} == {4160}
    kernel = schedule([product(leaf(4096, 4097), leaf(4097, 4096))], H100).kernels[-1]
    assert {axis.size for axis in kernel.parts[0].computes[0].reduce} == {4097}, "one is no copy"


def test_products_share_a_copy():
    x, w, g = leaf(4096, 4097), leaf(4096, 4097), leaf(4096, 4096)
    made = product(x, w.permute((1, 0)))
    both = gradient([(made, g)], [x, w])
    assert copies([made, *both]) == [(4096, 4160), (4096, 4160)]


def test_a_copy_that_ends_in_fewer_zeros_is_multiplied_as_it_is():
    """Products before have a copy with no zeros along K, which this one would have multiplied."""
    a, other, b = leaf(4097, 4095), leaf(4097, 4093), leaf(4093, 4097)
    first = a.contract(other, ((2, 0), (2, 1), (0, 1)))
    second = a.contract(b, ((2, 0), (1, 2), (0, 1)))
    (alone,) = schedule([second], H100).kernels[-1:]
    assert {axis.size for axis in alone.parts[0].computes[0].reduce} == {4160}
    kernels = [each for each in schedule([first, second], H100).kernels if each.hero == "contract"]
    sizes = [axis.size for each in kernels for axis in each.parts[0].computes[0].reduce]
    assert sizes == [4097, 4097]


def test_what_an_operand_is_made_of_is_fused_into_its_copy():
    a = leaf(4096, 4097).binary("maximum", 0.0)
    plan = schedule([product(a, leaf(4097, 4096))], H100)
    assert [kernel.hero for kernel in plan.kernels] == ["map", "contract"]


def test_what_lies_as_a_convolution_left_it_is_read_in_that_order():
    """Places of patches are mixed: rows of the weight begin between chunks of a line."""
    spec = ConvSpec((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))
    patches = leaf(128, 1, 256, 14, 14).conv(leaf(1, 512, 256, 1, 1), spec)
    rows = patches.reshape((128, 512, 196)).binary("maximum", 0.0)
    mixed = rows.contract(leaf(256, 196), ((0, 1, 3), (2, 3), (0, 1, 2)))
    assert (256, 256) in copies([mixed])


PLAIN = ConvSpec((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))


def image(channels: int, size: int = 28) -> Node:
    """An image that a convolution left channels-last."""
    made = leaf(128, 1, 64, size, size).conv(leaf(1, channels, 64, 1, 1), PLAIN).unary("neg")
    return made.reshape((128, 1, channels, size, size))


def dealt(x: Node) -> Node:
    """The second half of the channels of two groups, dealt in turn."""
    halves = x.reshape((128, 2, x.shape[2] // 2, 784)).permute((0, 2, 1, 3)).reshape(x.shape)
    ends = [(0, n, 1) for n in x.shape]
    ends[2] = x.shape[2] // 2, x.shape[2], 1
    return halves.slice(tuple(ends))


@pytest.mark.parametrize(
    "x, wide, count_copied",
    [(image(116), 120, 2), (dealt(image(256)), 128, 1)],  # the gradient of 116 channels, too
    ids=["116", "dealt"],
)
def test_channels_that_no_box_can_have_are_copied_for_all_convolutions(x, wide, count_copied):
    """Rows between chunks, and channels dealt in turn; the weight's gradient reads the same."""
    count = x.shape[2]
    weight = leaf(1, count, count, 1, 1)
    out = x.conv(weight, PLAIN)
    made = gradient([(out, out.unary("neg"))], [weight])
    plan = schedule([out, made[0]], H100)
    shapes = [slot.shape for slot in plan.slots if slot.kind == "temporary"]
    assert sum((shape[0], shape[-1]) == (128, wide) for shape in shapes) == count_copied
    for kernel in plan.kernels:
        if kernel.hero == "conv":
            assert len(generate(kernel, H100).tensors) >= 2, "both operands come in boxes"


def test_whoever_reads_channels_that_are_dealt_reads_their_copy():
    x = dealt(image(256))
    plan = schedule([x.conv(leaf(1, 128, 128, 1, 1), PLAIN), x.unary("sin")], H100)
    (source,) = [n for n, slot in enumerate(plan.slots) if slot.shape == (128, 1, 256, 28, 28)]
    assert sum(source in step.slots for step in plan.steps) == 2, "a convolution, and the copy"


def test_channels_of_whole_chunks_and_little_work_stay_as_they_are():
    for x, channels, size in ((image(120), 120, 28), (image(116, 4), 116, 4)):
        found = copies([x.conv(leaf(1, channels, channels, 1, 1), PLAIN)])
        assert found == sorted([(128, 1, size, size, 64), (128, 1, channels, size, size)])


def test_scores_are_left_to_kernels_that_stream_over_them():
    q, k, v = (leaf(64, 1023, 256) for _ in range(3))
    scores = q.contract(k, ((0, 1, 3), (0, 2, 3), (0, 1, 2))).cast(float_leaf(1).dtype)
    weights = scores.unary("exp").cast(bfloat16)
    output = weights.contract(v, ((0, 1, 2), (0, 2, 3), (0, 1, 3)))
    assert all(shape[-1] != 1024 for shape in copies([output]))


def test_tf32_is_copied_along_k():
    a, b = (Node("buffer", (), leaf(1).arg, (2047, 2047), float_leaf(1).dtype, "cuda:0"),) * 2
    assert copies([product(a, b)], TF32) == [(2047, 2048), (2047, 2048)]
    assert not copies([product(a, b)])


def test_float8_is_copied_along_k():
    shapes = (4096, 4097), (4097, 4096)
    a, b = (Node("buffer", (), leaf(1).arg, shape, float8_e4m3fn, "cuda:0") for shape in shapes)
    wide = [each.cast(float_leaf(1).dtype) for each in (a, b)]
    assert copies([product(*wide)]) == [(4096, 4224), (4096, 4224)]


def test_eight_bits_are_converted_before_many_rows_are_multiplied():
    """Boxes bring what is multiplied as it lies: without them a product takes far longer."""
    a, dtype = leaf(2048, 4096), leaf(1).dtype
    weight = Node("buffer", (), leaf(1).arg, (4096, 1024), int8, "cuda:0")
    assert copies([product(a, weight.cast(dtype))]) == [(4096, 1024)]
    assert copies([product(a, weight.permute((1, 0)).reshape((4096, 1024)).cast(dtype))])
    assert not copies([product(leaf(8, 4096), weight.cast(dtype))]), "bytes are read once"


@pytest.mark.parametrize(
    "view, order, near, state",
    [
        (lambda: leaf(8, 64), (0, 1), 1, RowState.LINES),
        (lambda: leaf(8, 48), (0, 1), 1, RowState.LINES),
        (lambda: leaf(8, 72), (0, 1), 1, RowState.CHUNKS),
        (lambda: leaf(8, 65), (0, 1), 1, RowState.NONE),
        (lambda: leaf(65, 8).permute((1, 0)), (1, 0), 1, RowState.CHUNKS),
        (lambda: leaf(8, 128).slice(((0, 8, 1), (3, 67, 1))), (0, 1), 1, RowState.NONE),
        (lambda: leaf(9, 128).slice(((1, 9, 1), (64, 128, 1))), (0, 1), 1, RowState.LINES),
    ],
)
def test_where_rows_begin(view, order, near, state):
    found = layout_of(view(), ROLES)
    assert found == subject.Layout(order, near, state)


def test_what_has_no_rows_is_left_alone():
    assert layout_of(leaf(8, 128).slice(((0, 8, 1), (0, 128, 2))), ROLES) is None
    assert layout_of(leaf(8, 1).expand((8, 64)), ROLES) is None
    assert layout_of(leaf(8, 64).flip((1,)), ROLES) is None


def test_dimensions_of_one_role_are_one_row():
    found = layout_of(leaf(8, 12, 16), ("own", "summed", "summed"))
    assert found == subject.Layout((0, 1, 2), 2, RowState.LINES)


@pytest.mark.parametrize("is_turned", [False, True])
def test_values(is_turned, monkeypatch):
    monkeypatch.setattr(subject, "best_copies", lambda *given: (True, True))
    a = Tensor(np.arange(17 * 21).reshape(17, 21) % 5.0).bfloat16().realize().node
    b = Tensor(np.arange(21 * 19).reshape(21, 19) % 7.0).bfloat16().realize().node
    first = Tensor.from_node(a).float().numpy()
    second = Tensor.from_node(b).float().numpy()
    root = product(a, b)
    if is_turned:
        root = b.permute((1, 0)).contract(a.permute((1, 0)), ((0, 2), (2, 1), (1, 0)))
    plan = schedule([root], H100)
    assert len([slot for slot in plan.slots if slot.kind == "temporary"]) == 2
    given = {id(a): first, id(b): second}
    (found,) = interpret_plan(plan, [given[id(node)].reshape(-1) for node in plan.inputs])
    np.testing.assert_array_equal(found, (first @ second).astype(np.float32))


def test_values_of_convolutions(monkeypatch):
    """What is copied has zeros behind its channels; shapes and values stay as they were."""
    monkeypatch.setattr(subject, "saves_boxes", lambda *given: True)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-2, 3, shape) for shape in ((2, 1, 16, 3, 5), (1, 36, 16, 1, 1))]
    arrays.append(rng.integers(-2, 3, (1, 20, 18, 1, 1)))
    x, first, second = (Tensor(a.astype(np.float32)).bfloat16().realize().node for a in arrays)
    wide = x.conv(first, PLAIN)
    dealt = wide.reshape((2, 2, 18, 15)).permute((0, 2, 1, 3)).reshape(wide.shape)
    half = dealt.slice(((0, 2, 1), (0, 1, 1), (18, 36, 1), (0, 3, 1), (0, 5, 1)))
    plan = schedule([half.conv(second, PLAIN)], H100)
    assert (2, 1, 3, 5, 24) in [slot.shape for slot in plan.slots]
    given = {id(node): a for node, a in zip((x, first, second), arrays, strict=True)}
    (found,) = interpret_plan(plan, [given[id(n)].reshape(-1).astype("f4") for n in plan.inputs])
    made = np.einsum("nchw,oc->nohw", arrays[0][:, 0], arrays[1][0, :, :, 0, 0])
    made = made.reshape(2, 2, 18, 15).swapaxes(1, 2).reshape(2, 36, 15)[:, 18:]
    wanted = np.einsum("ncp,oc->nop", made, arrays[2][0, :, :, 0, 0])
    np.testing.assert_allclose(found.reshape(-1), wanted.reshape(-1), rtol=1e-2)
