"""Facts about dtypes: the limits of their numbers, and what they become together."""

from picograd.conversion import FLOAT8, float8_values
from picograd.dtype import DType, bool_, category, default_float, promote, scalar_dtype, to_dtype
from picograd.errors import DTypeError
from picograd.tensor.core.annotations import DTypeLike, TensorLike
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import read_scalar
from picograd.tensor.core.recording import Recorded

# bits stored of the mantissa, and bias of the exponent
FORMATS = {
    "float16": (10, 15),
    "bfloat16": (7, 127),
    "float32": (23, 127),
    "float64": (52, 1023),
    **{dtype.name: (form.mantissa, form.bias) for dtype, form in FLOAT8.items()},
}


class finfo:
    """This class holds the limits of a float dtype: max, min, eps, tiny, smallest_normal, bits.

    >>> picograd.finfo(picograd.float16).max
    65504.0
    """

    smallest_normal: float
    tiny: float

    def __init__(self, dtype: DTypeLike | None = None) -> None:
        wanted = default_float() if dtype is None else to_dtype(dtype).real
        if wanted.name not in FORMATS:
            raise DTypeError("finfo", f"{wanted.name} is no float dtype", "use iinfo")
        digits, bias = FORMATS[wanted.name]
        self.dtype: str = wanted.name
        self.bits: int = wanted.bits
        self.eps: float = 2.0**-digits
        self.max: float = (2 - self.eps) * 2.0**bias
        if wanted in FLOAT8:  # one has numbers where others have infinities
            form = FLOAT8[wanted]
            self.max = float(float8_values(form)[form.largest])
        self.min: float = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - bias)
        self.resolution: float = float(f"1e-{int(digits * 0.30103)}")

    def __repr__(self) -> str:
        return f"finfo({self.dtype}: max={self.max}, eps={self.eps}, tiny={self.tiny})"


class iinfo:
    """This class holds the limits of an integer dtype: min, max and bits.

    >>> picograd.iinfo(picograd.int8).max
    127
    """

    def __init__(self, dtype: DTypeLike) -> None:
        wanted = to_dtype(dtype)
        if not wanted.is_integer:
            raise DTypeError("iinfo", f"{wanted.name} is no integer dtype", "use finfo")
        self.dtype: str = wanted.name
        self.bits: int = wanted.bits
        is_signed = wanted.kind == "int"
        self.min: int = -(1 << (wanted.bits - 1)) if is_signed else 0
        self.max: int = self.min + (1 << wanted.bits) - 1

    def __repr__(self) -> str:
        return f"iinfo({self.dtype}: min={self.min}, max={self.max})"


@composed(method=False)
def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """Find the dtype two dtypes become together.

    >>> picograd.promote_types(picograd.int64, picograd.float16)
    picograd.float16
    """
    return promote(to_dtype(type1), to_dtype(type2))


@composed(method=False)
def result_type(tensor1: TensorLike, tensor2: TensorLike) -> DType:
    """Find the dtype of an operation on two tensors or numbers.

    >>> picograd.result_type(picograd.Tensor([1]), 2.5)
    picograd.float32
    """
    found: dict[int, DType] = {}  # by rank: numbers 0, zero-dim tensors 1, others 2
    for each in (tensor1, tensor2):
        if isinstance(each, Recorded):
            kind, rank = each.dtype, 2 if each.ndim else 1
        else:
            kind, rank = scalar_dtype(read_scalar("result_type", each), bool_), 0
        found[rank] = promote(found[rank], kind) if rank in found else kind
    result = found[max(found)]
    for rank in sorted(found, reverse=True):
        if category(found[rank]) > category(result):
            kind = found[rank]
            result = result.complex if kind.is_complex and result.is_float else kind
    return result


@composed(method=False)
def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Tell whether a dtype may be written into another: its category is not the higher one.

    >>> picograd.can_cast(picograd.float32, picograd.int64)
    False
    """
    return category(to_dtype(from_)) <= category(to_dtype(to))


@composed(method=False)
def get_default_dtype() -> DType:
    """Give the dtype of new floats.

    >>> picograd.get_default_dtype()
    picograd.float32
    """
    return default_float()
