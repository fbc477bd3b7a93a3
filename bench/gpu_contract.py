"""Contraction schedules on an NVIDIA GPU against torch.matmul, without the engine.

Every schedule that the template offers for a problem is compiled, checked against float64 on
NaN-poisoned output, run twice for bitwise equality, and timed by CUDA events over REPEATS launches.

    python bench/gpu_contract.py [--sizes 1024 4096] [--dtypes bfloat16 float32]
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from cuda.bindings import driver

sys.path.insert(0, str(Path(__file__).parents[1] / "test" / "codegen"))

from cuda_tools import compile_cuda, matmul_kernel

from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import contract_cuda
from picograd.dtype import to_dtype
from picograd.target import cuda_target

REPEATS = 20
MAX_DYNAMIC_SHARED = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def must(result):
    """Raise on a driver error, else give the value."""
    status, *values = result
    assert int(status) == 0, status
    return values[0] if values else None


def schedules(kernel, target):
    """Every schedule the template would consider, in its order."""
    seen = []
    contract_cuda.build(kernel, target, lambda s: seen.append(s) or True)
    return seen


def loaded(kernel, target, wanted):
    """Compile one schedule of a kernel and load it."""
    program = linearize(contract_cuda.build(kernel, target, lambda s: s == wanted), target)
    cubin, log = compile_cuda(render(program), target.arch)
    module = must(driver.cuModuleLoadData(cubin))
    function = must(driver.cuModuleGetFunction(module, kernel.name.encode()))
    must(driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, program.shared_bytes))
    return program, function, log


def launcher(program, function, tensors):
    """A function that launches the kernel once on torch's stream."""
    spaces = [torch.zeros(size, dtype=torch.uint8, device="cuda") for size, _ in program.workspaces]
    cells = np.array([t.data_ptr() for t in (*tensors, *spaces)], np.uint64)
    pointers = np.array([cells.ctypes.data + 8 * n for n in range(len(cells))], np.uint64)
    stream = torch.cuda.current_stream().cuda_stream

    def launch(keep=(spaces, cells)):
        grid, block = (program.tasks, 1, 1), (program.threads, 1, 1)
        shared = program.shared_bytes
        place = pointers.ctypes.data
        must(driver.cuLaunchKernel(function, *grid, *block, shared, stream, place, 0))

    return launch


def seconds(run):
    """Median time of one run, from REPEATS in a row."""
    times = []
    for _ in range(7):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(REPEATS):
            run()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / REPEATS / 1e3)
    return sorted(times)[len(times) // 2]


def compare(size, name, orders):
    """Check and time every schedule of one problem."""
    major, minor = torch.cuda.get_device_capability()
    target = cuda_target(f"sm_{major}{minor}" + ("a" if major >= 9 else ""))
    a, b = (torch.randn(size, size, device="cuda").to(getattr(torch, name)) for _ in range(2))
    left = a if orders[0] == "mk" else a.t().contiguous()
    right = b if orders[1] == "kn" else b.t().contiguous()
    expected = a.double() @ b.double()
    out = torch.empty_like(a)
    theirs = seconds(lambda: torch.matmul(a, b, out=out))
    print(f"{name} {size}^3 {orders}: torch {2 * size**3 / theirs / 1e12:.1f} TFLOP/s")
    kernel = matmul_kernel(size, size, size, to_dtype(name), *orders)
    for schedule in schedules(kernel, target):
        program, function, log = loaded(kernel, target, schedule)
        out.fill_(float("nan"))
        launch = launcher(program, function, (left, right, out))
        launch()
        first = out.clone()
        launch()
        torch.cuda.synchronize()
        error = ((out.double() - expected).norm() / expected.norm()).item()
        same = torch.equal(first, out)
        ours = seconds(launch)
        rate = 2 * size**3 / ours / 1e12
        kind = f"{type(schedule).__name__} {schedule.block}"
        print(f"  {kind}: {rate:.1f} TFLOP/s, {theirs / ours:.2f}x, error {error:.1e}, same {same}")
        assert error < 1e-2 and same, log


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", nargs="+", type=int, default=[1024, 4096])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    for size in options.sizes:
        for dtype in options.dtypes:
            for orders in (("mk", "kn"), ("mk", "nk"), ("km", "kn")):
                compare(size, dtype, orders)


if __name__ == "__main__":
    main()
