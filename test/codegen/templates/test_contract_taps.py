"""Depthwise convolutions on a CPU beside PyTorch's in double precision, and what is tapped."""

import numpy as np
import pytest
from contractions import Case, conv, matmul
from run_cpu import TARGET

import picograd
from picograd import Tensor, nn
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract
from picograd.codegen.templates.contract_taps import is_tapped

torch = pytest.importorskip("torch")

F = nn.functional
CASES = [  # images, channels, size, kernel, stride, padding, dilation
    (2, 8, 12, 3, 1, 1, 1),
    (1, 5, 9, 3, 2, 1, 1),
    (2, 4, 17, 5, 1, 2, 1),
    (1, 3, 24, 7, 1, 3, 1),
    (2, 6, 11, 3, 1, 0, 1),
    (1, 4, 16, 3, 1, 2, 2),
    (1, 4, 13, 5, 3, 4, 2),
    (1, 2, 60, 2, 1, 1, 1),
    (1, 33, 4, 3, 1, 1, 1),
]


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_depthwise_convolutions_and_gradients(case: tuple[int, ...], is_last: bool) -> None:
    images, channels, size, kernel, stride, padding, dilation = case
    x, w, b = (
        drawn(images, channels, size, size),
        drawn(channels, 1, kernel, kernel),
        drawn(channels),
    )
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=channels)
    given = [Tensor(each).realize().requires_grad_(True) for each in (x, w, b)]
    doubles = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (x, w, b)]
    source = given[0]
    if is_last:  # in memory channels come last
        source = given[0].permute(0, 2, 3, 1).contiguous().realize().permute(0, 3, 1, 2)
    found = F.conv2d(source, given[1], given[2], **options).relu()
    wanted = torch.nn.functional.conv2d(*doubles, **options).relu()
    np.testing.assert_allclose(
        found.detach().numpy(), wanted.detach().numpy(), rtol=2e-4, atol=2e-5
    )
    found.square().sum().backward()
    wanted.square().sum().backward()
    for ours, theirs in zip(given, doubles, strict=True):
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype: str) -> None:
    x, w = drawn(1, 8, 20, 20), drawn(8, 1, 3, 3)
    found = F.conv2d(*[Tensor(e).to(getattr(picograd, dtype)) for e in (x, w)], padding=1, groups=8)
    exact = torch.nn.functional.conv2d(
        *[torch.tensor(e).to(getattr(torch, dtype)).double() for e in (x, w)], padding=1, groups=8
    )
    error = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(found.double().numpy(), exact.numpy(), rtol=error, atol=error)


def test_in_one_dimension_and_three() -> None:
    for rank in (1, 3):
        x, w = drawn(2, 6, *(9,) * rank), drawn(6, 1, *(3,) * rank)
        found = getattr(F, f"conv{rank}d")(Tensor(x), Tensor(w), padding=1, groups=6)
        given = [torch.tensor(each).double() for each in (x, w)]
        exact = getattr(torch.nn.functional, f"conv{rank}d")(*given, padding=1, groups=6)
        np.testing.assert_allclose(found.numpy(), exact.numpy(), rtol=1e-4, atol=1e-5)


def test_sizes_that_vary() -> None:
    w = Tensor(drawn(8, 1, 3, 3)).realize()
    jitted = picograd.jit(lambda x: F.conv2d(x, w, padding=1, groups=8).relu())
    for images, size in ((2, 10), (3, 11), (1, 14), (4, 9), (2, 13)):
        x = drawn(images, 8, size, size)
        given = [torch.tensor(each).double() for each in (x, w.numpy())]
        exact = torch.nn.functional.conv2d(*given, padding=1, groups=8).relu()
        np.testing.assert_allclose(jitted(Tensor(x)).numpy(), exact.numpy(), rtol=1e-4, atol=1e-5)


ALONE = [  # a stride and gaps that have no places in common: no tile holds the image
    conv((2, 30, 70, 1), 1, 3, stride=2, padding=1, dilation=3, groups=3, channels_last=False),
    conv((1, 19, 64, 1), 1, 5, stride=3, padding=2, dilation=2, groups=2, channels_last=False),
    conv((1, 24, 50, 1), 4, 3, stride=2, padding=0, dilation=3, groups=3, channels_last=False),
]


@pytest.mark.parametrize("case", ALONE, ids=range(len(ALONE)))
def test_kernels_are_tapped_and_mean_the_same_at_every_stage(case: Case) -> None:
    assert is_tapped(analyse(case.kernel))
    tiles = contract.build(case.kernel, TARGET)
    names = {tile.name for part in tiles.parts for tile in part.tiles}
    assert names <= {"c", "taps"}  # nothing is packed
    for interpret, stage in (
        (interpret_tile.interpret, tiles),
        (interpret_program.interpret, linearize(tiles, TARGET)),
    ):
        slots = [*(each.ravel().copy() for each in case.inputs), np.zeros(case.expected.size)]
        slots[-1] = slots[-1].astype(np.float32)
        interpret(stage, slots)
        np.testing.assert_allclose(slots[-1], case.expected.ravel(), atol=1e-4)


def test_planar_images_come_in_tiles() -> None:
    """Each tap reads such an image from another place; padding is written once."""
    for stride, dilation in ((1, 1), (2, 1), (1, 2)):
        case = conv((2, 40, 48, 1), 1, 3, stride, 1, dilation, groups=3, channels_last=False)
        tiles = contract.build(case.kernel, TARGET)
        assert {tile.name for part in tiles.parts for tile in part.tiles} == {"a", "b", "c"}


def test_what_shares_weights_or_reads_far_apart_is_packed() -> None:
    shared = conv((2, 9, 24, 1), 5, 3, padding=1, groups=2, channels_last=False)
    short = conv((2, 9, 14, 1), 1, 3, padding=1, groups=4, channels_last=False)
    far = matmul((4, 200, 1, 16))
    for case in (shared, short, far):
        assert not is_tapped(analyse(case.kernel))
