"""PyTorch's `torch.utils`: data and checkpoints, under the names programs import them from."""

from picograd.utils import checkpoint, data
from picograd.utils.swap import swap_tensors

__all__ = ["checkpoint", "data", "swap_tensors"]
