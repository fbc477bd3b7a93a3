"""Tensors of PyTorch in a plain pickle, read where picograd is called `torch`."""

import io
import pickle
from importlib import import_module
from typing import Any

import pytest

import picograd

torch = pytest.importorskip("torch")


class Renaming(pickle.Unpickler):
    """This class finds picograd's names for PyTorch's, as `sys.modules["torch"] = picograd`."""

    def find_class(self, module: str, name: str) -> Any:
        ours = module.replace("torch", "picograd", 1)
        if ours == module:
            return super().find_class(module, name)
        return getattr(import_module(ours), name)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_tensors_are_views_of_their_storage(dtype: str) -> None:
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    given = {"whole": x, "cut": x[:, 1:], "turned": x.T, "number": x[0, 1], "none": x[:0]}
    found = Renaming(io.BytesIO(pickle.dumps(given))).load()
    for name, tensor in given.items():
        assert found[name].dtype.name == dtype and found[name].shape == tuple(tensor.shape), name
        assert found[name].tolist() == tensor.tolist(), name
    assert not found["whole"].requires_grad


def test_parameters_and_leaves_ask_for_gradients() -> None:
    given = [torch.nn.Parameter(torch.ones(2)), torch.ones(3, requires_grad=True)]
    parameter, leaf = Renaming(io.BytesIO(pickle.dumps(given))).load()
    assert isinstance(parameter, picograd.nn.Parameter) and leaf.requires_grad
    (parameter.sum() * 2 + leaf.sum()).backward()
    assert parameter.grad.tolist() == [2.0, 2.0] and leaf.grad.tolist() == [1.0] * 3


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_file_of_a_storage_is_a_flat_tensor(is_zip: bool, tmp_path: Any) -> None:
    path = tmp_path / "storage.pt"
    torch.save(torch.ones(2, 3).storage(), path, _use_new_zipfile_serialization=is_zip)
    assert picograd.load(path).tolist() == [1.0] * 6
