"""Whole products on an NVIDIA GPU as they are scheduled, copies of operands included, beside torch.

A plan is scheduled as inside of a network and all its kernels are launched; torch.matmul is timed
eager and, with `--compiled`, compiled, which pads operands too. Values are compared with float64
on NaN-poisoned results, twice for the same bits; rivals take turns, each a CUDA graph of launches.
A ratio is the median over rounds.

    python bench/gpu_products.py [--problems ragged gpt2 llama long] [--rounds 9] [--compiled]

`--unpacked` times plans that copy no operand too, `--parts` each kernel by itself.
"""

import argparse
import statistics
from concurrent.futures import ThreadPoolExecutor

import torch
from gpu_contract import (
    Rival,
    compile_cuda,
    error_of,
    in_turns,
    operand_sets,
    plan_call,
    target_here,
)
from gpu_contract import product as torch_product
from gpu_conv import leaf

from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import TEMPLATES
from picograd.codegen.render.cuda import render
from picograd.dtype import to_dtype
from picograd.schedule import schedule as stages

NT, NN, TN = ("mk", "nk"), ("mk", "kn"), ("km", "kn")
GPT2 = (2304, 768), (768, 768), (3072, 768), (768, 3072)  # outputs and inputs of layers
LLAMA = (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)
FEW_SIDES = (128, 784), (256, 256), (1024, 1024), (4096, 4096), (4096, 14336), (50257, 768)
FEW = 128  # rows from which gradients are timed too


def layers_of(sizes, rows):
    """List products of layers: forward, then the gradients of their inputs and weights."""
    for m in rows:
        for n, k in sizes:
            yield m, n, k, NT
            if m >= FEW:
                yield m, k, n, NN
                yield n, k, m, TN


PROBLEMS = {
    "ragged": [
        (4095, 4093, 4097, NT),
        (4095, 4093, 4097, NN),
        (1024, 1024, 777, NT),
        (1000, 1000, 1000, NT),
        (4096, 4096, 4088, NT),
        (3000, 2504, 1032, NT),
        (6000, 6000, 6000, NT),
        (8192, 50257, 768, NT),
        (8192, 768, 50257, NN),
        (50257, 768, 8192, TN),
    ],
    "few": [
        *((m, n, k, o) for n, k in FEW_SIDES for m in (1, 2, 4, 8) for o in (NT, NN)),
        (1, 1, 3_000_000, NT),
        (3, 5, 300_000, NT),
        (8, 8, 65_536, NT),
        (100_000, 3, 64, NT),
        (65_536, 8, 1024, NT),
        (65_536, 8, 1024, NN),
        (768, 3, 8192, TN),
        (1, 4093, 4097, NT),
        (1, 4093, 4097, NN),
    ],
    "gpt2": list(layers_of((*GPT2, (50304, 768)), (1, 8, 128, 1024, 8192))),
    "llama": list(layers_of(LLAMA, (1, 8, 128, 1024, 8192))),
    "long": [  # sums of few results
        *((m, 768, 50304, NN) for m in (128, 256, 512, 1024, 2048, 4096)),
        *((m, 1024, 8192, NT) for m in (64, 128)),
        *((n, n, 8192, TN) for n in (512, 768, 1024)),
        *((n, n, 65536, TN) for n in (64, 192, 256)),
        *((64, n, 200704, TN) for n in (147, 576)),
        (256, 1024, 16384, NT),
        (512, 512, 4096, NT),
        (1024, 1024, 16384, NT),
        (256, 2048, 200704, TN),
    ],
    "squares": [(n, n, n, NT) for n in (1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384)],
}


def plan_of(problem, dtype, target, is_packed=True):
    """Schedule one product; its operands in the order of the inputs of the plan."""
    m, n, k, orders = problem
    sizes = {"m": m, "n": n, "k": k}
    sides = [leaf(dtype, *(sizes[c] for c in order)) for order in orders]
    labels = tuple(tuple("mnk".index(c) for c in order) for order in orders)
    before = stages.REWRITES
    if not is_packed:
        stages.REWRITES = tuple(each for each in before if each is not stages.repack)
    plan = stages.schedule([sides[0].contract(sides[1], (*labels, (0, 1)))], target)
    stages.REWRITES = before
    return plan, [sides.index(node) for node in plan.inputs]


def build(plan, target, pool):
    """Compile the kernels of a plan; each as it is wanted."""

    def made(program, slots):
        return program, slots, compile_cuda(render(program), target.arch)[0]

    programs = [
        linearize(TEMPLATES[step.kernel.hero](step.kernel, target), target) for step in plan.steps
    ]
    return [pool.submit(made, p, step.slots) for p, step in zip(programs, plan.steps)]


def launcher(plan, roles, built, tensors):
    """Make what computes a product into its third tensor."""
    run, (out,) = plan_call(plan, roles, built, tensors[:2])

    def launch(keep=run):
        keep()

    return launch, out, run.launches


def prepare(problem, options, target, pool):
    """Plan a problem, and begin to compile its kernels; by name."""
    found = {}
    for name in ("ours", "unpacked")[: 1 + options.unpacked]:
        plan, roles = plan_of(problem, to_dtype(options.dtype), target, name == "ours")
        found[name] = plan, roles, build(plan, target, pool)
    return found


def compare(problem, prepared, options):
    """Check and time every rival of one problem; give the ratio to the best of torch's."""
    m, n, k, orders = problem
    kind = getattr(torch, options.dtype)
    sets = list(operand_sets(m, n, k, orders, kind))
    rivals = [Rival("torch", [lambda s=s: torch_product(*s, orders) for s in sets])]
    if options.compiled:
        compiled = torch.compile(lambda a, b: torch_product_new(a, b, orders), dynamic=False)
        rivals.append(Rival("compiled", [lambda s=s: compiled(*s[:2]) for s in sets]))
        rivals[1].launches[0]()
    line = f"{m}x{n}x{k} {'/'.join(orders)}"
    for name, (plan, roles, jobs) in prepared.items():
        built = [job.result() for job in jobs]
        made = [launcher(plan, roles, built, s) for s in sets]
        rivals.append(Rival(name, [launch for launch, *_ in made]))
        if options.parts:
            for number in range(len(built)):
                kernels = [launches[number] for *_, launches in made]
                rivals.append(Rival(f"{name} kernel {number}", kernels))
        error, same = error_of(made[0][0], (*sets[0][:2], made[0][1]), orders)
        line += f" [{name}: {len(built)} kernels, error {error:.1e}]"
        if not (error < 4e-3 and same):
            line += f" WRONG {name}: same {same}"
    estimate = 2 * m * n * k / 400e12 + 6e-6
    times = in_turns(rivals, options.rounds, 4e-3, estimate)
    best = [min(found) for found in zip(times["torch"], times.get("compiled", times["torch"]))]
    for name, found in times.items():
        middle = statistics.median(found)
        ratios = sorted(t / o for t, o in zip(times["torch"], found))
        line += f" | {name} {middle * 1e6:.1f} us {statistics.median(ratios):.3f}"
        line += f" ({ratios[1]:.2f}..{ratios[-2]:.2f})"
    print(line, flush=True)
    return statistics.median(b / o for b, o in zip(best, times["ours"]))


def torch_product_new(a, b, orders):
    """Multiply with torch, into a new tensor."""
    left = a if orders[0] == "mk" else a.t()
    return left @ (b if orders[1] == "kn" else b.t())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=["ragged"])
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--unpacked", action="store_true")
    parser.add_argument("--parts", action="store_true")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__, "CUDA", torch.version.cuda, options)
    target = target_here()
    for name in options.problems:
        with ThreadPoolExecutor() as pool:
            given = [(each, prepare(each, options, target, pool)) for each in PROBLEMS[name]]
        ratios = []
        for problem, prepared in given:
            torch.compiler.reset()
            ratios.append(compare(problem, prepared, options))
            torch.cuda.empty_cache()
        middle = statistics.geometric_mean(ratios)
        print(f"{name}: geomean {middle:.3f}, worst {min(ratios):.3f} of the best", flush=True)


if __name__ == "__main__":
    main()
