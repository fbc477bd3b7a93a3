"""Contraction schedules on an NVIDIA GPU beside torch.matmul, without the engine.

Every schedule that the template offers for a problem is compiled, checked against float64 on
NaN-poisoned output, run twice for bitwise equality, and timed: rivals take turns, each a CUDA graph
of launches that rotate over operands larger than the L2 cache. A ratio is the median over rounds.

    python bench/gpu_contract.py [--problems squares layouts ...] [--rounds 9] [--burst] [--old]

`--burst` samples 1.5 ms after 8 ms of idleness, at full clock; else samples of 6 ms follow one
another, which heats the card as training does. `--old` times the schedule without boxes too.

Ancestors' list: M5.
"""

import argparse
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from cuda.bindings import driver

sys.path.insert(0, str(Path(__file__).parents[1] / "test" / "codegen"))

from cuda_tools import compile_cuda, matmul_kernel

from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import contract_cuda, contract_tma
from picograd.codegen.tile_pipeline import Pipeline
from picograd.dtype import to_dtype
from picograd.runtime.driver import Driver
from picograd.runtime.tensor_maps import EncodedMap
from picograd.target import cuda_target

MAX_DYNAMIC_SHARED = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
L2_BYTES = 3 * 50e6
NT, NN, TN, TT = ("mk", "nk"), ("mk", "kn"), ("km", "kn"), ("km", "nk")
PROBLEMS = {
    "squares": [(n, n, n, NT) for n in (1024, 2048, 4096, 8192, 16384)],
    "layouts": [(4096, 4096, 4096, orders) for orders in (NN, TN, TT)],
    "gpt2": [
        (8192, 50304, 768, NT),
        (8192, 2304, 768, NT),
        (8192, 768, 768, NT),
        (8192, 3072, 768, NT),
        (8192, 768, 3072, NT),
        (8192, 768, 3072, NN),
        (3072, 768, 8192, TN),
        (768, 768, 8192, TN),
    ],
    "gradients": [  # of the weights of GPT-2, of 16 x 1,024 tokens
        (3072, 768, 16384, TN),
        (768, 3072, 16384, TN),
        (2304, 768, 16384, TN),
        (768, 768, 16384, TN),
    ],
    "small": [
        (256, 256, 256, NT),
        (512, 512, 512, NT),
        (1000, 1000, 1000, NT),
        (64, 1024, 1024, NT),
        (1, 4096, 4096, NT),
        (16, 4096, 4096, NN),
        (8, 14336, 4096, NT),
        (2304, 768, 8192, TN),
        (768, 3072, 8192, TN),
        (4096, 4096, 4088, NT),
        (6000, 6000, 6000, NT),
    ],
    "others": [
        (4096, 4096, 64, NT),
        (4096, 14336, 4096, NT),
        (128, 4096, 4096, NT),
        (512, 4096, 4096, NT),
        (1536, 1536, 1536, NT),
        (3000, 2504, 1032, NT),
        (4096, 64, 4096, NT),
    ],
}


@dataclass
class Rival:
    """One way to compute a problem: `launches` do so on one set of operands each."""

    name: str
    launches: list
    graph: object = None


def must(result):
    """Raise on a driver error, else give the value."""
    status, *values = result
    assert int(status) == 0, status
    return values[0] if values else None


def target_here():
    """Describe the GPU."""
    major, minor = torch.cuda.get_device_capability()
    count = torch.cuda.get_device_properties(0).multi_processor_count
    return cuda_target(f"sm_{major}{minor}" + ("a" if major >= 9 else ""), count)


def programs(kernel, target, options):
    """Write the schedules of boxes, and the one without; by name."""
    found = {}
    for schedule in (*contract_tma.SCHEDULES, None):
        tiles = contract_cuda.build(kernel, target, only(schedule))
        if isinstance(tiles.parts[0].steps[0], contract_tma.Persistent):
            found[name_of(schedule)] = linearize(tiles, target)
        elif schedule is None and (options.old or not found):
            found["old"] = linearize(tiles, target)
    return found


def name_of(schedule):
    """Name a schedule: teams x m x n; s where blocks share tiles, c where clusters do."""
    m, n = schedule.block
    return f"{schedule.teams}x{m}x{n}" + "s" * schedule.is_shared + "c" * (schedule.together - 1)


def only(wanted):
    """Accept one schedule of boxes, and all without."""
    return lambda schedule: schedule == wanted or not isinstance(schedule, contract_tma.BoxSchedule)


def chosen_of(kernel, target):
    """Name the schedule that the template chooses."""
    tiles = contract_cuda.build(kernel, target)
    step = tiles.parts[0].steps[0]
    if not isinstance(step, contract_tma.Persistent):
        return "old"
    m, n = tiles.parts[0].tiles[0].shape
    (pipeline,) = (each for each in step.body if isinstance(each, Pipeline))
    together = max(each.together for each in pipeline.produce)
    return f"{step.teams.count}x{m}x{n}" + "s" * (step.shares is not None) + "c" * (together - 1)


def loaded(program, cubin):
    """Load a compiled program."""
    module = must(driver.cuModuleLoadData(cubin))
    function = must(driver.cuModuleGetFunction(module, program.name.encode()))
    must(driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, program.shared_bytes))
    return function


def launcher(program, function, tensors):
    """A function that launches the kernel once on torch's current stream."""
    spaces = [torch.zeros(size, dtype=torch.uint8, device="cuda") for size, _ in program.workspaces]
    addresses = [t.data_ptr() for t in tensors]
    cells = np.array([*addresses, *(s.data_ptr() for s in spaces)], np.uint64)
    maps = [EncodedMap(Driver(driver), tensor, tensor.slot) for tensor in program.tensors]
    for each in maps:
        each.update(addresses[each.slot])
    places = [*(cells.ctypes.data + 8 * n for n in range(len(cells))), *(m.address for m in maps)]
    pointers = np.array(places, np.uint64)

    def launch(keep=(spaces, cells, maps)):
        grid, block = (program.tasks, 1, 1), (program.threads, 1, 1)
        stream = torch.cuda.current_stream().cuda_stream
        place = pointers.ctypes.data
        must(driver.cuLaunchKernel(function, *grid, *block, program.shared_bytes, stream, place, 0))

    return launch


def plan_call(plan, roles, built, given):
    """Make what launches all kernels of a plan, and the tensors that hold the results."""
    held, inputs = [], iter(roles)
    for slot in plan.slots:
        if slot.kind == "input":
            held.append(given[next(inputs)])
        else:
            kind = getattr(torch, slot.dtype.name)
            poison = float("nan") if kind.is_floating_point else torch.iinfo(kind).max
            held.append(torch.full((slot.size,), poison, device="cuda", dtype=kind))
    launches = [
        launcher(program, loaded(program, cubin), [held[n] for n in slots])
        for program, slots, cubin in built
    ]

    def run():
        for launch in launches:
            launch()

    run.held, run.launches = held, launches  # launches know addresses alone
    return run, [held[n].reshape(plan.slots[n].shape) for n in plan.outputs]


def capture(rival, seconds, estimate):
    """Capture launches that take about so many seconds."""
    count = max(1, round(seconds / estimate))
    rival.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(rival.graph):
        for number in range(count):
            rival.launches[number % len(rival.launches)]()
    return count


def sample(rival, count, idle):
    """Time one replay; seconds a launch."""
    if idle:
        torch.cuda.synchronize()
        time.sleep(idle)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    rival.graph.replay()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3 / count


def in_turns(rivals, rounds, seconds, estimate, idle=0):
    """Time rivals in turns, in samples of so many seconds; seconds a launch, by name.

    One more round, the first, warms up and is not given.
    """
    count = {rival.name: capture(rival, seconds, estimate) for rival in rivals}
    times = {rival.name: [] for rival in rivals}
    for number in range(rounds + 1):
        for rival in rivals if number % 2 else reversed(rivals):
            times[rival.name].append(sample(rival, count[rival.name], idle))
    return {name: found[1:] for name, found in times.items()}


def show_kernels(plan, run, seconds, estimate):
    """Print how long each kernel of a plan takes by itself."""
    for step, launch in zip(plan.steps, run.launches, strict=True):
        rival = Rival("kernel", [launch])
        count = capture(rival, seconds, estimate)
        taken = statistics.median(sample(rival, count, 0) for _ in range(5))
        print(f"    {step.kernel.name:44} {taken * 1e6:7.1f} us", flush=True)


def compiled_all(texts, target):
    """Compile texts, each once; cubins by text."""
    texts = list(dict.fromkeys(texts))
    with ThreadPoolExecutor() as pool:
        made = pool.map(lambda text: compile_cuda(text, target.arch)[0], texts)
        return dict(zip(texts, made, strict=True))


def operand_sets(m, n, k, orders, dtype):
    """Random operands in their orders in memory, and outputs: more bytes than the cache has."""
    size = dtype.itemsize * (m * k + k * n + m * n)
    for _ in range(max(2, min(24, int(L2_BYTES // size) + 1))):
        a, b = (torch.randn(*shape, device="cuda").to(dtype) for shape in ((m, k), (k, n)))
        left = a if orders[0] == "mk" else a.t().contiguous()
        right = b if orders[1] == "kn" else b.t().contiguous()
        yield left, right, torch.empty(m, n, device="cuda", dtype=dtype)


def product(left, right, out, orders):
    """Multiply with torch."""
    a = left if orders[0] == "mk" else left.t()
    b = right if orders[1] == "kn" else right.t()
    return torch.matmul(a, b, out=out)


def error_of(launch, tensors, orders):
    """Run on poisoned output, twice; relative error against float64, and is it the same twice."""
    left, right, out = tensors
    a = left if orders[0] == "mk" else left.t()
    b = right if orders[1] == "kn" else right.t()
    expected = a.double() @ b.double()
    out.fill_(float("nan"))
    launch()
    first = out.clone()
    out.fill_(float("nan"))
    launch()
    torch.cuda.synchronize()
    return ((out.double() - expected).norm() / expected.norm()).item(), torch.equal(first, out)


def compare(problem, built, chosen, options):
    """Check and time every rival of one problem."""
    m, n, k, orders = problem
    torch_dtype = getattr(torch, options.dtype)
    sets = list(operand_sets(m, n, k, orders, torch_dtype))
    rivals = [Rival("torch", [lambda s=s: product(*s, orders) for s in sets])]
    line = f"{m}x{n}x{k} {'/'.join(orders)}"
    for name, (program, cubin) in built.items():
        function = loaded(program, cubin)
        rivals.append(Rival(name, [launcher(program, function, s) for s in sets]))
        error, same = error_of(rivals[-1].launches[0], sets[0], orders)
        if not (error < 4e-3 and same):
            line += f"  WRONG {name}: error {error:.1e}, same {same}"
    estimate = 2 * m * n * k / 500e12 + 4e-6
    seconds, idle = (1.5e-3, 8e-3) if options.burst else (6e-3, 0)
    times = in_turns(rivals, options.rounds, seconds, estimate, idle)
    theirs = statistics.median(times["torch"])
    line += f"  torch {theirs * 1e6:.1f} us {2 * m * n * k / theirs / 1e12:.0f} TFLOP/s |"
    found = {}
    for name in built:
        ratios = sorted(t / o for t, o in zip(times["torch"], times[name]))
        middle = found[name] = statistics.median(ratios)
        mark = "*" if name == chosen else ""
        line += f"  {mark}{name} {middle:.3f} ({ratios[1]:.2f}..{ratios[-2]:.2f})"
    print(line, flush=True)
    return {"problem": line, "times": times, "chosen": chosen, "ratio": found.get(chosen)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    parser.add_argument("--burst", action="store_true")
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    start = time.perf_counter()
    target = target_here()
    if options.dtype == "float32":  # TF32 on both sides
        target = replace(target, tf32=True)
        torch.backends.cuda.matmul.allow_tf32 = True
    print(torch.cuda.get_device_name(), torch.__version__, "CUDA", torch.version.cuda, options)
    problems = [each for name in options.problems for each in PROBLEMS[name]]
    dtype = to_dtype(options.dtype)
    kernels = [matmul_kernel(m, n, k, dtype, *orders) for m, n, k, orders in problems]
    written = [programs(kernel, target, options) for kernel in kernels]
    with ThreadPoolExecutor() as pool:
        jobs = [
            {name: pool.submit(compile_cuda, render(p), target.arch) for name, p in each.items()}
            for each in written
        ]
        built = [
            {name: (each[name], job.result()[0]) for name, job in waiting.items()}
            for each, waiting in zip(written, jobs)
        ]
    print(f"compiled in {time.perf_counter() - start:.1f} s")
    results = []
    for problem, kernel, each in zip(problems, kernels, built):
        if time.perf_counter() - start < options.seconds:
            results.append(compare(problem, each, chosen_of(kernel, target), options))
            torch.cuda.empty_cache()
    ratios = [each["ratio"] for each in results if each["ratio"]]
    print(f"chosen: geomean {statistics.geometric_mean(ratios):.3f}, worst {min(ratios):.3f}")
    if options.json:
        Path(options.json).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
