"""Let the property tests import their tools by name; how many programs to draw, in chunks."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

CHUNK = 100


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Cut `--examples N` in chunks, so that `-n` spreads them; 0: one small chunk."""
    if "chunk" in metafunc.fixturenames:
        programs = int(metafunc.config.getoption("--examples"))
        count = -(-programs // CHUNK) or 1
        metafunc.parametrize("chunk", range(count), ids=lambda n: f"chunk{n}")


@pytest.fixture(scope="session")
def examples(request: pytest.FixtureRequest) -> int:
    """Programs to draw in a chunk; 0 stands for the small number of a test run."""
    return min(CHUNK, int(request.config.getoption("--examples")))
