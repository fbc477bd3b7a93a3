"""PyTorch's other spellings of arguments: `out=`, `input=`, sizes by name, what changes nothing.

A function keeps one name for each argument. Calls by another name, or with an argument that asks
for a layout of memory, are turned into that one before it sees them.
"""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from picograd.dtype import category
from picograd.engine.followed import EVENTS, MISS
from picograd.errors import DTypeError, GradientError
from picograd.graph import build
from picograd.graph.build_composite import check_device
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.function import innermost
from picograd.tensor.core.recording import Recorded, write

# Arguments that change nothing: tensors are row-major, and the runtime chooses host memory.
IDLE = ("memory_format", "layout", "pin_memory", "sparse_grad", "compute_mode", "implicit")
IDLE_HERE = {"copy_": ("non_blocking",), "svd": ("driver",), "svdvals": ("driver",)}
BOUNDS = {"from": "low", "to": "high"}
CUTS = {"indices": "indices_or_sections", "sections": "indices_or_sections"}
# name -> {PyTorch's name of an argument: ours}; "input" is the first one, whatever its name
RENAMED: dict[str, dict[str, str]] = {
    "bmm": {"mat2": "other"},
    "cdist": {"x1": "input", "x2": "other"},
    "cholesky_solve": {"input2": "L"},
    "copy_": {"src": "value", "other": "value"},
    "cosine_similarity": {"x1": "a", "x2": "b"},
    "dist": {"tensor": "other"},
    "dot": {"tensor": "other"},
    "dsplit": CUTS,
    "from_dlpack": {"ext_tensor": "source"},
    "hsplit": CUTS,
    "lstsq": {"b": "B"},
    "matmul": {"other": "B"},
    "max": {"other": "axis"},
    "min": {"other": "axis"},
    "mm": {"mat2": "other"},
    "ormqr": {"input2": "tau", "input3": "other"},
    "outer": {"vec2": "other"},
    "pairwise_distance": {"x1": "a", "x2": "b"},
    "random_": BOUNDS,
    "searchsorted": {"sorted_sequence": "input", "input": "values"},
    "solve_triangular": {"other": "B"},
    "split": {
        "tensor": "input",
        "split_size_or_sections": "sizes",
        "split_size": "sizes",
        "split_sizes": "sizes",
    },
    "swapdims": {"dim0": "axis0", "dim1": "axis1"},
    "tensor_split": {**CUTS, "tensor_indices_or_sections": "indices_or_sections"},
    "tensordot": {"a": "input", "b": "other"},
    "tensorsolve": {"other": "B"},
    "uniform_": BOUNDS,
    "vsplit": CUTS,
    "where": {"input": "a", "other": "b"},
}
# what takes f(2, 3), and in PyTorch also f(size=(2, 3))
SIZED = ("zeros", "ones", "empty", "rand", "randn", "expand", "broadcast_to")
SPREAD = {**dict.fromkeys(SIZED, "size"), "tile": "dims", "repeat": "repeats"}
WIDENED = ("nansum", "nanmean", "norm", "matrix_norm")  # `dtype=` converts the input first

# NumPy's names of arguments: everywhere, and of functions, as PyTorch takes them
OTHER = {"axis": "dim", "keepdims": "keepdim"}
NUMPY = {"x2": "other", **dict.fromkeys(("x", "a", "x1"), "input")}

Options = dict[str, Any]


def spelled(function: Callable[..., Any], name: str, is_method: bool = False) -> Any:
    """Make a function that takes PyTorch's names of its arguments too, and `out`."""
    parameters = parameter_names(function)
    first, has_reduction = parameters[0], "reduction" in parameters
    older = older_places(name, parameters)
    known = RENAMED.get(name, {})
    taken = ("input", *parameters)
    renames = {t: o for t, o in known.items() if o in taken and t not in parameters}
    if not is_method and "input" not in parameters and "input" not in renames:
        renames["input"] = first
    for numpy_name, ours in {**OTHER, **({} if is_method else NUMPY)}.items():
        if ours in taken and numpy_name not in taken:
            renames.setdefault(numpy_name, ours)

    is_event = "is_event" in vars(function)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if is_event and (take := EVENTS.take) is not None:
            if (made := take(call, args, options)) is not MISS:
                return made
        if older and len(args) > older[0]:
            args = without_older(args, older, options)
        if not options:
            return function(*args)
        out = None if is_method else options.pop("out", None)
        if name in MAKING and isinstance(out, Recorded):
            options.setdefault("dtype", out.dtype)
        args = translated(name, first, renames, args, options)
        if has_reduction and ("size_average" in options or "reduce" in options):
            read_reduction(options)
        result = function(*args, **options)
        return result if out is None else write_out(name, result, out)

    vars(call)["takes_out"] = not is_method
    vars(function).setdefault("shown", call)  # what `__torch_function__` is told of
    return call


# what makes tensors of nothing makes them of the dtype of `out`
MAKING = (
    "arange", "eye", "full", "linspace", "logspace", "ones", "rand", "randint", "randn", "range",
    "zeros",
)  # fmt: skip


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """List the names of a function's parameters, as `inspect.signature` would, which is slow."""
    code = innermost(function).__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[: code.co_argcount])
    rest = list(code.co_varnames[count:])
    names += rest[:1] if code.co_flags & inspect.CO_VARARGS else []
    names += code.co_varnames[code.co_argcount : count]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        names.append(rest[1] if code.co_flags & inspect.CO_VARARGS else rest[0])
    return names


def translated(
    name: str, first: str, renames: dict[str, str], args: tuple[Any, ...], options: Options
) -> tuple[Any, ...]:
    """Rename keywords in place, drop idle ones, and give the positional arguments."""
    for idle in (*IDLE, *IDLE_HERE.get(name, ())):
        options.pop(idle, None)
    for theirs, ours in renames.items():
        if theirs in options:
            ours = first if ours == "input" else ours
            if ours in options:
                text = f"got both {theirs} and {ours}"
                raise DTypeError(name, text, "pass one of them")
            options[ours] = options.pop(theirs)
    if not args and first in options:
        args = (options.pop(first),)
    if SPREAD.get(name) in options:
        args = (*args, options.pop(SPREAD[name]))
    if name in WIDENED and args:
        dtype = options.pop("dtype", None)
        args = args if dtype is None else (args[0].to(dtype), *args[1:])
    return args


# losses that never had `size_average` and `reduce`
YOUNG = (
    "ctc_loss", "gaussian_nll_loss", "huber_loss", "linear_cross_entropy",
    "triplet_margin_with_distance_loss",
)  # fmt: skip


def older_places(name: str, parameters: list[str]) -> tuple[int, int] | None:
    """Find the places of `size_average` and `reduce` in PyTorch's order of a loss's arguments."""
    if name in YOUNG or "reduction" not in parameters:
        return None
    last = parameters.index("reduction")
    return last - (parameters[last - 1] in ("ignore_index", "eps")), last + 1


def without_older(args: Any, places: tuple[int, int] | None, options: Options) -> Any:
    """Move `size_average` and `reduce` to the options, from where ours are of other kinds."""
    found = args[places[0]] if places and len(args) > places[0] else ""
    if not places or not (found is None or isinstance(found, bool)):
        return args
    options |= dict(zip(("size_average", "reduce"), (args[i] for i in places if i < len(args))))
    return tuple(value for i, value in enumerate(args) if i not in places)


def read_reduction(options: Options) -> None:
    """Turn the old flags of losses into `reduction`."""
    averages, reduces = options.pop("size_average", None), options.pop("reduce", None)
    if averages is None and reduces is None:
        return
    summed = "mean" if averages is not False else "sum"
    options["reduction"] = summed if reduces is not False else "none"


def write_out(op: str, result: Any, out: Any) -> Any:
    """Write a result into the tensor given as `out`, or several into several; returns `out`."""
    if not isinstance(result, (tuple, list)):
        if not isinstance(result, Recorded):
            text = f"gives a {type(result).__name__}, no tensor"
            raise DTypeError(op, text, "leave out=... away")
        return write_one(op, result, out)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        text = f"out must be {len(result)} tensors"
        raise DTypeError(op, text, "pass a tuple")
    written = [write_one(op, *each) for each in zip(result, out)]
    is_named = hasattr(result, "_fields")
    return type(result)(*written) if is_named else tuple(written)


SEQUENCES = ("arange", "range", "linspace", "logspace")  # they fill an `out` of any shape that fits


def write_one(op: str, result: Any, out: Any) -> Any:
    """Write one result: `out` keeps its dtype, and takes the shape of the result."""
    if not isinstance(out, Recorded):
        text = f"out must be a Tensor, not {type(out).__name__}"
        raise DTypeError(op, text, "pass picograd.empty(0)")
    if MODE.enabled and (result._tracks or out._tracks):
        text = "out=... is not recorded for gradients, but an argument asks for one"
        raise GradientError(op, text, "leave it away, or use picograd.no_grad()")
    check_device(op, (result._node, out._node))
    if category(result.dtype) > category(out.dtype):
        text = f"the result is {result.dtype.name} but out is {out.dtype.name}"
        raise DTypeError(op, text, "pass an out of the result's dtype")
    node = result._node.cast(out.dtype)
    if op in SEQUENCES and node.size == out._node.size:
        node = build.reshape(node, out.shape)
    if node.shape == out.shape:
        write(out, node, False)
        return out
    if out._node.size:
        text = (
            "An output with one or more elements was resized"  # PyTorch's words: filters know them
        )
        text = f"{op}: {text} from {out.shape} to {node.shape}"
        warnings.warn(text, stacklevel=4)
    out.node = build.detach(node)
    return out


def spell_functions(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Let the functions of a module take PyTorch's spellings, under the names they have there."""
    for name in names:
        value = namespace.get(name)
        if not isinstance(value, FunctionType) or vars(value).get("takes_out"):
            continue
        if value.__module__.startswith("picograd.") and parameter_names(value):
            namespace[name] = made = spelled(value, name)
            made.__module__, made.__qualname__ = namespace["__name__"], name  # for pickle


def spell_methods(kinds: Iterable[type]) -> None:
    """Let the methods whose arguments PyTorch names differently take these names too."""
    for kind in kinds:
        for name, value in list(vars(kind).items()):
            known = name in RENAMED or name in SPREAD or name in WIDENED or name in IDLE_METHODS
            if known and isinstance(value, FunctionType):
                setattr(kind, name, spelled(value, name, True))
            elif known and isinstance(value, staticmethod):
                setattr(kind, name, staticmethod(spelled(value.__func__, name, True)))


IDLE_METHODS = (
    "clone", "contiguous", "is_contiguous", "gather", "repeat_interleave", "to", "copy_",
    "zeros", "ones", "empty", "full", "eye", "arange", "linspace", "rand", "randn", "randint",
    "randperm", "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor",
    "float", "double", "half", "bfloat16", "int", "long", "short", "byte", "char", "bool",
)  # fmt: skip


# the tensors of a function, with the one it is a method of, and the names of the numbers
OLDER = {
    **dict.fromkeys(("add", "add_", "sub", "sub_"), (2, ("alpha",))),
    **dict.fromkeys(("addcdiv", "addcmul"), (3, ("value",))),
    **dict.fromkeys(("addbmm", "addmm", "addmv", "addr", "baddbmm"), (3, ("beta", "alpha"))),
}


def taking_older(function: Callable[..., Any], name: str) -> Any:
    """Make a function that takes the older order too, if its name has one."""
    if name not in OLDER:
        return function
    count, words = OLDER[name]

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if len(args) > count and isinstance(args[-1], Recorded):
            places = numbers_among(args, len(args) - count, first=2 - len(words))
            options = dict(zip(words, [args[place] for place in places])) | options
            args = tuple(each for place, each in enumerate(args) if place not in places)
        return function(*args, **options)

    return call


def numbers_among(args: Sequence[Any], count: int, first: int) -> list[int]:
    """Find the numbers among tensors: those without axes are some where there are too few."""
    numbers = [place for place, each in enumerate(args) if not isinstance(each, Recorded)]
    if len(numbers) >= count:
        return numbers
    places = range(first, len(args) - 1)
    return [place for place in places if place in numbers or args[place].ndim == 0][:count]
