"""Contract template: matrix products and convolutions, with whatever was fused behind them."""

from picograd.codegen.templates import contract_cpu, contract_cuda
from picograd.codegen.tile import TileKernel
from picograd.errors import check
from picograd.schedule.loop import Kernel
from picograd.target import Target


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a contract or conv kernel for the target."""
    if target.language == "cuda":
        return contract_cuda.build(kernel, target)
    check(target.language == "llvm", f"no contract template for {target.language}")
    return contract_cpu.build(kernel, target)
