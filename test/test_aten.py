"""Operators that programs call by PyTorch's names, against PyTorch."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import aten

torch = pytest.importorskip("torch")

RANDOM = np.random.default_rng(0)
X = np.arange(24.0).reshape(2, 3, 4)
CASES: dict[str, tuple[Any, ...]] = {
    "alias_copy": (),
    "as_strided_copy": ((2, 2), (1, 3), 2),
    "detach_copy": (),
    "diagonal_copy": (1, 0, 2),
    "expand_copy": ((5, 2, 3, 4),),
    "permute_copy": ((2, 0, 1),),
    "select_copy": (1, 2),
    "slice_copy": (2, -3, None, 2),
    "split_copy": (2, 1),
    "split_with_sizes_copy": ((1, 3), 2),
    "squeeze_copy": (),
    "transpose_copy": (0, -1),
    "unbind_copy": (1,),
    "unfold_copy": (2, 2, 1),
    "unsqueeze_copy": (1,),
    "view_copy": ((4, 6),),
}


@pytest.mark.parametrize("name", CASES)
def test_copies_are_theirs_and_share_no_memory(name: str) -> None:
    x = picograd.tensor(X)
    found = getattr(picograd, name)(x, *CASES[name])
    want = getattr(torch, name)(torch.tensor(X), *CASES[name])
    x.zero_()
    several = isinstance(found, tuple)
    pairs = zip(found, want) if several else ((found, want),)
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in pairs)


def test_copies_of_other_shapes_and_dtypes() -> None:
    matrix, pairs = X[0], X[0, :, :2].copy()
    assert np.array_equal(picograd.t_copy(picograd.tensor(matrix)).numpy(), matrix.T)
    numbers = picograd.view_as_complex_copy(picograd.tensor(pairs))
    assert np.array_equal(numbers.numpy(), pairs[:, 0] + 1j * pairs[:, 1])
    assert np.array_equal(picograd.view_as_real_copy(numbers).numpy(), pairs)
    assert {*CASES, "t_copy", "view_as_complex_copy", "view_as_real_copy"} == set(aten.NAMES)


def test_copies_fill_what_is_given() -> None:
    x, out = picograd.tensor(X[0]), picograd.empty(0, dtype=picograd.float64)
    assert picograd.transpose_copy(x, 0, 1, out=out) is out
    assert np.array_equal(out.numpy(), X[0].T)
    parts = [picograd.empty(0, dtype=picograd.float64) for _ in range(2)]
    assert picograd.split_copy(x, 2, 1, out=parts) is None
    assert np.array_equal(parts[1].numpy(), X[0][:, 2:])
    with pytest.raises(TypeError, match="view_copy: the input must be a Tensor, not list"):
        picograd.view_copy([1.0], (1,))
    with pytest.raises(AttributeError, match="nothing_copy"):
        aten.nothing_copy  # type: ignore[attr-defined]


@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_is_theirs(transposed: bool) -> None:
    values = np.random.default_rng(0)
    x, w, b = (values.normal(size=s) for s in ((2, 4, 5, 6), (4, 2, 3, 2), (4,)))
    given = ([1, 2], [1, 0], [1, 1], transposed, [0, 1 if transposed else 0], 2)
    found = picograd.ops.aten.convolution(*map(picograd.tensor, (x, w, b)), *given)
    want = torch.ops.aten.convolution(*map(torch.tensor, (x, w, b)), *given)
    assert np.allclose(found.numpy(), want.numpy())
    with pytest.raises(ValueError, match="convolution: the weight has 2 axes"):
        picograd.convolution(picograd.ones(1, 1), picograd.ones(1, 1), None, *given)


def test_assertions_are_checked() -> None:
    picograd._assert_async(picograd.tensor([1.0]))
    with pytest.raises(RuntimeError, match="_assert_async: x is small"):
        picograd._assert_async(picograd.tensor(0), "x is small")
    with pytest.raises(RuntimeError, match="_assert_async: a tensor of shape .2,. is no single"):
        picograd._assert_async(picograd.ones(2))


def test_shapes_are_taken_in_place() -> None:
    x = picograd.tensor([1, 2, 3, 4])
    assert picograd.resize_as_(x, picograd.ones(2, 2)) is x and x.shape == (2, 2)


def drawn(*shape: int) -> Any:
    return RANDOM.standard_normal(shape)


Y, SIGNS, PARTS = drawn(4, 3), np.sign(drawn(4)), np.abs(drawn(4, 3)) / 9
LOSSES: dict[str, tuple[Any, ...]] = {
    "binary_cross_entropy_with_logits": (Y, PARTS, None, None, 2),
    "cosine_embedding_loss": (Y, PARTS, SIGNS, 0.3, 0),
    "ctc_loss": (np.log(PARTS[:, None]), np.array([[1]]), np.array([4]), np.array([1]), 0, 2),
    "hinge_embedding_loss": (Y, np.sign(PARTS), 2.0, 1),
    "kl_div": (Y, PARTS, 2),
    "margin_ranking_loss": (Y[:, 0], Y[:, 1], SIGNS, 0.1, 1),
    "poisson_nll_loss": (Y, PARTS, True, False, 1e-8, 2),
    "triplet_margin_loss": (Y, PARTS, -Y, 1.0, 2.0, 1e-6, False, 0),
    "batch_norm": (Y, Y[0], Y[1], PARTS[0], PARTS[1], False, 0.1, 1e-5, False),
    "instance_norm": (X, PARTS[0], PARTS[1], None, None, True, 0.1, 1e-5, False),
    "embedding": (Y, np.array([[0, 3]]), -1, False, False),
    "constant_pad_nd": (X, (1, 2, 0, 1), 3.0),
    "fill": (X, 2.5),
    "as_strided_scatter": (X, Y[:2, :2], (2, 2), (1, 3), 2),
    "grid_sampler": (X[None], drawn(1, 2, 2, 2), 1, 1, True),
    "rnn_tanh_cell": (Y, Y[:, :2], drawn(2, 3), drawn(2, 2)),
    "gru_cell": (Y, Y[:, :2], drawn(6, 3), drawn(6, 2), drawn(6), drawn(6)),
    "lstm_cell": (Y, (Y[:, :2], Y[:, 1:]), drawn(8, 3), drawn(8, 2)),
}


def made(value: Any, kind: Any) -> Any:
    if isinstance(value, tuple) and isinstance(value[0], np.ndarray):
        return tuple(kind(each) for each in value)
    return kind(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", LOSSES)
def test_arguments_stand_in_their_order(name: str) -> None:
    args = LOSSES[name]
    if name == "instance_norm":
        args = (X, *[np.linspace(1, 2, 3)] * 2, *args[3:])
    found = getattr(picograd, name)(*(made(each, picograd.tensor) for each in args))
    want = getattr(torch, name)(*(made(each, torch.tensor) for each in args))
    for each, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, want))):
        np.testing.assert_allclose(each.numpy(), other.numpy(), 1e-9, 1e-9)


def test_strides_are_those_asked_for() -> None:
    found = picograd.empty_strided((2, 3), (1, 2), dtype=picograd.int64)
    assert found.stride() == (1, 2) and found.dtype is picograd.int64
    made = found.new_empty_strided((4, 3), (7, 1), dtype=picograd.float32, requires_grad=True)
    assert made.stride() == (7, 1) and made.requires_grad and made.storage().size() == 24
    assert picograd.empty_strided((2, 0), (1, 2)).shape == (2, 0)
    assert picograd.empty_permuted((2, 3), (1, 0)).shape == (2, 3)


def test_shares_of_nothing_are_zero() -> None:
    data = [[1.0, 2.0, -np.inf], [-np.inf] * 3]
    ours, theirs = (library.tensor(data, requires_grad=True) for library in (picograd, torch))
    for axis in (0, 1):
        found, wanted = picograd._safe_softmax(ours, axis), torch._safe_softmax(theirs, axis)
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), 1e-6)
        (found[0] * found[0]).sum().backward()
        (wanted[0] * wanted[0]).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 1e-5, 1e-7)
    assert picograd._safe_softmax(ours.half(), -1, dtype=picograd.float32).dtype is picograd.float32


def test_private_operators() -> None:
    x, y = (RANDOM.integers(-128, 128, (20, 20)).astype(np.int8) for _ in range(2))
    rows, columns = np.sort(RANDOM.integers(0, 5, 7)), RANDOM.integers(0, 4, 7)
    shares, flowing = RANDOM.random((2, 3)), RANDOM.random((2, 3))
    found = []
    for library in (picograd, torch):
        given = map(library.tensor, (x, y, rows, columns, shares, flowing))
        left, right, row, column, part, gradient = given
        starts = library._convert_indices_from_coo_to_csr(row, 5, out_int32=True)
        made = [library._shape_as_tensor(part), library._int_mm(left, right), starts]
        back = library._convert_indices_from_csr_to_coo
        made += [back(starts.long(), column), back(starts.long(), column, transpose=True)]
        made += [library._softmax_backward_data(gradient, part, 1, library.float64)]
        found.append([each.numpy() for each in made])
    for ours, theirs in zip(*found):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_products_of_groups_and_of_scaled_numbers() -> None:
    rows, weights = RANDOM.integers(-4, 5, (16, 16)), RANDOM.integers(-4, 5, (2, 16, 16))
    found = []
    for library in (picograd, torch):
        x, w = (library.tensor(each).to(library.bfloat16) for each in (rows, weights))
        ends = library.tensor([8, 16], dtype=library.int32)
        made = [library._grouped_mm(x, w, ends), library._grouped_mm(x, w, offs=ends)]
        small, scale = x.to(library.float8_e4m3fn), library.tensor(0.5)
        dtype = library.bfloat16
        made += [library._scaled_mm(small, small.t(), scale, scale, out_dtype=dtype)]
        found.append([each.float().numpy() for each in made])
    for ours, theirs in zip(*found):
        np.testing.assert_array_equal(ours, theirs)
