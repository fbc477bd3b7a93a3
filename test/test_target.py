"""Target: what code is generated for; a hashable value, because it is part of every cache key."""

from dataclasses import FrozenInstanceError, replace

import pytest

from picograd.target import Target, cuda_target


def test_targets_are_values() -> None:
    target = Target("llvm", "host", 64, threads=2)
    assert target == Target("llvm", "host", 64, threads=2)
    assert len({target, replace(target, threads=3), replace(target, features="+avx")}) == 3
    with pytest.raises(FrozenInstanceError):
        target.threads = 4  # type: ignore[misc]


def test_cuda_target() -> None:
    target = cuda_target("sm_90a")
    assert target.language == "cuda" and target.arch == "sm_90a" and target.vector_bytes == 16
    assert target.multiprocessors == 132 and target.shared_bytes == 227 * 1024
    assert cuda_target("sm_80", 108).multiprocessors == 108
