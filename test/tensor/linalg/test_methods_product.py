"""Matrix products, einsum, convolutions and pooling."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, integers, numbers

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

F = torch.nn.functional
MATMULS = {
    "matrices": ((3, 4), (4, 5)),
    "row": ((4,), (4, 5)),
    "column": ((3, 4), (4,)),
    "vectors": ((4,), (4,)),
    "batch": ((2, 3, 4), (2, 4, 5)),
    "batch of rows": ((2, 3, 4), (4,)),
    "broadcast": ((2, 1, 3, 4), (5, 4, 6)),
    "left matrix": ((3, 4), (2, 4, 5)),
    "empty": ((0, 4), (4, 5)),
    "no inner": ((3, 0), (0, 5)),
}
EINSUMS = {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "ij,kj->ik": ((3, 4), (5, 4)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "ij,ij->": ((3, 4), (3, 4)),
    "i,j->ij": ((3,), (4,)),
    "ij->ji": ((3, 4),),
    "ij->j": ((3, 4),),
    "ii->i": ((4, 4),),
    "ii->": ((4, 4),),
    "...ij,...jk->...ik": ((2, 3, 4), (2, 4, 5)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
    "bhqd,bhkd->bhqk": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "ij,jk": ((3, 4), (4, 5)),
    "abc,cd->abd": ((2, 3, 4), (4, 5)),
}


def test_matmul(device: str) -> None:
    cases = []
    for name, (left, right) in MATMULS.items():
        a, b = numbers(left), numbers(right, seed=1)
        cases.append(Case(name, lambda x, y: x @ y, [a, b]))
    a = numbers((4, 4))
    cases += [
        Case("twice", lambda x: x @ x, [a]),
        Case("transposed", lambda x: x.T @ x.T, [a]),
        Case("of slices", lambda x: x[1:, ::2] @ x[::2, 1:], [a]),
        Case("mm", lambda x, y: x.mm(y), [a, a + 1]),
        Case("outer", lambda x, y: x.outer(y), [a[0], a[1]]),
        Case("dot", lambda x, y: x.dot(y), [a[0], a[1]]),
        Case("integers", lambda x, y: x @ y, [integers((3, 4)), integers((4, 2))],
             has_gradient=False),
        Case("double", lambda x, y: x @ y, [a, a + 1], dtype="float64"),
    ]  # fmt: skip
    for dtype in ("float16", "bfloat16"):
        shapes = numbers((17, 40), -1, 1), numbers((40, 9), -1, 1)
        cases.append(Case("half", lambda x, y: x @ y, shapes, dtype=dtype, has_gradient=False))
    compare(cases, device)


def test_large_matmul(device: str) -> None:
    a, b = numbers((70, 130), -1, 1), numbers((130, 65), -1, 1, seed=1)
    compare([Case("large", lambda x, y: x @ y, [a, b], scale=4)], device)


def test_linear(device: str) -> None:
    x, weight, bias = numbers((2, 3, 4)), numbers((5, 4)), numbers((5,))
    reference = lambda *each: F.linear(*each)  # noqa: E731
    cases = [
        Case("linear", lambda *each: each[0].linear(*each[1:]), [x, weight, bias], reference),
        Case("no bias", lambda *each: each[0].linear(*each[1:]), [x, weight], reference),
    ]
    compare(cases, device)


def einsum(equation: str) -> Any:
    def call(*tensors: Any) -> Any:
        library = torch if isinstance(tensors[0], torch.Tensor) else picograd
        return library.einsum(equation, *tensors)

    return call


def test_einsum(device: str) -> None:
    cases = [
        Case(equation, einsum(equation), [numbers(s, seed=n) for n, s in enumerate(shapes)])
        for equation, shapes in EINSUMS.items()
    ]
    compare(cases, device)


CONVOLUTIONS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "plain": ((2, 3, 6, 7), (4, 3, 3, 2), {}),
    "stride": ((2, 3, 7, 8), (4, 3, 3, 3), {"stride": 2, "padding": 1}),
    "uneven": ((1, 2, 7, 8), (3, 2, 2, 3), {"stride": (2, 1), "padding": (1, 0)}),
    "dilation": ((1, 2, 8, 8), (3, 2, 3, 3), {"dilation": 2, "padding": 2}),
    "groups": ((2, 4, 5, 5), (6, 2, 3, 3), {"groups": 2}),
    "depthwise": ((2, 3, 5, 5), (3, 1, 3, 3), {"groups": 3, "padding": 1}),
    "pointwise": ((2, 3, 4, 4), (5, 3, 1, 1), {}),
    "same": ((1, 2, 5, 6), (3, 2, 3, 2), {"padding": "same"}),
    "unused edge": ((1, 1, 6, 6), (1, 1, 3, 3), {"stride": 2}),
}


def test_conv2d(device: str) -> None:
    cases = []
    for name, (image, kernel, options) in CONVOLUTIONS.items():
        inputs = [numbers(image), numbers(kernel, -1, 1), numbers(kernel[:1])]
        cases.append(
            Case(
                name,
                lambda x, w, b, o=options: x.conv2d(w, b, **o),
                inputs,
                lambda x, w, b, o=options: F.conv2d(x, w, b, **o),
            )
        )
    cases.append(
        Case(
            "conv1d",
            lambda x, w: x.conv1d(w, padding=1),
            [numbers((2, 3, 8)), numbers((4, 3, 3))],
            lambda x, w: F.conv1d(x, w, padding=1),
        )
    )
    cases.append(
        Case(
            "transposed",
            lambda x, w: x.conv_transpose2d(w, stride=2, padding=1, output_padding=1, groups=2),
            [numbers((1, 4, 3, 3)), numbers((4, 2, 3, 3))],
            lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1, 2),
        )
    )
    compare(cases, device)


def test_pooling(device: str) -> None:
    x = numbers((2, 3, 7, 6)) + np.arange(42).reshape(7, 6) / 64
    pools: list[tuple[str, dict[str, Any]]] = [
        ("max_pool2d", dict(kernel_size=2)),
        ("max_pool2d", dict(kernel_size=3, stride=2, padding=1)),
        ("max_pool2d", dict(kernel_size=(2, 3), stride=(1, 2), dilation=2)),
        ("max_pool2d", dict(kernel_size=3, stride=2, ceil_mode=True)),
        ("avg_pool2d", dict(kernel_size=2)),
        ("avg_pool2d", dict(kernel_size=3, stride=2, padding=1)),
        ("avg_pool2d", dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
        ("avg_pool2d", dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
        ("adaptive_avg_pool2d", dict(output_size=(1, 3))),
        ("adaptive_avg_pool2d", dict(output_size=(3, 4))),
    ]
    cases = [
        Case(
            f"{name} {options}",
            lambda t, n=name, o=options: getattr(t, n)(**o),
            [x],
            lambda t, n=name, o=options: getattr(F, n)(t, **o),
        )
        for name, options in pools
    ]
    ties = np.zeros((1, 1, 4, 4))
    cases.append(Case("ties", lambda t: t.max_pool2d(2), [ties], lambda t: F.max_pool2d(t, 2)))
    compare(cases, device)


@pytest.mark.parametrize("depth", [4, 8, 16, 18])
def test_operands_joined_of_parts(depth: int, device: str) -> None:
    """A key cache grown by `cat` is read part by part: whole vectors of one part under one mask."""
    random = np.random.default_rng(depth)
    shapes = [(2, 3, 4, depth), (2, 3, 12, depth), (2, 3, 6, depth)]
    query, old, new = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
    keys = np.concatenate([old, new], 2)
    joined = picograd.cat([Tensor(old, device=device), Tensor(new, device=device)], 2)
    scores = Tensor(query, device=device) @ joined.mT
    wanted = query @ keys.swapaxes(2, 3)
    np.testing.assert_allclose(scores.numpy(), wanted, 1e-4, 1e-5)
    weights = Tensor(wanted, device=device)
    again = picograd.cat([Tensor(old, device=device), Tensor(new, device=device)], 2)
    np.testing.assert_allclose((weights @ again).numpy(), wanted @ keys, 1e-4, 1e-4)
