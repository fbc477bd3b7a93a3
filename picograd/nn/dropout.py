"""Dropout: zeroes a random part of its input while training."""

from collections.abc import Callable

from picograd.errors import check_probability
from picograd.nn import functional
from picograd.nn.family import Family
from picograd.tensor.tensor import Tensor


class Dropout(Family):
    """This class zeroes each element with probability p and scales the others by 1/(1-p).

    Srivastava et al. (2014). Evaluation returns the input.

    >>> from picograd import Tensor, nn
    >>> nn.Dropout(0.5).eval()(Tensor([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    """

    drop: Callable[..., Tensor] = staticmethod(functional.dropout)
    _shown = "p={self.p}, inplace={self.inplace}"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        check_probability(type(self).__name__, "p", p)
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Drop elements, or channels, in training mode; do nothing in evaluation mode."""
        return self.drop(input, self.p, self.training, self.inplace)


class Dropout1d(Dropout, drop=functional.dropout1d):
    """This class zeroes whole channels of (B, C, L), or (C, L) (Tompson et al., 2015).

    >>> from picograd import Tensor, nn
    >>> nn.Dropout1d(0.5).eval()(Tensor([[[1.0, 2.0]]])).tolist()
    [[[1.0, 2.0]]]
    """


class Dropout2d(Dropout, drop=functional.dropout2d):
    """This class zeroes whole channels of (B, C, H, W) (Tompson et al., 2015).

    Other numbers of axes are read as (B, C, ...), with a warning: (B, C) drops elements.

    >>> from picograd import Tensor, nn
    >>> nn.Dropout2d(0.5).eval()(Tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[1.0, 2.0]]]]
    """


class Dropout3d(Dropout, drop=functional.dropout3d):
    """This class zeroes whole channels of (B, C, D, H, W), or (C, D, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.Dropout3d(0.5).eval()(Tensor([[[[[1.0, 2.0]]]]])).tolist()
    [[[[[1.0, 2.0]]]]]
    """


class AlphaDropout(Dropout, drop=functional.alpha_dropout):
    """This class drops to SELU's negative limit and keeps mean 0 and variance 1.

    Klambauer et al. (2017).

    >>> from picograd import Tensor, nn
    >>> nn.AlphaDropout().eval()(Tensor([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    """


class FeatureAlphaDropout(Dropout, drop=functional.feature_alpha_dropout):
    """This class is AlphaDropout of whole channels (axes 0 and 1 are drawn for).

    >>> from picograd import Tensor, nn
    >>> nn.FeatureAlphaDropout().eval()(Tensor([[[1.0, 2.0]]])).tolist()
    [[[1.0, 2.0]]]
    """
