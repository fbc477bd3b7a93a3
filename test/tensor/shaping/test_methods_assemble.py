"""Writing by index, products of sets, functions of several tensors, against PyTorch."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, numbers

import picograd

torch = pytest.importorskip("torch")
X = numbers((3, 4, 5))


def test_smallest_and_largest(device: str) -> None:
    def ours(x: Any) -> Any:
        low, high = x.aminmax(dim=1)
        return high - 2 * low

    compare([Case("aminmax", ours, [X], lambda x: x.amax(1) - 2 * x.amin(1))], device)


def test_writing(device: str) -> None:
    x, source = numbers((4, 5)), numbers((3, 5), seed=3)
    rows = np.array([2, 0])
    index = np.array([[0, 1, 2, 3, 0], [1, 0, 1, 2, 3], [3, 2, 0, 0, 1]])
    flat = np.array([[0, 7], [19, -1]])
    unique = np.array([[0, 7], [19, -4]])
    values = numbers((2, 2), seed=9)
    cases = [
        Case("index_fill", lambda t, i: t.index_fill(1, i, 2.5), [x, rows]),
        Case("index_copy", lambda t, i, s: t.index_copy(0, i, s), [x, rows, source[:2]]),
        Case("take", lambda t, i: t.take(i), [x, flat]),
        Case("put", lambda t, i, s: t.put(i, s), [x, unique, values]),
        Case("put sum", lambda t, i, s: t.put(i, s, accumulate=True), [x, flat, values]),
        Case("masked_scatter", lambda t, s: t.masked_scatter(t.detach() > 0, s), [x, x * 2]),
    ]
    for name in ("sum", "mean", "amax", "amin", "prod"):
        for own in (True, False):
            far = x + 10 if name == "prod" else x
            cases.append(
                Case(
                    f"scatter_reduce {name} {own}",
                    lambda t, i, s, n=name, o=own: t.scatter_reduce(0, i, s, n, include_self=o),
                    [far, index, source + 20 if name == "prod" else source],
                    scale=10,
                    has_gradient=own or name in ("sum", "mean"),
                )
            )
    compare(cases, device)


def test_functions_of_several_tensors(device: str) -> None:
    a, b, c = numbers((3,)), numbers((4,), seed=1), numbers((2, 4), seed=2)

    def call(name: str, pick: Any = None, spread: bool = True, **options: Any) -> Any:
        def run(*tensors: Any) -> Any:
            library = torch if isinstance(tensors[0], torch.Tensor) else picograd
            given = tensors if spread else (tensors,)
            result = getattr(library, name)(*given, **options)
            return result if pick is None else result[pick]

        return run

    cases = [
        Case("meshgrid", call("meshgrid", 0, indexing="ij"), [a, b]),
        Case("meshgrid xy", call("meshgrid", 1, indexing="xy"), [a, b]),
        Case("broadcast", call("broadcast_tensors", 0), [b, c]),
        Case("block_diag", call("block_diag"), [a, c]),
        Case("vstack", call("vstack", spread=False), [b, c]),
        Case("hstack", call("hstack", spread=False), [a, b]),
        Case("hstack 2", call("hstack", spread=False), [c, c]),
        Case("dstack", call("dstack", spread=False), [c, c]),
    ]
    compare(cases, device)
    assert picograd.tril_indices(3, 3, -1).tolist() == torch.tril_indices(3, 3, -1).tolist()
    assert picograd.triu_indices(3, 4).tolist() == torch.triu_indices(3, 4).tolist()


def test_what_has_the_common_shape_is_itself() -> None:
    x, y = (picograd.tensor(each, requires_grad=True) for each in ([1.0, 2.0], [3.0]))
    same, wide = picograd.broadcast_tensors(x, y)
    assert same is x and wide.shape == (2,)
    density = picograd.distributions.Normal(x, x)
    assert density.loc is x  # where programs look for its gradient
