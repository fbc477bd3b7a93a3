"""Products of 8-bit floats with scales on an NVIDIA GPU, beside torch._scaled_mm.

Operands lie along K, the result is bfloat16; scales of whole operands, or of rows. Values are
compared with float64 on NaN-poisoned results, twice for the same bits; rivals take turns, each a
CUDA graph of launches. A ratio is the median over rounds of (time of torch without fast sums /
time). All schedules are timed; `*` marks the chosen one, `fast` those that leave sums to the
tensor cores, which round them to 14 bits.

    python bench/gpu_scaled.py [--rounds 9] [--by-row] [--fast]
"""

import argparse
import statistics
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from gpu_contract import Rival, compile_cuda, in_turns, name_of, plan_call, target_here
from gpu_conv import leaf

from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import contract_cuda, contract_tma
from picograd.dtype import bfloat16, float8_e4m3fn, float32
from picograd.schedule.schedule import schedule

PROBLEMS = [
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 3072, 768),
    (8192, 768, 3072),
    (4096, 14336, 4096),
    (128, 4096, 4096),
]


def plan_of(problem, by_row, target):
    """Schedule (a * scale_a) @ (b * scale_b).T."""
    m, n, k = problem
    shapes = ((m, 1), (1, n)) if by_row else ((1, 1), (1, 1))
    a, b = leaf(float8_e4m3fn, m, k), leaf(float8_e4m3fn, n, k)
    scales = [leaf(float32, *shape) for shape in shapes]
    made = a.cast(float32).contract(b.cast(float32), ((0, 2), (1, 2), (0, 1)))
    for scale in scales:
        made = made.binary("mul", scale.broadcast_to(made.shape))
    plan = schedule([made.cast(bfloat16)], target)
    order = [a, b, *scales]
    return plan, [order.index(node) for node in plan.inputs]


def programs(plan, target, is_fast):
    """Write every schedule of the one kernel; by name."""
    (step,) = plan.steps
    found = {"*": contract_cuda.build(step.kernel, target)}
    candidates = contract_tma.candidates
    for each in contract_tma.SCHEDULES:
        if each.is_shared or not (each.is_summed or is_fast):
            continue
        contract_tma.candidates = lambda c, dtype, each=each: [each]
        name = name_of(each) + ("" if each.is_summed else " fast")
        found[name] = contract_cuda.build(step.kernel, target)
    contract_tma.candidates = candidates
    return {name: (linearize(tiles, target), step.slots) for name, tiles in found.items()}


def compare(problem, options, target):
    """Check and time every rival of one problem."""
    m, n, k = problem
    plan, roles = plan_of(problem, options.by_row, target)
    written = programs(plan, target, options.fast)
    with ThreadPoolExecutor() as pool:
        jobs = {
            name: pool.submit(compile_cuda, render(program), target.arch)
            for name, (program, _) in written.items()
        }
        built = {name: [(*written[name], job.result()[0])] for name, job in jobs.items()}
    kind = torch.float8_e4m3fn
    shapes = ((m, 1), (1, n)) if options.by_row else ((1, 1), (1, 1))
    sets = []
    for _ in range(max(2, min(24, int(150e6 // (m * k + n * k + 2 * m * n)) + 1))):
        a, b = (torch.randn(rows, k, device="cuda").to(kind) for rows in (m, n))
        sets.append([a, b, *(torch.rand(*shape, device="cuda") + 0.5 for shape in shapes)])
    rivals = []
    for name, is_fast in (("torch", False), ("torch fast", True)):
        call = partial(torch._scaled_mm, out_dtype=torch.bfloat16, use_fast_accum=is_fast)
        calls = [
            lambda a=a, b=b, sa=sa, sb=sb, call=call: call(a, b.t(), sa, sb)
            for a, b, sa, sb in sets
        ]
        rivals.append(Rival(name, calls))
    a, b, sa, sb = (x.double() for x in sets[0])
    expected = (a @ b.T) * sa * sb
    line = f"{m}x{n}x{k}"
    for name, kernels in built.items():
        made = [plan_call(plan, roles, kernels, s) for s in sets]
        run, (out,) = made[0]
        run()
        torch.cuda.synchronize()
        first = out.clone()
        run()
        torch.cuda.synchronize()
        error = ((first.double() - expected).norm() / expected.norm()).item()
        line += f" [{name} {error:.1e}{'' if torch.equal(first, out) else ' NOT THE SAME'}]"
        rivals.append(Rival(name, [run for run, _ in made]))
    for each in rivals[:2]:
        error = ((each.launches[0]().double() - expected).norm() / expected.norm()).item()
        line += f" [{each.name} {error:.1e}]"
    estimate = 2 * m * n * k / 1000e12 + 4e-6
    times = in_turns(rivals, options.rounds, 5e-3, estimate)
    theirs = statistics.median(times["torch"])
    line += f"\n    torch {theirs * 1e6:.1f} us {2 * m * n * k / theirs / 1e12:.0f} TFLOP/s"
    for name in times:
        ratios = sorted(t / o for t, o in zip(times["torch"], times[name]))
        line += f" | {name} {statistics.median(ratios):.3f} ({ratios[1]:.2f}..{ratios[-2]:.2f})"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--by-row", action="store_true")
    parser.add_argument("--fast", action="store_true")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__, "CUDA", torch.version.cuda, options)
    for problem in PROBLEMS:
        compare(problem, options, target_here())
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
