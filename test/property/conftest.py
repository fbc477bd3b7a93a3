"""Let the property tests import their tools by name; how many examples to draw."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def examples(request: pytest.FixtureRequest) -> int:
    """Programs to draw; 0 stands for the small number of a test run."""
    return int(request.config.getoption("--examples"))
