"""Tools of training: gradient clipping, parameters as one vector, packed sequences.

Weights that are computed: reparametrize (by hooks), parametrize and parametrizations (by
properties), prune (by masks). fusion: batch norms folded away.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from picograd.errors import ShapeError
from picograd.nn import clip as clip_grad
from picograd.nn.clip import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from picograd.nn.parameter import overwrite
from picograd.nn.utils import fusion, parametrizations, parametrize, prune, rnn
from picograd.nn.utils.fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval
from picograd.nn.utils.reparametrize import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)
from picograd.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.tensor import Tensor

__all__ = [
    "PackedSequence", "clip_grad", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fusion",
    "get_total_norm", "pack_padded_sequence", "pad_packed_sequence",
    "parameters_to_vector", "parametrizations", "parametrize", "prune",
    "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm",
    "vector_to_parameters", "weight_norm",
]  # fmt: skip

T = TypeVar("T")


def skip_init(module_cls: Callable[..., T], *args: Any, **options: Any) -> T:
    """Make a module; its values may be anything, and are the usual ones.

    >>> from picograd import nn
    >>> nn.utils.skip_init(nn.Linear, 2, 3).weight.shape
    (3, 2)
    """
    return module_cls(*args, **options)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Join tensors to one vector.

    >>> from picograd import Tensor, nn
    >>> nn.utils.parameters_to_vector([Tensor([1.0, 2.0]), Tensor([[3.0]])]).tolist()
    [1.0, 2.0, 3.0]
    """
    return Tensor.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the pieces of a vector into tensors. Raises ShapeError if the sizes do not add up.

    PyTorch's show the vector from then on, as `parameter.data = vec[:n].view_as(parameter)` does;
    steps of an optimizer would each write all of it here.

    >>> from picograd import Tensor, nn
    >>> parts = [Tensor([0.0, 0.0]), Tensor([[0.0]])]
    >>> nn.utils.vector_to_parameters(Tensor([1.0, 2.0, 3.0]), parts)
    >>> [part.tolist() for part in parts]
    [[1.0, 2.0], [[3.0]]]
    """
    listed = list(parameters)
    sizes = [parameter.numel() for parameter in listed]
    if tuple(vec.shape) != (sum(sizes),):
        problem = f"vector of shape {tuple(vec.shape)}, {(sum(sizes),)} wanted"
        raise ShapeError("vector_to_parameters", problem, "pass one element per parameter")
    overwrite([(p, piece.reshape(p.shape)) for p, piece in zip(listed, vec.split(sizes))])


clip_grad_norm = clip_grad_norm_  # the name of older programs
guard_functions(globals(), ("parameters_to_vector", "vector_to_parameters"))
