"""Ranges that start where a tensor says: eager and in a trace, read, written, differentiated."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import AxisError, DTypeError, TraceError

torch = pytest.importorskip("torch")

VALUES = np.arange(60, dtype=np.float32).reshape(3, 5, 4)
READS = {
    "number": lambda x, p: x[:, :, p],
    "slice": lambda x, p: x[:, p : p + 2],
    "slice from an offset": lambda x, p: x[:, p + 1 : p + 2],
    "offset before": lambda x, p: x[:, p - 1 : 1 + p],
    "a multiple": lambda x, p: x[:, 2 * p - 2 : 2 * (p - 1) + 2],
    "first axis": lambda x, p: x[p - 1 : p + 1],
    "ellipsis": lambda x, p: x[..., p : p + 2],
    "with a number": lambda x, p: x[1, p : p + 2],
    "with a new axis": lambda x, p: x[None, :, p : p + 1],
    "with a list": lambda x, p: x[[2, 0], p : p + 1],
    "before a list": lambda x, p: x[p : p + 1, :, [0, 3, 1]],
    "two": lambda x, p: x[p : p + 1, :, p : p + 2],
    "number and slice": lambda x, p: x[p, :, p : p + 2],
    "number before a list": lambda x, p: x[p, :, [0, 1]],
    "empty": lambda x, p: x[:, p:p],
    "backwards": lambda x, p: x[:, p + 1 : p],
    "narrow": lambda x, p: x.narrow(1, p, 2),
    "narrow last": lambda x, p: x.narrow(-1, p, 1),
    "select": lambda x, p: x.select(2, p),
    "select negative axis": lambda x, p: x.select(-2, p),
}


def set_slice(x, p, v):
    x[:, p : p + 1] = v


def set_two(x, p, v):
    x[p : p + 1, p : p + 1] = v


def set_row(x, p, v):
    x[1, p : p + 1] = v[0]


WRITES = {
    "slice": set_slice,
    "two slices": lambda x, p, v: set_two(x, p, v[0]),
    "with a number": set_row,
    "narrow": lambda x, p, v: x.narrow(1, p, 1).copy_(v),
    "slice copy_": lambda x, p, v: x[:, p : p + 1].copy_(v),
    "slice add_": lambda x, p, v: x[:, p : p + 2].add_(v),
    "select zero_": lambda x, p, v: x.select(1, p).zero_(),
    "number copy_": lambda x, p, v: x[:, p].copy_(v[:, 0]),
    "part of a slice": lambda x, p, v: x[:, p : p + 2][0].fill_(7.0),
    "slice of a part": lambda x, p, v: x[1][p : p + 2].mul_(3.0),
}


@pytest.mark.parametrize("name", READS)
def test_reads_equal_pytorch(name):
    read = READS[name]
    jitted = picograd.jit(lambda x, p: read(x, p) * 1)
    weight = None
    for start in (1, 2):
        theirs = torch.tensor(VALUES, requires_grad=True)
        wanted = read(theirs, torch.tensor(start))
        weight = np.linspace(1.0, 2.0, wanted.numel(), dtype=np.float32).reshape(wanted.shape)
        (wanted * torch.tensor(weight)).sum().backward()
        for function in (read, jitted):
            ours = Tensor(VALUES, requires_grad=True)
            found = function(ours, Tensor.of(start))
            np.testing.assert_array_equal(found.numpy(), wanted.detach().numpy())
            (found * Tensor(weight)).sum().backward()
            np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())
    assert jitted.traces == 1


@pytest.mark.parametrize("name", WRITES)
def test_writes_equal_pytorch(name):
    put = WRITES[name]
    value = -np.arange(1, 13, dtype=np.float32).reshape(3, 1, 4)

    @picograd.jit
    def jitted(x, p, v):
        put(x, p, v)

    for start in (2, 0, 1):
        theirs = torch.tensor(VALUES)
        put(theirs, torch.tensor(start), torch.tensor(value))
        for function in (put, jitted):
            ours = Tensor(VALUES)
            function(ours, Tensor.of(start), Tensor(value))
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert jitted.traces == 1


def test_gradients_of_a_written_range():
    def loss(module, x, v, p):
        y = x * 2
        y[:, p : p + 2] = v * 3
        return (y * y).sum()

    given = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 2, 4)
    x, v = torch.tensor(VALUES, requires_grad=True), torch.tensor(given, requires_grad=True)
    loss(torch, x, v, torch.tensor(1)).backward()

    def step(x, v, p):
        loss(picograd, x, v, p).backward()

    for function in (step, picograd.jit(step)):
        ours, ours_v = Tensor(VALUES, requires_grad=True), Tensor(given, requires_grad=True)
        function(ours, ours_v, Tensor.of(1))
        np.testing.assert_allclose(ours.grad.numpy(), x.grad.numpy())
        np.testing.assert_allclose(ours_v.grad.numpy(), v.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("start", [-9, -5, -3, -2, -1, 3, 4, 5, 9])
def test_eager_ends_are_cut_off_as_in_pytorch(start):
    ours, theirs = Tensor(VALUES), torch.tensor(VALUES)
    p, q = Tensor.of(start), torch.tensor(start)
    np.testing.assert_array_equal(ours[:, p : p + 2].numpy(), theirs[:, q : q + 2].numpy())
    ours[:, p : p + 2] = 7.0
    theirs[:, q : q + 2] = 7.0
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("start", [-3, -1])
def test_narrow_counts_from_the_end(start):
    wanted = torch.tensor(VALUES).narrow(1, start, 1).numpy()
    narrow = picograd.jit(lambda x, p: x.narrow(1, p, 1) * 1)
    np.testing.assert_array_equal(Tensor(VALUES).narrow(1, Tensor.of(start), 1).numpy(), wanted)
    np.testing.assert_array_equal(narrow(Tensor(VALUES), Tensor.of(start)).numpy(), wanted)


@pytest.mark.parametrize("start", [-9, -1, 4, 5, 100])
@pytest.mark.parametrize(
    "put",
    [
        lambda x, p: x.__setitem__((slice(None), slice(p, p + 2)), -1.0),
        lambda x, p: x[:, p : p + 2].copy_(x[:, p : p + 2] * 0 - 1),
        lambda x, p: x[:, p : p + 2].fill_(-1.0),
    ],
)
def test_a_range_off_the_axis_raises_and_writes_nothing(start, put):
    x = Tensor(VALUES)

    @picograd.jit
    def write(x, p):
        put(x, p)

    write(x, Tensor.of(1))
    before = x.numpy().copy()
    with pytest.raises(AxisError, match="2 elements .* leave axis 1 of size 5"):
        write(x, Tensor.of(start))
        x.numpy()
    np.testing.assert_array_equal(x.numpy(), before)
    write(x, Tensor.of(3))
    assert (x.numpy()[:, 1:5] == -1).all() and write.traces == 1


@pytest.mark.parametrize("start", [-9, 5])
def test_a_read_off_the_axis_raises(start):
    read = picograd.jit(lambda x, p: x.narrow(1, p, 2) * 1)
    with pytest.raises(AxisError, match="leave axis 1"):
        read(Tensor(VALUES), Tensor.of(start)).numpy()
    with pytest.raises(AxisError, match="do not fit"):
        Tensor(VALUES).narrow(1, Tensor.of(start), 2)


def test_lengths_that_depend_on_values_are_errors_in_a_trace():
    x = Tensor(VALUES)
    with pytest.raises(TraceError, match="length of a slice depends on the value"):
        picograd.jit(lambda x, p: x[:, :p])(x, Tensor.of(2))
    with pytest.raises(TraceError, match=r"x\[pos:pos \+ 2\]"):
        picograd.jit(lambda x, p, q: x[:, p:q])(x, Tensor.of(2), Tensor.of(3))
    np.testing.assert_array_equal(x[:, : Tensor.of(2)].numpy(), VALUES[:, :2])
    np.testing.assert_array_equal(x[:, Tensor.of(1) : Tensor.of(3)].numpy(), VALUES[:, 1:3])


def test_wrong_positions_name_themselves():
    x = Tensor(VALUES)
    with pytest.raises(DTypeError, match="float32 tensor of shape"):
        x.narrow(1, Tensor(1.0), 2)
    with pytest.raises(DTypeError, match="float32 tensor of shape"):
        x[:, Tensor(1.0) : Tensor(2.0)]
    with pytest.raises(DTypeError, match=r"shape \(2,\)"):
        x.select(1, Tensor([1, 2]))
    with pytest.raises(AxisError, match="6 elements do not fit an axis of size 5"):
        x.narrow(1, Tensor.of(0), 6)


def test_a_view_keeps_its_place_when_the_tensor_moves_on():
    for library, tensor in ((picograd, picograd.tensor), (torch, torch.tensor)):
        x, p = tensor(VALUES), tensor(1)
        part = x[:, p : p + 1]
        p += 2
        part.fill_(9.0)
        assert float(x[0, 1, 0]) == 9.0 and float(x[0, 3, 0]) == VALUES[0, 3, 0], library
        x.zero_()
        assert float(part.sum()) == 0.0


def test_in_a_scan_and_under_vmap():
    x = Tensor(VALUES[0])
    rows = picograd.func.vmap(lambda p: x[p : p + 2].sum(0))(Tensor([0, 2, 3]))
    wanted = np.stack([VALUES[0][n : n + 2].sum(0) for n in (0, 2, 3)])
    np.testing.assert_array_equal(rows.numpy(), wanted)
