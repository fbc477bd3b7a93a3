"""Random programs at several sizes give with shared plans what each size alone gives."""

from typing import Any

import pytest
from debug_tools import fresh_engine
from drawing import Draw, shortened
from engine.by_code import compare_bindings
from interpreted_cuda import interpreted_cuda
from libraries import Picograd
from poison import poison
from size_programs import (
    SizeProgram,
    close,
    draw_size_program,
    loss_of,
    make_leaves,
    replay,
    run_program,
)  # fmt: skip

import picograd
from picograd import Tensor
from picograd.config import config
from picograd.engine import realize
from picograd.engine.backends import default_device
from picograd.engine.plan_cache import PlanCache
from picograd.engine.sizes import FAMILIES
from picograd.errors import InternalError

CI_PROGRAMS, CUDA_PROGRAMS = 4, 1
MODES = ("apart", "together", "backward", "jit")
FAILURES = (
    AssertionError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, InternalError,
)  # fmt: skip


def runner(program: SizeProgram, mode: str) -> Any:
    """Make what computes a program for its sizes and leaves: one function if it is jitted."""
    library = Picograd(default_device())

    def run(sizes: Any, leaves: dict[str, Any]) -> dict[str, Any]:
        return run_program(program, sizes, library, leaves)

    return picograd.jit(run) if mode == "jit" else run


def run_ours(program: SizeProgram, sizes: Any, mode: str, run: Any) -> dict[str, Any]:
    """Run for one pair of sizes; values and gradients as arrays."""
    leaves = make_leaves(program, sizes, Picograd(default_device()))
    names: dict[str, Any] = run(sizes, leaves)
    if mode == "together":
        Tensor.realize(*names.values())
    if mode == "apart":
        for value in names.values():
            value.realize()
    found: dict[str, Any] = {}
    total = loss_of(names, leaves)
    if total is not None:
        total.backward()
        grads = {f"d{name}": leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
        if mode == "backward":
            Tensor.realize(*names.values(), *grads.values())
        found |= {name: value.numpy() for name, value in grads.items()}
    return found | {name: value.detach().numpy() for name, value in names.items()}


def differences(program: SizeProgram, mode: str, dynamic: int) -> list[str]:
    """List what differs from PyTorch, size by size."""
    found = []
    with config.override(dynamic=dynamic):
        run = runner(program, mode)
        for number, sizes in enumerate(program.sizes):
            try:
                values = run_ours(program, sizes, mode, run)
            except FAILURES as error:
                found.append(f"{number} {sizes}: {type(error).__name__}: {error}")
                continue
            for name, wide in program.wide[number].items():
                if name not in values:
                    found.append(f"{number} {sizes}: {name} is missing")
                elif not close(values[name], wide, program.narrow[number][name]):
                    found.append(f"{number} {sizes}: {name}")
    return found


def place(line: str) -> str:
    """Give the sizes, and the name or the first letters of the error."""
    return line[: line.index(":") + 5]


def failure(program: SizeProgram | None, mode: str) -> str | None:
    """Tell what shared plans change, or None."""
    if program is None:
        return None
    found = differences(program, mode, 1)
    bugs = [each.refused for each in FAMILIES.values() if "Error: " in each.refused]
    if bugs:
        FAMILIES.clear()
        return f"{mode}: {bugs[0]}"
    if not found:
        return None
    alone = {place(line) for line in differences(program, mode, 0)}
    new = [line for line in found if place(line) not in alone]
    return f"{mode}: {new[0]}" if new else None


def check(number: int) -> str | None:
    program = draw_size_program(Draw(number))
    mode = MODES[number % len(MODES)]
    reason = failure(program, mode)
    if reason is None:
        return None
    sizes = program.sizes
    lines, reason = shortened(
        [*program.leaves, *program.lines], lambda few: failure(replay(sizes, few), mode), reason
    )
    return "\n".join([f"program {number}, sizes {sizes}, shortened:", *lines, reason])


def check_all(chunk: int, count: int) -> None:
    for number in range(chunk * count, (chunk + 1) * count):
        found = check(number)
        if found is not None:
            pytest.fail(found, pytrace=False)


def test_programs_at_many_sizes(chunk: int, examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is bound by code is what the long way gives."""
    with fresh_engine():  # the long way gives up on structures that other tests recorded often
        compare_bindings(monkeypatch)
        check_all(chunk, examples or CI_PROGRAMS)


def test_programs_for_cuda(chunk: int, examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels for CUDA, interpreted; memory whose content is undefined holds NaN."""
    with interpreted_cuda(monkeypatch) as device:
        monkeypatch.setattr(config, "device", "cuda")
        monkeypatch.setattr(realize, "PLANS", PlanCache())
        poison(monkeypatch, device)
        check_all(chunk, examples or CUDA_PROGRAMS)
