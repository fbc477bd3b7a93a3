"""Convolutions of every rank, pooling with all its options, and patches, against PyTorch."""

from typing import Any

import numpy as np
import pytest
from interpreted_cuda import interpreted_cuda
from op_support import Case, compare, numbers
from poison import poison

import picograd
from picograd import Tensor
from picograd.errors import DTypeError
from picograd.nn import functional

torch = pytest.importorskip("torch")
F = torch.nn.functional

SHAPES = {1: (2, 4, 9), 2: (2, 4, 7, 6), 3: (1, 4, 5, 6, 4)}


def both(name: str, *args: Any, pick: Any = None, **options: Any) -> tuple[Any, Any]:
    """Make the method call and the function call."""

    def chosen(result: Any) -> Any:
        return result if pick is None else result[pick]

    def ours(x: Any, *more: Any) -> Any:
        return chosen(getattr(x, name)(*more, *args, **options))

    def theirs(x: Any, *more: Any) -> Any:
        return chosen(getattr(F, name)(x, *more, *args, **options))

    return ours, theirs


def case(name: str, arrays: Any, *args: Any, **options: Any) -> Case:
    ours, theirs = both(name, *args, **options)
    is_index = options.get("pick") == 1
    return Case(name, ours, arrays, theirs, has_gradient=not is_index, scale=5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank: int, device: str) -> None:
    x = numbers(SHAPES[rank])
    weight, bias = numbers((6, 4, *(3, 2, 3)[:rank])), numbers((6,))
    grouped = numbers((6, 2, *(2, 3, 2)[:rank]))
    name = f"conv{rank}d"
    cases = [
        case(name, [x, weight, bias]),
        case(name, [x, weight], stride=2, padding=1),
        case(name, [x, weight], dilation=2, padding=2),
        case(name, [x, weight], padding="same"),
        case(name, [x, weight], padding="valid"),
        case(name, [x, grouped, bias], groups=2),
        case(name, [x[0], weight, bias]),
        case(name, [x[:0], weight, bias]),
    ]
    compare(cases, device)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions(rank: int, device: str) -> None:
    x = numbers(SHAPES[rank])
    weight, bias = numbers((4, 3, *(3, 2, 3)[:rank])), numbers((3,))
    name = f"conv_transpose{rank}d"
    cases = [
        case(name, [x, weight, bias]),
        case(name, [x, weight], stride=2, padding=1),
        case(name, [x, weight], stride=3, output_padding=2),
        case(name, [x, weight], dilation=2, padding=1),
        case(name, [x, weight], groups=2, stride=2),
        case(name, [x[0], weight]),
    ]
    compare(cases, device)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_pooling(rank: int, device: str) -> None:
    x, name = numbers(SHAPES[rank]), f"max_pool{rank}d"
    cases = [
        case(name, [x], 2),
        case(name, [x], 3, stride=1, padding=1),
        case(name, [x], 2, stride=3, ceil_mode=True),
        case(name, [x], 2, dilation=2, stride=1),
        case(name, [x[0]], 2),
        case(name, [x], 2, return_indices=True, pick=1),
        case(name, [x], 3, stride=2, padding=1, return_indices=True, pick=0),
        case(name, [x], 3, stride=2, padding=1, return_indices=True, pick=1),
        case(name, [x], 3, stride=2, ceil_mode=True, return_indices=True, pick=1),
        case(name, [x], 2, dilation=2, stride=1, return_indices=True, pick=1),
        case(f"adaptive_max_pool{rank}d", [x], 2),
        case(f"adaptive_max_pool{rank}d", [x], 3),
        case(f"adaptive_max_pool{rank}d", [x], 3, return_indices=True, pick=1),
    ]
    compare(cases, device)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_average_pooling(rank: int, device: str) -> None:
    x, name = numbers(SHAPES[rank]), f"avg_pool{rank}d"
    cases = [
        case(name, [x], 2),
        case(name, [x], 3, stride=2, padding=1),
        case(name, [x], 3, stride=2, padding=1, count_include_pad=False),
        case(name, [x], 2, stride=3, ceil_mode=True),
        case(name, [x], 3, stride=2, padding=1, ceil_mode=True),
        case(f"adaptive_avg_pool{rank}d", [x], 2),
        case(f"adaptive_avg_pool{rank}d", [x], 3),
    ]
    if rank > 1:
        cases.append(case(name, [x], 2, divisor_override=3))
    if rank < 3:
        cases.append(case(f"lp_pool{rank}d", [abs(x) + 0.25], 2.0, 2))
        cases.append(case(f"lp_pool{rank}d", [abs(x) + 0.25], 3.0, 3, stride=1))
    compare(cases, device)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling(rank: int, device: str) -> None:
    x, name = numbers(SHAPES[rank]), f"max_unpool{rank}d"

    def there_and_back(t: Any) -> Any:
        is_torch = isinstance(t, torch.Tensor)
        pool = getattr(F if is_torch else type(t), f"max_pool{rank}d")
        values, indices = pool(t, 2, return_indices=True)
        return getattr(F if is_torch else type(t), name)(values, indices, 2)

    def to_size(t: Any) -> Any:
        is_torch = isinstance(t, torch.Tensor)
        pool = getattr(F if is_torch else type(t), f"max_pool{rank}d")
        values, indices = pool(t, 2, return_indices=True)
        unpool = getattr(F if is_torch else type(t), name)
        return unpool(values, indices, 2, output_size=tuple(t.shape[2:]))

    compare([Case(name, there_and_back, [x]), Case(f"{name} size", to_size, [x])], device)


def test_patches(device: str) -> None:
    x = numbers((2, 3, 6, 5))
    options: list[dict[str, Any]] = [
        dict(kernel_size=2),
        dict(kernel_size=(3, 2), padding=1, stride=2),
        dict(kernel_size=2, dilation=2, stride=(1, 2)),
    ]
    cases = []
    for each in options:
        columns = F.unfold(torch.from_numpy(x), **each).numpy()
        cases += [
            Case("unfold", lambda t, o=each: t.im2col(**o), [x],
                 lambda t, o=each: F.unfold(t, **o)),
            Case("fold", lambda t, o=each: t.col2im((6, 5), **o), [columns],
                 lambda t, o=each: F.fold(t, (6, 5), **o)),
        ]  # fmt: skip
    compare(cases, device)


@pytest.mark.parametrize("sizes", [True, (True, 2), {}, 2.5, "ab", [1.5, 2], None, (2, None)])
def test_sizes_of_cells_are_ints(sizes):
    x = Tensor(np.ones((1, 2, 4, 4), np.float32))
    for name in ("adaptive_max_pool2d", "adaptive_avg_pool2d"):
        if sizes is None or sizes == (2, None):
            assert getattr(functional, name)(x, sizes).shape[-1] == 4
            continue
        with pytest.raises(DTypeError, match=r"sizes must be ints|output_size must be an int"):
            getattr(functional, name)(x, sizes)


@pytest.mark.parametrize("padding", [{}, "ab", set(), True, 1.5])
def test_padding_is_ints(padding):
    x = Tensor(np.ones((1, 2, 4, 4), np.float32))
    with pytest.raises(DTypeError, match=r"sizes must be ints|padding must be an int or a tuple"):
        functional.conv2d(x, x, padding=padding)


# images, channels in and out, height and width; of the convolution; of the pooling
STAGES = [
    ((1, 1, 1, 5, 5), (3, 1, 1, 1), (2, 2, 0, 1)),
    ((2, 3, 8, 9, 9), (3, 1, 1, 1), (2, 2, 0, 1)),
    ((1, 3, 5, 9, 8), (3, 1, 0, 1), (2, 2, 0, 1)),
    ((3, 4, 17, 13, 7), (3, 1, 1, 1), (3, 3, 0, 1)),
    ((2, 16, 64, 27, 27), (3, 1, 1, 1), (2, 2, 0, 1)),
    ((1, 3, 6, 29, 29), (5, 1, 0, 1), (2, 2, 0, 1)),
    ((2, 8, 16, 15, 11), (3, 2, 1, 1), (2, 3, 0, 1)),
    ((2, 5, 4, 12, 14), (3, 1, 2, 2), ((2, 3), (2, 4), 0, 1)),
    ((1, 2, 33, 7, 6), (1, 1, 0, 1), (2, 2, 0, 1)),
    ((5, 3, 2, 6, 6), (3, 1, 1, 1), (4, 4, 0, 1)),
    ((2, 3, 8, 11, 11), (3, 1, 1, 1), (3, 2, 0, 1)),
    ((2, 3, 8, 11, 10), (3, 1, 1, 1), (3, 2, 1, 1)),
    ((1, 4, 16, 12, 13), (5, 2, 2, 1), (2, 1, 1, 1)),
    ((2, 3, 9, 10, 9), (3, 1, 1, 1), (2, 2, 0, 2)),
    ((2, 3, 9, 14, 9), (3, 1, 1, 1), (2, 3, 1, 2)),
]


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize(("sizes", "of_convolution", "of_windows"), STAGES, ids=str)
def test_convolution_and_pooling(
    name: str, sizes: Any, of_convolution: Any, of_windows: Any, device: str
) -> None:
    images, inputs, outputs, *size = sizes
    kernel, stride, padding, dilation = of_convolution
    extent, step, edge, gap = of_windows
    options = {"dilation": gap} if name == "max_pool2d" else {}

    def stage(conv: Any, pool: Any) -> Any:
        def run(x: Any, weight: Any, bias: Any) -> Any:
            y = conv(x, weight, bias, stride=stride, padding=padding, dilation=dilation)
            return pool(y.relu(), extent, step, edge, **options)

        return run

    arrays = numbers((images, inputs, *size)), numbers((outputs, inputs, kernel, kernel))
    arrays = *arrays, numbers((outputs,))
    ours = stage(functional.conv2d, getattr(functional, name))
    theirs = stage(F.conv2d, getattr(F, name))
    for has_gradient in (False, True):
        compare([Case(name, ours, arrays, theirs, has_gradient, scale=5)], device)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_extremes_of_computed_16_bit_values_are_found_again(name: str, device: str) -> None:
    """What is stored is rounded; what is compared with it, computed again, is as well."""
    dtype = getattr(picograd, name)
    values = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    x = Tensor(values, device=device).to(dtype).realize().requires_grad_()
    functional.max_pool1d(x * 0.2, 2).float().sum().backward()
    assert x.grad is not None and (x.grad != 0).sum().item() == 16
    x.grad = None
    (x * 0.2).cummax(1)[0].float().sum().backward()
    assert x.grad is not None and x.grad.float().sum().item() == pytest.approx(32 * 0.2, rel=0.01)
    top = (x.detach() * 0.2).amax(1, keepdim=True).realize()
    assert (x.detach() * 0.2 == top).sum().item() == 4


def test_unpooled_sizes_are_among_those_that_pool_to_the_input(device: str) -> None:
    def unpooled(framework: Any, size: Any) -> Any:
        x = framework.arange(30.0).reshape(1, 1, 5, 6)
        layers = framework.nn
        values, places = layers.MaxPool2d(2, 2, return_indices=True)(x)
        return layers.MaxUnpool2d(2, 2)(values, places, output_size=size).tolist()

    for size in (None, (5, 6), (1, 1, 5, 6), [4, 7]):
        assert unpooled(picograd, size) == unpooled(torch, size)
    for size in ((9, 9), (5, 8), (2, 6)):
        with pytest.raises(ValueError):
            unpooled(torch, size)
        with pytest.raises(ValueError, match="max_unpool2d: output_size .* is not possible: axis"):
            unpooled(picograd, size)


@pytest.mark.usefixtures("on_host")
def test_windows_of_few_convolved_rows_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that few threads would compute sooner is one of tiles where windows follow it."""
    generator = np.random.default_rng(0)
    image, weight = (generator.normal(size=n).astype("f") for n in ((1, 3, 40, 48), (4, 3, 3, 3)))
    with interpreted_cuda(monkeypatch) as device:
        poison(monkeypatch, device)
        x, w = Tensor(image, device="cuda"), Tensor(weight, device="cuda")
        found = functional.conv2d(x, w, stride=2, padding=1).relu()
        pooled = functional.max_pool2d(found, 2).numpy()
        found = found.numpy()
    wanted = F.conv2d(torch.tensor(image), torch.tensor(weight), stride=2, padding=1).relu()
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(pooled, F.max_pool2d(wanted, 2).numpy(), rtol=1e-4, atol=1e-5)
