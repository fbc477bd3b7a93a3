"""Pruning: weights multiplied by a mask before each call, `weight_orig` being what is trained.

A method of pruning is a class whose `compute_mask` makes the mask; programs derive their own.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from picograd.errors import DTypeError, ValueRangeError
from picograd.helpers import lying_along
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.gradient_hooks import HookHandle
from picograd.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)
HANDLES = "_prune_handles"


class BasePruningMethod:
    """This class is the base of methods: `compute_mask(t, default_mask)` makes a mask of t's shape.

    `PRUNING_TYPE` says what a second method sees of what the first one left: the elements in a row
    ("unstructured"), the slices along `dim` with any of them ("structured"), or all ("global").

    >>> from picograd import nn
    >>> class EverySecond(nn.utils.prune.BasePruningMethod):
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    >>> layer = nn.Linear(3, 2)
    >>> method = EverySecond.apply(layer, "weight")
    >>> layer.weight_mask.tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name = ""
    dim = -1

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Make the mask of a weight."""
        raise NotImplementedError(f"{type(self).__name__} does not define compute_mask")

    def __call__(self, module: Module, inputs: Any) -> None:
        """Mask the weight, as a hook before each call."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Tensor:
        """Compute the weight that a module uses. Raises ValueRangeError for one without a mask."""
        name = self._tensor_name
        if not has_mask(module, name):
            problem = f"{type(module).__name__}.{name} has no mask"
            raise ValueRangeError("prune.remove", problem, "prune it first")
        return getattr(module, f"{name}_orig") * getattr(module, f"{name}_mask")

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **options: Any,
    ) -> Any:
        """Make the method, and let it mask a weight from now on; scores are judged in its place."""
        method = cls(*args, **options)
        method._tensor_name = name
        if importance_scores is None:
            importance_scores = getattr(module, name).detach()
        elif importance_scores.shape != getattr(module, name).shape:
            text = f"scores {importance_scores.shape} for {getattr(module, name).shape}"
            raise ValueRangeError("prune", text, "give one score per weight")
        if not has_mask(module, name):
            mask = method.compute_mask(importance_scores, Tensor.ones_like(importance_scores))
            begin(module, name, mask, method)
            return method
        known = vars(module)[HANDLES][name].method
        both = known if isinstance(known, PruningContainer) else PruningContainer(known)
        both.add_pruning_method(method)
        mask = both.compute_mask(importance_scores, getattr(module, f"{name}_mask"))
        vars(module)[HANDLES].pop(name).handle.remove()
        setattr(module, f"{name}_mask", mask)
        hook(module, name, both)
        return both

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Multiply a tensor by the mask of it; nothing is kept."""
        mask = Tensor.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, mask)

    def remove(self, module: Module) -> None:
        """Make the masked weight a parameter."""
        name = self._tensor_name
        value = self.apply_mask(module).detach()
        own = getattr(module, f"{name}_orig")
        own.data = value
        vars(module)[HANDLES].pop(name).handle.remove()
        for each in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, each)
        module.register_parameter(name, own)


class PruningContainer(BasePruningMethod):
    """This class holds the methods that masked one weight, one after the other."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method. Raises DTypeError for anything else, or of another weight."""
        is_method = isinstance(method, BasePruningMethod)
        if not is_method or self._tensor_name not in ("", method._tensor_name):
            problem = f"{type(method).__name__} is no method for {self._tensor_name!r}"
            raise DTypeError("prune", problem, "derive it from BasePruningMethod")
        self._tensor_name = method._tensor_name
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, place: int) -> BasePruningMethod:
        return self._pruning_methods[place]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Let the last method choose of what the mask leaves."""
        method, mask = self[-1], default_mask.clone()
        seen: Any = mask == 1
        if method.PRUNING_TYPE == "global":
            seen = ...
        elif method.PRUNING_TYPE == "structured":
            at = method.dim % t.ndim
            rows = mask.movedim(at, 0).flatten(1).amax(1) != 0
            seen = (*(slice(None),) * at, rows)
        mask[seen] = method.compute_mask(t[seen], mask[seen]).to(mask.dtype)
        return mask


class Hooked(NamedTuple):
    """What masks a weight before each call."""

    method: BasePruningMethod
    handle: HookHandle


def begin(module: Module, name: str, mask: Tensor, method: BasePruningMethod) -> None:
    """Give a weight its first mask."""
    original = getattr(module, name)
    delattr(module, name)
    own = original if isinstance(original, Parameter) else Parameter(original.detach())
    module.register_parameter(f"{name}_orig", own)  # the very one that optimizers train
    module.register_buffer(f"{name}_mask", mask.to(original.dtype))
    hook(module, name, method)


def hook(module: Module, name: str, method: BasePruningMethod) -> None:
    """Let a method mask a weight now and before each call."""
    handle = module.register_forward_pre_hook(method)
    vars(module).setdefault(HANDLES, {})[name] = Hooked(method, handle)
    method(module, ())


def has_mask(module: Module, name: str) -> bool:
    """Tell whether a weight has a mask."""
    return name in vars(module).get(HANDLES, {})


def is_pruned(module: Module) -> bool:
    """Tell whether a weight of a module, or of one inside it, has a mask."""
    return any(vars(each).get(HANDLES) for each in module.modules())


def count_of(amount: float, total: int) -> int:
    """Read how many go: a number, or a share. Raises ValueRangeError for other amounts."""
    is_share = isinstance(amount, float)
    most = 1 if is_share else total
    if not 0 <= amount <= most:
        problem = f"amount={amount} of {total}"
        fix = "use a share from 0 to 1, or a count"
        raise ValueRangeError("prune", problem, fix)
    return round(amount * total) if is_share else int(amount)


class ByAmount(BasePruningMethod):
    """This class is the base of methods that take away the `amount` of least importance."""

    def __init__(self, amount: float) -> None:
        if not isinstance(amount, (int, float)):
            raise DTypeError("prune", f"amount={amount!r}", "use a share from 0 to 1, or a count")
        count_of(amount, max(1, int(amount)))
        self.amount = amount

    def importance(self, t: Tensor) -> Tensor:
        """Measure what goes first."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Make a mask without the least important."""
        scores = self.importance(t)
        count = count_of(self.amount, scores.numel())
        kept = scores.flatten().argsort().argsort().reshape(scores.shape) >= count
        return default_mask * self.spread(kept.to(default_mask.dtype), t.ndim)

    def spread(self, kept: Tensor, rank: int) -> Tensor:
        """Give a mask of what was measured the axes of the weight."""
        return kept


class RandomUnstructured(ByAmount):
    """This class zeroes weights that chance chooses."""

    def importance(self, t: Tensor) -> Tensor:
        """Draw an order."""
        return Tensor.rand(*t.shape, device=t.device)


class L1Unstructured(ByAmount):
    """This class zeroes the weights of least size."""

    def importance(self, t: Tensor) -> Tensor:
        """Measure the size."""
        return t.detach().abs()


class RandomStructured(ByAmount):
    """This class zeroes slices along an axis that chance chooses."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def importance(self, t: Tensor) -> Tensor:
        """Draw an order of the slices."""
        return Tensor.rand(t.shape[self.dim], device=t.device)

    def spread(self, kept: Tensor, rank: int) -> Tensor:
        """Put the slices along their axis."""
        return kept.reshape(lying_along(self.dim, rank))


class LnStructured(RandomStructured):
    """This class zeroes the slices along an axis of least n-norm."""

    def __init__(self, amount: float, n: float, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def importance(self, t: Tensor) -> Tensor:
        """Measure the norms."""
        return t.detach().movedim(self.dim, 0).flatten(1).norm(p=self.n, dim=1)


class Identity(BasePruningMethod):
    """This class masks nothing."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give the mask as it is."""
        return default_mask


class CustomFromMask(BasePruningMethod):
    """This class multiplies by a mask of one's own."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Multiply the masks."""
        return default_mask * self.mask.to(default_mask.device).to(default_mask.dtype)


def identity(module: M, name: str) -> M:
    """Give a weight a mask of ones."""
    Identity.apply(module, name)
    return module


def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Zero the weights of least size.

    >>> from picograd import nn
    >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=0.5)
    >>> int((layer.weight == 0).sum())
    2
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_unstructured(module: M, name: str, amount: float) -> M:
    """Zero weights that chance chooses."""
    RandomUnstructured.apply(module, name, amount)
    return module


def ln_structured(
    module: M, name: str, amount: float, n: float, dim: int, importance_scores: Any = None
) -> M:
    """Zero the rows, along an axis, of least n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Zero rows, along an axis, that chance chooses."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Multiply a weight by a mask of your own."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Any = None,
    **options: Any,
) -> None:
    """Zero weights of several modules, the least important of them all.

    `importance_scores` is a dict from (module, name); `options` are those of the method.
    """
    listed, scores = list(parameters), importance_scores or {}
    if pruning_method.PRUNING_TYPE != "unstructured":
        text = f"{pruning_method.__name__} is {pruning_method.PRUNING_TYPE}"
        raise DTypeError("prune", text, "use an unstructured method")
    weights = [scores.get(each, getattr(*each).detach()) for each in listed]
    masks = [getattr(m, f"{n}_mask", Tensor.ones_like(w)) for (m, n), w in zip(listed, weights)]
    together = PruningContainer(pruning_method(**options))
    flat = Tensor.cat([mask.flatten() for mask in masks])
    kept = together.compute_mask(Tensor.cat([each.flatten() for each in weights]), flat)
    for (module, name), piece, mask in zip(listed, kept.split([m.numel() for m in masks]), masks):
        CustomFromMask.apply(module, name, piece.reshape(mask.shape))


def remove(module: M, name: str) -> M:
    """Make the masked weight a parameter. Raises ValueRangeError for a weight without a mask."""
    method = vars(module).get(HANDLES, {}).get(name)
    chosen = method.method if method else Identity()
    chosen._tensor_name = name
    chosen.remove(module)
    return module
