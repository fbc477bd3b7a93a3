"""Casts in kernels, between all pairs of dtypes: bit for bit what picograd/conversion.py says.

Every bit pattern of 8 and 16 bits is tried, and the values of nasty.py for wider dtypes.
"""

import numpy as np
import pytest
from nasty import ALL_BITS, nasty

from picograd import Tensor
from picograd.codegen.pipeline import generate
from picograd.conversion import convert, from_bits, to_bits
from picograd.dtype import ALL, DType, bool_, float32, float64
from picograd.engine.inspect import inspect
from picograd.runtime.nvrtc import compile_together
from picograd.target import cuda_target


def given(dtype: DType, device: str) -> tuple[Tensor, np.ndarray]:
    """Values to convert, on the device and on the host."""
    if dtype is bool_ or dtype.bits > 16:
        values = nasty(dtype)
        return Tensor(values, dtype=dtype, device=device), values
    bits = ALL_BITS[dtype.bits].view(dtype.storage)
    x = Tensor(bits, device=device)
    return x if x.dtype is dtype else x.bitcast(dtype), from_bits(bits, dtype)


def check(found: Tensor, values: np.ndarray, text: str) -> None:
    """Compare bits; NaN need only be NaN, but on the CPU its sign counts in 8 bits."""
    dtype = found.dtype
    is_missing = dtype.numpy != dtype.storage
    bits = (found.bitcast(dtype.storage) if is_missing else found).numpy()
    want = to_bits(convert(values, dtype), dtype)
    kept = np.ones(want.shape, bool)
    if dtype.kind == "float" or (dtype.is_float and found.device != "cpu"):
        kept = ~np.isnan(from_bits(want, dtype))
        np.testing.assert_array_equal(np.isnan(from_bits(bits, dtype)), ~kept, text)
    unsigned = f"uint{dtype.bits}"
    np.testing.assert_array_equal(bits.view(unsigned)[kept], want.view(unsigned)[kept], text)


@pytest.mark.parametrize("source", ALL, ids=repr)
def test_casts(source: DType, device: str) -> None:
    x, values = given(source, device)
    results = [x.cast(target) for target in ALL if target is not source]
    Tensor.realize(*results)
    for found in results:
        check(found, values, f"{source.name} to {found.dtype.name}")


def test_rows_that_are_no_multiple_of_a_vector(device: str) -> None:
    """The lanes that vectors leave over are converted by other code."""
    x = nasty(float64)[:37]
    for target in (d for d in ALL if d.is_narrow_float):
        check(Tensor(x, device=device)[1:].cast(target), x[1:], target.name)


def test_cuda_c_compiles() -> None:
    target, x = cuda_target("sm_90a"), Tensor(nasty(float32), device="cpu").node
    roots = [x.cast(dtype).cast(other) for dtype in ALL for other in (float64, bool_)]
    kernels = [inspect([root]).kernels[0] for root in roots if root.inputs[0].dtype is not float32]
    codes = {code.entry: code for code in (generate(k.kernel, target) for k in kernels)}
    assert compile_together(list(codes.values()), target.arch) is not None
