"""Views, joining, splitting and indexing: values and gradients equal PyTorch's."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, integers, numbers

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

VIEWS: dict[str, Any] = {
    "reshape": lambda x: x.reshape(4, -1),
    "view": lambda x: x.view((2, 2, 15)),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, -1),
    "mT": lambda x: x.mT,
    "movedim": lambda x: x.movedim(0, 2),
    "unsqueeze": lambda x: x.unsqueeze(1).expand(3, 2, 4, 5),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "flip": lambda x: x.flip(0, 2),
    "flip of flip": lambda x: x.flip(0).permute(1, 0, 2).flip(1)[:, :2],
    "repeat": lambda x: x.repeat(2, 1, 1, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "roll": lambda x: x.roll(2, 1),
    "roll all": lambda x: x.roll(7),
    "roll two": lambda x: x.roll((1, -1), (0, 2)),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
    "tril -1": lambda x: x.tril(-1),
    "diagonal": lambda x: x.diagonal(1, 1, 2),
    "diagonal 0": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(2, 3, 1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "split": lambda x: x.split(3, 1)[1],
    "split sizes": lambda x: x.split([1, 3], 1)[1],
    "chunk": lambda x: x.chunk(3, 2)[2],
    "unbind": lambda x: x.unbind(1)[2],
    "contiguous": lambda x: x.permute(2, 1, 0).contiguous().view(-1),
    "twice": lambda x: x.permute(1, 0, 2) * x.permute(1, 0, 2),
    "chain": lambda x: x.permute(2, 0, 1).reshape(5, 12)[1:4:2].T.flip(0).reshape(3, 8),
}
INDICES: dict[str, Any] = {
    "int": lambda x: x[1],
    "negative int": lambda x: x[-1, 2],
    "slice": lambda x: x[1:],
    "steps": lambda x: x[::2, 1::2],
    "ellipsis": lambda x: x[..., 0],
    "none": lambda x: x[None, :, None, 1],
    "mixed": lambda x: x[1, ..., 1:3],
    "empty slice": lambda x: x[2:1],
    "out of range slice": lambda x: x[:, 2:100],
    "list": lambda x: x[[2, 0, 2]],
    "list of negative": lambda x: x[:, [-1, 0]],
    "two lists": lambda x: x[[0, 2], [1, 3]],
    "apart": lambda x: x[[0, 2], :, [1, 3]],
    "apart with slice": lambda x: x[1:, [0, 1], :][:, :, [4, 0, 0]],
    "array and slice": lambda x: x[:, [0, 2], 1:3],
}


def test_views(device: str) -> None:
    x = numbers((3, 4, 5))
    compare([Case(name, f, [x]) for name, f in VIEWS.items()], device)


def test_indices(device: str) -> None:
    x = numbers((3, 4, 5))
    compare([Case(name, f, [x]) for name, f in INDICES.items()], device)


def test_negative_steps(device: str) -> None:
    x = numbers((3, 5))
    cases = [
        Case("reversed", lambda t: t[::-1], [x], lambda t: t.flip(0)),
        Case("by -2", lambda t: t[:, ::-2], [x], lambda t: t.flip(1)[:, ::2]),
        Case("from the end", lambda t: t[:, -2:0:-1], [x], lambda t: t[:, 1:4].flip(1)),
    ]
    compare(cases, device)


def test_index_tensors(device: str) -> None:
    x, index = numbers((3, 4, 5)), np.array([[0, 2], [1, -1]])
    wrapped = np.array([[0, 2], [1, 2]])
    cases = [
        Case("rows", lambda t, i: t[i], [x, index]),
        Case("columns", lambda t, i: t[:, i], [x, index]),
        Case("with slice", lambda t, i: t[i, 1:3], [x, index]),
        Case("computed", lambda t, i: t[i * 1 + 0], [x, wrapped]),
        Case("with int32", lambda t, i: t[i], [x, wrapped.astype(np.int32)]),
        Case("mask", lambda t: t[t.detach() > 0], [x]),
        Case("row mask", lambda t: t[t.detach()[:, 0, 0] > -9], [x]),
        Case("gather", lambda t, i: t.gather(0, i), [x[0], integers((2, 5), 0, 4)]),
        Case("gather 1", lambda t, i: t.gather(1, i), [x[0], integers((4, 3), 0, 5)]),
        Case("index_select", lambda t, i: t.index_select(1, i), [x, np.array([3, 0, 3])]),
        Case(
            "take_along_dim",
            lambda t, i: t.take_along_dim(i, 1),
            [x[0], integers((4, 1), 0, 5)],
            lambda t, i: torch.take_along_dim(t, i, 1),
        ),
    ]
    compare(cases, device)


def test_scatter(device: str) -> None:
    x, source = numbers((4, 5)), numbers((3, 5), seed=3)
    index = np.array([[0, 1, 2, 3, 0], [0, 0, 1, 2, 3], [3, 2, 1, 0, 0]])
    unique = np.array([[0, 1, 2, 3, 0], [1, 0, 3, 2, 3], [3, 2, 1, 0, 1]])
    cases = [
        Case("scatter_add", lambda t, i, s: t.scatter_add(0, i, s), [x, index, source]),
        Case("scatter", lambda t, i, s: t.scatter(0, i, s), [x, unique, source]),
        Case("scatter number", lambda t, i: t.scatter(0, i, 2.5), [x, index]),
        Case("index_add", lambda t, i, s: t.index_add(0, i, s), [x, np.array([1, 1, 3]), source]),
        Case("embedding", lambda t, i: t[i].sum(1), [x, np.array([[0, 3], [3, 3]])]),
    ]
    compare(cases, device)


def joined(name: str, *arguments: Any) -> Any:
    import picograd

    def call(*tensors: Any) -> Any:
        library = torch if isinstance(tensors[0], torch.Tensor) else picograd
        return getattr(library, name)(tensors, *arguments)

    return call


def test_joining(device: str) -> None:
    a, b, c = numbers((2, 3)), numbers((4, 3), seed=1), numbers((1, 3), seed=2)
    cases = [
        Case("cat", joined("cat"), [a, b, c]),
        Case("cat 1", joined("cat", 1), [a, a]),
        Case("cat of empty", joined("cat"), [a, numbers((0, 3))]),
        Case("stack", joined("stack"), [a, a + 1]),
        Case("stack -1", joined("stack", -1), [a, a + 1, a + 2]),
        Case("cat mixed", joined("cat"), [a, integers((2, 3))], has_gradient=False),
        Case("cat twice", lambda t: joined("cat")(t, t.flip(0)), [a]),
    ]
    compare(cases, device)


def test_padding(device: str) -> None:
    pad, x = torch.nn.functional.pad, numbers((2, 3, 4, 5))
    cases = [
        Case("flat", lambda t: t.pad((1, 2, 0, 3)), [x], lambda t: pad(t, (1, 2, 0, 3))),
        Case("value", lambda t: t.pad((1, 1), value=2.5), [x], lambda t: pad(t, (1, 1), value=2.5)),
        Case("crop", lambda t: t.pad((-1, 2)), [x], lambda t: pad(t, (-1, 2))),
        Case("pairs", lambda t: t.pad([(0, 0), (1, 0), (0, 0), (0, 1)]), [x],
             lambda t: pad(t, (0, 1, 0, 0, 1, 0))),
    ]  # fmt: skip
    for mode in ("reflect", "replicate", "circular"):
        cases.append(
            Case(
                mode,
                lambda t, m=mode: t.pad((2, 1, 1, 0), mode=m),
                [x],
                lambda t, m=mode: pad(t, (2, 1, 1, 0), mode=m),
            )
        )
    compare(cases, device)


def written(change: Any) -> Any:
    def call(x: Any, *more: Any) -> Any:
        copy = x * 1
        change(copy, *more)
        return copy

    return call


def test_setitem(device: str) -> None:
    x, v = numbers((3, 4, 5)), numbers((4, 5), seed=5)
    rows = np.array([2, 0])

    def set_to(items: Any) -> Any:
        def change(t: Any, value: Any) -> None:
            t[items] = value

        return written(change)

    def masked(t: Any, value: Any) -> None:
        t[t.detach() > 0] = value

    def indexed(t: Any, value: Any, index: Any) -> None:
        t[index] = value

    def indexed_columns(t: Any, value: Any, index: Any) -> None:
        t[1:, index] = value

    cases = [
        Case("int", set_to(1), [x, v]),
        Case("slice", set_to(slice(1, None)), [x, v]),
        Case("steps", set_to((slice(None), slice(0, None, 2))), [x, v[:1]]),
        Case("ellipsis", set_to((..., 1)), [x, v[:, 0]]),
        Case("all", set_to(slice(None)), [x, v]),
        Case("corner", set_to((0, 1, 2)), [x, np.array(4.0)]),
        Case("mask", written(masked), [x, np.array(-1.0)]),
        Case("rows", written(indexed), [x, v, rows]),
        Case("columns", written(indexed_columns), [x, v[:2], rows]),
    ]
    compare(cases, device)


def test_chunks_of_nothing() -> None:
    assert [part.shape for part in Tensor.zeros(3, 0).chunk(2, 1)] == [(3, 0)] * 2
    assert picograd.nn.functional.glu(Tensor.zeros(3, 0)).shape == (3, 0)


def test_repeats_alone_give_positions() -> None:
    assert picograd.repeat_interleave(picograd.tensor([2, 0, 1])).tolist() == [0, 0, 2]


def test_counts_of_any_integers_repeat() -> None:
    for kind in (picograd.uint64, picograd.uint8, picograd.int32):
        counts = Tensor([1, 2]).to(kind)
        assert Tensor([5.0, 6.0]).repeat_interleave(counts).tolist() == [5.0, 6.0, 6.0]
