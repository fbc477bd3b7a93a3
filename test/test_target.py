"""Target: what code is generated for; a hashable value, because it is part of every cache key."""

import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import plain_nodes
import pytest

from picograd.buffer import Buffer, Storage
from picograd.dtype import float32, int64
from picograd.graph.scanning import scan
from picograd.graph.sorting import sort
from picograd.schedule.plan import format_plan
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target, is_gpu, is_host

PACKAGE = Path(__file__).parents[1] / "picograd"
NAMING = ("engine/backends.py", "target.py")  # open devices by their names; say what names mean
COMPARED = re.compile(
    r"""language\s*(?:[!=]=|in\b)
    | (?:device|kind|name|place)\w*\)?\s*[!=]=\s*["'](?:cpu|cuda|null|llvm)
    | startswith\(["'](?:cpu|cuda|null)""",
    re.VERBOSE,
)


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


def test_what_names_mean() -> None:
    assert is_host("cpu") and not is_host("cuda:0") and not is_host("null")
    assert is_gpu("cuda") and is_gpu("cuda:1") and not is_gpu("cpu")
    assert cuda_target("sm_80").has_blocks and not Target("llvm", "host", 64).has_blocks


def test_capabilities_decide_and_no_names() -> None:
    """What differs between targets is a fact of `Target`, but in renderers and runtimes."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(("codegen/render/", "runtime/")) or name in NAMING:
            continue
        lines = enumerate(path.read_text().splitlines(), 1)
        found += [f"{name}:{number}" for number, line in lines if COMPARED.search(line)]
    assert not found, f"ask a capability of the target instead: {found}"
    assert COMPARED.search('if x.device == "cpu":') and COMPARED.search("target.language != a")


def planned(device: str, target: Target) -> str:
    """Plan a sort, a scan and a scatter, which GPUs take another way than CPUs."""
    count = 1 << 20
    x, index = (
        plain_nodes.buffer(Storage(Buffer(device, dtype, count * dtype.itemsize, 0)), (count,))
        for dtype in (float32, int64)
    )
    roots = [sort(x, 0), scan(x, "sum", 0), x.scatter(x, [index], (0,), "sum")]
    return format_plan(schedule(roots, target)).replace(device, "here")


def test_a_target_plans_alike_whatever_the_device_is_called() -> None:
    target = cuda_target("sm_90a")
    plans = [planned(device, target) for device in ("cpu", "null", "cuda:0")]
    assert plans[0] == plans[1] == plans[2]
    assert "runs" in plans[0] and "radix" in plans[0]
    assert planned("cuda:0", Target("llvm", "host", 64)) != plans[0]
