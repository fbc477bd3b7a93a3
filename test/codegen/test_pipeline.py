"""The pipeline: stages in order, and what the trace sees."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import binary, unary
from harness import TARGET
from structured import softmax, total

from picograd.codegen.pipeline import STAGES, TEMPLATES, generate, tile
from picograd.codegen.program import Program
from picograd.codegen.tile import TileKernel
from picograd.schedule.verify import HEROES
from picograd.target import cuda_target


def test_every_hero_has_a_template() -> None:
    assert set(TEMPLATES) == HEROES


def test_trace_sees_every_stage_in_order() -> None:
    seen = []
    code = generate(softmax().kernel, TARGET, lambda name, ir: seen.append((name, type(ir))))
    assert [name for name, _ in seen] == [name for name, _ in STAGES]
    assert [kind for _, kind in seen] == [TileKernel, Program, str]
    assert code.language == "llvm" and code.entry == code.name == softmax().kernel.name


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=lambda t: t.language)
def test_generation_is_deterministic(target) -> None:
    case = total(40001)
    first, second = generate(case.kernel, target), generate(case.kernel, target)
    assert first == second and first.tasks >= 1
    assert (first.threads > 1) == (target.language == "cuda")


def test_an_unknown_hero_has_no_template() -> None:
    kernel = unary("exp").kernel
    object.__setattr__(kernel, "hero", "dance")
    with pytest.raises(KeyError):
        tile(kernel, TARGET)


def test_code_says_how_many_slots_it_reads() -> None:
    assert generate(unary("exp").kernel, TARGET).inputs == 1
    assert generate(binary("add").kernel, TARGET).inputs == 2


LOADED = """
import sys
from picograd import Tensor
(Tensor.ones(8, 8).exp() @ Tensor.ones(8, 8)).sum().item()
print(*[name for name in sys.modules if "codegen" in name])
"""


def test_what_is_for_other_kernels_and_targets_is_not_imported(tmp_path: Path) -> None:
    """It takes as long as writing several kernels."""
    environment = {**os.environ, "PICOGRAD_CACHE": str(tmp_path), "PICOGRAD_DEVICE": "cpu"}
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = {name.removeprefix("picograd.codegen.") for name in done.stdout.split()}
    assert {"linearize_cpu", "render.llvm", "templates.contract"} <= found
    others = "linearize_cuda", "render.cuda", "templates.attention", "templates.sort"
    assert found.isdisjoint(others)
