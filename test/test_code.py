"""Code: the launch facts of a generated kernel."""

from dataclasses import FrozenInstanceError, replace

import pytest

from picograd.code import (
    ALL,
    FEW,
    FIRST_WORK,
    MANY_KERNELS,
    MIDDLE,
    SMALL_WORK,
    SOURCE_OF_WORK,
    WARM_WORK,
    WORK_OF_MIDDLE,
    WORK_OF_SOURCE,
    WORK_OF_TILES,
    Code,
    Workspace,
    packed,
    unpacked,
)


def test_code_is_frozen_and_has_defaults() -> None:
    code = Code("k", "llvm", "k_entry", "text", tasks=4)
    assert code.threads == 1 and code.workspaces == () and code.scratch_bytes == 0
    with pytest.raises(FrozenInstanceError):
        code.tasks = 5  # type: ignore[misc]


def test_a_workspace_is_not_zeroed_unless_asked() -> None:
    assert not Workspace(128).is_zeroed
    assert Workspace(4, True) == Workspace(4, is_zeroed=True)


def test_kernels_are_told_apart_by_their_work() -> None:
    def made(work: int, source: str = "fmul contract float", inputs: int = 1) -> Code:
        return Code("k", "llvm", "k", source, 1, flops=work - 1, bytes_moved=1, inputs=inputs)

    assert made(SMALL_WORK).is_small and not made(SMALL_WORK).is_warm
    assert made(SMALL_WORK + 1).is_warm and made(WARM_WORK).is_warm
    assert not made(WARM_WORK + 1).is_warm and not made(WARM_WORK + 1).is_small
    assert not Code("k", "llvm", "k", "text", 1).is_small, "what it does is not known"
    assert made(FIRST_WORK, inputs=0).is_warm and not made(FIRST_WORK + 1, inputs=0).is_warm
    assert made(2 * FIRST_WORK, " " * (2 * FIRST_WORK // WORK_OF_SOURCE), inputs=0).is_warm
    for code in (made(2000, ""), made(2000, "fadd reassoc nsz float")):
        assert not code.is_warm
    long = " " * 2 * WARM_WORK * SOURCE_OF_WORK
    assert made(2 * WARM_WORK, long).is_warm and not made(2 * WARM_WORK + 1, long).is_warm


def test_where_many_kernels_are_waited_for_more_of_them_are_warm() -> None:
    most = WORK_OF_SOURCE * 1000
    code = Code("k", "llvm", "k", " " * 1000, 1, flops=most, beside=MANY_KERNELS)
    assert code.is_warm and not replace(code, beside=MANY_KERNELS - 1).is_warm
    assert replace(code, beside=70).is_warm  # an mLSTM of 32 steps: 20 s of LLVM otherwise
    assert not replace(code, flops=most + 1).is_warm
    assert code.passes == FEW
    tiles = replace(code, source="[24 x <16 x float>]".ljust(1000))
    found = [replace(tiles, flops=work * 1000) for work in (WORK_OF_TILES, WORK_OF_MIDDLE)]
    assert [each.passes for each in found] == [FEW, MIDDLE] and found[1].is_warm
    larger = [replace(each, flops=each.flops + 1) for each in found]
    assert [each.passes for each in larger] == [MIDDLE, ALL] and not larger[1].is_warm
    assert replace(found[1], source=found[1].source + " reassoc ").passes == ALL


def test_a_source_is_packed_and_unpacked() -> None:
    code = Code("k", "llvm", "k", "%v = fmul float %a, %b\n" * 400, 1, flops=SMALL_WORK + 1)
    kept = replace(code, source="", packed=packed(code.source))
    assert kept.is_warm and len(kept.packed) * 10 < len(code.source)
    assert unpacked(kept) == code and unpacked(code) is code
