"""Products of few results that lie side by side, on a CPU: gradients of depthwise weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contractions import Case, conv_weight_gradient
from run_cpu import TARGET, computed

import picograd
from picograd.codegen import interpret_tile
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract, contract_taps_sums
from picograd.target import Target

torch = pytest.importorskip("torch")

ONE, EIGHT = (Target("llvm", "generic", 64, threads=n, registers=32) for n in (1, 8))


def depthwise(shape: tuple[int, int, int], groups: int, kernel: int, padding: int) -> Case:
    """Make a gradient of the weights of channels by themselves."""
    return conv_weight_gradient((*shape, 1), 1, kernel, padding, groups=groups)


def is_beside(case: Case, target: Target = ONE) -> bool:
    """Tell whether a case is written so."""
    return contract_taps_sums.build_part(analyse(case.kernel), target) is not None


@pytest.mark.parametrize("target", [TARGET, ONE, EIGHT], ids=["own", "1", "8"])
@pytest.mark.parametrize("shape, groups, kernel, padding", [
    ((2, 13, 9), 16, 3, 1),
    ((3, 20, 17), 70, 5, 2),  # a last block of fewer channels, parts of rows
    ((1, 40, 33), 97, 3, 0),
    ((4, 9, 7), 33, 7, 4),  # more padding than taps reach from the middle
])  # fmt: skip
def test_values(
    shape: tuple[int, int, int], groups: int, kernel: int, padding: int, target: Target
) -> None:
    case = depthwise(shape, groups, kernel, padding)
    assert is_beside(case, target)
    got = computed(case, target)
    assert np.abs(got - case.expected).max() < 2e-6 * np.abs(case.expected).max()


def test_the_interpreter_goes_the_same_way() -> None:
    case = depthwise((2, 20, 17), 20, 3, 1)
    out = case.interpreted(interpret_tile.interpret, contract.build(case.kernel, ONE))
    assert np.allclose(out, case.expected.reshape(-1), atol=1e-4, rtol=0)


def test_others_are_not_written_so() -> None:
    """Channels that do not lie last, few of them, and products of many results."""
    assert not is_beside(conv_weight_gradient((2, 9, 9, 1), 1, 3, 1, False, 32))
    assert not is_beside(depthwise((2, 9, 9), 8, 3, 1))
    assert not is_beside(conv_weight_gradient((2, 9, 9, 32), 32, 3, 1))


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.parametrize("stride, dilation, times", [(1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 1, 2)])
def test_in_networks(
    stride: int, dilation: int, times: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Strides, gaps and several results a channel; kernels are new, and one is written so."""
    taken = []

    def noted(*args: Any) -> Any:
        taken.append(build(*args))
        return taken[-1]

    build = contract_taps_sums.build_part
    monkeypatch.setattr(contract_taps_sums, "build_part", noted)
    monkeypatch.setattr(picograd.config, "cache", str(tmp_path))
    random = np.random.default_rng(stride + dilation + times)
    image = random.normal(size=(3, 13, 11, 24)).astype(np.float32)
    weight = random.normal(size=(24 * times, 1, 3, 3)).astype(np.float32)
    found = []
    for library in (picograd, torch):
        x, w = (library.tensor(each) for each in (image, weight))
        if library is torch:
            x, w = x.double(), w.double()
        x, w = x.requires_grad_(), w.requires_grad_()
        y = library.nn.functional.conv2d(
            x.permute(0, 3, 1, 2), w, stride=stride, padding=dilation, dilation=dilation, groups=24
        )
        places = 3, *y.shape[2:], 24 * times
        given = library.tensor(np.random.default_rng(1).normal(size=places).astype(np.float32))
        (y * given.permute(0, 3, 1, 2)).sum().backward()
        found.append([each.detach().numpy() for each in (y, x.grad, w.grad)])
    assert times > 1 or any(part is not None for part in taken)
    for mine, theirs in zip(*found, strict=True):
        assert np.abs(mine - theirs).max() < 1e-5 * np.abs(theirs).max()
