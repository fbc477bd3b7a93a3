"""DType: the element types, PyTorch's promotion, and conversion from Python and NumPy.

bfloat16 and the 8-bit floats have no NumPy type: a buffer of one is viewed as unsigned integers on
the host, and `numpy()` widens to float32. Promotion follows PyTorch: a Python scalar only raises
the *category* of a tensor (bool < int < float), and takes the default dtype of that category when
it does. 8-bit floats are for storage: they promote with nothing, and few operations take them.
"""

from typing import Any, Final

import numpy as np

from picograd.errors import DTypeError
from picograd.helpers import shown
from picograd.late_methods import dataclass

CATEGORIES = {"bool": 0, "uint": 1, "int": 1, "float": 2, "float8": 2, "complex": 3}
CONTINUOUS = ("float", "float8", "complex")


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type. Instances are singletons: compare with `is` or `==`."""

    name: str
    kind: str  # "bool", "uint", "int", "float", "float8" or "complex"
    bits: int
    storage: str  # name of the NumPy dtype that holds the raw bytes

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """Tell whether this is a floating-point type."""
        return self.kind in ("float", "float8")

    @property
    def is_complex(self) -> bool:
        """Tell whether this is a type of complex numbers."""
        return self.kind == "complex"

    @property
    def is_floating_point(self) -> bool:
        """Tell whether this is a floating-point type, by PyTorch's name."""
        return self.is_float

    @property
    def is_signed(self) -> bool:
        """Tell whether there are negative numbers of this type."""
        return self.kind not in ("bool", "uint")

    @property
    def ends(self) -> tuple[int, int]:
        """Give the least and the largest number of an integer type: `np.iinfo` takes 4 us."""
        count = 1 << self.bits - (self.kind == "int")
        return -count if self.kind == "int" else 0, count - 1

    def to_real(self) -> "DType":
        """Give the type of the parts of complex numbers, by PyTorch's name."""
        return self.real

    def to_complex(self) -> "DType":
        """Give the type of complex numbers of such parts, by PyTorch's name."""
        return self.complex

    @property
    def is_differentiable(self) -> bool:
        """Tell whether gradients flow through this type: floats and complex numbers."""
        return self.kind in CONTINUOUS

    @property
    def real(self) -> "DType":
        """Type of the real and imaginary parts; a real type is its own."""
        return BY_NAME[f"float{self.bits // 2}"] if self.kind == "complex" else self

    @property
    def complex(self) -> "DType":
        """Type of complex numbers with parts of this type: complex64 for what is no float64."""
        return complex128 if self in (float64, complex128) else complex64

    @property
    def is_narrow_float(self) -> bool:
        """Tell whether this is a float of 8 or 16 bits: kernels carry and add those in float32."""
        return self.is_float and self.bits < 32

    @property
    def is_integer(self) -> bool:
        """Tell whether this is a signed or unsigned integer type (bool is not)."""
        return self.kind in ("int", "uint")

    @property
    def numpy(self) -> "np.dtype[Any]":
        """NumPy dtype of the values (`float32` for floats that NumPy lacks)."""
        return NUMPY[self.name]

    def __repr__(self) -> str:
        return shown(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype_named, (self.name,))


bool_: Final = DType("bool", "bool", 8, "bool")
uint8: Final = DType("uint8", "uint", 8, "uint8")
uint16: Final = DType("uint16", "uint", 16, "uint16")
uint32: Final = DType("uint32", "uint", 32, "uint32")
uint64: Final = DType("uint64", "uint", 64, "uint64")
int8: Final = DType("int8", "int", 8, "int8")
int16: Final = DType("int16", "int", 16, "int16")
int32: Final = DType("int32", "int", 32, "int32")
int64: Final = DType("int64", "int", 64, "int64")
float8_e4m3fn: Final = DType("float8_e4m3fn", "float8", 8, "uint8")
float8_e5m2: Final = DType("float8_e5m2", "float8", 8, "uint8")
float16: Final = DType("float16", "float", 16, "float16")
bfloat16: Final = DType("bfloat16", "float", 16, "uint16")
float32: Final = DType("float32", "float", 32, "float32")
float64: Final = DType("float64", "float", 64, "float64")
complex64: Final = DType("complex64", "complex", 64, "complex64")
complex128: Final = DType("complex128", "complex", 128, "complex128")
# programs that walk through dataclasses see no container in a dtype
delattr(DType, "__dataclass_fields__")

ALL = (bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64,
       float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64)  # fmt: skip
COMPLEX = (complex64, complex128)  # which no kernel knows: it computes with their parts
BY_NAME = {dtype.name: dtype for dtype in (*ALL, *COMPLEX)}
NUMPY = {
    name: np.dtype("float32" if dtype.is_float and "uint" in dtype.storage else dtype.storage)
    for name, dtype in BY_NAME.items()
}
ALIASES = {
    "float8_e4m3": float8_e4m3fn, "half": float16, "float": float32, "double": float64,
    "short": int16, "int": int32, "long": int64,
    "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
TENSOR_KINDS = {
    "FloatTensor": float32, "DoubleTensor": float64, "HalfTensor": float16,
    "BFloat16Tensor": bfloat16, "LongTensor": int64, "IntTensor": int32, "ShortTensor": int16,
    "CharTensor": int8, "ByteTensor": uint8, "BoolTensor": bool_,
}  # fmt: skip
NEW_FLOATS = [float32]  # what `default_float` answers


def default_float() -> DType:
    """Find the dtype of new floats: `picograd.set_default_dtype` chooses it."""
    return NEW_FLOATS[0]


def dtype_named(name: str) -> DType:
    """Find a dtype by its PyTorch name, such as "float32" or "half"."""
    found = BY_NAME.get(name) or ALIASES.get(name)
    if found is None:  # PyTorch's: "torch.float32", "torch.LongTensor", "torch.cuda.LongTensor"
        last = name.rpartition(".")[2]
        found = BY_NAME.get(last) or ALIASES.get(last) or TENSOR_KINDS.get(last)
    if found is None:
        raise DTypeError("dtype", f"unknown dtype {name!r}", f"use one of {', '.join(BY_NAME)}")
    return found


def kind_name(dtype: DType, is_on_gpu: bool) -> str:
    """Name tensors of a dtype as PyTorch does: "torch.cuda.LongTensor"."""
    kinds = {kind: name for name, kind in TENSOR_KINDS.items()}
    place = "cuda." if is_on_gpu else ""
    return f"torch.{place}{kinds.get(dtype, dtype.name)}"


OF_NUMPY: dict[Any, DType] = {}  # what NumPy's dtypes are, as far as somebody asked


def to_dtype(value: Any) -> DType:
    """Turn a DType, name, Python type or NumPy dtype into a DType."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return dtype_named(value)
    if isinstance(value, np.dtype) and (known := OF_NUMPY.get(value)) is not None:
        return known
    kind = getattr(value, "dtype", None) if isinstance(value, type) else None
    if isinstance(kind, DType):  # picograd.LongTensor
        return kind
    try:
        python = {bool: bool_, int: int64, float: float64, complex: complex128}.get(value)
        if python is None:
            python = OF_NUMPY[np.dtype(value)] = dtype_named(np.dtype(value).name)
        return python
    except (TypeError, ValueError):
        raise DTypeError("dtype", f"{value!r} is not a dtype", "pass picograd.float32") from None


def category(dtype: DType) -> int:
    """Rank of the category: bool 0, integer 1, float 2, complex 3."""
    return CATEGORIES[dtype.kind]


def promote(a: DType, b: DType) -> DType:
    """Find the dtype of `a op b` for two tensors: PyTorch's `promote_types` where that has one.

    PyTorch has none for uint16, 32 and 64 beside another integer or bool; here the narrowest that
    holds both, as the array API has it. Raises DTypeError for uint64 beside a signed integer, which
    has none, and for an 8-bit float beside another dtype.
    """
    if a is b:
        return a
    if "float8" in (a.kind, b.kind):
        raise DTypeError("promote", f"no common dtype for {a.name} and {b.name}", "cast one first")
    if a.is_complex or b.is_complex:
        return max(a.complex, b.complex, key=lambda d: d.bits)
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if a.is_float:
        both_half = a.bits == 16 and b.bits == 16
        return float32 if both_half else max(a, b, key=lambda d: d.bits)
    if a.kind == b.kind:
        return max(a, b, key=lambda d: d.bits)
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if unsigned.bits == 64:
        raise DTypeError("promote", f"no common dtype for {a.name} and {b.name}", "cast one first")
    return signed if signed.bits > unsigned.bits else BY_NAME[f"int{2 * unsigned.bits}"]


def scalar_dtype(value: Any, tensor: DType) -> DType:
    """Find the dtype of `tensor op value` for a Python bool, int, float or complex."""
    if isinstance(value, bool) or tensor.is_complex:
        return tensor
    if isinstance(value, complex):
        return tensor.complex if tensor.is_float else default_float().complex
    if isinstance(value, int):
        return tensor if category(tensor) >= 1 else int64
    return tensor if tensor.is_float else default_float()


def accumulate_dtype(dtype: DType) -> DType:
    """Find the dtype sums and contractions accumulate in: float32 for 8- and 16-bit floats."""
    return float32 if dtype.is_narrow_float else dtype
