"""Losses that compare distances and scores. Reductions: "mean", "sum" or "none"."""

from collections.abc import Callable
from functools import partial

from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_positive
from picograd.nn.functional_basic import pairwise_distance
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.demands import demand_labels
from picograd.tensor.core.function import within
from picograd.tensor.core.operands import need_integer
from picograd.tensor.network.losses import check_labels, reduce_loss, same_shape
from picograd.tensor.tensor import Tensor

Distance = Callable[[Tensor, Tensor], Tensor]
# PyTorch adds this to squared norms in cosine_embedding_loss.
TINY = 1e-12


@within("functional")
@listed
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Compute max(0, margin - y (a - b)), y = 1 where a should be larger, else -1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.margin_ranking_loss(Tensor([1.0, 5.0]), Tensor([2.0, 2.0]), Tensor([1,
    ...     1])).item()
    0.5
    """
    need_tensor("margin_ranking_loss", input1, input2)
    loss = (-target * (input1 - input2) + margin).clamp(min=0.0)
    return reduce_loss("margin_ranking_loss", loss, reduction)


@within("functional")
@listed
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Compute x where y = 1, and max(0, margin - x) where y = -1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.hinge_embedding_loss(Tensor([2.0, 0.5]), Tensor([1, -1])).item()
    1.25
    """
    need_tensor("hinge_embedding_loss", input=input, target=target)
    far = (target != 1).where((margin - input).clamp(min=0.0), 0.0)
    loss = (target != -1).where(input, 0.0) + far
    return reduce_loss("hinge_embedding_loss", loss, reduction)


@within("functional")
@listed
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Compute log(1 + exp(-y input)) for y = 1 or -1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.soft_margin_loss(Tensor([0.0, 0.0]), Tensor([1.0, -1.0])).item()
    0.6931...
    """
    same_shape("soft_margin_loss", input, target)
    loss = -(target * input).logsigmoid()
    return reduce_loss("soft_margin_loss", loss, reduction)


@within("functional")
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Average -t log sigmoid(x) - (1 - t) log sigmoid(-x) over the classes (last axis).

    >>> from picograd import Tensor, nn
    >>> nn.functional.multilabel_soft_margin_loss(Tensor([[0.0, 0.0]]), Tensor([[0.0, 1.0]])).item()
    0.6931...
    """
    op = "multilabel_soft_margin_loss"
    same_shape(op, input, target)
    loss = (target - 1.0) * (-input).logsigmoid() - target * input.logsigmoid()
    loss = loss if weight is None else loss * weight
    return reduce_loss(op, loss.mean(-1), reduction)


@within("functional")
@listed
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum w[y] max(0, margin - input[y] + input[j]) ** p over classes j != y, divided by C.

    input (B, C) or (C,), target (B,) or ().

    >>> from picograd import Tensor, nn
    >>> nn.functional.multi_margin_loss(Tensor([[0.0, 1.0]]), Tensor([0])).item()
    1.0
    """
    op = "multi_margin_loss"
    need_tensor(op, input=input, target=target)
    if p not in (1, 2):
        raise ValueRangeError(op, f"p={p} is neither 1 nor 2", "write the loss out")
    if not target.dtype.is_integer:
        raise DTypeError(op, f"target of dtype {target.dtype.name}", "give class numbers, int64")
    input = input if input.ndim else input.reshape(1)
    if input.ndim == 1 and target.numel() == 1:
        target = target.reshape(())
    if tuple(target.shape) != tuple(input.shape[:-1]):
        problem = f"target of shape {tuple(target.shape)} for input {tuple(input.shape)}"
        raise ShapeError(op, problem, "give one class number per row")
    check_labels(op, input, target, None)
    classes = Tensor.arange(input.shape[-1], device=input.device)
    is_target = classes == target.unsqueeze(-1)
    own = is_target.where(input, 0.0).sum(-1, keepdim=True)
    excess = (margin - own + input).relu()
    excess = excess if p == 1 else excess * excess
    if weight is not None:
        excess = excess * weight[target].unsqueeze(-1)
    loss = is_target.where(0.0, excess).sum(-1) / input.shape[-1]
    return reduce_loss(op, loss, reduction)


@within("functional")
@listed
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Compute 1 - cos(a, b) where y = 1, and max(0, cos(a, b) - margin) where y = -1.

    a and b (B, D) or (D,), target (B,) or ().

    >>> from picograd import Tensor, nn
    >>> nn.functional.cosine_embedding_loss(Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]]),
    ...     Tensor([1])).item()
    1.0
    """
    op, a, b = "cosine_embedding_loss", input1, input2
    same_shape(op, a, b)
    if tuple(target.shape) != tuple(a.shape[:-1]):
        problem = f"target of shape {tuple(target.shape)} for inputs {tuple(a.shape)}"
        raise ShapeError(op, problem, "give one target per row")
    sizes = ((a * a).sum(-1) + TINY) * ((b * b).sum(-1) + TINY)
    cosine = (a * b).sum(-1) / sizes.sqrt()
    apart = (target == -1).where((cosine - margin).clamp(min=0.0), 0.0)
    loss = (target == 1).where(1.0 - cosine, apart)
    return reduce_loss(op, loss, reduction)


def triplet_loss(
    op: str, triplet: tuple[Tensor, Tensor, Tensor], distance: Distance, margin: float, swap: bool
) -> Tensor:
    """Compute max(0, d(a, p) - d(a, n) + margin) of (anchor, positive, negative), one by one."""
    check_positive(op, "margin", margin)
    anchor, positive, negative = triplet
    same_shape(op, anchor, positive)
    same_shape(op, anchor, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return (near - far + margin).clamp(min=0.0)


@within("functional")
@listed
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, d(a, p) - d(a, n) + margin), d the p-norm along the last axis.

    `swap` uses d(p, n) where it is smaller than d(a, n) (Balntas et al., 2016).

    >>> from picograd import Tensor, nn
    >>> nn.functional.triplet_margin_loss(Tensor([[0.0, 0.0]]), Tensor([[0.0, 3.0]]),
    ...     Tensor([[0.0, 3.5]])).item()
    0.5
    """
    op, triplet = "triplet_margin_loss", (anchor, positive, negative)
    distance = partial(pairwise_distance, p=p, eps=eps)
    return reduce_loss(op, triplet_loss(op, triplet, distance, margin, swap), reduction)


@within("functional")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, d(a, p) - d(a, n) + margin) with a distance of your own.

    `distance_function` None is the Euclidean distance; `swap` as in `triplet_margin_loss`.

    >>> from picograd import Tensor, nn
    >>> nn.functional.triplet_margin_with_distance_loss(Tensor([[0.0, 0.0]]), Tensor([[0.0,
    ...     3.0]]), Tensor([[0.0, 3.5]])).item()
    0.5
    """
    op, triplet = "triplet_margin_with_distance_loss", (anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    return reduce_loss(op, triplet_loss(op, triplet, distance, margin, swap), reduction)


@within("functional")
@listed
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Sum max(0, 1 - x[y] + x[i]) over labels y and classes i that are none, divided by C.

    x (B, C) or (C,); the target, of the same shape, lists labels up to the first -1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.multilabel_margin_loss(Tensor([[0.0, 1.0]]), Tensor([[0, -1]])).item()
    1.0
    """
    op = "multilabel_margin_loss"
    same_shape(op, input, target)
    need_integer(op, target.node, "target")
    if not input.ndim:
        input, target = input.reshape(1), target.reshape(1)
    demand_labels(op, target.node, input.shape[-1], -1)
    classes = Tensor.arange(input.shape[-1], device=input.device)
    is_listed = (target < 0).cast("int64").cumsum(-1) == 0  # ... C
    matches = (target.unsqueeze(-1) == classes) & is_listed.unsqueeze(-1)  # ... listed C
    own = matches.where(input.unsqueeze(-2), 0.0).sum(-1, keepdim=True)  # ... listed 1
    excess = (1.0 - own + input.unsqueeze(-2)).relu()
    is_label = matches.any(-2).unsqueeze(-2)
    counts = is_listed.unsqueeze(-1) & is_label.logical_not()
    loss = counts.where(excess, 0.0).sum((-2, -1)) / input.shape[-1]
    return reduce_loss(op, loss, reduction)
