"""Methods of `Tensor` by kind. Reading and writing by index, position or mask.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Any

from picograd.tensor import selecting, writing
from picograd.tensor.recording import Other, Recorded, Same, apply


class SelectMethods(Recorded):
    """This class holds methods of `Tensor`. Reading and writing by index, position or mask."""

    __slots__ = ()

    # indexing

    def gather(
        self: Same,
        dim: Any,
        index: Same,
    ) -> Same:
        """Read out[i][j] = self[i][index[i][j]] (dim 1); the index is clamped to the axis."""
        return apply(selecting.gather, "gather", self, dim, index)

    def take_along_dim(
        self: Same,
        indices: Same,
        dim: Any = None,
    ) -> Same:
        """Read by index along an axis; the other axes broadcast."""
        return apply(selecting.take_along, self, indices, dim)

    def index_select(
        self: Same,
        dim: Any,
        index: Same,
    ) -> Same:
        """Take slices along an axis in the order of an index."""
        return apply(selecting.index_select, self, dim, index)

    def scatter(
        self: Same,
        dim: Any,
        index: Same,
        src: Other,
        reduce: Any = None,
    ) -> Same:
        """Write out[i][index[i][j]] = src[i][j] (dim 1); reduce="add" or "multiply"."""
        return apply(selecting.scatter, "scatter", self, dim, index, src, reduce)

    def scatter_add(
        self: Same,
        dim: Any,
        index: Same,
        src: Same,
    ) -> Same:
        """Add src[i][j] to out[i][index[i][j]] (dim 1)."""
        return apply(selecting.scatter, "scatter_add", self, dim, index, src, "add")

    def index_add(
        self: Same,
        dim: Any,
        index: Same,
        source: Same,
    ) -> Same:
        """Add slices of `source` along an axis at the positions of a 1-d index."""
        return apply(selecting.index_add, self, dim, index, source)

    def masked_select(
        self: Same,
        mask: Same,
    ) -> Same:
        """Take the elements where the mask holds, as a vector; computes the mask."""
        return apply(selecting.masked_select, self, mask)

    def nonzero(self: Same) -> Same:
        """List the positions of non-zero elements; computes."""
        return apply(selecting.nonzero, self)

    def one_hot(
        self: Same,
        num_classes: Any,
    ) -> Same:
        """Write each index as a row with a single 1, in int64."""
        return apply(selecting.one_hot, self, num_classes)

    def argwhere(self: Same) -> Same:
        """List the positions of non-zero elements; computes."""
        return apply(selecting.nonzero, self)

    def take(
        self: Same,
        index: Same,
    ) -> Same:
        """Read elements by position in the flattened tensor."""
        return apply(writing.take, self, index)

    def put(
        self: Same,
        index: Same,
        source: Same,
        accumulate: bool = False,
    ) -> Same:
        """Write elements by position in the flattened tensor."""
        return apply(writing.put, self, index, source, accumulate)

    def index_fill(
        self: Same,
        dim: Any,
        index: Same,
        value: Other,
    ) -> Same:
        """Write one number over the slices that a 1-d index names."""
        return apply(writing.index_fill, self, dim, index, value)

    def index_copy(
        self: Same,
        dim: Any,
        index: Same,
        source: Same,
    ) -> Same:
        """Write slices of `source` over those that a 1-d index names."""
        return apply(writing.index_copy, self, dim, index, source)

    def scatter_reduce(
        self: Same,
        dim: Any,
        index: Same,
        src: Same,
        reduce: str,
        include_self: bool = True,
    ) -> Same:
        """Reduce src[i][j] into out[i][index[i][j]] (dim 1): sum, prod, mean, amax, amin."""
        options = (reduce, include_self)
        return apply(writing.scatter_reduce, self, dim, index, src, *options)

    def masked_scatter(
        self: Same,
        mask: Same,
        source: Same,
    ) -> Same:
        """Write the elements of source, in order, where the mask holds; computes the mask."""
        return apply(writing.masked_scatter, self, mask, source)
