"""Apple's GPUs under torch.mps's names: there are none here, so nothing waits."""

from picograd.cuda import initial_seed, manual_seed, seed

__all__ = ["initial_seed", "manual_seed", "seed"]


def is_available() -> bool:
    """Tell that there is no such device."""
    return False


def device_count() -> int:
    """Count such devices: none."""
    return 0


def synchronize() -> None:
    """Wait for nothing."""


def empty_cache() -> None:
    """Give nothing back."""


def current_allocated_memory() -> int:
    """Count the bytes that tensors occupy there: none."""
    return 0
