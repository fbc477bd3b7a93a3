"""Lets the tests of this room import the tools beside them, and chooses their device.

Messages are those of the CPU, where values of indices and labels can be looked at for nothing.
What kernels do with impossible values (`test_bounds`, `test_domains`) follows `--device`.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from picograd.config import config
from picograd.engine.backends import default_device, normalize_device

sys.path.insert(0, str(Path(__file__).parent))
ON_DEVICE = ("test_bounds", "test_domains")


@contextmanager
def default(name: str) -> Iterator[None]:
    """Make a device the default inside a block; nothing changes if it is already."""
    if default_device() == normalize_device(name):
        yield
    else:
        with config.override(device=name):
            yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    """Import the modules of this room, with the tensors they hold, on the CPU."""
    with default("cpu"):
        return (yield)


@pytest.fixture(autouse=True)
def chosen_device(request: pytest.FixtureRequest, device: str) -> Iterator[None]:
    """Run each test on its device."""
    with default(device if request.path.stem in ON_DEVICE else "cpu"):
        yield
