"""Embedding: a table of vectors looked up by index."""

from typing import Any

from picograd.errors import DTypeError
from picograd.nn import init
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.tensor import Tensor


class Embedding(Module):
    """This class maps integer indices (...) to rows of a table: (..., embedding_dim)."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, device: Any = None, dtype: Any = None
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        shape = (num_embeddings, embedding_dim)
        self.weight = Parameter(init.normal(shape, 0.0, 1.0, device, dtype))

    def forward(self, index: Tensor) -> Tensor:
        """Look up one row for each index."""
        if not index.dtype.is_integer:
            problem = f"the indices are {index.dtype.name}"
            raise DTypeError("Embedding", problem, "cast them to picograd.int64")
        return self.weight[index]

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"{self.num_embeddings}, {self.embedding_dim}"
