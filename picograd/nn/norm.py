"""Normalisation: BatchNorm1d, 2d, 3d (with running statistics) and LayerNorm.

GroupNorm, InstanceNorm and RMSNorm: normalisation that does not look at the batch.
"""

from typing import Any

from picograd.dtype import int64
from picograd.errors import ShapeError, ValueRangeError
from picograd.helpers import product
from picograd.nn import functional, init
from picograd.nn.family import Family
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.network import normalization
from picograd.tensor.public import arange
from picograd.tensor.tensor import Tensor


class Affine(Family):
    """This class is the base of layers that normalise, then scale and shift."""

    weight: Parameter | None
    bias: Parameter | None

    def _begin(
        self,
        shape: tuple[int, ...],
        has_weight: bool,
        has_bias: bool,
        device: DeviceLike | None,
        dtype: DTypeLike | None,
    ) -> None:
        """Make the weight of ones and the bias of zeros, or None."""
        self.weight = (
            Parameter(init.constant_values(shape, 1.0, device, dtype)) if has_weight else None
        )
        has_bias = has_weight and has_bias
        self.bias = Parameter(init.constant_values(shape, 0.0, device, dtype)) if has_bias else None

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        init.begin_norm(self)


class BatchNorm(Affine):
    """This class normalises each channel (axis 1) over all other axes, then scales and shifts.

    Training uses the batch's biased variance and moves the running mean and unbiased variance by
    `momentum` (None: plain average over all batches); evaluation uses the running statistics.
    """

    _version, _added = 2, {"num_batches_tracked": 2}
    ranks: tuple[int, ...] = (2, 3, 4, 5)
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: DeviceLike | None = None,
        dtype: DTypeLike | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        init.check_sizes(type(self).__name__, num_features=num_features)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self._begin(shape, affine, bias, device, dtype)
        buffers: list[Tensor | None] = [None, None, None]  # which programs ask for, too
        if track_running_stats:
            stats = [init.constant_values(shape, value, device, dtype) for value in (0.0, 1.0)]
            buffers = [*stats, init.constant_values((), 0, device, int64)]
        for name, each in zip(("running_mean", "running_var", "num_batches_tracked"), buffers):
            self.register_buffer(name, each)

    def reset_running_stats(self) -> None:
        """Forget the running statistics."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Forget the running statistics, the weight and the bias."""
        self.reset_running_stats()
        super().reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Normalise, and in training mode record the new running statistics."""
        size = self._check(input)
        has_stats = self._has_stats()
        if has_stats and not self.training:
            stats = (self.running_mean, self.running_var)
            return functional.normalize_channels(input, *stats, self.weight, self.bias, self.eps)
        is_tracking = has_stats and self.track_running_stats
        if size == 0:
            if is_tracking:
                self.num_batches_tracked.assign(self.num_batches_tracked + 1)
            return normalization.nothing_to_normalize(input, self.weight, self.bias)
        affine, rate = (self.weight, self.bias), self.momentum
        if is_tracking and rate is not None:
            mean, var, batches = self.running_mean, self.running_var, self.num_batches_tracked
            running = mean, var, batches
            if not (mean.requires_grad or var.requires_grad or batches.requires_grad):
                return normalization.normalize_and_track(input, affine, running, rate, self.eps)
        y, mean, var = functional.batch_normalize(input, *affine, self.eps)
        if is_tracking:
            batches = self._track(mean, var, size // max(1, self.num_features))
            self.num_batches_tracked.assign(batches)
        return y

    def _has_stats(self) -> bool:
        """Tell whether there are running statistics: what is set later says if they move."""
        return self.running_mean is not None and self.running_var is not None

    def _track(self, mean: Tensor, var: Tensor, count: int) -> Tensor:
        """Move the running statistics, in place, also under `picograd.jit`; count the batch."""
        running = self.running_mean, self.running_var
        batches = self.num_batches_tracked
        return normalization.track(running, batches, mean, var, self.momentum, count)

    def _check(self, x: Tensor) -> int:
        """Check an input, and count its elements."""
        name = type(self).__name__
        need_tensor(name, x)
        if self.training and self.eps <= 0:
            raise ValueRangeError(name, f"eps={self.eps} is not positive", "use 1e-5")
        self._check_input_dim(x)
        shape = x.shape
        if shape[1] != self.num_features:
            sized = self.weight, self.bias, self.running_mean  # else the count says nothing
            if any(each is not None for each in sized):
                problem = f"input of shape {tuple(shape)} has {shape[1]} channels"
                problem = f"{problem}, {self.num_features} wanted"
                raise ShapeError(name, problem, "channels are axis 1")
        size = product(shape)
        if self.training and size == self.num_features:
            problem = f"one value per channel in input of shape {tuple(shape)}"
            raise ValueRangeError(name, problem, "use a larger batch, or call eval()")
        return size

    def _check_input_dim(self, input: Tensor) -> None:
        """Check the number of axes: programs call it, and derive classes with their own."""
        if input.ndim not in self.ranks:
            ranks, shape = " or ".join(map(str, self.ranks)), tuple(input.shape)
            problem = f"input of shape {shape} has {input.ndim} axes, {ranks} wanted"
            raise ShapeError(type(self).__name__, problem, "give batch, channels, then the rest")

    def extra_repr(self) -> str:
        """Describe the settings."""
        text = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
        text = f"{text}, affine={self.affine}, bias={self.bias is not None}"
        return f"{text}, track_running_stats={self.track_running_stats}"


class BatchNorm1d(BatchNorm, ranks=(2, 3)):
    """This class normalises features of (B, C), or channels of (B, C, L).

    >>> from picograd import Tensor, nn
    >>> nn.BatchNorm1d(1)(Tensor([[-1.0], [1.0]])).round().tolist()
    [[-1.0], [1.0]]
    """


class BatchNorm2d(BatchNorm, ranks=(4,)):
    """This class normalises the channels of images (B, C, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.BatchNorm2d(1)(Tensor([[[[-1.0, 1.0]]]])).round().tolist()
    [[[[-1.0, 1.0]]]]
    """


class BatchNorm3d(BatchNorm, ranks=(5,)):
    """This class normalises the channels of volumes (B, C, D, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.BatchNorm3d(1)(Tensor([[[[[-1.0, 1.0]]]]])).round().tolist()
    [[[[[-1.0, 1.0]]]]]
    """


class SyncBatchNorm(BatchNorm, ranks=(2, 3, 4, 5)):
    """This class normalises channels over all processes that train together: here there is one.

    >>> from picograd import Tensor, nn
    >>> nn.SyncBatchNorm(1)(Tensor([[-1.0], [1.0]])).round().tolist()
    [[-1.0], [1.0]]
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
        device: DeviceLike | None = None, dtype: DTypeLike | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        place = (device, dtype)
        own = (num_features, eps, momentum, affine, track_running_stats)
        super().__init__(*own, *place, bias=bias)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Give a module back: the statistics of one process are those of all."""
        return module


def read_shape(op: str, shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """Read the sizes of the last axes: one, or several. Raises ShapeError."""
    sizes = (shape,) if isinstance(shape, int) else shape
    init.check_sizes(op, normalized_shape=sizes)
    return tuple(sizes)


class LayerNorm(Affine):
    """This class normalises over the last axes, whose sizes are `normalized_shape`.

    >>> from picograd import Tensor, nn
    >>> nn.LayerNorm(2)(Tensor([[-1.0, 1.0]])).round().tolist()
    [[-1.0, 1.0]]
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.normalized_shape: tuple[int, ...] = read_shape("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._begin(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise, scale and shift."""
        shape = self.normalized_shape
        return functional.layer_norm(input, shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Describe the settings."""
        affine = f"elementwise_affine={self.elementwise_affine}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine}, bias={self.bias is not None}"


class GroupNorm(Affine):
    """This class normalises each sample over groups of channels (Wu and He, 2018).

    (B, C, *S) -> the same shape.

    >>> from picograd import Tensor, nn
    >>> nn.GroupNorm(2, 4)(Tensor.ones(1, 4, 3)).shape
    (1, 4, 3)
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        device: DeviceLike | None = None, dtype: DTypeLike | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        init.check_sizes("GroupNorm", 1, num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            problem = f"{num_channels} channels do not divide into {num_groups} groups"
            raise ValueRangeError("GroupNorm", problem, "choose a divisor")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._begin((num_channels,), affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise, scale and shift."""
        need_tensor("GroupNorm", input)
        if len(input.shape) < 2 or input.shape[1] != self.num_channels:
            problem = f"input of shape {tuple(input.shape)} for {self.num_channels} channels"
            raise ShapeError("GroupNorm", problem, "channels are axis 1")
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Describe the settings."""
        sizes = f"{self.num_groups}, {self.num_channels}"
        return f"{sizes}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class InstanceNorm(BatchNorm):
    """This class normalises each channel of each sample over space (Ulyanov et al., 2016).

    With `track_running_stats`, evaluation uses the running means of the samples' statistics.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = False, track_running_stats: bool = False, device: DeviceLike | None = None,
        dtype: DTypeLike | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        options = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *options, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise; (C, *S) without a batch is taken too."""
        need_tensor(type(self).__name__, input)
        if len(input.shape) == self.ranks[0] - 1:
            return self.forward(input.unsqueeze(0)).squeeze(0)
        self._check(input)
        has_stats = self._has_stats()
        if has_stats and not self.training and self.track_running_stats:
            stats = (self.running_mean, self.running_var)
            return functional.normalize_channels(input, *stats, self.weight, self.bias, self.eps)
        if has_stats:  # those that are followed no more still move, in evaluation too
            self._track_samples(input.detach())
        scale, shift = self.weight, self.bias
        return functional.instance_norm(input, weight=scale, bias=shift, eps=self.eps)

    def _track_samples(self, x: Tensor) -> None:
        """Record the statistics of the samples, averaged over the batch."""
        space = tuple(range(2, len(x.shape)))
        count = x.numel() // max(1, x.shape[0] * x.shape[1])
        mean, var = x.mean(space), x.var(space, correction=0)
        # PyTorch does not count the batches here, so neither do we.
        self._track(mean.mean(0), var.mean(0), count)


class InstanceNorm1d(InstanceNorm, ranks=(3,)):
    """This class normalises sequences (B, C, L).

    >>> from picograd import Tensor, nn
    >>> nn.InstanceNorm1d(1)(Tensor([[[-1.0, 1.0]]])).round().tolist()
    [[[-1.0, 1.0]]]
    """


class InstanceNorm2d(InstanceNorm, ranks=(4,)):
    """This class normalises images (B, C, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.InstanceNorm2d(1)(Tensor([[[[-1.0, 1.0]]]])).round().tolist()
    [[[[-1.0, 1.0]]]]
    """


class InstanceNorm3d(InstanceNorm, ranks=(5,)):
    """This class normalises volumes (B, C, D, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.InstanceNorm3d(1)(Tensor([[[[[-1.0, 1.0]]]]])).round().tolist()
    [[[[[-1.0, 1.0]]]]]
    """


class RMSNorm(Module):
    """This class divides by the root mean square over the last axes (Zhang and Sennrich, 2019).

    >>> from picograd import Tensor, nn
    >>> nn.RMSNorm(2)(Tensor([[2.0, -2.0]])).round().tolist()
    [[1.0, -1.0]]
    """

    _shown = "{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
    normalized_shape: tuple[int, ...]

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.normalized_shape = shape = read_shape("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight: Parameter | None = None
        if elementwise_affine:
            self.weight = Parameter(init.constant_values(shape, 1.0, device, dtype))

    def reset_parameters(self) -> None:
        """Set the weight to ones."""
        init.begin_norm(self)

    def forward(self, x: Tensor) -> Tensor:
        """Divide and scale."""
        need_tensor("RMSNorm", x)
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class LocalResponseNorm(Module):
    """This class divides by a power of the mean square over `size` neighbouring channels.

    Krizhevsky et al. (2012): x / (k + alpha * mean(x^2)) ** beta, for (B, C, *S).

    >>> from picograd import Tensor, nn
    >>> nn.LocalResponseNorm(2)(Tensor([[[1.0], [2.0]]])).shape
    (1, 2, 1)
    """

    _shown = "{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        init.check_sizes("LocalResponseNorm", 1, size=size)
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Divide."""
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(Module):
    """This class divides by a power of sums of squares over channels, as old models of Torch did.

    It is LocalResponseNorm but in two things that PyTorch keeps: of an even size, size - 1 channels
    count; and the first channel stays in the sums of all that come after it.

    >>> from picograd import Tensor, nn
    >>> nn.CrossMapLRN2d(2)(Tensor.ones(1, 3, 2, 2)).shape
    (1, 3, 2, 2)
    """

    _shown = "{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        init.check_sizes("CrossMapLRN2d", 1, size=size)
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """Divide."""
        need_tensor("CrossMapLRN2d", input)
        if input.ndim != 4:
            raise ShapeError("CrossMapLRN2d", f"{tuple(input.shape)} given", "pass (B, C, H, W)")
        side, channels = (self.size - 1) // 2, input.shape[1]
        squares = input.square()
        padded = squares.pad((0, 0, 0, 0, side, side))
        total = padded.narrow(1, 0, channels)
        for place in range(1, 2 * side + 1):
            total = total + padded.narrow(1, place, channels)
        later = arange(channels, device=input.device).reshape(1, -1, 1, 1) > side
        total = total + later.where(squares[:, :1], 0.0)
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta
