"""How tensors print: values as NumPy shows them, shortened, with dtype and device."""

from typing import Any

import numpy as np

EDGE = 3  # elements shown at each end of an axis of a large tensor, as PyTorch
LARGE = 1000  # more elements than this are shortened, as PyTorch


def format_array(array: "np.ndarray[Any, Any]", indent: int) -> str:
    """Format values; lines after the first are indented by `indent` columns."""
    if array.size == 0:
        return "[]"
    text = np.array2string(
        array, separator=", ", precision=4, threshold=LARGE, edgeitems=EDGE, max_line_width=80
    )
    return text.replace("\n", "\n" + " " * indent)


def format_tensor(
    array: "np.ndarray[Any, Any]", dtype: str, device: str, requires_grad: bool
) -> str:
    """Format a tensor: `Tensor([1., 2.], dtype=float32, device='cpu')`."""
    head = "Tensor("
    parts = [format_array(array, len(head))]
    if array.size == 0 and array.shape != (0,):
        parts.append(f"shape={array.shape}")
    parts += [f"dtype={dtype}", f"device='{device}'"]
    if requires_grad:
        parts.append("requires_grad=True")
    return head + ", ".join(parts) + ")"


def format_traced(shape: tuple[int, ...], dtype: str, device: str) -> str:
    """Format a tensor whose value is not known while jit traces."""
    return f"Tensor(<traced>, shape={shape}, dtype={dtype}, device='{device}')"
