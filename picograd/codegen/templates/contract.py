"""Contract template: matrix products and convolutions, with whatever was fused behind them."""

from picograd.codegen.templates import contract_cpu, contract_cuda, contract_few
from picograd.codegen.tile import TileKernel
from picograd.schedule.loop import Kernel
from picograd.target import Target


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a contract or conv kernel for the target."""
    if target.has_blocks:
        few = contract_few.build(kernel, target) if kernel.hero == "contract" else None
        return few or contract_cuda.build(kernel, target)
    return contract_cpu.build(kernel, target)
