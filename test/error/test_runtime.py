"""A missing GPU or driver, memory that runs out, kernels that do not compile."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from error_support import Case, check, check_usable, named

import picograd
from picograd import Tensor, nn
from picograd.code import Code
from picograd.codegen.pipeline import generate
from picograd.config import config
from picograd.engine import compile as engine_compile
from picograd.engine.backends import get_device
from picograd.errors import CompileError, DeviceError, OutOfMemoryError
from picograd.runtime import driver
from picograd.runtime.driver import Driver, has_driver, open_driver

NO_DRIVER = (
    "cuda: NVIDIA's driver library (libcuda) is not installed. "
    "Fix: install the NVIDIA driver, or use the CPU: PICOGRAD_DEVICE=cpu."
)
X = Tensor.ones(2, 2)

WITHOUT_DRIVER = [
    Case("to", lambda: X.to("cuda"), DeviceError, NO_DRIVER),
    Case("cuda()", lambda: X.cuda(), DeviceError, NO_DRIVER),
    Case("second GPU", lambda: X.to("cuda:1"), DeviceError, NO_DRIVER),
    Case("new tensor", lambda: Tensor([1.0], device="cuda"), DeviceError, NO_DRIVER),
    Case("zeros", lambda: Tensor.zeros(2, device="cuda"), DeviceError, NO_DRIVER),
    Case("layer", lambda: nn.Linear(2, 3, device="cuda"), DeviceError, NO_DRIVER),
    Case("model", lambda: nn.Linear(2, 3).to("cuda"), DeviceError, NO_DRIVER),
    Case("synchronize", lambda: picograd.synchronize("cuda"), DeviceError, NO_DRIVER),
]


@pytest.mark.skipif(has_driver(), reason="this machine has the driver")
@named(WITHOUT_DRIVER)
def test_without_driver(case: Case) -> None:
    check(case)


class FakeDriver(Driver):
    """A driver of a given CUDA version."""

    def __init__(self, version: int) -> None:
        self.version = version

    def call(self, name: str, *arguments: object) -> int:  # type: ignore[override]
        return self.version


def no_bindings() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cuda.bindings.driver", None)
        open_driver()


def status(code: int) -> None:
    driver.checked_driver(FakeDriver(13000), code)


BROKEN_DRIVER = [
    Case(
        "no bindings", no_bindings, DeviceError,
        f"cuda: the package cuda-bindings is missing. Fix: {driver.INSTALL}.",
    ),
    Case(
        "no GPU", lambda: status(driver.NO_DEVICE), DeviceError,
        "cuda: this machine has no usable NVIDIA GPU. Fix: use the CPU: PICOGRAD_DEVICE=cpu.",
    ),
    Case(
        "driver fails", lambda: status(999), DeviceError,
        "cuda: the driver does not start: cuInit gave error 999. "
        "Fix: use the CPU: PICOGRAD_DEVICE=cpu.",
    ),
    Case(
        "old driver", lambda: driver.checked_driver(FakeDriver(11080), 0), DeviceError,
        "cuda: the driver supports CUDA 11.8 only. Fix: install driver 580 or newer (CUDA 13).",
    ),
]  # fmt: skip


@named(BROKEN_DRIVER)
def test_broken_driver(case: Case) -> None:
    check(case)


HUGE = """\
import numpy as np
from picograd import Tensor
kept = Tensor(np.ones(1 << 20, np.float32), device="cpu")
try:
    Tensor.ones(10**15, device="cpu").realize()
except MemoryError as error:
    print(type(error).__name__, error)
print((kept * 2).sum().item())
"""


def test_a_petabyte_is_refused_before_any_work(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HUGE)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.stdout == (
        "OutOfMemoryError ones: a tensor of shape (1000000000000000,) takes 3725290 GiB: "
        "no device has that. Fix: use smaller sizes.\n2097152.0\n"
    ), done.stderr


def test_memory_that_runs_out_in_a_plan_can_be_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = Tensor([1.0, 2.0], device="cpu").realize()
    largest = (Tensor.zeros(20_000_003, device="cpu") - kept[0]).exp().realize()
    large = Tensor.ones(3_000_017, device="cpu") + kept[0]
    pool = get_device("cpu").pool  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setattr(pool, "reserve", lambda size: None)
        with pytest.raises(OutOfMemoryError, match="no memory for 11.4 MiB on cpu: ") as caught:
            large.realize()
    assert re.search(r"largest buffers:\n  .* float32\[20000003\]", str(caught.value))
    assert large.sum().item() == 2 * 3_000_017 and largest[-1].item() < 1.0
    check_usable(kept, kept * 3.0)


def test_a_kernel_that_does_not_compile_shows_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Tensor([1.0, 2.0], device="cpu").realize()
    wrong = Tensor(np.ones((3, 7, 11), np.float32), device="cpu").exp() * 1.625

    def break_code(*arguments: object) -> Code:
        code = generate(*arguments)  # type: ignore[arg-type]
        changed = code.source.replace("ret void", "rot void", 1)
        return Code(code.name, code.language, code.entry, changed, code.tasks)

    with monkeypatch.context() as patch:
        patch.setattr(engine_compile, "generate", break_code)
        patch.setitem(config.__dict__, "cache", "")
        with pytest.raises(CompileError) as caught:
            wrong.realize()
    text = str(caught.value)
    assert re.match(r"compile: kernel map_\w+ does not compile\n", text)
    assert "expected instruction opcode" in text
    assert re.search(r"^> +\d+ +rot void$", text, re.MULTILINE)
    assert text.endswith("Fix: report this kernel with DEBUG=3 output.")
    assert np.allclose(wrong.numpy(), np.e * 1.625, rtol=1e-6)  # nothing wrong was kept
    check_usable(kept, kept * 3.0)


def test_a_kernel_nvrtc_refuses_shows_its_source() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    nvrtc = importlib.import_module("picograd.runtime.nvrtc")
    code = Code("bad", "cuda", "bad", 'extern "C" __global__ void bad() {\n  nonsense;\n}\n', 1)
    with pytest.raises(CompileError) as caught:
        nvrtc.compile_cuda(code, "sm_90a")
    text = str(caught.value)
    assert text.startswith("compile: kernel bad does not compile\n")
    assert 'identifier "nonsense" is undefined' in text and ">    2   nonsense;" in text


def test_foreign_objects_in_the_traceback_are_not_kept() -> None:
    """An error must not keep tensors alive once it has been handled."""
    before = get_device("cpu").memory_stats()["in_use"]
    large = Tensor(np.ones(1 << 18, np.float32), device="cpu")
    try:
        large + Tensor.ones(3, device="cpu")
    except ValueError as error:
        holder = SimpleNamespace(text=str(error))
    del large
    assert holder.text.startswith("add: shapes (262144,) and (3,)")
    assert get_device("cpu").memory_stats()["in_use"] <= before
