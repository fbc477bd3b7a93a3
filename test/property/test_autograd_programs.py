"""Random programs about the state of gradients equal PyTorch, eager and jitted."""

import copy
import functools
import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
from autograd_programs import (
    REFUSALS,
    Names,
    contents,
    custom_functions,
    draw_autograd_program,
    is_calm,
    replayed,
)  # fmt: skip
from drawing import Draw, shortened

import picograd
from picograd.errors import TraceError

torch = pytest.importorskip("torch")
CI_PROGRAMS, CALLS = 8, 3


def names_of(library: Any) -> Names:
    shared = {"copy": copy, "pickle": pickle, "contents": contents}
    return {"T": library, **shared, **custom_functions(library)}


TORCH, PICOGRAD = names_of(torch), names_of(picograd)


def compare(name: str, found: Any, wanted: Any) -> None:
    assert isinstance(found, picograd.Tensor), f"{name} is {type(found).__name__}"
    assert tuple(found.shape) == tuple(wanted.shape), f"{name} has shape {found.shape}"
    value = wanted.detach().numpy()
    scale = max(1.0, float(np.abs(value).max(initial=0)))
    np.testing.assert_allclose(found.detach().numpy(), value, 1e-9, 1e-9 * scale, err_msg=name)


def compare_all(found: Names, wanted: Names) -> None:
    """Compare values and gradients."""
    for name in [each for each in wanted if re.fullmatch(r"t\d+", each)]:
        compare(name, found[name], wanted[name])
        grad, other = found[name].grad, wanted[name].grad
        assert (grad is None) == (other is None), f"{name}.grad is {grad}, wanted {other}"
        if other is not None:
            compare(f"{name}.grad", grad, other)
    assert len(found["seen"]) == len(wanted["seen"])
    for number, (one, other) in enumerate(zip(found["seen"], wanted["seen"])):
        compare(f"what hook {number} saw", one, other)


def check_eager(leaves: list[str], lines: list[str]) -> None:
    """Nothing is read before the end."""
    compare_all(replayed([*leaves, *lines], PICOGRAD), replayed([*leaves, *lines], TORCH))


def function_of(leaves: list[str], lines: list[str], start: Names) -> Names:
    """Define the lines as a function of what the leaves left behind."""
    names = replayed(leaves, start)
    given = [line.split(" = ")[0] for line in leaves]
    made = sorted({line.split(" = ")[0] for line in lines if line[:1] == "t"} - {*given})
    made = [name for name in made if re.fullmatch(r"t\d+", name)]
    body = [f"global {', '.join(given)}", *"\n".join(lines).split("\n")]
    body.append(f"return [{', '.join(made)}]")
    exec("\n    ".join(["def function():", *body]), names)
    return names


def check_jit(leaves: list[str], lines: list[str]) -> None:
    """A jitted function leaves the tensors outside, and their gradients, as PyTorch does."""
    if not lines:
        return
    found, wanted = (function_of(leaves, lines, start) for start in (PICOGRAD, TORCH))
    jitted = picograd.jit(found["function"])
    for call in range(CALLS):
        try:
            results = wanted["function"]()
        except REFUSALS:  # of a second call
            return
        if not is_calm({**wanted, **{f"t{90 + n}": each for n, each in enumerate(results)}}):
            return
        try:
            ours = jitted()
        except TraceError:
            return
        for number, (one, other) in enumerate(zip(ours, results)):
            compare(f"result {number} of call {call}", one, other)
        compare_all(found, wanted)


CHECKS = {"eager": check_eager, "jit": check_jit}


def failure(mode: str, leaves: list[str], lines: list[str]) -> str | None:
    """Tell what is wrong with a program on picograd, or None; also if PyTorch refuses it."""
    try:
        replayed([*leaves, *lines], TORCH)
    except REFUSALS:
        return None
    try:
        CHECKS[mode](leaves, lines)
    except (AssertionError, *REFUSALS) as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("mode", CHECKS)
def test_programs_equal_pytorch(chunk: int, examples: int, mode: str) -> None:
    count = examples or CI_PROGRAMS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both libraries warn of reading grad of what is no leaf
        for number in range(chunk * count, (chunk + 1) * count):
            leaves, lines = draw_autograd_program(Draw(number), TORCH, mode == "jit")
            reason = failure(mode, leaves, lines)
            if reason is not None:
                fails = functools.partial(failure, mode, leaves)
                few, reason = shortened(lines, fails, reason)
                text = "\n".join([*leaves, *few, reason])
                pytest.fail(f"program {number} {mode}, shortened:\n{text}", pytrace=False)
