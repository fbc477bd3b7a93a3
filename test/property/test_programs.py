"""Random programs compute on the device what PyTorch and the graph interpreter compute."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from libraries import Picograd
from programs import Program, programs

from picograd import Tensor
from picograd.graph.interpret import interpret

CI_PROGRAMS = 200


def check(examples: int, default: int, test: Callable[..., None], *drawn: Any) -> None:
    """Run a property, the same examples every time."""
    options = settings(
        max_examples=examples or default,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
    )
    options(given(*drawn)(test))()


def run(program: Program, device: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    library = Picograd(device)
    for line in program.lines:
        exec(line, {"lib": library}, names)
        name = line.split(" ")[0]
        if any(names.get(name) is value for other, value in names.items() if other != name):
            names[name] = names[name].clone()  # some functions return their argument
    return names


def compare(program: Program, name: str, found: Any, what: str) -> None:
    wanted = program.values[name]
    label = f"{name} by {what} in\n{program.text()}"
    assert tuple(found.shape) == tuple(wanted.shape), label
    if not wanted.dtype.is_floating_point:
        np.testing.assert_array_equal(found, wanted.numpy(), label)
        return
    tolerance = program.tolerance(name)
    found = found.astype(np.float64)
    np.testing.assert_allclose(found, wanted.numpy(), tolerance, tolerance, err_msg=label)


def check_program(program: Program, device: str, together: bool) -> None:
    tensors: dict[str, Tensor] = run(program, device)
    assert set(tensors) == set(program.values)
    if device == "cpu":
        exact = interpret([tensor.node for tensor in tensors.values()], float64=True)
        for name, value in zip(tensors, exact):
            compare(program, name, value, "the graph interpreter")
    if together:
        tensors["t0"].realize(*tensors.values())
    for name, tensor in tensors.items():
        is_float = program.values[name].dtype.is_floating_point
        assert tensor.dtype.is_float == is_float, f"{name} is {tensor.dtype}"
        compare(program, name, tensor.numpy(), device)


def test_programs_equal_pytorch(examples: int, device: str) -> None:
    def test(program: Program, together: bool) -> None:
        note(program.text())
        check_program(program, device, together)

    check(examples, CI_PROGRAMS, test, programs(), st.booleans())
