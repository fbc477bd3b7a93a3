"""Methods that are other methods under a name of PyTorch's."""

import numpy as np
import pytest

import picograd
from picograd import Tensor

# a pattern of names may outlive the names it was written for; in-place forms need a value to try
IN_PLACE = ("acos", "atan", "erfinv", "logit", "sinc", "sgn", "sign", "digamma", "rad2deg", "i0")


def test_methods_of_families(device: str) -> None:
    x = Tensor([[4.0, 1.0], [1.0, 3.0]], device=device)
    assert abs(x.logdet().item() - np.log(11)) < 1e-6 and x.absolute().fix().tolist() == x.tolist()
    u, s, v = x.svd()
    np.testing.assert_allclose((u * s @ v.T).numpy(), x.numpy(), atol=1e-6)
    assert x[0].ger(x[1]).tolist() == [[4.0, 12.0], [1.0, 3.0]]
    assert x.narrow_copy(0, 1, 1).tolist() == [[1.0, 3.0]]
    assert [y.shape for y in x.unsafe_chunk(2)] == [y.shape for y in x.unsafe_split(1)]
    assert len(x.unsafe_split_with_sizes([1, 1])) == 2 and x.storage_offset() == 0
    assert not x.is_inference() and not x.is_pinned() and not x.retains_grad


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_forms(name: str, device: str) -> None:
    x = Tensor([0.25, 0.5], device=device)
    want = getattr(x, name)().tolist()
    assert getattr(x, f"{name}_")() is x and x.tolist() == want


def test_conversions_to_complex_numbers() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    assert x.cfloat().dtype is picograd.complex64 and x.cdouble().dtype is picograd.complex128
    x.cdouble().abs().sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_views_share_a_storage() -> None:
    x = picograd.arange(6).float()
    whole, part = x.untyped_storage(), x[2:].storage()
    assert whole.data_ptr() == part.data_ptr() == x.data_ptr() and part.nbytes() == 24
    assert len(whole) == whole.size() == 24 and whole.device == x.device
