"""Images under windows: values at all levels, resources and opcodes by NVRTC, what no map has."""

import re
from dataclasses import replace

import numpy as np
import pytest
from box_convolutions import (
    TWO,
    both_gradients,
    convolution,
    is_boxed,
    leaf,
    plan_of,
    products,
    run,
    spec_of,
)
from cuda_tools import H200, compile_cuda, disassemble, source_of

from picograd.code import TensorMap, Windows
from picograd.codegen.interpret_async import read_box
from picograd.codegen.templates import contract_tma
from picograd.codegen.windows import windows_of
from picograd.dtype import bfloat16, float32
from picograd.errors import InternalError
from picograd.graph import conv_forms
from picograd.graph.gradient import gradient
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, const

FORWARD = {
    "three by three": dict(x=(2, 64, 6, 6), weight=(16, 64, 3, 3), padding=1),
    "a stride and an odd size": dict(x=(2, 32, 7, 6), weight=(24, 32, 3, 3), padding=1, stride=2),
    "no padding, so no guards": dict(x=(3, 64, 6, 6), weight=(16, 64, 3, 3)),
    "one tap under a stride": dict(x=(3, 64, 6, 6), weight=(16, 64, 1, 1), stride=2),
    "taps with gaps": dict(x=(3, 64, 8, 8), weight=(16, 64, 3, 3), padding=2, gap=2),
    "gaps, a stride and no padding": dict(x=(2, 16, 9, 9), weight=(16, 16, 2, 2), gap=2, stride=3),
    "a kernel along one axis": dict(x=(2, 64, 6, 6), weight=(16, 64, 3, 1)),
    "one axis": dict(x=(3, 64, 20), weight=(16, 64, 3), padding=1),
    "three axes": dict(x=(2, 64, 4, 4, 4), weight=(16, 64, 3, 3, 3), padding=1),
    "more channels than a box": dict(x=(2, 136, 6, 6), weight=(24, 136, 3, 3), padding=1),
    "few channels": dict(x=(3, 3, 9, 9), weight=(16, 3, 5, 5), padding=2, stride=2),
    "few channels that overlap": dict(x=(3, 3, 9, 9), weight=(16, 3, 5, 5), padding=2),
    "one channel": dict(x=(3, 1, 9, 9), weight=(16, 1, 3, 3), padding=1),
    "one image": dict(x=(1, 64, 9, 9), weight=(64, 64, 3, 3), padding=1),
}
GRADIENTS = {
    "three by three": dict(x=(4, 64, 6, 6), weight=(16, 64, 3, 3), padding=1),
    "under a stride": dict(x=(4, 64, 8, 8), weight=(16, 64, 3, 3), padding=1, stride=2),
    "one tap under a stride": dict(x=(4, 64, 8, 8), weight=(16, 64, 1, 1), stride=2),
    "half a slab of channels": dict(x=(4, 32, 8, 8), weight=(24, 32, 3, 3), padding=1),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward(name):
    assert run(plan_of([convolution(**FORWARD[name])[2]])) == 1


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    assert run(plan_of(both_gradients(**GRADIENTS[name]))) == 2


def test_gradients_in_parts(monkeypatch):
    monkeypatch.setattr(conv_forms, "count_parts", lambda *_: 2)
    plan = plan_of(both_gradients((4, 64, 8, 8), (24, 64, 3, 3), padding=1)[1:])
    assert run(plan) == 1
    assert (64, 2, 24, 3, 3) in [slot.shape for slot in plan.slots]


def test_parts_of_products_end_amid_a_step(monkeypatch):
    """98 pixels of two images are a step of 64 and a half: what is beyond is of the next part."""
    monkeypatch.setattr(conv_forms, "count_parts", lambda *_: 2)
    plan = plan_of(both_gradients((4, 64, 7, 7), (24, 64, 1, 1))[1:])
    assert run(plan) == 1
    assert (64, 2, 24, 1, 1) in [slot.shape for slot in plan.slots]


@pytest.mark.parametrize("groups, channels, stride", [(2, 64, 1), (8, 16, 2)])
def test_groups(groups, channels, stride, monkeypatch):
    """Groups are channels of one place: those of whole slabs as they are, smaller ones together."""
    monkeypatch.setattr(conv_forms, "count_parts", lambda *_: 2 // stride)
    x = leaf(2, 8, 8, groups * channels).permute((0, 3, 1, 2))
    image = x.reshape((2, groups, channels, 8, 8))
    weight = leaf(groups, channels, channels, 3, 1, seed=1)
    spec = spec_of(2, padding=((1, 1), (0, 0)), stride=(stride, stride))
    made = image.conv(weight, spec)
    size = made.shape[-1]
    given = leaf(2, size, size, groups * channels, seed=2).permute((0, 3, 1, 2))
    given = given.reshape(made.shape)
    both = gradient([(made, given)], [image, weight])
    for root in (made, *both):
        assert run(plan_of([root])) == 1


def test_blocks_share_the_tiles_of_a_gradient(monkeypatch):
    """Three tiles for four blocks: each has steps in the midst of the images."""
    shared = [each for each in contract_tma.SCHEDULES if each.is_shared]
    monkeypatch.setattr(contract_tma, "SCHEDULES", tuple(shared))
    target = replace(TWO, multiprocessors=4)
    _, gradient = both_gradients((8, 64, 6, 6), (64, 64, 3, 3), padding=1)
    plan = plan_of([gradient], target)
    (tiles,) = products(plan, target)
    assert tiles.parts[0].steps[0].shares is not None
    assert run(plan, target) == 1


def test_the_gradient_of_the_weight_of_a_stem():
    _, gradient = both_gradients((3, 3, 9, 9), (16, 3, 5, 5), padding=2, stride=2)
    assert run(plan_of([gradient])) == 1


@pytest.mark.parametrize("stride", [1, 2])
def test_float32_as_tf32(stride):
    """Forward and the gradient of the input; whole numbers lose nothing."""
    asked = replace(TWO, tf32=True)
    options = dict(padding=1, stride=stride, dtype=float32)
    forward = convolution((2, 40, 8, 8), (24, 40, 3, 3), **options)[2]
    gradient, _ = both_gradients((2, 40, 8, 8), (24, 40, 3, 3), **options)
    assert run(plan_of([forward, gradient], asked), asked) == 2


def test_resources_and_opcodes(tmp_path):
    """No spill, no serialised product, no barrier of the whole GPU; copies of windows."""
    roots = [
        convolution((8, 64, 28, 28), (128, 64, 3, 3), padding=1)[2],
        *both_gradients((32, 128, 14, 14), (128, 128, 3, 3), padding=1),
    ]
    kernels = products(plan_of(roots, H200), H200)
    assert len(kernels) == 3
    for number, tiles in enumerate(kernels):
        assert is_boxed(tiles)
        cubin, log = compile_cuda(source_of(tiles)[0], "sm_90a")
        assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
        assert "serialized" not in log, log
        (tmp_path / str(number)).mkdir()
        sass = disassemble(cubin, tmp_path / str(number))
        for opcode in ("UTMALDG.4D.IM2COL", "HGMMA", "UTMASTG"):
            assert opcode in sass, opcode
        for opcode in ("MEMBAR.ALL.GPU", "LDL", "STL"):
            assert opcode not in sass, opcode


IMAGE = TensorMap(0, bfloat16, 0, (4, 5, 3), (4, 20), (4, 6), Windows((-1,), (3,), (2,)))


def test_windows_are_counted_on_over_images():
    """Three windows a row from -1 on, two apart; those of images that are not there are 0."""
    array = np.arange(60.0, dtype=np.float32)
    rows = read_box(array, IMAGE, [0, 1, 1], [1])[:, 0]
    np.testing.assert_array_equal(rows, [28, 36, 40, 48, 56, 0])
    rows = read_box(array, IMAGE, [0, -1, 0], [0])[:, 0]
    np.testing.assert_array_equal(rows, [0, 4, 12, 0, 24, 32])


@pytest.mark.parametrize("begin", [0, 5, -3])
def test_windows_begin_at_their_places(begin):
    with pytest.raises(InternalError, match="no window begins"):
        read_box(np.zeros(60, np.float32), IMAGE, [0, begin, 0], [0])


def image_load(index):
    return Expr("load", (), (0, index), bfloat16)


def guarded(load, *conditions):
    return Expr("guard", (load, const(0, bfloat16)), conditions, bfloat16)


def test_what_is_an_image():
    n, p, r, c = Axis("n", 3), Axis("p", 8), Axis("r", 3), Axis("c", 16)
    place = axis_index(p) + axis_index(r) + -1
    index = axis_index(n) * 128 + place * 16 + axis_index(c)
    good = guarded(image_load(index), (place, 0, 7))
    seen = windows_of(good, (n, p), (r, c), ())
    assert seen.windows == Windows((-1,), (8,), (1,)) and seen.sizes == (16, 8, 3)
    assert seen.offset == 0 and seen.strides == (16, 128) and not seen.has_batch
    _, offsets = seen.place(axis_index(n) * 8, {r: axis_index(r), c: axis_index(c)})
    assert seen.reaches(offsets) and offsets == (axis_index(r),)
    assert windows_of(good, (p, n), (r, c), ()) is None, "windows in another order"
    assert windows_of(good, (n, p), (c, r), ()) is None, "channels are not the nearest"
    far = guarded(image_load(index), (axis_index(p) * 2 + axis_index(r), 0, 7))
    assert windows_of(far, (n, p), (r, c), ()) is None, "a test of another place"
    half = guarded(image_load(index), (place // 2, 0, 3))
    assert windows_of(half, (n, p), (r, c), ()) is None, "a dilated image"
    doubled = guarded(image_load(index), (place, 0, 7), (axis_index(c), 0, 7))
    assert windows_of(doubled, (n, p), (r, c), ()).sizes == (8, 8, 3), "channels that are not there"


def test_windows_too_far_for_a_map():
    n, p, q = Axis("n", 2), Axis("p", 4), Axis("q", 4)
    r, c = Axis("r", 2), Axis("c", 16)
    place = axis_index(p) + axis_index(r) * 300
    index = axis_index(n) * (4 * 304 * 16) + place * 64 + axis_index(q) * 16 + axis_index(c)
    seen = windows_of(image_load(index), (n, p, q), (r, c), ())
    _, offsets = seen.place(axis_index(n), {r: axis_index(r), c: axis_index(c)})
    assert not seen.reaches(offsets), "offsets of 4-D maps are below 256"


def test_persistent_blocks_are_as_many_as_processors():
    (tiles,) = products(plan_of([convolution((8, 64, 8, 8), (128, 64, 3, 3), padding=1)[2]]))
    assert tiles.parts[0].grid[0].size == TWO.multiprocessors
