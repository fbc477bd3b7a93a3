"""Tensors of data: as_tensor and asarray."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import ExportError, PicogradError


def test_asarray_and_as_tensor(device: str) -> None:
    x = Tensor([1.0, 2.0], device=device)
    assert picograd.as_tensor(x) is x and picograd.asarray(x) is x
    assert picograd.asarray(x, copy=True) is not x
    assert picograd.as_tensor(x, dtype="float64").dtype is picograd.float64
    array = np.ones(3)
    shared = picograd.as_tensor(array, device="cpu")
    array[0] = 5
    assert shared[0].item() == 5
    apart = picograd.asarray(array, device="cpu", copy=True)
    array[0] = 6
    assert apart[0].item() == 5
    assert picograd.asarray([1, 2], dtype="float32", requires_grad=True).requires_grad
    assert picograd.as_tensor(3).shape == ()
    with pytest.raises(ExportError, match="must be copied") as caught:
        picograd.asarray([1.0], copy=False)
    assert isinstance(caught.value, ValueError)


def test_asarray_reads_buffers_and_capsules_as_pytorch() -> None:
    memory = bytearray(8)
    picograd.asarray(memory, dtype="float32", copy=False).fill_(2)
    assert np.frombuffer(memory, np.float32).tolist() == [2.0, 2.0]
    picograd.asarray(memory, dtype="float32", copy=True).fill_(3)
    assert np.frombuffer(memory, np.float32).tolist() == [2.0, 2.0]
    rows = memoryview(np.array([300, 2]))
    assert picograd.tensor(rows).tolist() == [300, 2]
    assert picograd.asarray(rows, dtype="int64").tolist() == [300, 2]
    x = Tensor([1.0, 2.0], device="cpu")
    assert picograd.asarray(x.__dlpack__()).tolist() == [1.0, 2.0]
    with pytest.warns(UserWarning, match="imaginary"):
        assert picograd.asarray(np.array([1j, 2]), dtype="float32").tolist() == [0.0, 2.0]


def test_whole_numbers_beyond_64_bits_are_floats_where_floats_are_wanted() -> None:
    assert picograd.tensor(2**64, dtype="float64").item() == 2.0**64
    assert picograd.tensor([[2**64, 1], [2, 0.5]]).tolist() == [[2.0**64, 1.0], [2.0, 0.5]]
    assert picograd.tensor([2**64], dtype="float32").item() == 2.0**64
    with pytest.raises(PicogradError, match="does not fit int64"):
        picograd.tensor([2**64])


@pytest.mark.parametrize("begin", [[], [0], [[1, 2]]])
def test_a_list_that_holds_itself_is_an_error(begin: list) -> None:
    """With nothing before it, it was a loop without an end."""
    begin.append(begin)
    with pytest.raises(TypeError, match="a list holds itself"):
        picograd.tensor(begin)


def test_lists_of_tensors_and_numbers_have_the_dtype_of_the_tensors() -> None:
    """Numbers widen no tensor, as in PyTorch."""
    torch = pytest.importorskip("torch")
    for library in (picograd, torch):
        one, two = library.tensor(0.5), library.tensor(2.0, dtype=library.float64)
        kinds = [library.tensor(data).dtype for data in (
            [one, 0], [[one, 0.25], [3, one]], [one, two], [two, 1], [one, 1j],
            [np.float32(1), 2.5], [library.tensor(1), 0],
        )]  # fmt: skip
        texts = " ".join(str(kind).rpartition(".")[2] for kind in kinds)
        assert texts == "float32 float32 float64 float64 complex64 float32 int64"


def test_tensors_of_one_element_are_numbers_beside_numbers() -> None:
    def made(framework):
        tensor, float64 = framework.tensor, framework.float64
        return [
            tensor([tensor([1.0]), 2.0]),
            tensor([True, tensor([2])]),
            tensor([[tensor([[1.0]])], [2.0]]),
            tensor([tensor([1j]), 2]),
            tensor([tensor([1.0], dtype=float64), 2.0]),
        ]

    for ours, theirs in zip(made(picograd), made(pytest.importorskip("torch"))):
        assert ours.tolist() == theirs.tolist() and ours.dtype.name == str(theirs.dtype)[6:]
    with pytest.raises(PicogradError, match="ragged list"):
        picograd.tensor([picograd.tensor([1.0, 2.0]), 2.0])


def test_a_copy_of_a_tensor_keeps_its_gradients() -> None:
    x = picograd.ones(2, requires_grad=True)
    picograd.asarray(x, copy=True).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]
    assert not picograd.asarray(x * 2, copy=True, requires_grad=False).requires_grad


@pytest.mark.parametrize("data", ["[1, 2]", "(3, 4)", "np.ones(2)", "np.arange(2)", "[x, x]"])
def test_a_module_that_calls_picograd_torch_has_floats(data: str) -> None:
    """Programs of PyTorch count on it: `torch.Tensor(rewards).mean()`."""
    names = {"np": np, "picograd": picograd, "x": picograd.tensor(1)}
    plain = eval(f"picograd.Tensor({data})", dict(names))
    as_torch = eval(f"torch.Tensor({data})", {**names, "torch": picograd})
    assert as_torch.dtype is picograd.float32 is not plain.dtype
    assert as_torch.tolist() == plain.tolist()
    assert eval(f"torch.tensor({data})", {**names, "torch": picograd}).dtype is plain.dtype
    elsewhere = eval(f"picograd.Tensor({data})", {**names, "torch": np})
    assert elsewhere.dtype is plain.dtype
