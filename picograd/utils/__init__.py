"""PyTorch's `torch.utils`: data and checkpoints, under the names programs import them from."""

from picograd.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
