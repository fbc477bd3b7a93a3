import io
import struct

import pytest

from picograd.errors import DeviceError
from picograd.runtime import nvrtc, nvrtc_library
from picograd.runtime.nvrtc_library import ANSWER, NvrtcError, ask, serve

pytest.importorskip("cuda.bindings.nvrtc")
OPTIONS = [b"--gpu-architecture=sm_90a", b"-fmad=false"]
GOOD = b'extern "C" __global__ void f(float* x) { x[0] = 1.0f; }'


def test_a_program_is_compiled_or_says_what_is_wrong() -> None:
    library = nvrtc.load_nvrtc().library
    is_done, cubin = nvrtc_library.compile_program(library, GOOD, OPTIONS)
    assert is_done and cubin[:4] == b"\x7fELF"
    is_done, log = nvrtc_library.compile_program(library, b"nonsense", OPTIONS)
    assert not is_done and b"kernel.cu(1): error" in log and not log.endswith(b"\0")
    is_done, log = nvrtc_library.compile_program(library, GOOD, [b"--no-such-option"])
    assert not is_done and log


def test_requests_are_answered_in_order() -> None:
    library = nvrtc.load_nvrtc().library
    asked = io.BytesIO()
    for source in (GOOD, b"nonsense"):
        with pytest.raises(struct.error):  # nobody answers yet
            ask(asked, io.BytesIO(), source, OPTIONS)
    answers = io.BytesIO()
    serve(library, io.BytesIO(asked.getvalue()), answers)
    answers.seek(0)
    first = ask(io.BytesIO(), answers, GOOD, OPTIONS)
    assert first == nvrtc_library.compile_program(library, GOOD, OPTIONS)
    is_done, log = ask(io.BytesIO(), answers, b"", OPTIONS)
    assert not is_done and b"error" in log


def test_an_answer_that_ends_early_is_none() -> None:
    with pytest.raises(OSError, match="ends early"):
        ask(io.BytesIO(), io.BytesIO(ANSWER.pack(1, 100) + b"few"), GOOD, OPTIONS)


def test_a_call_that_fails_is_an_error_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    library = nvrtc.load_nvrtc().library
    with pytest.raises(NvrtcError, match="NVRTC_ERROR_OUT_OF_MEMORY"):
        nvrtc_library.must(library, 1)

    def fail(*_: object) -> None:
        raise NvrtcError("NVRTC_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(nvrtc_library, "compile_program", fail)
    with pytest.raises(DeviceError, match="failed with NVRTC_ERROR_OUT_OF_MEMORY. Fix: reinstall"):
        nvrtc.compile_text("", "sm_90a")
