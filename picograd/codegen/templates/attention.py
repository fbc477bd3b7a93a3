"""Attention template: products of weights made of scores, which are nowhere in memory.

Ancestors' list: M12.
"""

from picograd.codegen.templates import attention_cpu, attention_cuda
from picograd.codegen.tile import TileKernel
from picograd.schedule.loop import Kernel
from picograd.target import Target


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write an attention kernel for the target."""
    if target.has_blocks:
        return attention_cuda.build(kernel, target)
    return attention_cpu.build(kernel, target)
