"""Methods that are other methods under a name of PyTorch's."""

import copy
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, GradientError, ShapeError

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
    assert (
        not x.is_inference()
        and not picograd.is_inference(x)
        and not x.is_pinned()
        and not x.retains_grad
    )


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
    assert len(part) == 6 and part.element_size() == 4 and part[2] == 2 and part.tolist()[4] == 4
    assert whole.tolist()[6:8] == [128, 63]  # of 1.0


def test_a_storage_is_released_and_comes_back() -> None:
    """What programs that shard parameters call around each layer."""
    x = picograd.ones(2, 3)
    for storage, size in ((x.untyped_storage(), 24), (x[1:].storage(), 6)):
        storage.resize_(0)
        assert x.untyped_storage().size() == x.storage().size() == 0 and x.shape == (2, 3)
        storage.resize_(size)
        assert storage.size() == size and x.copy_(x + 1).shape == (2, 3)
    assert x.tolist() == [[3] * 3] * 2
    with pytest.raises(ShapeError, match="24 bytes cannot become 40"):
        x.storage().resize_(10)


class Tagged(picograd.nn.Parameter):
    """A parameter of the user's with data of its own, made as programs for PyTorch make it."""

    def __new__(cls, data: Any, requires_grad: bool = True, tag: str = "") -> "Tagged":
        made: Any = Tensor._make_subclass(cls, data, requires_grad)
        made.tag = tag
        return made  # type: ignore[no-any-return]


def test_classes_of_the_users() -> None:
    x = picograd.tensor([1.0, 4.0])
    weight: Any = Tagged(x, tag="scale")
    assert type(weight) is Tagged and weight.tag == "scale" and weight.requires_grad
    layer = picograd.nn.Linear(2, 2)
    layer.weight = weight
    assert next(iter(layer.parameters())) is weight
    (weight * 3).sum().backward()
    assert weight.grad.tolist() == [3.0, 3.0] and not Tagged(x, False).requires_grad
    tracked = picograd.tensor([2.0], requires_grad=True)
    shown = (tracked * 2).as_subclass(Tagged)
    assert type(shown) is Tagged and shown.tolist() == [4.0]
    shown.sum().backward()
    assert tracked.grad is not None and tracked.grad.tolist() == [2.0]
    with pytest.raises(DTypeError, match="3 is no class of tensors"):
        x.as_subclass(3)
    with pytest.raises(TypeError, match="Parameter takes data and requires_grad"):
        picograd.nn.Parameter(x, True, 3)


def test_python_functions_of_elements() -> None:
    x = picograd.tensor([[1, 2], [3, 4]])
    assert x.apply_(lambda v: v * v) is x and x.tolist() == [[1, 4], [9, 16]]
    assert x.map_(picograd.tensor([1, 2]), lambda a, b: a + b).tolist() == [[2, 6], [10, 18]]
    with pytest.raises(GradientError, match=r"call it on tensor.detach\(\)"):
        picograd.tensor([1.0], requires_grad=True).apply_(abs)
    assert x.layout is picograd.strided and not x.is_nested
    assert picograd.typename(x.cpu()) == "torch.LongTensor"
    assert picograd.default_generator.initial_seed() == picograd.initial_seed()


def test_programs_note_things_on_tensors() -> None:
    x: Any = picograd.ones(2) * 2
    x.tag = "scale"
    assert x.tag == "scale" and copy.deepcopy(x).tag == "scale" and x.tolist() == [2.0, 2.0]
    assert not hasattr(x + 1, "tag")


def test_a_storage_of_a_file(tmp_path: Any) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(np.float32([1.0, 2.0, 3.0]).tobytes())
    storage = picograd.UntypedStorage.from_file(path, shared=False, nbytes=12)
    assert isinstance(picograd.ones(2).untyped_storage(), picograd.UntypedStorage)
    cut = picograd.asarray(storage[4:12], dtype=picograd.uint8)
    assert cut.view(picograd.float32).tolist() == [2.0, 3.0] and storage.nbytes() == 12
