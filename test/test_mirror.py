"""Tests mirror the tree: picograd/room/file.py is tested by test/room/test_file.py.

A small room, of at most SMALL code lines in all its files, is one subject: where a file has no test
of its own, test/test_room.py is its test, and names the file. `ELSEWHERE` has the few files whose
test would need a copy of another file's fixtures.
"""

import re
from pathlib import Path

import pytest
from code_lines import count_code

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "picograd"
SMALL = 200

ELSEWHERE = {
    "codegen/linearize_cuda_mainloop.py": "codegen/templates/test_contract_cuda.py",
    "codegen/mainloop_operands.py": "codegen/templates/test_contract_cuda.py",
    "codegen/pairs.py": "codegen/test_elementary.py",
    "codegen/templates/contract.py": "codegen/templates/test_contract_cpu.py",
    "graph/axes.py": "engine/test_sizes.py",
    "graph/bounded.py": "engine/test_sizes.py",
    "graph/bounded_rules.py": "engine/test_sizes.py",
    "graph/host_fourier.py": "graph/test_host_call.py",
    "graph/host_gamma.py": "graph/test_host_call.py",
    "graph/size_bounds.py": "engine/test_sizes.py",
    "tensor/math/primitives.py": "ops/test_table.py",
    "tensor/transforms/jit_gradient.py": "tensor/test_jit_idioms.py",
    "tensor/transforms/jit_names.py": "tensor/transforms/test_jit_state.py",
    "tensor/transforms/jit_replay.py": "tensor/test_jit_idioms.py",
    "tensor/transforms/jit_trace.py": "tensor/test_jit_idioms.py",
}
MOST_ELSEWHERE = 15  # a ceiling: give a file a test of its own


def sources() -> list[str]:
    found = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    return sorted(name for name in found if not Path(name).name.startswith("__"))


def mirror(name: str) -> Path:
    path = Path(name)
    return ROOT / "test" / path.parent / f"test_{path.name}"


def small_rooms() -> set[str]:
    """Rooms that are one subject."""
    lines: dict[str, int] = {}
    for name in sources():
        room = Path(name).parts[0]
        lines[room] = lines.get(room, 0) + count_code((PACKAGE / name).read_text())[0]
    return {room for room, count in lines.items() if count <= SMALL}


ONE_SUBJECT = small_rooms()


@pytest.mark.parametrize("name", sources())
def test_file_has_a_test(name: str) -> None:
    room = Path(name).parts[0]
    of_room = ROOT / "test" / f"test_{room}.py"
    if name in ELSEWHERE:
        assert (ROOT / "test" / ELSEWHERE[name]).exists()
        assert not mirror(name).exists(), "it has a test of its own: take it off the list"
    elif room in ONE_SUBJECT and room != name and not mirror(name).exists():
        found = re.search(rf"\b{Path(name).stem}\b", of_room.read_text())
        assert found, f"{name} <-> {of_room.relative_to(ROOT)}, which names it"
    else:
        wanted = mirror(name).relative_to(ROOT)
        assert mirror(name).exists(), f"{name} <-> {wanted}"


def test_exceptions_are_few_and_name_files_that_exist() -> None:
    assert set(ELSEWHERE) <= set(sources()) and len(ELSEWHERE) <= MOST_ELSEWHERE
