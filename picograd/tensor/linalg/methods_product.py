"""Methods of `Tensor` by kind. Products of vectors and matrices.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from picograd.tensor.core.recording import Recorded, Same, apply, as_tensor
from picograd.tensor.linalg import products


class ProductMethods(Recorded):
    """This class holds methods of `Tensor`. Products of vectors and matrices."""

    __slots__ = ()

    def dot(self: Same, other: Same) -> Same:
        """Multiply vectors or matrices, as NumPy's dot for up to two axes.

        >>> Tensor([1.0, 2.0, 3.0]).dot(Tensor([1.0, 1.0, 2.0])).item()
        9.0
        """
        return apply(products.dot, self, as_tensor(other, self))

    def mm(self: Same, other: Same) -> Same:
        """Multiply two matrices.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mm(Tensor([[1.0, 0.0], [1.0, 1.0]])).tolist()
        [[3.0, 2.0], [7.0, 4.0]]
        """
        return apply(products.matmul_of_rank, "mm", self, other, 2)

    def bmm(self: Same, other: Same) -> Same:
        """Multiply two stacks of matrices.

        >>> Tensor([[[1.0, 2.0], [3.0, 4.0]]]).bmm(Tensor([[[1.0], [1.0]]])).tolist()
        [[[3.0], [7.0]]]
        """
        return apply(products.matmul_of_rank, "bmm", self, other, 3)

    def outer(self: Same, other: Same) -> Same:
        """Multiply every element of one vector with every element of another.

        >>> Tensor([1.0, 2.0]).outer(Tensor([3.0, 4.0])).tolist()
        [[3.0, 4.0], [6.0, 8.0]]
        """
        return apply(products.outer, self, other)

    def linear(self: Same, weight: Same, bias: Same | None = None) -> Same:
        """Compute self @ weight.T + bias.

        >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0, 1.0]]), Tensor([0.5])).tolist()
        [[3.5]]
        """
        return apply(products.linear, self, weight, bias)
