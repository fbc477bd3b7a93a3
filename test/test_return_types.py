"""The classes of results of several tensors, by PyTorch's names."""

import pytest

import picograd
from picograd import Tensor, return_types


def test_results_are_of_their_classes() -> None:
    x = Tensor([[2.0, 1.0], [1.0, 3.0]])
    for name, options in (("max", {"dim": 0}), ("sort", {}), ("topk", {"k": 1}), ("svd", {})):
        assert type(getattr(picograd, name)(x, **options)) is getattr(return_types, name)
    for name in ("eigh", "qr", "slogdet", "inv_ex", "lu_factor"):
        made = getattr(picograd.linalg, name)(x)
        assert type(made) is getattr(return_types, f"linalg_{name}")


def test_names() -> None:
    torch = pytest.importorskip("torch")
    for name in return_types.__all__:
        assert hasattr(torch.return_types, name) and hasattr(getattr(return_types, name), "_fields")


def test_parts_come_as_one_sequence_too() -> None:
    made = return_types.max((Tensor([3.0]), Tensor([1])))
    assert made.values.tolist() == [3.0] and made._replace(indices=2).indices == 2
    assert return_types.sort(1, 2) == return_types.topk(values=1, indices=2) == (1, 2)
