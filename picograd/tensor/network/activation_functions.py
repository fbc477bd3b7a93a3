"""Activation functions of tensors, composed of methods; `activation.py` has those on nodes.

All are elementwise but `glu`, `softmin` and `gumbel_softmax`, keep shape and dtype, and fuse into
the kernel before them. `inplace` writes the result over the input.
"""

from picograd.errors import ShapeError, ValueRangeError, check_least
from picograd.graph import build_composite as composite
from picograd.tensor.core.annotations import DTypeLike, Tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.function import composed, method_within
from picograd.tensor.core.operands import as_axis
from picograd.tensor.core.recording import Recorded, apply, maybe_in_place
from picograd.tensor.core.together import together
from picograd.tensor.making import distributions
from picograd.tensor.network import activation

# Klambauer et al. (2017): the fixed point that keeps mean 0 and variance 1.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@composed(function=False)
def quick_gelu(input: Tensor) -> Tensor:
    """Compute x * sigmoid(1.702 * x), close to GELU (Hendrycks and Gimpel, 2016).

    >>> Tensor([-1.0, 0.0, 2.0]).quick_gelu().tolist()
    [-0.1542..., 0.0, 1.9356...]
    """
    return input * (input * 1.702).sigmoid()


@composed(function=False)
def swish(input: Tensor) -> Tensor:
    """Compute x * sigmoid(x): `silu` (Ramachandran et al., 2017).

    >>> Tensor([-1.0, 0.0, 2.0]).swish().tolist()
    [-0.2689..., 0.0, 1.7615...]
    """
    return input.silu()


def side(test: Tensor) -> Tensor:
    """Tell on which side of a corner elements are."""
    return apply(composite.side, test)  # type: ignore[no-any-return]


def implicit_axis(input: Tensor, dim: int | None) -> int:
    """Choose PyTorch's axis for `dim` None: 0 of tensors with 0, 1 or 3 axes, else 1."""
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


@method_within("functional", in_place=True)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute SELU_SCALE * elu(x, SELU_ALPHA) (Klambauer et al., 2017).

    >>> nn.functional.selu(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-1.1113..., 0.0, 2.1014...]
    """
    return maybe_in_place("selu", input, input.elu(SELU_ALPHA) * SELU_SCALE, inplace)


@method_within("functional", in_place=True)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) (Barron, 2017).

    >>> nn.functional.celu(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.6321..., 0.0, 2.0]
    """
    return maybe_in_place("celu", input, (input / alpha).elu() * alpha, inplace)


@method_within("functional")
def softsign(input: Tensor) -> Tensor:
    """Compute x / (1 + |x|).

    >>> nn.functional.softsign(Tensor([-1.0, 0.0, 3.0])).tolist()
    [-0.5, 0.0, 0.75]
    """
    return input / (input.abs() + 1.0)


@method_within("functional")
def tanhshrink(input: Tensor) -> Tensor:
    """Compute x - tanh(x).

    >>> nn.functional.tanhshrink(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.2384..., 0.0, 1.0359...]
    """
    return input - input.tanh()


@method_within("functional")
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Zero what lies in [-lambd, lambd].

    >>> nn.functional.hardshrink(Tensor([-1.0, 0.25, 2.0])).tolist()
    [-1.0, 0.0, 2.0]
    """
    return side(input.abs() <= lambd).where(0.0, input)


@method_within("functional")
@together
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Move every element by lambd towards 0, not past it.

    >>> nn.functional.softshrink(Tensor([-1.0, 0.25, 2.0])).tolist()
    [-0.5, 0.0, 1.5]
    """
    check_least("softshrink", "lambd", lambd)
    is_near = side(input.abs() <= lambd)
    return is_near.where(0.0, input - input.clamp(-lambd, lambd))


@method_within("functional", in_place=True)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Compute x where it is above the threshold, else `value`.

    >>> nn.functional.threshold(Tensor([-1.0, 0.5, 2.0]), 1.0, 9.0).tolist()
    [9.0, 9.0, 2.0]
    """
    result = side(input <= threshold).where(value, input).cast(input.dtype)
    return maybe_in_place("threshold", input, result, inplace)


@method_within("functional")
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute relu6(x + 3) / 6 (Howard et al., 2019).

    >>> nn.functional.hardsigmoid(Tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return maybe_in_place("hardsigmoid", input, apply(activation.hard_share, input), inplace)


@method_within("functional")
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute x * relu6(x + 3) / 6 (Howard et al., 2019).

    >>> nn.functional.hardswish(Tensor([0.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """
    return maybe_in_place("hardswish", input, apply(activation.hard_swish, input), inplace)


@method_within("functional")
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute x * tanh(softplus(x)) (Misra, 2019).

    >>> nn.functional.mish(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.3034..., 0.0, 1.9439...]
    """
    return maybe_in_place("mish", input, apply(activation.mish, input), inplace)


@method_within("functional")
@listed
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Compute x where positive, else weight * x (He et al., 2015).

    `weight` has one element, or one per channel (axis 1). Raises ShapeError otherwise.

    >>> nn.functional.prelu(Tensor([-1.0, 0.0, 2.0]), Tensor([0.5])).tolist()
    [-0.5, 0.0, 2.0]
    """
    count = weight.numel()
    if weight.ndim > 1:
        problem = f"weight of shape {tuple(weight.shape)} has {weight.ndim} axes"
        raise ShapeError("prelu", problem, "pass a vector")
    channels = input.shape[1] if input.ndim > 1 else 1
    if count not in (1, channels):
        problem = f"{count} weights for {channels} channels of input {tuple(input.shape)}"
        raise ShapeError("prelu", problem, "give one weight, or one per channel")
    return apply(activation.weighted_below, input, weight)  # type: ignore[no-any-return]


@method_within("functional", in_place=True)
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Compute leaky_relu with slopes drawn from [lower, upper), or their middle in evaluation.

    Xu et al. (2015).

    >>> nn.functional.rrelu(Tensor([-1.0, 0.0, 2.0]), 0.5, 0.5).tolist()
    [-0.5, 0.0, 2.0]
    """
    if lower > upper:
        text = f"lower={lower} is larger than upper={upper}"
        raise ValueRangeError("rrelu", text, "swap them")
    if not training:
        return maybe_in_place("rrelu", input, input.leaky_relu((lower + upper) / 2), inplace)
    unit = Recorded.kind.rand(*input.shape, device=input.device)
    slopes = distributions.affine(unit, upper - lower, lower).cast(input.dtype)
    result = side(input >= 0).where(input, input * slopes)
    return maybe_in_place("rrelu", input, result, inplace)


@method_within("functional")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Halve an axis and compute a * sigmoid(b): (..., 2 N) -> (..., N) (Dauphin et al., 2017).

    >>> nn.functional.glu(Tensor([1.0, 2.0, 0.0, 0.0])).tolist()
    [0.5, 1.0]
    """
    if not input.shape:
        raise ShapeError("glu", "a zero-dim tensor has no halves", "give it an axis")
    if input.shape[as_axis(dim, input.ndim, "glu")] % 2:
        problem = f"axis {dim} of shape {tuple(input.shape)} has an odd size"
        raise ShapeError("glu", problem, "give both halves")
    a, b = input.chunk(2, dim)
    return a * b.sigmoid()


@method_within("functional")
def softmin(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Normalise exp(-x) to sum 1 along an axis, chosen as in `softmax`.

    >>> nn.functional.softmin(Tensor([1.0, 1.0, 1.0, 1.0]), 0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    wide = -input if dtype is None else -input.cast(dtype)
    return wide.softmax(implicit_axis(input, dim))


@method_within("functional")
def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Sample from a relaxed categorical distribution (Jang et al., 2017).

    `hard`: a one-hot value whose gradient is that of the soft sample. `eps` is not used.

    >>> nn.functional.gumbel_softmax(Tensor([0.0, 100.0]), hard=True).tolist()
    [0.0, 1.0]
    """
    soft = ((logits + distributions.gumbels(logits)) / tau).softmax(dim)
    if not hard:
        return soft
    is_largest = soft.argmax(dim, keepdim=True) == _positions(soft, dim)
    return is_largest.cast(soft.dtype) - soft.detach() + soft


def _positions(input: Tensor, dim: int) -> Tensor:
    axis = dim % input.ndim
    shape = [size if i == axis else 1 for i, size in enumerate(input.shape)]
    return Recorded.kind.arange(input.shape[axis], device=input.device).reshape(*shape)
