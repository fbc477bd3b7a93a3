"""Methods of `Tensor` by kind. Products of vectors and matrices.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from picograd.tensor.core.function import composed
from picograd.tensor.core.recording import Recorded, Same, apply, as_tensor
from picograd.tensor.linalg import products


class ProductMethods(Recorded):
    """This class holds methods of `Tensor`. Products of vectors and matrices."""

    __slots__ = ()

    @composed(method=False)
    def dot(self: Same, other: Same) -> Same:
        """Multiply vectors or matrices, as NumPy's dot for up to two axes.

        >>> Tensor([1.0, 2.0, 3.0]).dot(Tensor([1.0, 1.0, 2.0])).item()
        9.0
        """
        return apply(products.dot, self, as_tensor(other, self))
