import pytest

from picograd.runtime import native


def test_context_fields_of_different_writers_do_not_share_a_cache_line():
    lines = [native.CONTEXT[name] // 64 for name in ("ticket", "completed", "sleepers", "entry")]
    assert len(set(lines)) == 4 and max(native.CONTEXT.values()) < native.CONTEXT_BYTES


@pytest.mark.parametrize("system", ["linux", "darwin"])
@pytest.mark.parametrize("machine", ["x86_64", "arm64", "riscv64"])
def test_source_for_every_machine(monkeypatch, system, machine):
    monkeypatch.setattr(native.sys, "platform", system)
    monkeypatch.setattr(native.platform, "machine", lambda: machine)
    source = native.runner_source()
    assert ("@syscall" in source) == (system == "linux")
    assert ("sse2.pause" in source) == (machine == "x86_64")
    for word in ("PAUSE", "WORDS", "NUMBER", "CLOCK", "%entry.p\n"):
        assert word not in source
