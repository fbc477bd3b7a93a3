"""Contract template: matrix products and convolutions, with whatever was fused behind them."""

from picograd.codegen.templates import contract_cpu
from picograd.codegen.tile import TileKernel
from picograd.helpers import on_demand
from picograd.schedule.loop import Kernel
from picograd.target import Target

build_few = on_demand("picograd.codegen.templates.contract_few", "build")
build_cuda = on_demand("picograd.codegen.templates.contract_cuda", "build")


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a contract or conv kernel for the target."""
    if target.has_blocks:
        few = build_few(kernel, target) if kernel.hero == "contract" else None
        return few or build_cuda(kernel, target)
    return contract_cpu.build(kernel, target)
