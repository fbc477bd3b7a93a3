"""The CUDA contraction template: numbers on the host shim, resources and opcodes by NVRTC."""

import dataclasses
import re

import numpy as np
import pytest
from contractions import conv, conv_weight_gradient
from cuda_tools import (
    compile_cuda,
    compile_host,
    disassemble,
    from_raw,
    matmul_kernel,
    run_host,
    source_of,
    to_raw,
)
from structured import moved_part

from picograd.codegen.templates import contract_cuda
from picograd.codegen.tensor_core import MmaSchedule, SimtSchedule, WgmmaSchedule
from picograd.codegen.tensor_core_tf32 import Float64Schedule, Tf32Schedule
from picograd.dtype import bfloat16, bool_, float16, float32, float64, int8, int32, int64
from picograd.schedule.index import Dynamic, atom_index, axis_index
from picograd.schedule.loop import Compute, Expr, rewrite
from picograd.target import cuda_target

H200 = cuda_target("sm_90a")
A100 = cuda_target("sm_80", 108, 163 * 1024)
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-6, "float64": 1e-14}

ORDERS = [
    dict(m=72, n=80, k=40, dtype=dtype, a=a, b=b, out=out)
    for dtype in (float32, bfloat16)
    for a in ("mk", "km")
    for b in ("kn", "nk")
    for out in ("mn", "nm")
]
ODD = [
    dict(m=33, n=45, k=67, dtype=dtype)
    for dtype in (float32, bfloat16, float16, float64, int32, int64, int8, bool_)
]
OTHERS = [
    dict(m=33, n=46, k=67, dtype=float32, batch=3, epilogue="bias_relu"),
    dict(m=34, n=46, k=64, dtype=bfloat16, batch=3, epilogue="bias_relu"),
    dict(m=64, n=64, k=2048, dtype=float32),  # split over blocks
    dict(m=70, n=50, k=2100, dtype=float64, a="km"),  # and all blocks add
    dict(m=60, n=90, k=1300, dtype=float32, a="km"),  # a few rows each
    dict(m=512, n=10, k=4200, dtype=float32),
    *(
        dict(m=m, n=n, k=4200, dtype=float32, b=b)
        for m, n in ((12, 70), (70, 12))
        for b in ("kn", "nk")
    ),
    *(
        dict(m=m, n=n, k=70, dtype=float32, b=b)
        for m, n in ((30, 200), (200, 30))
        for b in ("kn", "nk")
    ),
    dict(m=64, n=64, k=2048, dtype=bfloat16),
    dict(m=9, n=10, k=4400, dtype=bfloat16, a="km"),  # of tensor cores, and all blocks add
    dict(m=130, n=136, k=72, dtype=bfloat16, out_dtype=float32),
    dict(m=1, n=1, k=1, dtype=float32),
    dict(m=1, n=200, k=5, dtype=bfloat16),
]


def numbers(shape, dtype, generator):
    if dtype is bool_:
        return generator.random(shape) < 0.2
    if dtype.is_integer:
        return generator.integers(-1, 2, shape)
    return generator.standard_normal(shape)


def expected_of(case, arrays):
    a, b = (x.astype(np.float64) for x in arrays[:2])
    if case.get("a", "mk") == "km":
        a = a.transpose(0, 2, 1)
    if case.get("b", "kn") == "nk":
        b = b.transpose(0, 2, 1)
    result = a @ b
    if case.get("epilogue"):
        result = np.maximum(result + arrays[2], 0)
    if case["dtype"] is bool_:
        result = (result > 0).astype(np.float64)
    return result.transpose(0, 2, 1) if case.get("out", "mn") == "nm" else result


def uses_wgmma(schedule):
    return isinstance(schedule, WgmmaSchedule)


def uses_no_wgmma(schedule):
    return isinstance(schedule, MmaSchedule | SimtSchedule)


def uses_no_boxes(schedule):
    return uses_wgmma(schedule) or uses_no_wgmma(schedule)


def uses_block(kind, m, n):
    return lambda schedule: isinstance(schedule, kind) and schedule.block[:2] == (m, n)


def is_half(dtype):
    return dtype in (float16, bfloat16)


# One processor: K is not split, so a block runs through its ring of stages several times.
ONE = cuda_target("sm_90a", 1)
RING = [
    (dict(m=65, n=136, k=600, dtype=bfloat16, a=a, b=b), uses_block(*block))
    for a, b in (("mk", "kn"), ("km", "nk"))
    for block in ((WgmmaSchedule, 64, 128), (WgmmaSchedule, 128, 256), (MmaSchedule, 64, 64))
]
RING += [(dict(m=25, n=32, k=1030, dtype=float32, a="km"), uses_no_wgmma)]
RING += [(dict(m=65, n=72, k=200, dtype=float32, b=b), uses_no_wgmma) for b in ("kn", "nk")]
ANY = [(case, uses_no_wgmma, H200) for case in ORDERS + ODD + OTHERS]
HALVES = [(case, uses_wgmma, H200) for case in ORDERS + ODD + OTHERS if is_half(case["dtype"])]
GROUPS = {"any": ANY, "wgmma": HALVES, "ring": [(*pair, ONE) for pair in RING]}


def ended(kernel, count):
    """Let rows, columns and depths of a product end at the first, second and third scalar."""
    (part,) = kernel.parts
    hero, *rest = part.computes
    axes = (*hero.axes[1:], *hero.reduce)
    ends = []
    for number, axis in enumerate(axes):
        size = atom_index(Dynamic(Expr("scalar", (), number, int64), 0, axis.size))
        index = axis_index(axis) - size
        ends.append((index, index.lo, -1))
    zero = Expr("const", (), 0, hero.body.dtype)
    body = Expr("guard", (hero.body, zero), (ends[2],), hero.body.dtype)
    computes = (dataclasses.replace(hero, body=body), *rest)
    part = dataclasses.replace(part, computes=computes, ends=tuple(ends[:2]))
    name = f"{kernel.name}_ended{count}"
    return dataclasses.replace(kernel, name=name, parts=(part,), scalars=(int64,) * 3)


# schedule, target, sizes
ENDED = [
    (uses_no_wgmma, H200, (70, 60, 130), dict(dtype=float32)),
    (uses_wgmma, ONE, (3, 100, 100), dict(dtype=bfloat16)),
    (uses_block(MmaSchedule, 64, 64), ONE, (65, 64, 256), dict(dtype=bfloat16, a="km", b="nk")),
]


def test_products_stop_at_the_size():
    """What lies beyond the size is NaN: it is multiplied by nothing, and need not be computed."""
    built = []
    for number, (select, target, _, case) in enumerate(ENDED):
        kernel = ended(matmul_kernel(128, 128, 256, **case), number)
        built.append(contract_cuda.build(kernel, target, select))
    library = compile_host(built)
    generator = np.random.default_rng(0)
    for (_, _, sizes, case), tiles in zip(ENDED, built, strict=True):
        m, n, k = sizes
        left, right = np.full((1, 128, 256), np.nan), np.full((1, 256, 128), np.nan)
        left[:, :, :k] = generator.standard_normal((1, 128, k))
        right[:, :k] = generator.standard_normal((1, k, 128))
        left[:, m:], right[:, :, n:] = np.nan, np.nan
        dtype = case["dtype"]
        left, right = (from_raw(to_raw(x, dtype), dtype) for x in (left, right))
        wanted = (left[:, :, :k].astype(np.float64) @ right[:, :k])[:, :m, :n]
        a = left.transpose(0, 2, 1) if case.get("a") == "km" else left
        b = right.transpose(0, 2, 1) if case.get("b") == "nk" else right
        found = run_host(library, tiles, {0: a, 1: b}, sizes)[2].reshape(1, 128, 128)
        part = found[:, :m, :n].astype(np.float64)
        limit = TOLERANCE[dtype.name] * (1 + abs(wanted).max())
        assert abs(part - wanted).max() < limit


TOGETHER = [
    [dict(m=64, n=64, k=2048, dtype=float32), dict(m=33, n=45, k=67, dtype=float32, a="km")],
    [dict(m=70, n=33, k=40, dtype=bfloat16), dict(m=64, n=64, k=2048, dtype=bfloat16)],
]


def test_products_beside_one_another():
    """Parts of one grid, one of them with K split over blocks."""
    built, cases = [], TOGETHER
    for number, (first, second) in enumerate(cases):
        one, other = (matmul_kernel(**case) for case in (first, second))
        parts = (*one.parts, *(moved_part(part, len(one.slots)) for part in other.parts))
        name, slots = f"together{number}", (*one.slots, *other.slots)
        kernel = dataclasses.replace(one, name=name, slots=slots, parts=parts)
        built.append(contract_cuda.build(kernel, H200))
        assert any(part.workspaces for part in built[-1].parts)
    library = compile_host(built)
    generator = np.random.default_rng(0)
    for pair, tiles in zip(cases, built, strict=True):
        arrays = [
            from_raw(to_raw(generator.standard_normal(shape), case["dtype"]), case["dtype"])
            for case in pair
            for shape in (tuple(case[x] for x in case.get("a", "mk")), (case["k"], case["n"]))
        ]
        given = dict(zip((0, 1, 3, 4), arrays, strict=True))
        found = run_host(library, tiles, given)
        for slot, case, a, b in zip((2, 5), pair, arrays[::2], arrays[1::2], strict=True):
            wanted = expected_of(case, (a[None], b[None]))[0]
            limit = TOLERANCE[case["dtype"].name] * (1 + abs(wanted).max())
            assert abs(found[slot].reshape(wanted.shape) - wanted).max() < limit


@pytest.mark.parametrize("group", GROUPS)
def test_matrix_products(group):
    cases = GROUPS[group]
    built = []
    for number, (case, select, target) in enumerate(cases):
        kernel = matmul_kernel(**case)
        kernel = dataclasses.replace(kernel, name=f"{kernel.name}_{number}")
        built.append(contract_cuda.build(kernel, target, select))
    library = compile_host(built)
    generator = np.random.default_rng(0)
    for (case, _, _), tile_kernel in zip(cases, built, strict=True):
        check_product(library, case, tile_kernel, generator)


def uses_tf32(schedule):
    return isinstance(schedule, Tf32Schedule)


def test_tf32_of_what_is_no_boxes():
    """Each factor is rounded to 11 bits; the sum is of float32."""
    cases = [case for case in (*ORDERS, *ODD, *OTHERS) if case["dtype"] is float32]
    cases += [dict(m=65, n=72, k=200, dtype=float32, b=b) for b in ("kn", "nk")]
    cases += [dict(m=130, n=136, k=72, dtype=float32, a="km")]
    built = []
    for number, case in enumerate(cases):
        kernel = matmul_kernel(**case)
        kernel = dataclasses.replace(kernel, name=f"{kernel.name}_{number}")
        target = cuda_target("sm_90a", 1 if case["k"] == 200 else 132)
        target = dataclasses.replace(target, tf32=True)
        built.append(contract_cuda.build(kernel, target, uses_tf32))
    library = compile_host(built)
    generator = np.random.default_rng(0)
    for case, tile_kernel in zip(cases, built, strict=True):
        check_product(library, case, tile_kernel, generator, 1e-3)


def uses_float64(schedule):
    return isinstance(schedule, Float64Schedule)


def test_float64_on_tensor_cores(tmp_path):
    """Also of columns and rows that end within a tile, either way in memory, and K in parts."""
    cases = [
        dict(m=65, n=72, k=200, dtype=float64),
        dict(m=130, n=136, k=72, dtype=float64, a="km"),
        dict(m=70, n=67, k=33, dtype=float64, b="nk", out="nm"),
        dict(m=40, n=50, k=600, dtype=float64, a="km", b="nk", batch=2),
        dict(m=128, n=128, k=1024, dtype=float64),
    ]
    built = []
    for number, case in enumerate(cases):
        kernel = dataclasses.replace(matmul_kernel(**case), name=f"double_{number}")
        built.append(contract_cuda.build(kernel, H200, uses_float64))
    assert built[-1].parts[0].ahead, "K is split"
    library = compile_host(built)
    generator = np.random.default_rng(0)
    for case, tile_kernel in zip(cases, built, strict=True):
        check_product(library, case, tile_kernel, generator, 1e-13)
    for tiles in built:
        cubin, log = compile_cuda(source_of(tiles)[0], "sm_90a")
        assert "0 bytes spill stores" in log, log
        assert "DMMA.16x8x8" in disassemble(cubin, tmp_path)


def test_large_products_of_float64_go_to_tensor_cores():
    for size, expected in ((1024, True), (4096, True), (64, False)):
        kernel = matmul_kernel(m=size, n=size, k=size, dtype=float64)
        part = contract_cuda.build(kernel, H200).parts[0]
        steps = part.ahead[0].steps if part.ahead else part.steps
        assert uses_float64(steps[0].schedule) is expected


def test_a_weight_gradient_of_tf32_is_of_tensor_cores(tmp_path):
    kernel = conv_weight_gradient((64, 16, 16, 64), 64, 3).kernel
    tiles = contract_cuda.build(kernel, dataclasses.replace(H200, tf32=True))
    (ahead,) = tiles.parts[0].ahead
    assert isinstance(ahead.steps[0].schedule, Tf32Schedule) and ahead.blocks > 132
    assert tiles.parts[0].blocks == ahead.blocks, "who multiplies sums then"
    cubin, log = compile_cuda(source_of(tiles)[0], "sm_90a")
    assert "0 bytes spill stores" in log, log
    assert "HMMA.1688.F32.TF32" in disassemble(cubin, tmp_path)


def check_product(library, case, tile_kernel, generator, tolerance=None):
    dtype, batch = case["dtype"], case.get("batch", 1)
    shapes = [(batch, *(case[x] for x in case.get(*o))) for o in (("a", "mk"), ("b", "kn"))]
    shapes += [(case["n"],)] if case.get("epilogue") else []
    arrays = [numbers(shape, dtype, generator) for shape in shapes]
    arrays = [from_raw(to_raw(x, dtype), dtype).reshape(x.shape) for x in arrays]
    expected = expected_of(case, arrays)
    inputs = dict(zip((0, 1, 3), arrays, strict=False))
    one = run_host(library, tile_kernel, inputs)[2].reshape(expected.shape)
    two = run_host(library, tile_kernel, inputs, is_reversed=True)[2].reshape(expected.shape)
    np.testing.assert_array_equal(one, two)
    error = np.abs(one.astype(np.float64) - expected).max() / max(np.abs(expected).max(), 1)
    limit = TOLERANCE.get(dtype.name, 0) if tolerance is None else tolerance
    assert error <= limit, (tile_kernel.kernel.name, error)


def in_dtype(kernel, name, dtype):
    """Rewrite a float32 kernel to read and write a 16-bit dtype."""

    def replace(expr):
        if expr.op != "load":
            return None
        return Expr("cast", (Expr("load", (), expr.arg, dtype),), None, float32)

    part = kernel.parts[0]
    hero = part.computes[0]
    body = rewrite(hero.body, {}, replace)
    sum_ = dataclasses.replace(hero, body=body, store=None)
    value = Expr("cast", (Expr("ref", (), 0, float32),), None, dtype)
    end = Compute(hero.axes, (), None, value, dtype, hero.store)
    slots = tuple(dataclasses.replace(slot, dtype=dtype) for slot in kernel.slots)
    parts = (dataclasses.replace(part, computes=(sum_, end)),)
    return dataclasses.replace(kernel, name=name, slots=slots, parts=parts)


CONVOLUTIONS = [
    lambda: conv((2, 9, 8, 16), 24, 3, padding=1),
    lambda: conv((2, 9, 8, 3), 5, 3, stride=2, padding=1),
    lambda: conv((1, 8, 8, 4), 6, 3, dilation=2, channels_last=False),
    lambda: conv((2, 6, 6, 8), 8, 1, groups=2),
    lambda: conv_weight_gradient((2, 8, 8, 16), 8, 3),
]


def test_convolutions():
    cases = [make() for make in CONVOLUTIONS]
    built, dtypes = [], []
    for number, case in enumerate(cases):
        for dtype in (float32, bfloat16):
            name = f"conv_{number}_{dtype.name}"
            kernel = case.kernel
            if dtype is float32:
                kernel = dataclasses.replace(kernel, name=name)
            else:
                kernel = in_dtype(kernel, name, dtype)
            built.append(contract_cuda.build(kernel, H200, uses_no_boxes))
            dtypes.append(dtype)
    library = compile_host(built)
    for number, (tile_kernel, dtype) in enumerate(zip(built, dtypes, strict=True)):
        case = cases[number // 2]
        got = run_host(library, tile_kernel, dict(enumerate(case.inputs)))[2]
        expected = case.expected
        error = np.abs(got.reshape(expected.shape) - expected).max() / np.abs(expected).max()
        assert error <= (1.2e-2 if dtype is bfloat16 else 2e-6), (tile_kernel.kernel.name, error)


LARGE = [
    dict(m=4096, n=4096, k=4096, dtype=bfloat16),
    dict(m=1024, n=1024, k=1024, dtype=float16, b="nk"),
    dict(m=768, n=768, k=8192, dtype=bfloat16, a="km"),
    dict(m=4095, n=4093, k=4097, dtype=bfloat16),
    dict(m=2048, n=2048, k=2048, dtype=float32),
    dict(m=1001, n=999, k=997, dtype=float32, b="nk", epilogue="bias_relu"),
    dict(m=512, n=512, k=512, dtype=float64),
]


@pytest.mark.parametrize("target", [H200, A100], ids=lambda t: t.arch)
@pytest.mark.parametrize("number", range(len(LARGE)))
def test_nothing_spills(number, target):
    tile_kernel = contract_cuda.build(matmul_kernel(**LARGE[number]), target, uses_no_boxes)
    _, log = compile_cuda(source_of(tile_kernel, target)[0], target.arch)
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
    assert "serialized" not in log, log


@pytest.mark.parametrize("target", [H200, A100], ids=lambda t: t.arch)
def test_tensor_core_opcodes(target, tmp_path):
    tile_kernel = contract_cuda.build(matmul_kernel(**LARGE[0]), target, uses_no_wgmma)
    cubin, _ = compile_cuda(source_of(tile_kernel, target)[0], target.arch)
    sass = disassemble(cubin, tmp_path)
    for opcode in ("HMMA.16816.F32.BF16", "LDSM.16.M88.4", "LDSM.16.MT88.4", "LDGSTS"):
        assert opcode in sass, opcode
    for opcode in ("LDL", "STL", "F2F."):
        assert opcode not in sass, opcode


@pytest.mark.parametrize("b", ["kn", "nk"])
def test_hopper_opcodes(b, tmp_path):
    kernel = matmul_kernel(4096, 4096, 4096, bfloat16, b=b)
    tile_kernel = contract_cuda.build(kernel, H200, uses_no_boxes)
    cubin, log = compile_cuda(source_of(tile_kernel)[0], "sm_90a")
    assert "serialized" not in log and "0 bytes spill stores" in log, log
    sass = disassemble(cubin, tmp_path)
    for opcode in ("HGMMA.64x256x16.F32.BF16", "LDGSTS", "FENCE.VIEW.ASYNC"):
        assert opcode in sass, opcode
    assert "MEMBAR.ALL.GPU" not in sass, "a fence of the block, not of the GPU"


@pytest.mark.parametrize(("sizes", "orders", "threads", "copies"), [
    ((32, 257, 768), ("mk", "kn"), 128, True),  # rows between vectors
    ((784, 256, 4096), ("km", "kn"), 128, False),
    ((1000, 1000, 1001), ("mk", "kn"), 256, True),
    ((2048, 2048, 2048), ("mk", "nk"), 256, False),  # vectors along K, turned in registers
])  # fmt: skip
def test_elements_are_copied_one_by_one_where_vectors_cannot_be(sizes, orders, threads, copies):
    tiles = contract_cuda.build(matmul_kernel(*sizes, float32, *orders), H200)
    assert tiles.threads == threads
    assert ("copy_async_element(v" in source_of(tiles)[0]) == copies


def test_small_products_have_small_tiles():
    for sizes, batch, block in (((32, 32, 32), 4096, 32), ((128, 784, 64), 1, 32)):
        tiles = contract_cuda.build(matmul_kernel(*sizes, float32, batch=batch), H200)
        assert tiles.parts[0].tiles[0].shape == (block, block) and tiles.threads == 64


def test_products_of_one_kernel_share_the_processors():
    """Four products of 512 x 512 x 512 fill them with fewer parts of K each than one would."""
    alone = matmul_kernel(512, 512, 512, float32)
    four = dataclasses.replace(alone, parts=alone.parts * 4)
    counts = [contract_cuda.build(each, H200).parts[0].grid[-1].size for each in (alone, four)]
    assert counts[0] > counts[1]


def test_odd_rows_of_16_bits_have_as_many_blocks_as_fit():
    """Their elements come one by one: three blocks a processor wait less than one (measured)."""
    (part,) = contract_cuda.build(matmul_kernel(8, 4093, 4097, bfloat16, b="kn"), H200).parts
    assert part.grid[-1].size == 6 and part.blocks == 384


def test_large_problems_use_large_tiles_and_long_ones_split():
    large = contract_cuda.build(matmul_kernel(4096, 4096, 4096, bfloat16), H200, uses_no_boxes)
    assert large.parts[0].steps[0].schedule.block == (128, 256, 64)
    assert large.threads == 256
    long = contract_cuda.build(matmul_kernel(64, 64, 65536, float32), H200)
    (ahead,) = long.parts[0].ahead
    assert ahead.blocks == long.parts[0].blocks > 132, "who multiplies adds then"
    wide = contract_cuda.build(matmul_kernel(512, 512, 8192, float32, "km"), H200).parts[0]
    assert wide.ahead and wide.tiles[0].shape == (16, 128), "a few rows of a large tile each"
    few = contract_cuda.build(matmul_kernel(64, 64, 1024, float32), H200).parts[0]
    assert few.grid[-1].size == 16 and not few.ahead
    assert [is_zeroed for _, is_zeroed in few.workspaces] == [False, True]


@pytest.mark.parametrize(("m", "n", "k", "splits"), [
    (32, 25, 1 << 17, 128), (9, 32, 1 << 20, 256), (32, 25, 512, 0), (33, 25, 1 << 17, 64),
])  # fmt: skip
def test_long_sums_of_few_channels_are_small_tiles_of_all_processors(m, n, k, splits):
    (part,) = contract_cuda.build(matmul_kernel(m, n, k, float32), H200).parts
    (first, *_) = (*part.ahead, part)
    is_small = first.steps[0].schedule.block == (32, 32, 64)
    assert is_small == (splits > 64) and part.grid[-1].size >= splits


@pytest.mark.parametrize("n, block, splits", [(4096, (256, 128), 1), (1024, (256, 128), 4)])
def test_float32_is_multiplied_in_large_tiles_whose_sums_are_split(n, block, splits):
    """Products without tensor cores take so long that a few rows of K are worth a block."""
    tiles = contract_cuda.build(matmul_kernel(n, n, n, float32, b="nk"), H200)
    (part,) = tiles.parts
    (first, *_) = (*part.ahead, part)
    assert first.tiles[0].shape == block and part.grid[-1].size == splits
    _, log = compile_cuda(source_of(tiles)[0], "sm_90a")
    assert "0 bytes spill stores" in log
