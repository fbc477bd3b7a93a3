"""grid_sample and affine_grid equal PyTorch's, with gradients of the input and the grid."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, numbers

from picograd import Tensor
from picograd.errors import PicogradError
from picograd.tensor.network.grid_sample import affine_grid, grid_sample, places_of

torch = pytest.importorskip("torch")

IMAGE, CUBE = numbers((2, 2, 4, 3)), numbers((1, 1, 3, 4, 2))
PLACES = numbers((2, 3, 2, 2), -1.6, 1.6) + 0.013  # no place is a corner, where slopes jump
POINTS = numbers((1, 2, 2, 2, 3), -1.6, 1.6) + 0.013


def both(name: str, inputs: Any, *options: Any, has_gradient: bool = True) -> Case:
    def ours(a: Any, b: Any) -> Any:
        return grid_sample(a, b, *options)

    def theirs(a: Any, b: Any) -> Any:
        return torch.nn.functional.grid_sample(a, b, *options)

    return Case(name, ours, inputs, theirs, has_gradient, dtype="float64")


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(padding: str, device: str) -> None:
    modes: dict[str, list[Any]] = {  # each in few kernels, large ones compile slowly
        "zeros": [(IMAGE, PLACES, "bilinear"), (CUBE, POINTS, "nearest")],
        "border": [(IMAGE, PLACES, "nearest"), (CUBE, POINTS, "bilinear")],
        "reflection": [(IMAGE, PLACES, "bilinear"), (IMAGE, PLACES, "nearest")],
    }
    cases = []
    for x, grid, mode in modes[padding]:
        for align in (False, True):
            options: Any = (mode, padding, align)
            if x is CUBE and align:
                continue
            cases.append(both(f"{x.ndim} {options}", [x, grid], *options))
    compare(cases, device)


@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_places_at_the_ends_of_an_image_have_no_gradients(padding: str, device: str) -> None:
    ends = np.array([[-1.0, 0.1], [1.0, -1.0], [0.2, 1.0]]).reshape(1, 3, 1, 2)
    compare([both(padding, [IMAGE[:1], ends], "bilinear", padding, True)], device)


def test_bicubic(device: str) -> None:
    """Gradients with zeros outside; the other paddings by value."""
    inputs = [IMAGE[:1], PLACES[:1]]
    compare([both("bicubic", inputs, "bicubic", "zeros", True)], device)
    options = ("bicubic", "reflection", False)
    compare([both("bicubic", inputs, *options, has_gradient=False)], device)


@pytest.mark.parametrize("align", [False, True])
def test_affine_grid(align: bool, device: str) -> None:
    flat = (2, 1, 3, 4)
    deep = (2, 1, 3, 2, 4)

    def both_grids(size: Any, theta: Any) -> Case:
        def theirs(t: Any) -> Any:
            return torch.nn.functional.affine_grid(t, size, align)

        return Case("affine", lambda t: affine_grid(t, size, align), [theta], theirs)

    cases = [both_grids(flat, numbers((2, 2, 3))), both_grids(deep, numbers((2, 3, 4)))]
    compare(cases, device)


def test_mistakes(device: str) -> None:
    x, grid = Tensor(IMAGE, device=device), Tensor(PLACES, device=device)
    for wrong in (
        lambda: grid_sample(x, grid[:1]),
        lambda: grid_sample(x, grid[..., :1]),
        lambda: grid_sample(x, grid, "cubic"),
        lambda: grid_sample(x, grid, "nearest", "wrap"),
        lambda: grid_sample(x, grid.float()),
        lambda: grid_sample(x[:, :, :0], grid),
        lambda: affine_grid(x, (2, 1, 3, 3)),
        lambda: affine_grid(grid[:, 0, :, :2], (2, 1, 0, 3)),
    ):
        with pytest.raises(PicogradError):
            wrong()


def test_places_of_equal_sizes_are_made_once() -> None:
    places_of.cache_clear()
    theta = Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    first, second = (affine_grid(theta, (1, 1, 3, 2)) for _ in range(2))
    assert places_of.cache_info().hits == 1
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_places_that_are_no_numbers(padding: str, mode: str, device: str) -> None:
    odd = [np.nan, np.inf, -np.inf, 1e10, 0.25]
    grid = np.array([[x, y] for x in odd for y in odd], np.float32).reshape(1, 5, 5, 2)
    image = IMAGE[:1].astype(np.float32)
    for align in (False, True):
        given = Tensor(image, device=device), Tensor(grid, device=device)
        found = grid_sample(*given, mode, padding, align)
        given = torch.from_numpy(image), torch.from_numpy(grid)
        wanted = torch.nn.functional.grid_sample(*given, mode, padding, align)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
