"""Sorts on the CPU: Tile IR and compiled code."""

import numpy as np
import pytest
from harness import TARGET
from rowwise_cases import SORTS, check_cpu, check_stops, kernel_of, sort, wanted

from picograd.codegen.interpret_program import interpret
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.program import verify
from picograd.codegen.templates import sort as template
from picograd.dtype import float32, int32, int64

STOPPED = {"long": ((300, 5), 1, int32, False), "short": ((50, 5), 1, float32, False)}


@pytest.mark.parametrize("name", SORTS)
def test_values(name: str) -> None:
    check_cpu(name)


@pytest.mark.parametrize("name", STOPPED)
def test_it_stops_where_nobody_looks(name: str) -> None:
    node = sort("cpu", *STOPPED[name])
    check_stops(node, node.arg[0], is_sort=True)


@pytest.mark.parametrize("bits", [0, 3, 9])
def test_long_rows_have_memory_of_their_own(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """Words and keys of three rows lie in one workspace each, of which nobody goes past the end.

    So many bits of the upper halves vary: of 150 keys many share one, or few do.
    """
    monkeypatch.setattr(template, "SCRATCH_BYTES", 100)
    kernel = kernel_of("rows", sort("cpu", (150, 3), 1, int64, False), TARGET)
    tiles = tile(kernel, TARGET)
    assert tiles.parts[0].workspaces
    random = np.random.default_rng(bits)
    keys = (random.integers(0, 1 << bits, 450) << 32) + random.integers(0, 1 << 32, 450)
    arrays = [keys, np.full(450, -1)]
    expected = wanted(kernel, arrays)
    interpret(verify(linearize(tiles, TARGET)), arrays)
    np.testing.assert_array_equal(arrays[-1], expected[-1])
