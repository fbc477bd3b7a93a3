"""Apple's GPUs, which picograd has no backend for."""


def is_available() -> bool:
    """Tell that there is no such device.

    >>> import picograd
    >>> picograd.backends.mps.is_available()
    False
    """
    return False


def is_built() -> bool:
    """Tell that there is no such backend."""
    return False
