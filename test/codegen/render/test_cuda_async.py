"""The text of asynchronous instructions: one PTX instruction each, with no qualifier too many."""

from picograd.codegen.program import Instr, Role, Wgmma
from picograd.codegen.render import cuda_async
from picograd.dtype import bfloat16, float16, int32

SPEC = Wgmma(128, (bfloat16, bfloat16), 128, 64, 64, 2048, True, False)


def test_fences_and_arrivals_are_those_of_the_block():
    """Without `.shared::cta`, or with `.release`, they are barriers of the whole GPU."""
    text = cuda_async.HELPERS
    assert '"fence.proxy.async.shared::cta;"' in text and "fence.proxy.async;" not in text
    assert "mbarrier.arrive.shared::cta.b64 _" in text and "arrive.release" not in text


def test_a_product_names_its_registers_and_offsets_in_16_bytes():
    instr = Instr("wgmma", None, (0, 1, 2), SPEC)
    (line,) = cuda_async.STATEMENTS["wgmma"]("v", ["acc", "a", "b"], instr)
    assert line == "wgmma_bfloat16_n128_01<64>(acc, a + 4, b + 128);"
    text = cuda_async.helpers(instr)[-1]
    assert "m64n128k16.f32.bf16.bf16" in text and "p, 1, 1, 0, 1;" in text
    assert text.count('"+f"(d[r + ') == 64
    half = Wgmma(64, (float16, float16), 32, 0, 0, 0, True, True)
    assert "m64n64k16.f32.f16.f16" in cuda_async.wgmma_text(half)


def test_boxes_have_as_many_coordinates_as_the_array():
    three = Instr("copy_box", None, tuple(range(8)))
    assert "tensor.3d.shared::cluster.global" in cuda_async.helpers(three)[-1]
    two = Instr("store_box", None, tuple(range(5)))
    assert "tensor.2d.global.shared::cta.bulk_group" in cuda_async.helpers(two)[-1]
    (line,) = cuda_async.STATEMENTS["store_box"]("v", ["t0", "s", "p", "x", "y"], two)
    assert line == "store_box(t0, s + p, x, y);"


def test_copies_of_windows_have_offsets():
    copy = Instr("copy_box", None, tuple(range(11)), 2)
    text = cuda_async.helpers(copy)[-1]
    assert "tensor.4d.shared::cluster.global.im2col" in text and "{%7, %8}" in text
    args = ["t0", "s", "p", "b", "i", "c", "w", "h", "n", "x", "y"]
    (line,) = cuda_async.STATEMENTS["copy_box"]("v", args, copy)
    assert line == "copy_windows(t0, s + p, b + i, c, w, h, n, x, y);"


def test_roles_are_branches_of_whole_warpgroups():
    first = Instr("role", None, (), Role(0, 128, 1, 40))
    head, registers = cuda_async.STATEMENTS["role"]("v", [], first)
    assert head.startswith("if (const int group") and "group >= 0 && group < 1" in head
    assert "setmaxnreg.dec.sync.aligned.u32 40;" in registers
    second = Instr("role", None, (), Role(128, 128, 2, 232, True))
    head, registers = cuda_async.STATEMENTS["role"]("v", [], second)
    assert head.startswith("else if") and "group >= 1 && group < 3" in head
    assert "setmaxnreg.inc" in registers


def test_other_instructions_need_no_text():
    assert cuda_async.helpers(Instr("add", int32, (0, 1))) == ()
    assert cuda_async.VALUES["uniform"](["v3"], Instr("uniform", int32, (3,))).startswith("__shfl")
