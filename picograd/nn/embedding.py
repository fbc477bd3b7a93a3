"""Embedding and EmbeddingBag: tables of vectors looked up by index."""

from typing import Any

from picograd.errors import AssertedError, ShapeError, check_known
from picograd.nn import functional, init
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.tensor import Tensor


class Table(Module):
    """This class holds what Embedding and EmbeddingBag share: the table and its options.

    `sparse` is stored only: gradients are dense.
    """

    embedding_dim: int
    num_embeddings: int

    def __init__(self, options: dict[str, Any]) -> None:
        op, sizes = type(self).__name__, (options["num_embeddings"], options["embedding_dim"])
        self.num_embeddings, self.embedding_dim = sizes
        init.check_sizes(op, num_embeddings=sizes[0], embedding_dim=sizes[1])
        self.max_norm: Any = options["max_norm"]
        self.norm_type: Any = options["norm_type"]
        self.scale_grad_by_freq: Any = options["scale_grad_by_freq"]
        self.sparse: Any = options["sparse"]
        self.padding_idx: int | None = self._padding(options["padding_idx"])
        given = options["_weight"]
        if given is None:
            given = Tensor.normal(*sizes, device=options["device"], dtype=options["dtype"])
            if self.padding_idx is not None:
                given = given * self._is_real(Tensor.arange(sizes[0], device=given.device), given)
        elif tuple(given.shape) != sizes:
            problem = f"table of shape {tuple(given.shape)}, {sizes} wanted"
            raise ShapeError(op, problem, "pass the shape of the weight")
        self.weight: Parameter = Parameter(given)
        if options["_weight"] is None:
            init.begin(self, Table)

    def reset_parameters(self) -> None:
        """Draw the table anew; the row `padding_idx` is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].zero_()

    def _padding(self, index: int | None) -> int | None:
        if index is None:
            return None
        if not -self.num_embeddings <= index < self.num_embeddings:
            problem = f"padding_idx={index} is out of range for {self.num_embeddings} rows"
            raise AssertedError(type(self).__name__, problem, "use a row of the table")
        return index % self.num_embeddings

    def _is_real(self, index: Tensor, like: Tensor) -> Tensor:
        """1 for every index but the padding, as a column that multiplies rows."""
        padding: Any = self.padding_idx
        return (index != padding).unsqueeze(-1).cast(like.dtype)

    def extra_repr(self) -> str:
        """Describe the settings."""
        limits = dict(padding_idx=None, max_norm=None, norm_type=2)
        unusual = self._unusual(**limits, scale_grad_by_freq=False)
        return f"{self.num_embeddings}, {self.embedding_dim}{unusual}"


class Embedding(Table):
    """This class maps integer indices (...) to rows of a table: (..., embedding_dim).

    The row `padding_idx` starts at zero and gets no gradient.

    >>> from picograd import Tensor, nn
    >>> nn.Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False,
        device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(locals())
        self.weight.requires_grad = not _freeze

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> "Embedding":
        """Make a layer of a table (N, D)."""
        rows, columns = embeddings.shape
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(rows, columns, *options, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        """Look up one row for each index."""
        limits = (self.padding_idx, self.max_norm, self.norm_type)
        return functional.embedding(input, self.weight, *limits, self.scale_grad_by_freq)


class EmbeddingBag(Table):
    """This class sums, averages or takes the maximum of rows per bag: -> (B, embedding_dim).

    Bags are rows of (B, N), or stretches of (N,) that start at `offsets` (B,). Indices equal to
    `padding_idx` do not count; an empty bag gives zeros.

    >>> from picograd import Tensor, nn
    >>> nn.EmbeddingBag(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 4)
    """

    include_last_offset: bool

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, _weight: Tensor | None = None, include_last_offset: bool = False,
        padding_idx: int | None = None, device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        check_known("EmbeddingBag", "mode", mode, ("sum", "mean", "max"))
        super().__init__(locals())
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Look up and reduce; `per_sample_weights` (shape of the index) with mode "sum" only."""
        limits = (self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse)
        places = (self.include_last_offset, self.padding_idx)
        rest = (offsets, *limits, per_sample_weights, *places)
        return functional.embedding_bag(input, self.weight, *rest)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"{super().extra_repr()}, mode={self.mode!r}"

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> "EmbeddingBag":  # fmt: skip
        """Make a layer of a table (N, D)."""
        rows, columns = embeddings.shape
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings)
        made = cls(rows, columns, *options, include_last_offset, padding_idx)
        made.weight.requires_grad = not freeze
        return made
