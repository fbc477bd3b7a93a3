"""Values that are wrong but not seen when recorded: an error names them, and no memory is touched.

An index computed on the device is looked at where it is computed: at once on a CPU, at the next
read of a value on a GPU, after every run of a jitted function and of a `vmap`. A kernel that ran
before that was known has read inside the tensor, and has written nothing outside it.
"""

from collections.abc import Callable

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.nn import functional as F

FAR = [10, -11, 10**9, -(10**9), 2**62, -(2**62)]
Call = Callable[[Tensor, Tensor], Tensor]


def unseen(values: list[int], dtype: str = "int64") -> Tensor:
    """Make an index whose values are known only after a kernel has run."""
    return Tensor(values, dtype=dtype) + Tensor([0] * len(values), dtype=dtype)


def table() -> Tensor:
    return Tensor(np.arange(30, dtype=np.float32).reshape(10, 3)).realize()


def wide(i: Tensor) -> Tensor:
    return i.reshape(-1, 1) + Tensor([[0, 0, 0]])


def ones(i: Tensor) -> Tensor:
    return Tensor.ones(i.shape[0], 3)


def assigned(x: Tensor, i: Tensor) -> Tensor:
    x = x + 0.0
    x[i] = -1.0
    return x


def added(x: Tensor, i: Tensor) -> Tensor:
    x = x.clone()
    x.index_add_(0, i, ones(i))
    return x


READS: dict[str, Call] = {
    "getitem": lambda x, i: x[i],
    "getitem of two": lambda x, i: x[i, Tensor([0] * i.shape[0])],
    "getitem of columns": lambda x, i: x.T[:, i],
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, wide(i)),
    "take": lambda x, i: x[:, 0].take(i),
    "take_along_dim": lambda x, i: x.take_along_dim(wide(i), 0),
    "embedding": lambda x, i: F.embedding(i, x),
    "embedding_bag": lambda x, i: F.embedding_bag(i, x, Tensor([0])),
    "one_hot": lambda x, i: i.one_hot(10),
    "cross_entropy": lambda x, i: F.cross_entropy(Tensor.ones(i.shape[0], 10), i),
    "nll_loss": lambda x, i: F.nll_loss(Tensor.ones(i.shape[0], 10), i),
    "multi_margin_loss": lambda x, i: F.multi_margin_loss(Tensor.ones(i.shape[0], 10), i),
}
WRITES: dict[str, Call] = {
    "setitem": assigned,
    "index_add_": added,
    "index_fill": lambda x, i: x.index_fill(0, i, -1.0),
    "index_copy": lambda x, i: x.index_copy(0, i, -ones(i)),
    "index_put": lambda x, i: x.index_put((i,), Tensor(-1.0)),
    "put": lambda x, i: x[:, 0].put(i, -ones(i)[:, 0]),
    "scatter": lambda x, i: x.scatter(0, wide(i), -ones(i)),
    "scatter_add": lambda x, i: x.scatter_add(0, wide(i), ones(i)),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, wide(i), ones(i), "prod"),
    "scatter_reduce amax": lambda x, i: x.scatter_reduce(0, wide(i), ones(i), "amax"),
    "scatter_reduce mean": lambda x, i: x.scatter_reduce(0, wide(i), ones(i), "mean"),
}
WRAPPING = {"getitem", "getitem of two", "getitem of columns", "take", "take_along_dim", "setitem",
            "index_fill", "index_put", "put"}  # fmt: skip
EVERY = READS | WRITES


@pytest.mark.parametrize("name", EVERY)
def test_an_unseen_index_outside_is_an_error(name: str) -> None:
    call, x = EVERY[name], table()
    call(x, unseen([0, 9, 3])).tolist()  # inside
    for far in FAR:
        with pytest.raises(IndexError, match=r"out of range for (axis . of size 10|10 )"):
            call(x, unseen([0, far, 3])).tolist()
    if name in WRAPPING:
        assert call(x, unseen([-10, -1])).tolist() == call(x, unseen([0, 9])).tolist()
    else:
        with pytest.raises(IndexError, match="out of range"):
            call(x, unseen([-1])).tolist()
    assert x.tolist() == table().tolist()


@pytest.mark.parametrize("name", EVERY)
def test_so_it_is_under_jit(name: str) -> None:
    """One trace: the same plan reports, call after call, and is right in between."""
    step, x = picograd.jit(EVERY[name]), table()
    wanted = EVERY[name](table(), Tensor([0, 9, 3])).tolist()
    for far in FAR:
        assert step(x, Tensor([0, 9, 3])).tolist() == wanted
        with pytest.raises(IndexError, match=r"out of range for (axis . of size 10|10 )"):
            step(x, Tensor([0, far, 3])).tolist()
    assert step.traces == 1
    assert x.tolist() == table().tolist()


@pytest.mark.parametrize("name", EVERY)
def test_so_it_is_under_vmap(name: str) -> None:
    x, call = table(), EVERY[name]
    inside = Tensor([[0, 9], [3, 4]])
    mapped = picograd.vmap(lambda i: call(x, i))
    assert mapped(inside).tolist() == [call(x, Tensor(r)).tolist() for r in ([0, 9], [3, 4])]
    with pytest.raises(IndexError, match="out of range"):
        mapped(Tensor([[0, 9], [10, 4]])).tolist()


def test_a_large_index_in_memory_is_looked_at() -> None:
    index = np.zeros(100_000, np.int64)
    assert table()[Tensor(index)].shape == (100_000, 3)
    index[77_777] = 10
    with pytest.raises(IndexError, match="index 10 is out of range for axis 0 of size 10"):
        table()[Tensor(index)].tolist()


def test_small_dtypes() -> None:
    for dtype, far in (("int8", 127), ("int8", -128), ("uint8", 255), ("int32", -11)):
        if dtype != "uint8":  # a mask, as an index
            with pytest.raises(IndexError, match="out of range"):
                table()[unseen([far], dtype)].tolist()
        with pytest.raises(IndexError, match="label is out|label .* is out"):
            F.cross_entropy(Tensor.ones(1, 10), unseen([far], dtype)).item()


def test_elements_outside_are_not_written(on_host: None) -> None:
    """What takes little is looked at before a jitted call runs: all memory is as it was."""
    memory = Tensor.zeros(5)

    @picograd.jit
    def put(index: Tensor, values: Tensor) -> Tensor:
        memory[index] = values
        return memory.sum()

    with pytest.raises(IndexError):
        put(Tensor([4, 1, 7, -9]), Tensor([1.0, 2.0, 3.0, 4.0])).item()
    assert memory.tolist() == [0.0] * 5
    assert put(Tensor([4, 0, -2, 4]), Tensor([5.0, 6.0, 7.0, 8.0])).item() == 21.0
    assert memory.tolist() == [6.0, 0.0, 0.0, 7.0, 8.0]


@pytest.mark.parametrize("monoid", ["sum", "prod", "amax", "amin"])
def test_elements_outside_are_not_reduced(monoid: str) -> None:
    memory = Tensor([-0.0, 3.0, float("inf")])

    @picograd.jit
    def reduce(index: Tensor, values: Tensor) -> Tensor:
        memory.scatter_reduce_(0, index, values, monoid)
        return memory.sum()

    with pytest.raises(IndexError):
        reduce(Tensor([5, -4, 5]), Tensor([7.0, float("nan"), -7.0])).item()
    assert str(memory.tolist()) == "[-0.0, 3.0, inf]"


def test_gradients_of_a_write_with_elements_outside(on_host: None) -> None:
    values = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = Tensor([1.0, 1.0, 1.0, 1.0], requires_grad=True)

    @picograd.jit
    def step(index: Tensor) -> None:
        (base.scatter(0, index, values) * Tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()

    with pytest.raises(IndexError):
        step(Tensor([1, 4, 3]))
        picograd.synchronize()
    assert values.grad is None and base.grad is None


def test_labels_to_be_ignored_are_no_error() -> None:
    scores = Tensor(np.ones((2, 10), np.float32))
    for ignored in (-100, 10, 10**12):
        labels = unseen([1, ignored])
        wanted = F.cross_entropy(scores[:1], Tensor([1])).item()
        assert F.cross_entropy(scores, labels, ignore_index=ignored).item() == wanted
        step = picograd.jit(lambda i, k=ignored: F.cross_entropy(scores, i, ignore_index=k))
        assert step(labels).item() == wanted
        with pytest.raises(IndexError, match="a label is out of range for 10 classes"):
            step(Tensor([1, 11])).item()


def test_a_step_of_a_loop_is_bounded() -> None:
    """The indices of a step are looked at for all steps; none reads outside of the axis."""
    x = Tensor([1.0, 2.0, 3.0])
    with pytest.raises(IndexError, match="index is out of range for axis 0 of size 3"):
        picograd.scan(lambda c, i: (c, x[i]), Tensor(0.0), Tensor([1, 7, -9]))
        picograd.synchronize()


def test_embedding_gradient_stays_inside() -> None:
    layer = nn.Embedding(10, 3)
    step = picograd.jit(lambda index: layer(index).sum().backward())
    with pytest.raises(IndexError, match=rf"embedding: index {2**62} is out of range for 10 rows"):
        step(Tensor(FAR))
        picograd.synchronize()
