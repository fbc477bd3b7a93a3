"""PyTorch's types that programs name: shapes, layouts of memory, tensors by dtype.

`LongTensor([1, 2])` makes a tensor, `isinstance(x, FloatTensor)` knows one.
"""

from typing import Any

from picograd.dtype import DType, dtype_named
from picograd.engine.backends import default_device
from picograd.helpers import shown
from picograd.tensor.core.sizes import Size as Size
from picograd.tensor.tensor import Tensor


class TensorKind(type):
    """This class makes tensors of one dtype when it is called, and knows them."""

    dtype: DType
    place: str

    def __call__(cls, *data: Any, device: Any = None) -> Any:
        """Make a tensor of data, or of zeros with the sizes that ints, or a shape, are."""
        where = cls.place or device
        if data and type(data[0]) is Size:
            return Tensor.zeros(data[0], dtype=cls.dtype, device=where)
        if all(isinstance(each, int) for each in data):
            return Tensor.zeros(*(data or (0,)), dtype=cls.dtype, device=where)
        if isinstance(data[0], cls):
            return Tensor(data[0])
        return Tensor(data[0], dtype=cls.dtype, device=where)

    def __instancecheck__(cls, instance: Any) -> bool:
        """Tell whether something is a tensor of the dtype, and on the device."""
        if not isinstance(instance, Tensor) or instance.dtype is not cls.dtype:
            return False
        here = ("cpu", default_device().partition(":")[0])  # where such tensors are made
        return instance.device.type in ((cls.place,) if cls.place else here)

    def __repr__(cls) -> str:
        return f"<class '{shown('cuda.' * bool(cls.place) + cls.__name__)}'>"


def kind_named(name: str, place: str = "") -> Any:
    """Make the class of a name such as "LongTensor"."""
    dtype = dtype_named(name)
    doc = f"This class is a tensor of {dtype.name}."
    return TensorKind(name, (), {"dtype": dtype, "place": place, "__doc__": doc})


FloatTensor = kind_named("FloatTensor")
DoubleTensor = kind_named("DoubleTensor")
HalfTensor = kind_named("HalfTensor")
BFloat16Tensor = kind_named("BFloat16Tensor")
LongTensor = kind_named("LongTensor")
IntTensor = kind_named("IntTensor")
ShortTensor = kind_named("ShortTensor")
CharTensor = kind_named("CharTensor")
ByteTensor = kind_named("ByteTensor")
BoolTensor = kind_named("BoolTensor")


class memory_format:
    """This class names an order of elements in memory, which picograd chooses by itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return shown(self.name)


class layout(memory_format):
    """This class names a way to keep a tensor: all here keep every element."""


contiguous_format = legacy_contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
preserve_format = memory_format("preserve_format")
strided = layout("strided")
# what tensors of PyTorch may be and those here never are
sparse_coo, sparse_csr = layout("sparse_coo"), layout("sparse_csr")
sparse_csc, sparse_bsr = layout("sparse_csc"), layout("sparse_bsr")
sparse_bsc, jagged = layout("sparse_bsc"), layout("jagged")
