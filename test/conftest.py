"""Options and fixtures of every test: the device, golden files, fixed seeds."""

import random
from collections.abc import Iterator

import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="device the tests run on: cpu, cuda")
    parser.addoption("--examples", default="0", help="programs each property draws; 0: a few")
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--device"))


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(autouse=True)
def fixed_seeds() -> Iterator[None]:
    random.seed(0)
    np.random.seed(0)
    yield
