"""Tests mirror the tree: picograd/room/file.py is tested by test/room/test_file.py.

A small room, of at most SMALL code lines in all its files, is one subject: where a file has no test
of its own, test/test_room.py is its test, and names the file. `ELSEWHERE` has the few files whose
test would need a copy of another file's fixtures.
"""

import ast
import re
from pathlib import Path

from code_lines import count_code, docstring_lines

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "picograd"
SMALL = 200

ELSEWHERE = {
    "codegen/linearize_cuda_mainloop.py": "codegen/templates/test_contract_cuda.py",
    "codegen/mainloop_operands.py": "codegen/templates/test_contract_cuda.py",
    "codegen/templates/contract.py": "codegen/templates/test_contract_cpu.py",
    "graph/axes.py": "engine/test_sizes.py",
    "graph/bounded.py": "engine/test_sizes.py",
    "graph/bounded_rules.py": "engine/test_sizes.py",
    "tensor/math/primitives.py": "ops/test_table.py",
    "tensor/transforms/jit_names.py": "tensor/transforms/test_jit_state.py",
    "tensor/transforms/jit_trace.py": "tensor/test_jit_idioms.py",
}
MOST_ELSEWHERE = 11  # a ceiling: give a file a test of its own


def sources() -> list[str]:
    found = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    return sorted(name for name in found if not Path(name).name.startswith("__"))


def mirror(name: str) -> Path:
    path = Path(name)
    return ROOT / "test" / path.parent / f"test_{path.name}"


def code_lines(room: str) -> int:
    """Code lines of all files of a room."""
    texts = [(PACKAGE / name).read_text() for name in sources() if Path(name).parts[0] == room]
    return sum(count_code(text, docstring_lines(ast.walk(ast.parse(text))))[0] for text in texts)


def problem(name: str) -> str:
    """What is wrong with the test of a file; nothing if it has one."""
    room, own = Path(name).parts[0], mirror(name)
    of_room = ROOT / "test" / f"test_{room}.py"
    if name in ELSEWHERE:
        if own.exists():
            return "it has a test of its own: take it off the list"
        return "" if (ROOT / "test" / ELSEWHERE[name]).exists() else ELSEWHERE[name]
    if own.exists():
        return ""
    if room == name or code_lines(room) > SMALL:
        return f"<-> {own.relative_to(ROOT)}"
    is_named = re.search(rf"\b{Path(name).stem}\b", of_room.read_text())
    return "" if is_named else f"<-> {of_room.relative_to(ROOT)}, which names it"


def test_every_file_has_a_test() -> None:
    problems = {name: problem(name) for name in sources()}
    assert not any(problems.values()), {name: text for name, text in problems.items() if text}


def test_exceptions_are_few_and_name_files_that_exist() -> None:
    assert set(ELSEWHERE) <= set(sources()) and len(ELSEWHERE) <= MOST_ELSEWHERE
