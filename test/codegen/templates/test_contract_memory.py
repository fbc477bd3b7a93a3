"""What a product passes through memory, and which tiles that chooses."""

from types import SimpleNamespace

from cuda_tools import H200, matmul_kernel

from picograd.code import TensorMap
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract_cuda, contract_memory
from picograd.dtype import bfloat16
from picograd.schedule.index import Axis, axis_index


def test_dimensions_that_overlap_are_read_once():
    apart = TensorMap(0, bfloat16, 0, (64, 10), (64,), (64, 8))
    assert contract_memory.elements_of(apart) == 640
    overlapping = TensorMap(0, bfloat16, 0, (64, 10), (16,), (64, 8))
    assert contract_memory.elements_of(overlapping) == 9 * 16 + 64


def test_rows_in_pieces_take_longer():
    kernel = matmul_kernel(1024, 256, 64, bfloat16, b="nk")
    product = analyse(kernel)
    whole, pieces = (contract_memory.elements_stored(product, n) for n in (256, 128))
    assert pieces == 1.25 * whole and whole == 1024 * 256


def test_columns_that_lie_next_to_one_another():
    phase, channel = Axis("phase", 4), Axis("channel", 256)
    index = axis_index(phase) * 1024 + axis_index(channel)
    assert contract_memory.run_of(index, (phase, channel)) == 256
    index = axis_index(phase) * 256 + axis_index(channel)
    assert contract_memory.run_of(index, (phase, channel)) == 1024


def test_where_there_is_one_position_rows_begin_nowhere_else():
    def aligned(*sizes):
        tensor = TensorMap(0, bfloat16, 0, (64, *sizes), (64, 16), (64, 1, 1))
        return contract_memory.is_aligned(SimpleNamespace(copy=SimpleNamespace(tensor=tensor)))

    assert aligned(8, 1) and not aligned(8, 2)


def test_what_waits_for_memory_has_tiles_of_whole_rows():
    kernel = matmul_kernel(100_352, 256, 64, bfloat16, b="nk")
    tiles = contract_cuda.build(kernel, H200)
    assert tiles.parts[0].tiles[0].shape[1] == 256
