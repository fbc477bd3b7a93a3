"""How much is seen of the tiles of a kernel, by what is stored of them."""

import pytest
from cuda_tools import H200

from picograd.buffer import Storage
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.render.cuda import render
from picograd.codegen.tile import TileKernel
from picograd.codegen.unseen import ROUNDED, SEEN, SUMMED, seen_digits
from picograd.dtype import DType, bfloat16, float32
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule


def powers(dtype: DType) -> tuple[Node, Node, Node]:
    """The exponentials of rows, their sums, and quotients of both."""
    x = Node("buffer", (), Storage(None), (512, 1024), dtype, "cpu")
    power = build.cast(x, float32).unary("exp")
    total = power.reduce("sum", (1,))
    return power, total, power / build.expand(build.reshape(total, (512, 1)), (512, 1024))


def tiles_of(*roots: Node) -> TileKernel:
    (kernel,) = schedule(list(roots), H200).kernels
    return tile(kernel, H200)


def seen_of(tiles: TileKernel) -> dict[int, int]:
    """Count the tiles of which so much is seen."""
    levels = list(seen_digits(tiles.parts[0], tiles.kernel).values())
    return {level: levels.count(level) for level in set(levels)}


@pytest.mark.parametrize(("dtype", "level"), [(bfloat16, ROUNDED), (float32, SEEN)], ids=repr)
def test_results_of_16_bits_show_no_last_digits(dtype, level) -> None:
    *_, quotient = powers(dtype)
    tiles = tiles_of(build.cast(quotient, dtype))
    assert seen_of(tiles) == {level: 2}
    text = render(linearize(tiles, H200))
    is_rounded = level == ROUNDED
    assert ("whole_exp2(v" in text) == ("quick_divide(v" in text) == is_rounded
    assert (" / v" in text) != is_rounded


def test_terms_of_a_sum_are_as_exact_as_the_sum_is_seen() -> None:
    power, total, quotient = powers(bfloat16)
    tiles = tiles_of(total, build.cast(quotient, bfloat16))
    assert seen_of(tiles) == {SUMMED: 1, SEEN: 1}
    text = render(linearize(tiles, H200))
    assert "quick_exp2(v" in text and "whole_exp2(v" not in text
    assert "quick_exp2(v" not in render(linearize(tiles_of(power, total), H200))


def test_what_steps_are_taken_by_is_seen() -> None:
    *_, quotient = powers(bfloat16)
    whole = (quotient * 8.0).unary("floor")
    tiles = tiles_of(build.cast(whole, bfloat16))
    assert seen_of(tiles) == {SEEN: 2}
    assert "quick" not in render(linearize(tiles, H200)).split("__global__")[1]


def test_elements_of_another_formula_may_be_above_the_greatest() -> None:
    x = Node("buffer", (), Storage(None), (512, 1024), float32, "cpu")
    greatest = build.expand(build.reshape(x.reduce("max", (1,)), (512, 1)), (512, 1024))
    tripled = x * build.const(3.0, (512, 1024), float32, "cpu")
    power = (tripled - greatest).unary("exp")
    text = render(linearize(tiles_of(power.reduce("sum", (1,)).unary("log")), H200))
    assert "<< 23" in text or "shift_left(" in text.partition('extern "C"')[2]


@pytest.mark.parametrize("is_other", [False, True])
def test_terms_below_the_greatest_take_few_instructions(is_other: bool) -> None:
    """An error of a term up to 1, of a sum from 1 on; of what else is subtracted nobody knows."""
    x, y = (Node("buffer", (), Storage(None), (512, 1024), float32, "cpu") for _ in "xy")
    greatest = build.reshape((y if is_other else x).reduce("max", (1,)), (512, 1))
    power = (x - build.expand(greatest, (512, 1024))).unary("exp")
    text = render(linearize(tiles_of(power.reduce("sum", (1,)).unary("log")), H200))
    assert "quick_exp2(v" in text
    assert ("<< 23" in text or "shift_left(" in text.partition('extern "C"')[2]) == is_other
