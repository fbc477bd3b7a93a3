"""Tools of training: gradient clipping and parameters as one vector; packed sequences."""

from collections.abc import Iterable

from picograd.errors import ShapeError
from picograd.nn.clip import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from picograd.nn.parameter import overwrite
from picograd.nn.utils import rnn
from picograd.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.tensor import Tensor

__all__ = [
    "PackedSequence",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Join tensors to one vector.

    >>> from picograd import Tensor, nn
    >>> nn.utils.parameters_to_vector([Tensor([1.0, 2.0]), Tensor([[3.0]])]).tolist()
    [1.0, 2.0, 3.0]
    """
    return Tensor.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the pieces of a vector into tensors. Raises ShapeError if the sizes do not add up.

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
    pieces = vec.split(sizes)
    overwrite([(p, piece.reshape(p.shape)) for p, piece in zip(listed, pieces)])


guard_functions(globals(), ("parameters_to_vector", "vector_to_parameters"))
