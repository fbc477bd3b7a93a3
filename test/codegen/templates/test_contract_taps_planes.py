"""Products of few results whose operands lie in planes: gradients of depthwise weights."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contractions import Case, conv_weight_gradient
from run_cpu import TARGET, Loaded, computed

import picograd
from picograd import Tensor
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract, contract_taps_planes
from picograd.schedule.index import axis_index
from picograd.schedule.loop import rewrite
from picograd.target import Target

torch = pytest.importorskip("torch")

ONE, EIGHT = (Target("llvm", "generic", 64, threads=n, registers=32) for n in (1, 8))
AVX2 = Target("llvm", "haswell", 32, threads=2, registers=16)


def depthwise(shape: tuple[int, int, int], groups: int, kernel: int, padding: int) -> Case:
    """Make a gradient of the weights of channels by themselves, whose images are planes."""
    return conv_weight_gradient((*shape, 1), 1, kernel, padding, False, groups)


def is_beside(case: Case, target: Target = ONE) -> bool:
    """Tell whether a case is written so."""
    return contract_taps_planes.build_part(analyse(case.kernel), target) is not None


CASES = [  # images, height, width; channels, kernel, padding
    ((2, 13, 9), 5, 3, 1),
    ((3, 20, 17), 3, 5, 2),
    ((1, 40, 33), 4, 3, 0),
    ((4, 9, 7), 2, 7, 4),  # more padding than taps reach from the middle
    ((3, 70, 61), 2, 3, 1),  # a block is some rows, the last one fewer
    ((7, 30, 31), 2, 3, 1),  # a block is two images, the last one of one
    ((1, 4, 300), 2, 2, 0),
]


@pytest.mark.parametrize("target", [TARGET, ONE, EIGHT, AVX2], ids=["own", "1", "8", "avx2"])
@pytest.mark.parametrize("shape, groups, kernel, padding", CASES)
def test_values(
    shape: tuple[int, int, int], groups: int, kernel: int, padding: int, target: Target
) -> None:
    case = depthwise(shape, groups, kernel, padding)
    assert is_beside(case, target)
    got = computed(case, target)
    assert np.abs(got - case.expected).max() < 2e-6 * np.abs(case.expected).max()


@pytest.mark.parametrize("shape, groups, kernel, padding", CASES[:2])
def test_the_interpreters_go_the_same_way(
    shape: tuple[int, int, int], groups: int, kernel: int, padding: int
) -> None:
    case = depthwise(shape, groups, kernel, padding)
    tiles = contract.build(case.kernel, ONE)
    for interpret, stage in (
        (interpret_tile.interpret, tiles),
        (interpret_program.interpret, linearize(tiles, ONE)),
    ):
        out = case.interpreted(interpret, stage)
        assert np.allclose(out, case.expected.reshape(-1), atol=1e-4, rtol=0)


def test_taps_may_go_backwards() -> None:
    """Weights that are used flipped: a tap further reads a place before."""
    case = depthwise((2, 13, 9), 5, 3, 1)
    (part,) = case.kernel.parts
    hero, *others = part.computes
    taps = [axis for axis in hero.axes if axis.name in ("ky", "kx")]
    turned = {axis: axis_index(axis) * -1 + (axis.size - 1) for axis in taps}
    hero = replace(hero, body=rewrite(hero.body, turned))
    kernel = replace(case.kernel, parts=(replace(part, computes=(hero, *others)),))
    assert contract_taps_planes.build_part(analyse(kernel), ONE) is not None
    loaded = Loaded(kernel, case.inputs, TARGET)
    loaded.run_backwards()
    got = loaded.result().reshape(case.expected.shape)
    assert np.allclose(got[..., ::-1, ::-1], case.expected, atol=1e-4, rtol=0)


def test_others_are_not_written_so() -> None:
    """Channels that lie last, one channel, and products of many results."""
    assert not is_beside(conv_weight_gradient((2, 9, 9, 1), 1, 3, 1, True, 32))
    assert not is_beside(depthwise((2, 9, 9), 1, 3, 1))
    assert not is_beside(conv_weight_gradient((2, 9, 9, 32), 32, 3, 1, False))
    assert not is_beside(depthwise((2, 30, 30), 8, 9, 4))


NETWORKS = [  # images, channels, height, width, kernel, stride, padding, dilation, times
    (2, 6, 19, 23, 3, 1, 1, 1, 1),
    (3, 5, 21, 18, 3, 2, 1, 1, 1),
    (1, 4, 33, 40, 5, 2, 2, 1, 1),
    (2, 3, 25, 25, 3, 1, 2, 2, 1),
    (2, 3, 40, 31, 5, 3, 4, 1, 1),
    (2, 3, 20, 20, 3, 1, 1, 1, 2),
    (2, 3, 30, 30, 3, 2, 3, 3, 1),  # a stride and gaps without common places
    (9, 4, 7, 7, 7, 1, 3, 1, 1),
]


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("case", NETWORKS)
def test_gradients_beside_float64(case: tuple[int, ...], dtype: str) -> None:
    images, channels, height, width, kernel, stride, padding, dilation, times = case
    random = np.random.default_rng(kernel)
    x = random.standard_normal((images, channels, height, width))
    w = random.standard_normal((channels * times, 1, kernel, kernel))
    options: dict[str, Any] = dict(
        stride=stride, padding=padding, dilation=dilation, groups=channels
    )
    given = [Tensor(each).to(getattr(picograd, dtype)).requires_grad_(True) for each in (x, w)]
    exact = [torch.tensor(t.detach().double().numpy(), requires_grad=True) for t in given]
    found = picograd.nn.functional.conv2d(*given, **options)
    wanted = torch.nn.functional.conv2d(*exact, **options)
    np_g = random.standard_normal(tuple(wanted.shape))
    g = Tensor(np_g).to(getattr(picograd, dtype))
    found.backward(g)
    wanted.backward(torch.tensor(g.double().numpy()))
    error = {"float32": 3e-6, "float64": 1e-13, "bfloat16": 8e-3}[dtype]
    for ours, theirs in zip(given, exact, strict=True):
        most = theirs.grad.abs().max().item()
        off = np.abs(ours.grad.double().numpy() - theirs.grad.numpy()).max()
        assert off < error * most


@pytest.mark.usefixtures("cpu_by_default")
def test_one_dimension_and_three() -> None:
    random = np.random.default_rng(1)
    for rank, size in ((1, 70), (3, 9)):
        x = random.standard_normal((2, 3, *(size,) * rank)).astype(np.float32)
        w = random.standard_normal((3, 1, *(3,) * rank)).astype(np.float32)
        ours = [Tensor(each).requires_grad_(True) for each in (x, w)]
        exact = [torch.tensor(each).double().requires_grad_(True) for each in (x, w)]
        conv = f"conv{rank}d"
        getattr(picograd.nn.functional, conv)(*ours, padding=1, groups=3).square().sum().backward()
        getattr(torch.nn.functional, conv)(*exact, padding=1, groups=3).square().sum().backward()
        for own, theirs in zip(ours, exact, strict=True):
            np.testing.assert_allclose(own.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-3)
