"""Methods of `Tensor` by kind. Products of vectors and matrices.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""


from picograd.tensor import linalg
from picograd.tensor.recording import Recorded, Same, apply, as_tensor


class ProductMethods(Recorded):
    """This class holds methods of `Tensor`. Products of vectors and matrices."""

    __slots__ = ()

    def dot(
        self: Same,
        other: Same,
    ) -> Same:
        """Multiply vectors or matrices, as NumPy's dot for up to two axes."""
        return apply(linalg.matmul, self, as_tensor(other, self))

    def mm(
        self: Same,
        other: Same,
    ) -> Same:
        """Multiply two matrices."""
        return apply(linalg.matmul_of_rank, "mm", self, other, 2)

    def bmm(
        self: Same,
        other: Same,
    ) -> Same:
        """Multiply two stacks of matrices."""
        return apply(linalg.matmul_of_rank, "bmm", self, other, 3)

    def outer(
        self: Same,
        other: Same,
    ) -> Same:
        """Multiply every element of one vector with every element of another."""
        return apply(linalg.outer, self, other)

    def linear(
        self: Same,
        weight: Same,
        bias: Same | None = None,
    ) -> Same:
        """Compute self @ weight.T + bias."""
        return apply(linalg.linear, self, weight, bias)
