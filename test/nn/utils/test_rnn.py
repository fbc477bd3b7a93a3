"""Packed and padded sequences against PyTorch: every field, values, gradients, errors."""

import numpy as np
import pytest
from nn_support import array, compare, torch

import picograd
from picograd import Tensor
from picograd.errors import ShapeError, TraceError, ValueRangeError
from picograd.nn.utils import rnn

theirs = torch.nn.utils.rnn
SORTED, MIXED = [5, 3, 3, 1], [2, 5, 1, 5]


def same_packed(ours, reference):
    np.testing.assert_array_equal(ours.data.numpy(), reference.data.numpy())
    for name in ("batch_sizes", "sorted_indices", "unsorted_indices"):
        mine, wanted = getattr(ours, name), getattr(reference, name)
        assert (mine is None) == (wanted is None)
        if wanted is not None:
            np.testing.assert_array_equal(mine.numpy(), wanted.numpy())
            assert mine.dtype.name == "int64"


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("lengths", "is_sorted"), [(SORTED, True), (SORTED, False)])
def test_pack_equals_pytorch(lengths, is_sorted, batch_first, device):
    x = array(4, 5, 2) if batch_first else array(5, 4, 2)
    options = dict(batch_first=batch_first, enforce_sorted=is_sorted)
    ours = rnn.pack_padded_sequence(Tensor(x, device=device), lengths, **options)
    same_packed(ours, theirs.pack_padded_sequence(torch.tensor(x), lengths, **options))


def test_pack_unsorted(device):
    """Ties may be sorted either way: PyTorch's order is not stable, so its indices are not ours."""
    x, lengths = array(6, 4, 2), Tensor(MIXED)
    ours = rnn.pack_padded_sequence(Tensor(x, device=device), lengths, enforce_sorted=False)
    assert ours.batch_sizes.tolist() == [4, 3, 2, 2, 2]
    order, back = ours.sorted_indices.numpy(), ours.unsorted_indices.numpy()
    assert sorted(order) == [0, 1, 2, 3] and (order[back] == np.arange(4)).all()
    assert (np.diff(np.array(MIXED)[order]) <= 0).all()
    np.testing.assert_array_equal(ours.data.numpy()[:4], x[0][order])


@pytest.mark.parametrize("options", [{}, {"batch_first": True, "total_length": 7},
                                     {"padding_value": -1.5}])  # fmt: skip
def test_pack_and_pad_with_gradients(options, device):
    def run(room):
        def call(x):
            packed = room.pack_padded_sequence(x, MIXED, enforce_sorted=False)
            data = packed.data * packed.data
            return room.pad_packed_sequence(packed._replace(data=data), **options)

        return call

    compare(run(rnn), run(theirs), [array(6, 4, 2)], device)


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"padding_value": 2.5},
                                     {"padding_side": "left"}])  # fmt: skip
def test_pad_sequence(options, device):
    call = lambda room: lambda *x: room.pad_sequence(list(x), **options)  # noqa: E731
    compare(call(rnn), call(theirs), [array(2, 3), array(4, 3), array(1, 3)], device)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64", "int8", "bool"])
@pytest.mark.parametrize("options", [{}, {"batch_first": True, "padding_value": -7},
                                     {"padding_side": "left", "padding_value": 0.5}])  # fmt: skip
def test_pad_sequence_without_gradients(dtype, options, device):
    """What lies in the host's memory is padded there, what was computed is not."""
    parts = [(10 * array(size, 2)).astype(dtype) for size in (2, 4, 1)]
    wanted = theirs.pad_sequence([torch.tensor(x) for x in parts], **options)
    given = [Tensor.of(x, device=device) for x in parts]
    for listed in (given, [each.flip(0).flip(0) for each in given], [*given[:2], given[2].flip(0)]):
        found = rnn.pad_sequence(listed, **options)
        assert (found.dtype.name, found.device) == (dtype, given[0].device)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    given[0].zero_()
    assert not rnn.pad_sequence(given)[:2, 0].any()


def test_lists_of_sequences(device):
    parts = [array(2, 3), array(4, 3), array(1, 3)]
    packed = rnn.pack_sequence([Tensor(x, device=device) for x in parts], enforce_sorted=False)
    wanted = theirs.pack_sequence([torch.tensor(x) for x in parts], enforce_sorted=False)
    same_packed(packed, wanted)
    for found, part in zip(rnn.unpack_sequence(packed), parts, strict=True):
        np.testing.assert_array_equal(found.numpy(), part)
    padded = rnn.pad_sequence([Tensor(x) for x in parts], batch_first=True)
    for found, part in zip(rnn.unpad_sequence(padded, Tensor([2, 4, 1]), True), parts, strict=True):
        np.testing.assert_array_equal(found.numpy(), part)


def test_packed_sequences_convert(device):
    packed = rnn.pack_padded_sequence(Tensor(array(3, 2, 2), device=device), [3, 2])
    assert packed.double().data.dtype.name == "float64"
    assert packed.half().float().data.dtype.name == "float32"
    assert packed.cpu().data.device == "cpu" and packed.is_cuda == device.startswith("cuda")


def test_lengths_from_a_list_work_while_tracing(device):
    @picograd.jit
    def step(x):
        packed = rnn.pack_padded_sequence(x, [3, 1])
        return rnn.pad_packed_sequence(packed)[0]

    x = array(3, 2, 2)
    for _ in range(2):
        found = step(Tensor(x, device=device)).numpy()
    assert (found[1:, 1] == 0).all() and (found[:, 0] == x[:, 0]).all()
    traced = picograd.jit(lambda x, n: rnn.pack_padded_sequence(x, n).data)
    with pytest.raises(TraceError, match="pass them as a list, and pack inside the traced"):
        traced(Tensor(x), Tensor([3, 1]))


def test_wrong_use_is_named():
    x = Tensor.ones(3, 2, 1)
    with pytest.raises(ValueRangeError, match=r"the lengths \[1, 3\] increase"):
        rnn.pack_padded_sequence(x, [1, 3])
    with pytest.raises(ValueRangeError, match="a length of 0"):
        rnn.pack_padded_sequence(x, [3, 0])
    with pytest.raises(ShapeError, match=r"lengths of shape \(1,\) for 2 sequences"):
        rnn.pack_padded_sequence(x, [3])
    with pytest.raises(ShapeError, match="a length of 4 for sequences padded to 3"):
        rnn.pack_padded_sequence(x, [4, 1])
    with pytest.raises(ValueRangeError, match="total_length=2, but the longest sequence has 3"):
        rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1]), total_length=2)
    with pytest.raises(ValueRangeError, match="there are no sequences"):
        rnn.pad_sequence([])
    with pytest.raises(ShapeError, match="let them differ in length only"):
        rnn.pad_sequence([Tensor.ones(2, 3), Tensor.ones(2, 4)])


def test_whole_numbers_stay_whole():
    given = [picograd.tensor([4]), picograd.tensor([1, 2, 3])]
    packed = rnn.pack_sequence(given, enforce_sorted=False)
    padded, _ = rnn.pad_packed_sequence(packed, batch_first=True)
    assert padded.dtype is picograd.int64 and padded.tolist() == [[4, 0, 0], [1, 2, 3]]
    assert packed.to(packed.data.device) is packed and packed.float().long().data.tolist() == [
        1,
        4,
        2,
        3,
    ]
