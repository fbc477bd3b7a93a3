"""Methods of `Tensor` by kind. Reading and writing by index, position or mask.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Any

from picograd.dtype import category
from picograd.errors import DTypeError
from picograd.tensor.core.annotations import Scalar, TensorLike
from picograd.tensor.core.operands import UNSET, either
from picograd.tensor.core.recording import Recorded, Same, apply
from picograd.tensor.indexing import selecting, writing


class SelectMethods(Recorded):
    """This class holds methods of `Tensor`. Reading and writing by index, position or mask."""

    __slots__ = ()

    # indexing

    def gather(self: Same, dim: int, index: Same) -> Same:
        """Read out[i][j] = self[i][index[i][j]] (dim 1); an index outside the axis is an error.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).gather(1, Tensor([[1], [0]])).tolist()
        [[2.0], [3.0]]
        """
        return apply(selecting.gather, "gather", self, dim, index)

    def take_along_dim(self: Same, indices: Same, dim: int | None = None) -> Same:
        """Read by index along an axis; the other axes broadcast.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).take_along_dim(Tensor([[1], [0]]), 1).tolist()
        [[2.0], [3.0]]
        """
        return apply(selecting.take_along, self, indices, dim)

    def index_select(self: Same, dim: int, index: Same) -> Same:
        """Take slices along an axis in the order of an index.

        >>> Tensor([1.0, 2.0, 3.0]).index_select(0, Tensor([2, 0])).tolist()
        [3.0, 1.0]
        """
        return apply(selecting.index_select, self, dim, index)

    def scatter(
        self: Same,
        dim: int,
        index: Same,
        src: TensorLike = UNSET,
        reduce: str | None = None,
        *,
        value: TensorLike = UNSET,
    ) -> Same:
        """Write out[i][index[i][j]] = src[i][j] (dim 1); reduce="add" or "multiply".

        `src` may be a number, which is also called `value`.

        >>> Tensor([1.0, 2.0, 3.0]).scatter(0, Tensor([2, 0]), Tensor([10.0, 20.0])).tolist()
        [20.0, 2.0, 10.0]
        """
        source = either("scatter", "src", src, "value", value, UNSET)
        if source is UNSET:
            raise DTypeError("scatter", "there is nothing to write", "pass src or value")
        return apply(selecting.scatter, "scatter", self, dim, index, source, reduce)

    def scatter_add(self: Same, dim: int, index: Same, src: Same) -> Same:
        """Add src[i][j] to out[i][index[i][j]] (dim 1).

        >>> Tensor([1.0, 2.0, 3.0]).scatter_add(0, Tensor([0, 0]), Tensor([10.0, 20.0])).tolist()
        [31.0, 2.0, 3.0]
        """
        return apply(selecting.scatter, "scatter_add", self, dim, index, src, "add")

    def index_add(self: Same, dim: int, index: Same, source: Same, *, alpha: Scalar = 1) -> Same:
        """Add slices of `source`, times alpha, along an axis at the positions of a 1-d index.

        >>> Tensor([1.0, 2.0, 3.0]).index_add(0, Tensor([0, 0]), Tensor([10.0, 20.0])).tolist()
        [31.0, 2.0, 3.0]
        """
        if alpha == 1:
            return apply(selecting.index_add, self, dim, index, source)
        given: Any = source
        scaled = given * alpha
        if category(scaled.dtype) > category(source.dtype):
            text = f"alpha={alpha!r} does not fit {source.dtype.name}"
            raise DTypeError("index_add", text, "pass an alpha of the source's kind")
        return apply(selecting.index_add, self, dim, index, scaled)

    def one_hot(self: Same, num_classes: int = -1) -> Same:
        """Write each index as a row with a single 1, in int64; -1 classes: the largest index + 1.

        The latter computes.

        >>> Tensor([0, 2]).one_hot(3).tolist()
        [[1, 0, 0], [0, 0, 1]]
        """
        count = selecting.count_classes(self) if num_classes == -1 else num_classes
        return apply(selecting.one_hot, self, count)

    def argwhere(self: Same) -> Same:
        """List the positions of non-zero elements; computes.

        >>> Tensor([0.0, 5.0, 6.0]).argwhere().tolist()
        [[1], [2]]
        """
        return apply(selecting.nonzero, self)

    def take(self: Same, index: Same) -> Same:
        """Read elements by position in the flattened tensor.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).take(Tensor([3, 0])).tolist()
        [4.0, 1.0]
        """
        return apply(writing.take, self, index)

    def put(self: Same, index: Same, source: Same, accumulate: bool = False) -> Same:
        """Write elements by position in the flattened tensor.

        >>> Tensor([1.0, 2.0, 3.0]).put(Tensor([2, 0]), Tensor([10.0, 20.0])).tolist()
        [20.0, 2.0, 10.0]
        """
        return apply(writing.put, self, index, source, accumulate)

    def index_fill(self: Same, dim: int, index: Same, value: TensorLike) -> Same:
        """Write one number over the slices that a 1-d index names.

        >>> Tensor([1.0, 2.0, 3.0]).index_fill(0, Tensor([2, 0]), 9).tolist()
        [9.0, 2.0, 9.0]
        """
        return apply(writing.index_fill, self, dim, index, value)

    def index_copy(self: Same, dim: int, index: Same, source: Same) -> Same:
        """Write slices of `source` over those that a 1-d index names.

        >>> Tensor([1.0, 2.0, 3.0]).index_copy(0, Tensor([2, 0]), Tensor([10.0, 20.0])).tolist()
        [20.0, 2.0, 10.0]
        """
        return apply(writing.index_copy, self, dim, index, source)

    def scatter_reduce(
        self: Same, dim: int, index: Same, src: Same, reduce: str, include_self: bool = True
    ) -> Same:
        """Reduce src[i][j] into out[i][index[i][j]] (dim 1): sum, prod, mean, amax, amin.

        >>> Tensor([1.0, 2.0, 3.0]).scatter_reduce(0, Tensor([0, 0]), Tensor([10.0, 20.0]),
        ...     "amax").tolist()
        [20.0, 2.0, 3.0]
        """
        options = (reduce, include_self)
        return apply(writing.scatter_reduce, self, dim, index, src, *options)

    def masked_scatter(self: Same, mask: Same, source: Same) -> Same:
        """Write the elements of source, in order, where the mask holds; computes the mask.

        >>> x = Tensor([1.0, 2.0, 3.0])
        >>> x.masked_scatter(x > 1.5, Tensor([8.0, 9.0])).tolist()
        [1.0, 8.0, 9.0]
        """
        return apply(writing.masked_scatter, self, mask, source)
