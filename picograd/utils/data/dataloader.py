"""Loaders, where PyTorch's programs import them from."""

from picograd.nn.collate import default_collate
from picograd.nn.loader import DataLoader

__all__ = ["DataLoader", "default_collate"]
