"""CosineSimilarity and PairwiseDistance."""

from picograd.nn import functional
from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor


class CosineSimilarity(Module):
    """This class computes a.b / (|a| |b|) along an axis.

    >>> from picograd import Tensor, nn
    >>> nn.CosineSimilarity()(Tensor([[1.0, 0.0]]), Tensor([[1.0, 1.0]])).tolist()
    [0.7071...]
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compare."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """This class computes the p-norm of a - b + eps along the last axis.

    >>> from picograd import Tensor, nn
    >>> nn.PairwiseDistance()(Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]])).tolist()
    [4.9999...]
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Measure."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
