"""Losses that compare distances and scores. Reductions: "mean", "sum" or "none"."""

from picograd.errors import ShapeError
from picograd.nn.functional_activation import pairwise_distance
from picograd.nn.losses import reduce_loss, same_shape
from picograd.nn.parameter import check_tensor
from picograd.tensor.tensor import Tensor

# PyTorch adds this to squared norms in cosine_embedding_loss.
TINY = 1e-12


def margin_ranking_loss(
    a: Tensor, b: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Compute max(0, margin - y (a - b)), y = 1 where a should be larger, else -1."""
    same_shape("margin_ranking_loss", a, b)
    loss = (margin - target * (a - b)).relu()
    return reduce_loss("margin_ranking_loss", loss, reduction)


def hinge_embedding_loss(
    x: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Compute x where y = 1, and max(0, margin - x) where y = -1."""
    same_shape("hinge_embedding_loss", x, target)
    far = (target != 1).where((margin - x).relu(), 0.0)
    loss = (target != -1).where(x, 0.0) + far
    return reduce_loss("hinge_embedding_loss", loss, reduction)


def soft_margin_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Compute log(1 + exp(-y x)) for y = 1 or -1."""
    same_shape("soft_margin_loss", x, target)
    loss = -(target * x).logsigmoid()
    return reduce_loss("soft_margin_loss", loss, reduction)


def multilabel_soft_margin_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Average -t log sigmoid(x) - (1 - t) log sigmoid(-x) over the classes (last axis)."""
    op = "multilabel_soft_margin_loss"
    same_shape(op, x, target)
    loss = (target - 1.0) * (-x).logsigmoid() - target * x.logsigmoid()
    loss = loss if weight is None else loss * weight
    return reduce_loss(op, loss.mean(-1), reduction)


def multi_margin_loss(
    x: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum w[y] max(0, margin - x[y] + x[j]) ** p over classes j != y, divided by C.

    x (B, C) or (C,), target (B,) or ().
    """
    op = "multi_margin_loss"
    check_tensor(op, x, target)
    if tuple(target.shape) != tuple(x.shape[:-1]):
        problem = f"target of shape {tuple(target.shape)} for input {tuple(x.shape)}"
        raise ShapeError(op, problem, "give one class number per row")
    classes = Tensor.arange(x.shape[-1], device=x.device)
    is_target = classes == target.unsqueeze(-1)
    own = is_target.where(x, 0.0).sum(-1, keepdim=True)
    excess = (margin - own + x).relu()
    excess = excess if p == 1 else excess * excess
    if weight is not None:
        excess = excess * weight[target].unsqueeze(-1)
    loss = is_target.where(0.0, excess).sum(-1) / x.shape[-1]
    return reduce_loss(op, loss, reduction)


def cosine_embedding_loss(
    a: Tensor, b: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Compute 1 - cos(a, b) where y = 1, and max(0, cos(a, b) - margin) where y = -1.

    a and b (B, D) or (D,), target (B,) or ().
    """
    op = "cosine_embedding_loss"
    same_shape(op, a, b)
    if tuple(target.shape) != tuple(a.shape[:-1]):
        problem = f"target of shape {tuple(target.shape)} for inputs {tuple(a.shape)}"
        raise ShapeError(op, problem, "give one target per row")
    sizes = ((a * a).sum(-1) + TINY) * ((b * b).sum(-1) + TINY)
    cosine = (a * b).sum(-1) / sizes.sqrt()
    apart = (target == -1).where((cosine - margin).relu(), 0.0)
    loss = (target == 1).where(1.0 - cosine, apart)
    return reduce_loss(op, loss, reduction)


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
    """
    op = "triplet_margin_loss"
    same_shape(op, anchor, positive)
    same_shape(op, anchor, negative)
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduce_loss(op, (near - far + margin).relu(), reduction)
