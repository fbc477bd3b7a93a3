"""Names of PyTorch's `nn.modules` and `types` that begin with an underscore or say sizes.

Programs derive from them, ask `isinstance`, or repeat a number along each axis with them.
"""

from collections.abc import Callable, Iterable, MutableMapping
from itertools import repeat
from typing import Any, TypeVar

from picograd.nn.conv import AdjointConv, ConvSettings
from picograd.nn.dropout import Dropout
from picograd.nn.hooks import REGISTRATION, of_every_module, of_registration
from picograd.nn.lazy import LazyModuleMixin as LazyModuleMixin
from picograd.nn.linear import Linear
from picograd.nn.loss_modules import Criterion, WeightedCriterion
from picograd.nn.norm import BatchNorm, InstanceNorm
from picograd.nn.pooling import AdaptiveAvgPool, AdaptiveMaxPool, LPPool, MaxPool, MaxUnpool, Pool
from picograd.nn.recurrent import Cell, Recurrent
from picograd.nn.transformer import activation_named, copies
from picograd.nn.walks import EXTRA_STATE, LoadResult
from picograd.tensor.core.gradient_hooks import HookHandle

T = TypeVar("T")
Entries = tuple[T, ...]


def repeated(count: int, name: str) -> Callable[[Any], Any]:
    """Make a function that repeats a number `count` times, and gives what is iterable as a tuple.

    >>> repeated(2, "_pair")(3), repeated(2, "_pair")([1, 2])
    ((3, 3), (1, 2))
    """

    def parse(x: Any) -> tuple[Any, ...]:
        is_many = isinstance(x, Iterable)
        return tuple(x) if is_many else tuple(repeat(x, count))

    parse.__name__ = name
    return parse


def twice_from_the_end(values: Iterable[T], times: int) -> Entries[T]:
    """Repeat each entry, the last one first, as padding lists axes."""
    entries = list(values)[::-1]
    return tuple(entry for entry in entries for _ in range(times))


def consume_prefix_in_state_dict_if_present(state: MutableMapping[str, Any], prefix: str) -> None:
    """Cut a prefix off the names of a state dict, in place.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for name in [name for name in state if name.startswith(prefix)]:
        state[name[len(prefix) :]] = state.pop(name)


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """Read the reduction that PyTorch's older options of losses ask for.

    >>> legacy_get_string(False, None)
    'sum'
    """
    return Criterion(size_average, reduce).reduction


def get_enum(reduction: str) -> int:
    """Give the number of a reduction.

    >>> get_enum("mean")
    1
    """
    return ("none", "mean", "sum").index(reduction)


_ntuple = repeated
_single, _pair = repeated(1, "_single"), repeated(2, "_pair")
_triple, _quadruple = repeated(3, "_triple"), repeated(4, "_quadruple")
_reverse_repeat_tuple = twice_from_the_end
_Loss, _WeightedLoss = Criterion, WeightedCriterion
_BatchNorm = _NormBase = BatchNorm
_InstanceNorm = InstanceNorm
_ConvNd, _ConvTransposeNd = ConvSettings, AdjointConv
_ConvTransposeMixin = AdjointConv
_DropoutNd = Dropout
_MaxPoolNd, _MaxUnpoolNd, _AvgPoolNd, _LPPoolNd = MaxPool, MaxUnpool, Pool, LPPool
_AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd = AdaptiveAvgPool, AdaptiveMaxPool
_IncompatibleKeys = LoadResult
_EXTRA_STATE_KEY_SUFFIX = EXTRA_STATE
_global_parameter_registration_hooks = REGISTRATION["parameter"]
_global_module_registration_hooks = REGISTRATION["module"]
_global_buffer_registration_hooks = REGISTRATION["buffer"]
register_module_forward_pre_hook = of_every_module("before")
register_module_forward_hook = of_every_module("after")
register_module_full_backward_pre_hook = of_every_module("gradient_before")
register_module_full_backward_hook = of_every_module("gradient")
register_module_backward_hook = register_module_full_backward_hook
register_module_parameter_registration_hook = of_registration("parameter")
register_module_buffer_registration_hook = of_registration("buffer")
register_module_module_registration_hook = of_registration("module")
_get_clones, _get_activation_fn = copies, activation_named
NonDynamicallyQuantizableLinear = Linear
RNNBase, RNNCellBase = Recurrent, Cell
RemovableHandle = HookHandle

MAP_LOCATION = Any  # annotations of PyTorch's programs
FILE_LIKE = Any
DEFAULT_PROTOCOL = 2  # of pickles
Number = int | float | bool
Device = str | int | None
_int, _float, _bool = int, float, bool
_device = _dtype = Any  # annotations of programs
_size = list[int] | tuple[int, ...]
_size_any_t = _size_any_opt_t = int | Entries[int]
_size_1_t = _size_2_t = _size_3_t = _size_4_t = _size_5_t = _size_6_t = _size_any_t
_size_2_opt_t = _size_3_opt_t = int | Entries[int | None] | None
_ratio_2_t = _ratio_3_t = _ratio_any_t = float | Entries[float]
_maybe_indices_t = _scalar_or_tuple_any_t = _scalar_or_tuple_2_t = Any
