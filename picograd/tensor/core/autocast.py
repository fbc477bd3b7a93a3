"""Autocast: inside a region operations choose the float dtype they compute in, as in PyTorch.

`RULES` says which: "lower" operations (products) take 16-bit floats, "float32" ones the opposite,
"widest" ones the widest dtype of their operands, and all others what they are given. The lists are
those of PyTorch's documentation, by device, under the names operations are recorded with.
`recording.apply` asks `recorder_of` whenever a region is open; functions made of several operations
are one entry of the table when they are decorated with `listed`. float64 and integers stay as they
are, and so does what lives on another device. Casts have gradients: weights get float32 ones.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from picograd.dtype import DType, bfloat16, float16, float32, to_dtype
from picograd.engine.backends import default_device
from picograd.engine.tracing import OPEN
from picograd.errors import DeviceError, DTypeError, GradientError
from picograd.graph import build
from picograd.graph.node import Node
from picograd.tensor.core.annotations import DTypeLike
from picograd.tensor.core.repeated import REPEATED, repeated

F = TypeVar("F", bound=Callable[..., Any])
State = tuple[tuple[str, str], ...]

PRODUCTS = """matmul mm bmm addmm baddbmm addbmm linear einsum inner tensordot conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention prelu"""
LOSSES = """mse_loss l1_loss smooth_l1_loss huber_loss kl_div cross_entropy nll_loss
    poisson_nll_loss binary_cross_entropy_with_logits soft_margin_loss hinge_embedding_loss
    margin_ranking_loss triplet_margin_loss multi_margin_loss multilabel_margin_loss
    cosine_embedding_loss"""
TABLE = {
    "cpu": {
        "lower": PRODUCTS,
        "float32": f"""{LOSSES} binary_cross_entropy ctc_loss prod quantile nanquantile cdist trace
            average_pool3 adaptive_average_pool3 max_pool3 max_unpool2 max_unpool3
            pad_mode_reflect pad_mode_replicate grid_sample inverse pinv complex_axis real_axis
            half_axis""",
        "widest": "cat stack index_copy",
        "refused": "",
    },
    "cuda": {
        "lower": f"{PRODUCTS} mv addmv addr matrix_vector",
        "float32": f"""{LOSSES} acos asin cosh erfinv exp expm1 log log1p log2 log10 reciprocal
            rsqrt sinh tan pow softplus layer_norm rms_norm group_norm norm cosine_similarity dist
            pdist cdist renorm logsumexp interpolate prod softmax log_softmax cumprod cumsum sum""",
        "widest": """addcdiv addcmul atan2 bilinear cross dot vector_dot vdot grid_sample index_put
            scatter_add""",
        "refused": "binary_cross_entropy",
    },
}
RULES = {
    kind: {name: rule for rule, names in rules.items() for name in names.split()}
    for kind, rules in TABLE.items()
}
KINDS: dict[str, str] = {}  # of devices, by name
FIXED = ("lower", "float32")  # rules that do not ask for the dtypes of operands
CASTING: dict[tuple[Any, DType, str], Callable[..., Any]] = {}
# by kind of device; of the last two there are none here
DEFAULTS = {"cpu": bfloat16, "cuda": float16, "mps": float16, "xpu": float16}


class Regions(threading.local):
    """The open regions of a thread: the 16-bit dtype by kind of device.

    What else changes what is recorded has a key of its own (saved_hooks.py).
    """

    def __init__(self) -> None:
        self.dtypes: dict[str, DType] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        had_any = bool(vars(self).get(name))  # of this thread
        if value and not had_any:
            OPEN.append("region")
        super().__setattr__(name, value)
        if had_any and not value:
            OPEN.pop()  # whichever: none of them says whose it is


REGIONS = Regions()


class autocast:
    """This class opens a region of mixed precision: `with picograd.autocast("cpu"):`, or `@`.

    `dtype` is bfloat16 on the CPU and float16 on CUDA unless given; `enabled=False`, or a dtype of
    float32, closes the region inside. Regions nest, and belong to their thread. What is recorded
    in a region keeps its dtypes outside; `backward` belongs outside. Source: Micikevicius et al.
    (2018), "Mixed Precision Training". Raises DTypeError for other dtypes.

    >>> x = picograd.ones(2, 2)
    >>> with picograd.autocast("cpu"):
    ...     print((x @ x).dtype, (x + x).dtype)
    picograd.bfloat16 picograd.float32
    """

    def __init__(
        self,
        device_type: str | None = None,
        dtype: DTypeLike | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.kind: str = kind_named(device_type)
        self.dtype: DType = DEFAULTS[self.kind] if dtype is None else to_dtype(dtype)
        if self.dtype not in (float16, bfloat16, float32):
            text = f"{self.dtype.name} is no dtype of mixed precision"
            raise DTypeError("autocast", text, "use bfloat16 or float16")
        self.enabled: bool = bool(enabled) and self.dtype is not float32
        self.previous: list[dict[str, DType]] = []

    def __enter__(self) -> "autocast":
        self.previous.append(REGIONS.dtypes)
        own = {self.kind: self.dtype} if self.enabled else {}
        others = {k: v for k, v in REGIONS.dtypes.items() if k != self.kind}
        REGIONS.dtypes = {**others, **own}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        REGIONS.dtypes = self.previous.pop()

    def __call__(self, function: F) -> F:
        """Decorate a function: each of its calls is a region."""
        options = self.kind, self.dtype, self.enabled

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with autocast(*options):
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]


class suspended:
    """This class closes all regions of the thread, for the parts of a composed function."""

    def __enter__(self) -> None:
        self.previous: dict[str, DType] = REGIONS.dtypes
        REGIONS.dtypes = {k: v for k, v in REGIONS.dtypes.items() if k not in DEFAULTS}

    def __exit__(self, *error: Any) -> None:
        REGIONS.dtypes = self.previous


def kind_named(device_type: str | None) -> str:
    """Read a device type: "cpu" or "cuda"; None is that of the default device."""
    name = default_device() if device_type is None else device_type
    kind = name.partition(":")[0] if isinstance(name, str) else name
    if kind not in DEFAULTS:
        text = f"{device_type!r} is no device of mixed precision"
        raise DeviceError("autocast", text, 'use "cpu" or "cuda"')
    return str(kind)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Tell whether a region is open for a kind of device; for any, unless one is named.

    >>> is_autocast_enabled("cpu")
    False
    """
    if device_type is None:
        return any(kind in DEFAULTS for kind in REGIONS.dtypes)
    return kind_named(device_type) in REGIONS.dtypes


def get_autocast_dtype(device_type: str | None = None) -> DType:
    """Find the 16-bit dtype of the open region, or the default one of a kind of device.

    >>> get_autocast_dtype("cuda")
    picograd.float16
    """
    kind = kind_named(device_type)
    return REGIONS.dtypes.get(kind, DEFAULTS[kind])


def state() -> State:
    """Describe the open regions: part of what a trace of `jit` depends on."""
    return tuple(sorted((kind, dtype.name) for kind, dtype in REGIONS.dtypes.items()))


def recorder_of(
    function: Callable[..., Any], operands: list[Any]
) -> tuple[Callable[..., Any], list[Any]]:
    """Give what records an operation, and on what: operands are cast as its rule says.

    What is stamped out casts them itself, unless hooks must see them.
    """
    kind, rule = kind_and_rule(function, operands)
    if rule in FIXED and function in REPEATED and len(REGIONS.dtypes) == 1:
        key = function, REGIONS.dtypes[kind] if rule == "lower" else float32, kind
        return CASTING.get(key) or casting(*key), operands
    return function, by_rule(operands, kind, rule) if rule else operands


def converted(function: Callable[..., Any], operands: Sequence[Any]) -> list[Any]:
    """Cast the nodes among the operands as the rule of an operation says."""
    return by_rule(list(operands), *kind_and_rule(function, operands))


def kind_and_rule(function: Callable[..., Any], operands: Sequence[Any]) -> tuple[str, str]:
    """Find the kind of device that an operation runs on, and its rule; "" where none is to be."""
    kind = ""
    for each in operands:
        if isinstance(each, Node):
            kind = KINDS.get(each.device) or kind_of(each.device)
            break
    rule = rule_of(function, operands, RULES[kind]) if kind in REGIONS.dtypes else ""
    return kind, "" if DType in map(type, operands) else rule  # the user chose the dtype


def by_rule(operands: list[Any], kind: str, rule: str) -> list[Any]:
    """Cast the nodes among operands as a rule says."""
    cast = [each for each in operands if isinstance(each, Node) and is_cast(each, kind)]
    dtype = target_dtype(rule, kind, [node.dtype for node in cast])
    return operands if dtype is None else all_cast(operands, dtype, kind)


def casting(function: Callable[..., Any], dtype: DType, kind: str) -> Callable[..., Any]:
    """Make a function that casts its operands first, once for each dtype and kind of device."""

    @repeated
    def record(*operands: Any) -> Any:
        return function(*all_cast(operands, dtype, kind))

    record.__name__ = function.__name__
    return CASTING.setdefault((function, dtype, kind), record)


def all_cast(operands: Sequence[Any], dtype: DType, kind: str) -> list[Any]:
    """Cast the nodes to which rules apply, each once."""
    chosen = {id(x): x for x in operands if isinstance(x, Node) and is_cast(x, kind)}
    for key, node in chosen.items():
        chosen[key] = build.cast(node, dtype)
    return [chosen.get(id(each), each) for each in operands]


def kind_of(device: str) -> str:
    """Find the kind of a device, and remember it."""
    return KINDS.setdefault(device, device.partition(":")[0])


def rule_of(function: Callable[..., Any], operands: Sequence[Any], rules: dict[str, str]) -> str:
    """Find the rule of an operation by the name of the op, of a rank or of a mode."""
    first = operands[0]
    if isinstance(first, str):
        return rules.get(first, "")
    name = getattr(function, "__name__", "")
    if type(first) is int:
        return rules.get(f"{name}{first}", "")  # a rank
    rule = rules.get(name, "")
    for each in operands:
        if type(each) is str:
            rule += rules.get(f"{name}_{each}", "")
    return rule


def is_cast(value: Any, kind: str) -> bool:
    """Tell whether rules apply to a value: floats of up to 32 bits on the region's device."""
    dtype: DType = value.dtype
    is_low = dtype.is_float and dtype.bits <= 32
    return is_low and (KINDS.get(value.device) or kind_of(value.device)) == kind


def target_dtype(rule: str, kind: str, dtypes: Sequence[DType]) -> DType | None:
    """Choose what operands are cast to; None leaves them alone."""
    if not dtypes or not rule:
        return None
    if rule == "lower":
        return REGIONS.dtypes[kind]
    if rule == "widest":
        return float32 if float32 in dtypes else None
    return float32


def listed(function: F) -> F:
    """Make a function of several operations one entry of the table, under its own name."""
    name = function.__name__

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not REGIONS.dtypes:
            return function(*args, **kwargs)
        values = whole(name, [*args, *kwargs.values()])
        with suspended():
            return function(*values[: len(args)], **dict(zip(kwargs, values[len(args) :])))

    return called  # type: ignore[return-value]


def check_rule(name: str, kind: str) -> str:
    """Find the rule of an operation. Raises GradientError for one that is refused."""
    rule = RULES[kind].get(name, "")
    if rule == "refused":
        text = "a probability in 16 bits cannot come near 0 or 1: it is unsafe inside autocast"
        raise GradientError(name, text, "use binary_cross_entropy_with_logits")
    return rule


def whole(name: str, values: Sequence[Any]) -> list[Any]:
    """Cast the tensors among the arguments of a listed function. Raises for a refused one."""
    tensors = [value for value in values if isinstance(getattr(value, "node", None), Node)]
    kind = tensors[0].device.partition(":")[0] if tensors else ""
    if kind not in REGIONS.dtypes:
        return list(values)
    dtypes = [each.dtype for each in tensors if is_cast(each, kind)]
    dtype = target_dtype(check_rule(name, kind), kind, dtypes)
    if dtype is None:
        return list(values)
    known = set(map(id, tensors))
    return [v.cast(dtype) if id(v) in known and is_cast(v, kind) else v for v in values]


def custom_fwd(
    fwd: Any = None, *, device_type: str = "cuda", cast_inputs: DTypeLike | None = None
) -> Any:
    """Make the forward of a function of the user's own note the region that it is called in.

    Its backward computes in the same (`custom_bwd`). With `cast_inputs` a region casts the floats
    among its arguments, and is closed inside, in the backward too.

    >>> import picograd
    >>> cast = picograd.amp.custom_fwd(device_type="cpu", cast_inputs=picograd.float16)
    >>> with picograd.autocast("cpu"):
    ...     print(cast(lambda ctx, x: x)(type("Context", (), {}), picograd.ones(2)).dtype)
    picograd.float16
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **options: Any) -> Any:
        is_open = is_autocast_enabled(device_type)
        ctx._autocast = is_open and cast_inputs is None, get_autocast_dtype(device_type)
        if not is_open or cast_inputs is None:
            return fwd(ctx, *args, **options)
        args, options = inner_cast((args, options), kind_named(device_type), to_dtype(cast_inputs))
        with autocast(device_type, enabled=False):
            return fwd(ctx, *args, **options)

    return forward


def inner_cast(value: Any, kind: str, dtype: DType) -> Any:
    """Cast the tensors in nested containers to which rules apply."""
    if isinstance(value, dict):
        return {key: inner_cast(each, kind, dtype) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(inner_cast(each, kind, dtype) for each in value)
    is_tensor = isinstance(getattr(value, "node", None), Node)
    return value.cast(dtype) if is_tensor and is_cast(value, kind) else value


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    """Make the backward of a function of the user's own compute in the region of its forward.

    >>> import picograd
    >>> context = type("Context", (), {"_autocast": (True, picograd.bfloat16)})
    >>> product = picograd.amp.custom_bwd(lambda ctx, x: x @ x, device_type="cpu")
    >>> product(context, picograd.ones(2, 2)).dtype
    picograd.bfloat16
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any) -> Any:
        is_open, dtype = getattr(ctx, "_autocast", (False, None))
        with autocast(device_type, dtype, enabled=is_open):
            return bwd(ctx, *args)

    return backward
