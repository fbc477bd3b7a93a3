"""Pruning: weights multiplied by a mask before each call, `weight_orig` being what is trained."""

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from picograd.errors import MemberError, ValueRangeError
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)
HANDLES = "_prune_handles"


def apply_mask(module: M, name: str, mask: Tensor) -> M:
    """Multiply a weight by a mask from now on."""
    if has_mask(module, name):
        setattr(module, f"{name}_mask", mask)
    else:
        begin(module, name, mask)
    setattr(module, name, masked(module, name))
    return module


def begin(module: Module, name: str, mask: Tensor) -> None:
    """Give a weight its first mask, and a hook that applies it before each call."""
    original = getattr(module, name).detach()
    delattr(module, name)
    module.register_parameter(f"{name}_orig", Parameter(original))
    module.register_buffer(f"{name}_mask", mask)

    def before(owner: Module, inputs: Any) -> None:
        value = masked(owner, name)
        setattr(owner, name, value)

    handles = vars(module).setdefault(HANDLES, {})
    handles[name] = module.register_forward_pre_hook(before)


def masked(module: Module, name: str) -> Tensor:
    """Compute the weight that a module uses."""
    original: Tensor = getattr(module, f"{name}_orig")
    mask = getattr(module, f"{name}_mask")
    return original * mask


def has_mask(module: Module, name: str) -> bool:
    """Tell whether a weight has a mask."""
    handles = vars(module).get(HANDLES, {})
    return name in handles


def is_pruned(module: Module) -> bool:
    """Tell whether a weight of a module, or of one inside it, has a mask."""
    parts = module.modules()
    return any(vars(each).get(HANDLES) for each in parts)


def count_of(amount: float, total: int) -> int:
    """Read how many go: a number, or a share. Raises ValueRangeError for other amounts."""
    is_share = isinstance(amount, float)
    most = 1 if is_share else total
    if not 0 <= amount <= most:
        problem = f"amount={amount} of {total}"
        fix = "use a share from 0 to 1, or a count"
        raise ValueRangeError("prune", problem, fix)
    if is_share:
        return round(amount * total)
    return int(amount)


def mask_of(module: Module, name: str) -> Tensor:
    """Give the mask that a weight has, or ones."""
    if has_mask(module, name):
        return getattr(module, f"{name}_mask")  # type: ignore[no-any-return]
    return Tensor.ones_like(getattr(module, name).detach())


def smallest(importance: Tensor, mask: Tensor, count: int) -> Tensor:
    """Make a mask without the least important of what is left."""
    gone = mask == 0
    left = importance.detach().masked_fill(gone, math.inf)
    order = left.flatten().argsort()
    rank = order.argsort().reshape(mask.shape)
    stays = rank >= count
    return mask * stays.cast(mask.dtype)


def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Zero the weights of least size.

    >>> from picograd import nn
    >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=0.5)
    >>> int((layer.weight == 0).sum())
    2
    """
    return pruned(module, name, amount, importance_scores, Tensor.abs)


def random_unstructured(module: M, name: str, amount: float) -> M:
    """Zero weights that chance chooses."""
    return pruned(module, name, amount, None, Tensor.rand_like)


def pruned(
    module: M, name: str, amount: float, scores: Tensor | None, measure: Callable[[Tensor], Tensor]
) -> M:
    """Zero the least important weights."""
    mask = mask_of(module, name)
    importance = measure(judged(module, name, scores))
    count = count_of(amount, total(mask))
    kept = smallest(importance, mask, count)
    return apply_mask(module, name, kept)


def total(mask: Tensor) -> int:
    """Count the ones of a mask."""
    return int(mask.sum().item())


def judged(module: Module, name: str, scores: Tensor | None) -> Tensor:
    """Give what importance is measured of: the weight, or scores in its place."""
    if scores is not None:
        return scores
    weight: Tensor = getattr(module, name)
    return weight.detach()


def others_as_one(value: Tensor, dim: int) -> Tensor:
    """Write a tensor as a matrix whose rows are along one axis."""
    rows_first = value.movedim(dim, 0)
    return rows_first.flatten(1)


def ln_structured(
    module: M, name: str, amount: float, n: float, dim: int, importance_scores: Any = None
) -> M:
    """Zero the rows, along an axis, of least n-norm."""
    mask = mask_of(module, name)
    weight = judged(module, name, importance_scores)
    rows = others_as_one(weight, dim).norm(p=n, dim=1)
    kept = without_rows(rows, mask, amount, dim)
    return apply_mask(module, name, kept)


def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Zero rows, along an axis, that chance chooses."""
    mask = mask_of(module, name)
    rows = Tensor.rand(mask.shape[dim], device=mask.device)
    kept = without_rows(rows, mask, amount, dim)
    return apply_mask(module, name, kept)


def without_rows(importance: Tensor, mask: Tensor, amount: float, dim: int) -> Tensor:
    """Make a mask without the least important rows along an axis."""
    left = others_as_one(mask, dim).amax(1)
    count = count_of(amount, total(left))
    kept = smallest(importance, left, count)
    shape = [1] * mask.ndim
    shape[dim] = -1
    return mask * kept.reshape(shape)


def identity(module: M, name: str) -> M:
    """Give a weight a mask of ones."""
    return apply_mask(module, name, mask_of(module, name))


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Multiply a weight by a mask of your own."""
    old = mask_of(module, name)
    own = mask.to(old.device).cast(old.dtype)
    return apply_mask(module, name, old * own)


def global_unstructured(
    parameters: Iterable[tuple[Module, str]], pruning_method: Any, amount: float, **options: Any
) -> None:
    """Zero weights of several modules, the least important of them all.

    `pruning_method` is L1Unstructured or RandomUnstructured.
    """
    listed = list(parameters)
    masks = [mask_of(*each) for each in listed]
    sizes = [mask.numel() for mask in masks]
    measured = []
    for module, name in listed:
        weight = judged(module, name, None)
        measured.append(pruning_method.measure(weight).flatten())
    mask = Tensor.cat([each.flatten() for each in masks])
    importance = Tensor.cat(measured)
    count = count_of(amount, total(mask))
    kept = smallest(importance, mask, count)
    for (module, name), piece, old in zip(listed, kept.split(sizes), masks):
        own = piece.reshape(old.shape)
        apply_mask(module, name, own)


class L1Unstructured:
    """This class stands for the choice of the weights of least size."""

    measure = staticmethod(Tensor.abs)


class RandomUnstructured:
    """This class stands for a choice by chance."""

    measure = staticmethod(Tensor.rand_like)


def remove(module: M, name: str) -> M:
    """Make the masked weight a parameter. Raises MemberError for a weight without a mask."""
    if not has_mask(module, name):
        problem = f"{type(module).__name__}.{name} has no mask"
        raise MemberError("prune.remove", problem, "prune it first")
    value = masked(module, name).detach()
    handle = vars(module)[HANDLES].pop(name)
    handle.remove()
    for each in (name, f"{name}_orig", f"{name}_mask"):
        delattr(module, each)
    module.register_parameter(name, Parameter(value))
    return module
