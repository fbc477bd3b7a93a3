"""What is known of the processor."""

from picograd.runtime.llvm import host


def get_cpu_capability() -> str:
    """Name the processor that kernels are generated for."""
    return host().cpu
