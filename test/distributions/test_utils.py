"""What programs import to write distributions, against PyTorch's."""

import numpy as np
import pytest
from distribution_support import check_same, torch

from picograd import Tensor, distributions
from picograd.distributions import utils

theirs = torch.distributions.utils
CHANCES = np.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]], np.float32)


def test_broadcast_all() -> None:
    for given in ((1.0, 2), (Tensor([1.0, 2.0]), 3), (Tensor([[1.0], [2.0]]), Tensor([1.0, 2.0]))):
        other = [torch.tensor(x.numpy()) if isinstance(x, Tensor) else x for x in given]
        for found, want in zip(utils.broadcast_all(*given), theirs.broadcast_all(*other)):
            check_same(found, want)
            assert found.shape == tuple(want.shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("is_binary", [False, True])
def test_probabilities_and_logits(dtype: str, is_binary: bool) -> None:
    probs = CHANCES.astype(dtype)
    x, y = Tensor(probs), torch.from_numpy(probs)
    check_same(utils.clamp_probs(x), theirs.clamp_probs(y))
    assert (utils.clamp_probs(x) > 0).all().item() and (utils.clamp_probs(x) < 1).all().item()
    logits, wanted = utils.probs_to_logits(x, is_binary), theirs.probs_to_logits(y, is_binary)
    check_same(logits, wanted)
    back = utils.logits_to_probs(logits, is_binary)
    check_same(back, theirs.logits_to_probs(wanted, is_binary))


@pytest.mark.parametrize("diag", [-1, 0, 1])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_triangles(size: int, diag: int) -> None:
    matrix = np.random.default_rng(0).standard_normal((2, size, size)).astype(np.float32)
    x, y = Tensor(matrix, requires_grad=True), torch.tensor(matrix, requires_grad=True)
    found, want = utils.tril_matrix_to_vec(x, diag), theirs.tril_matrix_to_vec(y, diag)
    check_same(found, want)
    back, other = utils.vec_to_tril_matrix(found, diag), theirs.vec_to_tril_matrix(want, diag)
    check_same(back, other)
    back.square().sum().backward()
    other.square().sum().backward()
    check_same(x.grad, y.grad)


def test_lazy_property() -> None:
    calls = []

    class Mine:
        @utils.lazy_property
        def value(self) -> int:
            """Tell the value."""
            calls.append(self)
            return 3

    mine = Mine()
    assert mine.value == mine.value == 3 and len(calls) == 1 and vars(mine) == {"value": 3}
    assert isinstance(Mine.value, utils.lazy_property) and Mine.value.__doc__ == "Tell the value."


def test_other_names() -> None:
    assert utils._standard_normal((2, 3), "float32", "cpu").shape == (2, 3)
    assert utils._sum_rightmost(Tensor.ones(2, 3), 1).tolist() == [3.0, 3.0]
    assert distributions.utils is utils
