"""Losses as modules: each keeps the options of its function as attributes of PyTorch's names.

Options come by name, or by position in the order of the function; `size_average` and `reduce` are
PyTorch's older words for `reduction`.
"""

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

from picograd.errors import DTypeError, ShapeError
from picograd.helpers import product
from picograd.nn import functional_losses
from picograd.nn.distances import PairwiseDistance
from picograd.nn.family import Family
from picograd.nn.linear import Linear
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.spelling import older_places, read_reduction, without_older
from picograd.tensor.network import losses
from picograd.tensor.tensor import Tensor


class Criterion(Family):
    """This class is the base of losses that programs write themselves: it keeps `reduction`.

    `size_average` and `reduce` are PyTorch's older words for it.

    >>> from picograd.nn.loss_modules import Criterion
    >>> Criterion().reduction, Criterion(size_average=False).reduction
    ('mean', 'sum')
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        if reduce is False:
            reduction = "none"
        elif size_average is not None or reduce is not None:
            reduction = "sum" if size_average is False else "mean"
        self.reduction: str = reduction


class WeightedCriterion(Criterion):
    """This class is the base of such losses that have a weight a class: a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *reduced: Any, **named: Any) -> None:
        super().__init__(*reduced, **named)
        self.register_buffer("weight", weight)


def called_at_once(name: str) -> DTypeError:
    """Word the error of `MSELoss(output, target)`: the tensors of the call as options."""
    fix = f"make the loss, then call it: {name}()(input, target)"
    return DTypeError(name, "an option is a tensor", fix)


class Loss(WeightedCriterion):
    """This class keeps the options of a loss function; weights are buffers, as in PyTorch."""

    compute: Callable[..., Tensor]
    __signature__: Signature
    inputs = 2  # the function's tensors, before its options
    hidden: tuple[str, ...] = ()  # options that only the function takes

    def __init_subclass__(cls, **own: Any) -> None:
        """Show the options of the function as the class's signature."""
        super().__init_subclass__(**own)
        cls.__signature__ = Signature(cls.options())

    @classmethod
    def options(cls) -> list[Parameter]:
        """List the options."""
        listed = list(signature(cls.compute).parameters.values())[cls.inputs :]
        return [option for option in listed if option.name not in cls.hidden]

    def __init__(self, *values: Any, **options: Any) -> None:
        parameters = self.options()
        known = [parameter.name for parameter in parameters]
        values = without_older(values, older_places(self.compute.__name__, known), options)
        if "reduction" in known:
            read_reduction(options)
        for name in options:
            if name not in known:
                fix = f"use {', '.join(known)}"
                raise DTypeError(type(self).__name__, f"no option {name!r}", fix)
        if len(values) > len(known):
            if any(isinstance(value, Tensor) for value in values):
                raise called_at_once(type(self).__name__)
            problem = f"{len(values)} options, at most {len(known)} are known"
            raise DTypeError(type(self).__name__, problem, f"use {', '.join(known)}")
        given = dict(zip(known, values)) | options
        for name, value in given.items():
            if isinstance(value, Tensor) and not name.endswith("weight"):
                raise called_at_once(type(self).__name__)
        self._options = known
        for parameter in parameters:
            value = given.get(parameter.name, parameter.default)
            if isinstance(value, Tensor):
                self.register_buffer(parameter.name, value)
            else:
                setattr(self, parameter.name, value)

    def forward(self, *tensors: Tensor, **named: Tensor) -> Tensor:
        """Compute the loss of the function's tensors: (input, target), or as it names them."""
        options = {name: getattr(self, name) for name in self._options}
        return self.compute(*tensors, **named, **options)


class CrossEntropyLoss(Loss, compute=losses.cross_entropy):
    """This class compares scores (B, C, ...) with class numbers or probabilities.

    >>> from picograd import Tensor, nn
    >>> nn.CrossEntropyLoss()(Tensor([[0.0, 0.0]]), Tensor([1])).item()
    0.6931...
    """


class LinearCrossEntropyLoss(WeightedCriterion):
    """This class has a linear layer whose results are scores for the cross entropy.

    `out_features` are the sizes after the classes, of a target of several axes.

    >>> from picograd import Tensor, nn
    >>> nn.LinearCrossEntropyLoss(3, 2)(Tensor.zeros(1, 3), Tensor([1])).item()
    0.6931...
    """

    _shown = (
        "in_features={self.linear.in_features}, num_classes={self.num_classes},"
        " out_features={self.out_features}, bias={self.has_bias}, reduction={self.reduction},"
        " ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing},"
        " options={self.options}"
    )

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (),
        bias: bool = False, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
        reduction: str = "mean", weight: Tensor | None = None, ignore_index: int | None = None,
        label_smoothing: float = 0.0, options: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(weight, reduction=reduction)
        if weight is not None and weight.shape != (num_classes,):
            text = f"weight of shape {weight.shape} for {num_classes} classes"
            raise ShapeError(type(self).__name__, text, "give one weight a class")
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.options, self.has_bias = options, bias
        count = product((num_classes, *self.out_features))
        self.linear = Linear(in_features, count, bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        sizes, layer = (self.num_classes, *self.out_features), self.linear
        return losses.linear_cross_entropy(
            input,
            layer.weight.reshape(*sizes, -1),
            target,
            linear_bias=None if layer.bias is None else layer.bias.reshape(sizes),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(Loss, compute=losses.nll_loss):
    """This class takes the negative log-probability of the target class.

    >>> from picograd import Tensor, nn
    >>> nn.NLLLoss()(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """


class NLLLoss2d(NLLLoss, compute=losses.nll_loss):
    """This class is NLLLoss under the name that older programs have for images (B, C, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.NLLLoss2d()(Tensor([[[[-1.0]], [[-2.0]]]]), Tensor([[[1]]])).item()
    2.0
    """


class BCELoss(Loss, compute=losses.binary_cross_entropy):
    """This class compares probabilities with targets from 0 to 1.

    >>> from picograd import Tensor, nn
    >>> nn.BCELoss()(Tensor([0.5, 0.5]), Tensor([0.0, 1.0])).item()
    0.6931...
    """


class BCEWithLogitsLoss(Loss, compute=losses.binary_cross_entropy_with_logits):
    """This class compares scores with targets from 0 to 1, without overflow.

    >>> from picograd import Tensor, nn
    >>> nn.BCEWithLogitsLoss()(Tensor([0.0, 0.0]), Tensor([0.0, 1.0])).item()
    0.6931...
    """


class MSELoss(Loss, compute=functional_losses.mse_loss, hidden=("weight",)):
    """This class squares differences.

    >>> from picograd import Tensor, nn
    >>> nn.MSELoss()(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    4.5
    """


class L1Loss(Loss, compute=functional_losses.l1_loss, hidden=("weight",)):
    """This class takes absolute differences.

    >>> from picograd import Tensor, nn
    >>> nn.L1Loss()(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    1.5
    """


class SmoothL1Loss(Loss, compute=functional_losses.smooth_l1_loss):
    """This class squares small differences and takes large ones absolutely.

    >>> from picograd import Tensor, nn
    >>> nn.SmoothL1Loss()(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    1.25
    """


class HuberLoss(Loss, compute=functional_losses.huber_loss, hidden=("weight",)):
    """This class squares small differences and takes large ones times delta.

    >>> from picograd import Tensor, nn
    >>> nn.HuberLoss()(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    1.25
    """


class KLDivLoss(Loss, compute=functional_losses.kl_div):
    """This class is the Kullback-Leibler divergence of log-probabilities.

    >>> from picograd import Tensor, nn
    >>> nn.KLDivLoss(reduction="batchmean")(Tensor([[0.0, 0.0]]), Tensor([[0.5, 0.5]])).item()
    -0.6931...
    """


class PoissonNLLLoss(Loss, compute=functional_losses.poisson_nll_loss):
    """This class fits counts with a Poisson distribution.

    >>> from picograd import Tensor, nn
    >>> nn.PoissonNLLLoss()(Tensor([0.0, 0.0]), Tensor([1.0, 2.0])).item()
    1.0
    """

    def forward(self, *tensors: Tensor, **named: Tensor) -> Tensor:
        """Compute the loss of (log_input, target); the function has an option `log_input`."""
        if "log_input" in named:
            tensors = (named.pop("log_input"), *tensors)
        return super().forward(*tensors, **named)


class GaussianNLLLoss(Loss, compute=functional_losses.gaussian_nll_loss, inputs=3):
    """This class fits values with a normal distribution of given variance.

    >>> from picograd import Tensor, nn
    >>> nn.GaussianNLLLoss()(Tensor([1.0, 2.0]), Tensor([2.0, 2.0]), Tensor([1.0, 1.0])).item()
    0.25
    """


class MarginRankingLoss(Loss, compute=functional_losses.margin_ranking_loss, inputs=3):
    """This class orders two scores.

    >>> from picograd import Tensor, nn
    >>> nn.MarginRankingLoss()(Tensor([1.0, 5.0]), Tensor([2.0, 2.0]), Tensor([1, 1])).item()
    0.5
    """


class HingeEmbeddingLoss(Loss, compute=functional_losses.hinge_embedding_loss):
    """This class keeps distances small or above a margin.

    >>> from picograd import Tensor, nn
    >>> nn.HingeEmbeddingLoss()(Tensor([2.0, 0.5]), Tensor([1, -1])).item()
    1.25
    """


class SoftMarginLoss(Loss, compute=functional_losses.soft_margin_loss):
    """This class computes log(1 + exp(-y x)).

    >>> from picograd import Tensor, nn
    >>> nn.SoftMarginLoss()(Tensor([0.0, 0.0]), Tensor([1.0, -1.0])).item()
    0.6931...
    """


class MultiLabelSoftMarginLoss(Loss, compute=functional_losses.multilabel_soft_margin_loss):
    """This class is the mean of two-class losses over classes.

    >>> from picograd import Tensor, nn
    >>> nn.MultiLabelSoftMarginLoss()(Tensor([[0.0, 0.0]]), Tensor([[0.0, 1.0]])).item()
    0.6931...
    """


class MultiMarginLoss(Loss, compute=functional_losses.multi_margin_loss):
    """This class keeps the target's score a margin above the others.

    >>> from picograd import Tensor, nn
    >>> nn.MultiMarginLoss()(Tensor([[0.0, 1.0]]), Tensor([0])).item()
    1.0
    """


class CosineEmbeddingLoss(Loss, compute=functional_losses.cosine_embedding_loss, inputs=3):
    """This class turns vectors towards each other or apart.

    >>> from picograd import Tensor, nn
    >>> nn.CosineEmbeddingLoss()(Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]]), Tensor([1])).item()
    1.0
    """


class TripletMarginLoss(Loss, compute=functional_losses.triplet_margin_loss, inputs=3):
    """This class keeps the anchor nearer to the positive than to the negative.

    >>> from picograd import Tensor, nn
    >>> nn.TripletMarginLoss()(Tensor([[0.0, 0.0]]), Tensor([[0.0, 3.0]]), Tensor([[0.0,
    ...     3.5]])).item()
    0.5
    """


class TripletMarginWithDistanceLoss(
    Loss, compute=functional_losses.triplet_margin_with_distance_loss, inputs=3
):
    """This class is TripletMarginLoss with a distance of your own, Euclidean unless given.

    >>> from picograd import Tensor, nn
    >>> nn.TripletMarginWithDistanceLoss()(Tensor([[0.0, 0.0]]), Tensor([[0.0, 3.0]]),
    ...     Tensor([[0.0, 3.5]])).item()
    0.5
    """

    distance_function: PairwiseDistance | Any

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__(*values, **options)
        given: Any = vars(self)["distance_function"]
        self.distance_function = PairwiseDistance() if given is None else given


class MultiLabelMarginLoss(Loss, compute=functional_losses.multilabel_margin_loss):
    """This class keeps the scores of all labels a margin above those of other classes.

    >>> from picograd import Tensor, nn
    >>> nn.MultiLabelMarginLoss()(Tensor([[0.0, 1.0]]), Tensor([[0, -1]])).item()
    1.0
    """


class CTCLoss(Loss, compute=functional_losses.ctc_loss, inputs=4):
    """This class compares log-probabilities (T, B, C) with unaligned targets.

    >>> from picograd import Tensor, nn
    >>> nn.CTCLoss()(Tensor([[[-1.0, -1.0]]]), Tensor([[1]]), Tensor([1]), Tensor([1])).item()
    1.0
    """
