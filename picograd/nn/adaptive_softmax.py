"""A softmax over many classes, frequent ones first, in clusters (Grave et al., 2017)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from picograd.errors import ShapeError, ValueRangeError
from picograd.nn.containers import ModuleList, Sequential
from picograd.nn.linear import Linear
from picograd.nn.module import Module
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.public import cat
from picograd.tensor.tensor import Tensor


class AdaptiveOutput(NamedTuple):
    """This class is the log-probability of each target, and the loss: minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """This class gives log-probabilities of classes: a head of frequent ones, and clusters.

    `cutoffs` are where clusters begin; the head has a place for each cluster, whose classes go
    through `div_value` times fewer features than those of the one before. All clusters are
    computed for all rows, so that a trace does not depend on the targets.

    >>> from picograd import Tensor, nn
    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10], div_value=2.0)
    >>> layer(Tensor.ones(3, 8), Tensor([0, 7, 19])).output.shape
    (3,)
    >>> layer.log_prob(Tensor.ones(3, 8)).exp().sum(1).allclose(Tensor.ones(3))
    True
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        ends = [int(each) for each in cutoffs]
        is_rising = ends == sorted(set(ends))
        is_inside = all(0 < each < n_classes for each in ends)
        is_whole = all(each == int(each) for each in cutoffs)
        if not (ends and is_rising and is_inside and is_whole):
            problem = f"cutoffs={list(cutoffs)} of {n_classes} classes"
            fix = "pass rising ints between 0 and the number of classes, both excluded"
            raise ValueRangeError("AdaptiveLogSoftmaxWithLoss", problem, fix)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        place: Any = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for number, (begin, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            width = int(in_features // div_value ** (number + 1))
            down = Linear(in_features, width, bias=False, **place)
            self.tail.append(Sequential(down, Linear(width, end - begin, bias=False, **place)))

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        for layer in self.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> AdaptiveOutput:
        """Compute log-probabilities of targets: (N, F), (N,) -> (N,); or (F,), () -> ()."""
        need_tensor("AdaptiveLogSoftmaxWithLoss", input=input_, target=target_)
        sizes, wanted = tuple(input_.shape), tuple(target_.shape)
        if sizes[:-1] != wanted or len(sizes) != len(wanted) + 1:
            problem = f"input {sizes} and target {wanted}"
            raise ShapeError("AdaptiveLogSoftmaxWithLoss", problem, "pass (N, F) and (N,)")
        rows, target = input_.reshape(-1, self.in_features), target_.reshape(-1)
        scores = self.head(rows).log_softmax(1)
        first = self.shortlist_size
        output = scores.gather(1, target.clamp(0, first - 1)[:, None])[:, 0]
        for number, part in enumerate(self.tail):
            begin, end = self.cutoffs[number], self.cutoffs[number + 1]
            place = (target - begin).clamp(0, end - begin - 1)
            inside = part(rows).log_softmax(1)
            inside = inside.gather(1, place[:, None])[:, 0]
            is_here = (target >= begin) & (target < end)
            output = is_here.where(scores[:, first + number] + inside, output)
        output = output.reshape(target_.shape)
        return AdaptiveOutput(output, -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Compute the log-probabilities of all classes: (N, F) -> (N, classes)."""
        scores, first = self.head(input).log_softmax(1), self.shortlist_size
        parts = [scores[:, :first]]
        for number, part in enumerate(self.tail):
            inside = part(input).log_softmax(1)
            parts.append(inside + scores[:, first + number, None])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Give the most probable class of each row: (N, F) -> (N,)."""
        return self.log_prob(input).argmax(1)
