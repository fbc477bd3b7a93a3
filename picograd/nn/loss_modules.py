"""Losses as modules: each keeps the options of its function as attributes of PyTorch's names.

Options come by name, or by position in the order of the function. The deprecated `size_average`
and `reduce` are not taken: use `reduction`.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

from picograd.errors import DTypeError
from picograd.nn import losses, losses_margin, losses_regression
from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor


class Loss(Module):
    """This class keeps the options of a loss function; weights are buffers, as in PyTorch."""

    compute: Callable[..., Tensor]
    inputs = 2  # the function's tensors, before its options

    def __init__(self, *values: Any, **options: Any) -> None:
        parameters = list(signature(self.compute).parameters.values())[self.inputs :]
        known = [parameter.name for parameter in parameters]
        for name in options:
            if name not in known:
                fix = f"use {', '.join(known)}"
                raise DTypeError(type(self).__name__, f"no option {name!r}", fix)
        if len(values) > len(known):
            problem = f"{len(values)} options, at most {len(known)} are known"
            raise DTypeError(type(self).__name__, problem, f"use {', '.join(known)}")
        given = dict(zip(known, values)) | options
        self._options, self._given = known, list(given)
        for parameter in parameters:
            value = given.get(parameter.name, parameter.default)
            if isinstance(value, Tensor):
                self.register_buffer(parameter.name, value)
            else:
                setattr(self, parameter.name, value)

    def forward(self, *tensors: Tensor) -> Tensor:
        """Compute the loss of the function's tensors: (input, target), or as it says."""
        options = {name: getattr(self, name) for name in self._options}
        return self.compute(*tensors, **options)

    def extra_repr(self) -> str:
        """Describe the settings that were given."""
        shown = {name: getattr(self, name) for name in self._given}
        settings = [f"{k}={v!r}" for k, v in shown.items() if not isinstance(v, Tensor)]
        return ", ".join(settings)


class CrossEntropyLoss(Loss):
    """This class compares scores (B, C, ...) with class numbers or probabilities."""

    compute = staticmethod(losses.cross_entropy)


class NLLLoss(Loss):
    """This class takes the negative log-probability of the target class."""

    compute = staticmethod(losses.nll_loss)


class BCELoss(Loss):
    """This class compares probabilities with targets from 0 to 1."""

    compute = staticmethod(losses.binary_cross_entropy)


class BCEWithLogitsLoss(Loss):
    """This class compares scores with targets from 0 to 1, without overflow."""

    compute = staticmethod(losses.binary_cross_entropy_with_logits)


class MSELoss(Loss):
    """This class squares differences."""

    compute = staticmethod(losses_regression.mse_loss)


class L1Loss(Loss):
    """This class takes absolute differences."""

    compute = staticmethod(losses_regression.l1_loss)


class SmoothL1Loss(Loss):
    """This class squares small differences and takes large ones absolutely."""

    compute = staticmethod(losses_regression.smooth_l1_loss)


class HuberLoss(Loss):
    """This class squares small differences and takes large ones times delta."""

    compute = staticmethod(losses_regression.huber_loss)


class KLDivLoss(Loss):
    """This class is the Kullback-Leibler divergence of log-probabilities."""

    compute = staticmethod(losses_regression.kl_div)


class PoissonNLLLoss(Loss):
    """This class fits counts with a Poisson distribution."""

    compute = staticmethod(losses_regression.poisson_nll_loss)


class GaussianNLLLoss(Loss):
    """This class fits values with a normal distribution of given variance."""

    compute = staticmethod(losses_regression.gaussian_nll_loss)
    inputs = 3


class MarginRankingLoss(Loss):
    """This class orders two scores."""

    compute = staticmethod(losses_margin.margin_ranking_loss)
    inputs = 3


class HingeEmbeddingLoss(Loss):
    """This class keeps distances small or above a margin."""

    compute = staticmethod(losses_margin.hinge_embedding_loss)


class SoftMarginLoss(Loss):
    """This class computes log(1 + exp(-y x))."""

    compute = staticmethod(losses_margin.soft_margin_loss)


class MultiLabelSoftMarginLoss(Loss):
    """This class is the mean of two-class losses over classes."""

    compute = staticmethod(losses_margin.multilabel_soft_margin_loss)


class MultiMarginLoss(Loss):
    """This class keeps the target's score a margin above the others."""

    compute = staticmethod(losses_margin.multi_margin_loss)


class CosineEmbeddingLoss(Loss):
    """This class turns vectors towards each other or apart."""

    compute = staticmethod(losses_margin.cosine_embedding_loss)
    inputs = 3


class TripletMarginLoss(Loss):
    """This class keeps the anchor nearer to the positive than to the negative."""

    compute = staticmethod(losses_margin.triplet_margin_loss)
    inputs = 3
