"""Attention on an NVIDIA GPU beside PyTorch's backends, without the engine: forward and gradients.

Plans are those of `scaled_dot_product_attention`, and of its gradients by query, key and value.
All their kernels are launched. PyTorch runs each of its backends, forced; the best counts. Rivals
take turns, each a CUDA graph of launches; a ratio is the median over rounds. `--check` compares
values instead, with attention in float64, on NaN-poisoned results, twice. With `--tf32` both sides
may read 10 bits of float32 mantissas, and `--check` is of float32 alone.

    python bench/gpu_attention.py [--check] [--modes forward both] [--heads 64 128]
        [--masks causal full boolean] [--lengths 512 1024 ...] [--dtype bfloat16] [--tf32]
        [--few 1] [--kernels] [--rounds 9]
"""

import argparse
import statistics
import time
from dataclasses import dataclass, replace
from itertools import product

import torch
from gpu_contract import Rival, compiled_all, in_turns, plan_call, show_kernels, target_here
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as torch_attention

import picograd.nn.functional as F
from picograd import Tensor
from picograd.buffer import Storage
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import TEMPLATES
from picograd.codegen.render.cuda import render
from picograd.dtype import bool_, to_dtype
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule

TOKENS, HIDDEN = 16384, 2048
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
OF_FLOAT32 = {"efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
TOLERANCES = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-5}
TF32_TOLERANCE = 3e-3


@dataclass(frozen=True)
class Case:
    """One attention: `order` is "bhsd", or "bshd" for heads that lie beside one another."""

    batch: int
    heads: int
    rows: int
    columns: int
    depth: int
    width: int
    is_causal: bool = False
    mode: str = "both"
    dtype: str = "bfloat16"
    order: str = "bhsd"
    mask: bool = False

    def __str__(self):
        sizes = f"B{self.batch} H{self.heads} {self.rows}x{self.columns} D{self.depth}/{self.width}"
        kind = "causal" if self.is_causal else "mask" if self.mask else "full"
        return f"{sizes} {kind} {self.mode} {self.dtype} {self.order}"

    @property
    def work(self):
        """Floating-point operations: two products forward, seven with gradients by custom."""
        both = 2 * (self.depth + self.width) * self.batch * self.heads * self.rows * self.columns
        return both * (3.5 if self.mode == "both" else 1) / (2 if self.is_causal else 1)

    def shape(self, name):
        """Sizes of an operand as they lie."""
        rows = self.columns if name in "kv" else self.rows
        columns = self.width if name in "vg" else self.depth
        if self.order == "bhsd":
            return self.batch, self.heads, rows, columns
        return self.batch, rows, self.heads, columns


def plan_of(case, target):
    """Schedule one attention; the plan, and which operand each input is."""
    dtype = to_dtype(case.dtype)
    leaves, views = {}, {}
    for name in "qkvg":
        shape = case.shape(name)
        leaves[name] = Node("buffer", (), Storage(None), shape, dtype, "cpu")
        is_turned = case.order == "bshd"
        views[name] = leaves[name].permute((0, 2, 1, 3)) if is_turned else leaves[name]
    q, k, v = (Tensor.from_node(views[name]) for name in "qkv")
    mask = None
    if case.mask:
        shape = case.rows, case.columns
        leaves["m"] = Node("buffer", (), Storage(None), shape, bool_, "cpu")
        mask = Tensor.from_node(leaves["m"])
    output = F.scaled_dot_product_attention(q, k, v, mask, is_causal=case.is_causal).node
    roots = [output]
    if case.mode == "both":
        roots += gradient([(output, views["g"])], [leaves[name] for name in "qkv"])
    plan = schedule(roots, target)
    roles = {id(node): name for name, node in leaves.items()}
    return plan, [roles[id(node)] for node in plan.inputs]


def programs(plan, target):
    """Write the kernels of a plan."""
    return [
        (linearize(TEMPLATES[step.kernel.hero](step.kernel, target), target), step.slots)
        for step in plan.steps
    ]


def tensors_of(case):
    """Make random operands as they lie."""
    kind = getattr(torch, case.dtype)
    given = {name: torch.randn(case.shape(name), device="cuda").to(kind) for name in "qkvg"}
    if case.mask:
        given["m"] = torch.rand(case.rows, case.columns, device="cuda") < 0.5
        given["m"][: min(case.rows, 5)] = False  # rows that see nothing
    return given


def torch_call(case, given, backend=None, wide=False):
    """Make what computes the same with PyTorch, by one of its backends."""
    turned = case.order == "bshd"
    kind = torch.float64 if wide else getattr(torch, case.dtype)
    own = {name: each.to(kind) for name, each in given.items() if name != "m"}
    leaves = [own[name].requires_grad_(case.mode == "both") for name in "qkv"]
    g = own["g"].transpose(1, 2) if turned else own["g"]

    def run():
        q, k, v = (each.transpose(1, 2) if turned else each for each in leaves)
        options = {"attn_mask": given.get("m"), "is_causal": case.is_causal}
        if backend is None:
            out = torch_attention(q, k, v, **options)
        else:
            with sdpa_kernel([backend]):
                out = torch_attention(q, k, v, **options)
        if case.mode == "forward":
            return [out]
        return [out, *torch.autograd.grad(out, leaves, g)]

    return run


def build(cases, target):
    """Compile the kernels of all cases; by case: plan, roles, programs with their cubins."""
    plans = [plan_of(case, target) for case in cases]
    written = [programs(plan, target) for plan, _ in plans]
    found = compiled_all([render(program) for each in written for program, _ in each], target)
    for case, (plan, roles), each in zip(cases, plans, written, strict=True):
        built = [(program, slots, found[render(program)]) for program, slots in each]
        yield case, plan, roles, built


def check(case, plan, roles, built, most):
    """Compare values with float64; the largest error of a result by its norm."""
    given = tensors_of(case)
    ours, results = plan_call(plan, roles, built, given)
    ours()
    torch.cuda.synchronize()
    first = [each.clone() for each in results]
    ours()
    torch.cuda.synchronize()
    is_same = all(torch.equal(a, b) for a, b in zip(first, results, strict=True))
    expected = torch_call(case, given, SDPBackend.MATH, True)()
    pairs = zip(first, expected, strict=True)
    errors = [((a.double() - b).norm() / b.norm().clamp(1e-3)).item() for a, b in pairs]
    is_right = all(each < most for each in errors)  # NaN is wrong
    heroes = [step.kernel.hero for step in plan.steps]
    verdict = "ok   " if is_right and is_same else "WRONG"
    numbers = " ".join(f"{each:.1e}" for each in errors)
    print(verdict, case, numbers, f"same {is_same}, {len(heroes)} kernels", flush=True)
    return is_right and is_same


def compare(case, plan, roles, built, options):
    """Time one attention beside PyTorch; its ratio."""
    given = tensors_of(case)
    ours, _ = plan_call(plan, roles, built, given)
    calls = {"ours": ours}
    backends = BACKENDS | OF_FLOAT32 if case.mask else BACKENDS
    for name, backend in (OF_FLOAT32 if case.dtype == "float32" else backends).items():
        call = torch_call(case, given, backend)
        try:
            with torch.cuda.stream(torch.cuda.Stream()):  # PyTorch wants a call before a capture
                call()
            calls[name] = call
        except RuntimeError:  # it has no kernel for this, or too little memory
            torch.cuda.empty_cache()
    torch.cuda.synchronize()
    rivals = [Rival(name, [call]) for name, call in calls.items()]
    speed = 350e12 if case.dtype != "float32" else 80e12 if options.tf32 else 20e12
    estimate = case.work / speed + 1e-5
    times = in_turns(rivals, options.rounds, options.seconds, estimate)
    median = {name: statistics.median(each) for name, each in times.items()}
    best = min((name for name in calls if name != "ours"), key=lambda name: median[name])
    ratio = statistics.median(t / o for t, o in zip(times[best], times["ours"]))
    texts = [f"{n} {t * 1e6:7.1f} us {case.work / t / 1e12:4.0f}" for n, t in median.items()]
    print(f"{case!s:52} {' | '.join(texts)} TFLOP/s | {ratio:.2f} of {best}", flush=True)
    if options.kernels:
        show_kernels(plan, ours, options.seconds, estimate / 2)
    return ratio


CHECKS = [
    Case(2, 3, 512, 512, 64, 64),
    Case(2, 3, 512, 512, 64, 64, True),
    Case(2, 3, 1024, 1024, 128, 128),
    Case(2, 3, 1024, 1024, 128, 128, True),
    Case(2, 2, 777, 777, 64, 64, True),
    Case(2, 2, 777, 777, 128, 128, True),
    Case(2, 2, 300, 515, 64, 64),
    Case(1, 2, 515, 300, 128, 64),
    Case(1, 2, 129, 129, 32, 32, True),
    Case(1, 2, 500, 500, 96, 96, True),
    Case(2, 3, 512, 512, 64, 64, True, dtype="float16"),
    Case(2, 2, 777, 777, 128, 128, dtype="float16"),
    Case(2, 4, 640, 640, 64, 64, True, order="bshd"),
    Case(2, 4, 333, 333, 128, 128, order="bshd"),
    Case(2, 2, 200, 300, 64, 64, mask=True),
    Case(2, 2, 300, 200, 128, 128, mask=True),
    Case(2, 2, 300, 500, 192, 192, True),
    Case(2, 2, 515, 300, 256, 160, True),
    Case(2, 2, 300, 515, 256, 256, dtype="float16"),
    Case(2, 2, 200, 300, 192, 64, mask=True),
    Case(2, 3, 515, 515, 64, 64, True, dtype="float32"),
    Case(2, 3, 300, 515, 128, 128, dtype="float32"),
    Case(2, 2, 200, 300, 96, 192, mask=True, dtype="float32"),
    Case(1, 2, 129, 129, 256, 256, True, dtype="float32"),
    Case(2, 2, 1, 300, 64, 64),
    Case(2, 2, 300, 1, 64, 64),
    Case(2, 2, 1, 1, 64, 64, dtype="float32"),
    Case(8, 16, 2048, 2048, 64, 64, True),
    Case(4, 8, 2048, 2048, 128, 128),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare values, time nothing")
    parser.add_argument("--modes", nargs="+", default=["forward", "both"])
    parser.add_argument("--heads", nargs="+", type=int, default=[64, 128])
    parser.add_argument("--masks", nargs="+", default=["causal", "full"])
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument(
        "--lengths", nargs="+", type=int, default=[512, 1024, 2048, 4096, 8192, 16384]
    )
    parser.add_argument("--tf32", action="store_true", help="tensor cores multiply float32")
    parser.add_argument("--few", type=int, default=0, help="so many heads, of a batch of one")
    parser.add_argument("--kernels", action="store_true", help="time each kernel by itself too")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4e-3, help="of a sample")
    options = parser.parse_args()
    start = time.perf_counter()
    target = replace(target_here(), tf32=options.tf32)
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    print(torch.cuda.get_device_name(), torch.__version__)
    if options.check:
        wanted = CHECKS
        if options.tf32:
            wanted = list(dict.fromkeys(replace(case, dtype="float32") for case in CHECKS))
        bad = []
        for case, *rest in build(wanted, target):
            most = TF32_TOLERANCE if options.tf32 else TOLERANCES[case.dtype]
            bad += [] if check(case, *rest, most) else [case]
        taken = time.perf_counter() - start
        print(f"{len(wanted) - len(bad)} of {len(wanted)} right, {taken:.0f} s")
        return

    def case_of(mode, d, mask, n):
        kind = {"is_causal": mask == "causal", "mask": mask == "boolean"}
        many = (1, options.few) if options.few else (TOKENS // n, HIDDEN // d)
        sizes = *many, n, n, d, d
        return Case(*sizes, mode=mode, dtype=options.dtype, **kind)

    lists = options.modes, options.heads, options.masks, options.lengths
    cases = [case_of(*each) for each in product(*lists)]
    ratios = {mode: [] for mode in options.modes}
    for case, *rest in build(cases, target):
        ratios[case.mode].append(compare(case, *rest, options))
        torch.cuda.empty_cache()
    for mode, found in ratios.items():
        mean = statistics.geometric_mean(found)
        print(f"{mode}: geomean {mean:.3f}, {min(found):.2f} to {max(found):.2f} of the best")


if __name__ == "__main__":
    main()
