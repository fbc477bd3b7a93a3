"""Options and fixtures of every test: the device, golden files, fixed seeds."""

import contextlib
import gc
import importlib
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import picograd
from picograd.config import config
from picograd.engine import carried, pending
from picograd.engine.followed import EVENTS, stop
from picograd.engine.native_calls import CALLS
from picograd.engine.plan_key import leaf_buffer
from picograd.errors import PicogradError
from picograd.first_import import FROZEN
from picograd.tensor.core import subclasses
from picograd.tensor.core.following import KNOWN

sys.path.insert(0, str(Path(__file__).parent))  # for the files that tests of several rooms share
# Programs that tests start would compile all modules each time: a second and more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="device the tests run on: cpu, cuda")
    parser.addoption("--examples", default="0", help="programs each property draws; 0: a few")
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


def pytest_collection_finish() -> None:
    """Leave modules of tests and what pytest knows alone: 800,000 objects, at which each trace and
    each collection of garbage would look."""
    FROZEN.clear()  # or the first trace would have them looked at again
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--device"))


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session", autouse=True)
def native_calls() -> None:
    """Have machine code from the first test on: where none is on disk it comes at some time."""
    CALLS.find("picograd_launch")
    CALLS.wait()


@pytest.fixture
def on_host(device: str) -> None:
    """Skip what only holds on the CPU: shared memory, checked indices, its name in a text."""
    if device != "cpu":
        pytest.skip("holds on the CPU only")


@pytest.fixture
def cpu_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make tensors on the CPU where no device is named, also on a machine with a GPU."""
    monkeypatch.setattr(config, "device", "cpu")


@pytest.fixture(autouse=True)
def fixed_seeds() -> Iterator[None]:
    no_way()
    carried.GRADIENTS.clear()  # what other tests left waiting would be stored with others
    config.verify = 1  # every test checks every IR its kernels pass through
    random.seed(0)
    np.random.seed(0)
    picograd.manual_seed(0)  # or what a test draws would hang on which tests ran before it
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)  # its threads spin, which hurts where tests share cores
        torch.default_generator.manual_seed(0)  # that of all devices notes a stack at each call
    compute_what_is_left()
    no_way()
    yield
    if subclasses.fill.cache_info().currsize:
        forget_classes()


def no_way() -> None:
    """Forget what was learnt: neither what the last test did nor what it left begins a way."""
    stop()
    EVENTS.after = None
    KNOWN.clear()


# What the first class that derives from Tensor puts other functions in: modules and classes.
for path in subclasses.MODULES:
    importlib.import_module(path)
MODULES = [each for name, each in sys.modules.items() if name.partition(".")[0] == "picograd"]
KINDS = [picograd.Tensor, picograd.nn.Parameter, *picograd.Tensor.__subclasses__()]
BEFORE = [(owner, dict(vars(owner))) for owner in (*MODULES, *KINDS)]


def forget_classes() -> None:
    """Put functions back: what a test finds must not hang on the classes that others define."""
    for owner, before in BEFORE:
        for name, value in list(vars(owner).items()):
            if isinstance(value, FunctionType) and before.get(name, value) is not value:
                setattr(owner, name, before[name])
            elif owner in KINDS and name not in before:
                delattr(owner, name)
    subclasses.fill.cache_clear()


def compute_what_is_left() -> None:
    """Compute what modules of tests made at import, and other tests left.

    The first trace of a test would compute it, since it computes all live tensors, and a test that
    counts plans would hang on which modules were collected, and which tests ran before.
    """
    left = [each._node for each in pending.live_tensors() if leaf_buffer(each._node) is None]
    with contextlib.suppress(PicogradError):  # of what is meant to fail
        pending.compute([node for node in left if not carried.is_wide(node)])
