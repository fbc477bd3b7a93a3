"""Lets the engine's tests import their shared module; counts nodes."""

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from picograd.graph.node import Node

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def count_nodes() -> Iterator[Callable[[], int]]:
    """Count the nodes alive that the test made: what is frozen, gc neither lists nor walks."""

    def count() -> int:
        gc.collect()
        return sum(isinstance(each, Node) for each in gc.get_objects())

    gc.collect()
    gc.freeze()
    yield count
    gc.unfreeze()
