"""Attention with edited scores on an NVIDIA GPU beside compiled FlexAttention.

Scores are edited by plain algebra: ALiBi, a soft-cap, a sliding window, documents by their numbers
or as a mask of booleans in memory, a bias of every place that heads learn, each causal too; masks
with holes, also in memory: a window and the first places, or blocks at random. PyTorch
compiles `flex_attention` with the same edit and its block mask, which is made before; what ours
finds of numbers in memory is in its time. Rivals take turns, each a CUDA graph of launches; a ratio
is the median over rounds. `--check` compares values with float64 and `--warm` only fills PyTorch's
cache of compiled kernels.

    python bench/gpu_score_edits.py [--check] [--warm] [--modes forward both] [--heads 64 128]
        [--edits plain alibi softcap window document boolean sinks blocks bias]
        [--sizes 4x16x4096] [--rounds 7]
"""

import argparse
import math
import statistics

import torch
from gpu_attention import programs
from gpu_contract import Rival, capture, compile_cuda, in_turns, plan_call, sample, target_here
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from picograd import Tensor
from picograd.buffer import Storage
from picograd.codegen.render.cuda import render
from picograd.dtype import bfloat16, bool_, float32, int32
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule

WINDOW, CAP = 512, 20.0
IN_MEMORY = ["boolean", "sinks", "blocks"]  # masks of every place
EDITS = ["plain", "alibi", "softcap", "window", "document", *IN_MEMORY, "bias"]
BLOCK, SHOWN = 64, 0.15  # places of a random block, and how many blocks beside the own are seen


def ours(edit, q, k, v, extra):
    """Write attention with an edit as a user would: q, k and v are (B, H, S, D)."""
    scores = (q @ k.transpose(-2, -1)).cast("float32") / math.sqrt(q.shape[-1])
    length = scores.shape[-1]
    column = Tensor.arange(length, device="cpu")
    row = column.unsqueeze(-1)
    seen = column <= row
    if edit == "alibi":
        scores = scores + extra.reshape(-1, 1, 1) * (column - row).cast("float32")
    if edit == "bias":
        scores = scores + extra.cast("float32")
    if edit == "softcap":
        scores = (scores / CAP).tanh() * CAP
    if edit == "window":
        seen = seen & (row - column < WINDOW)
    if edit == "document":
        seen = seen & (extra.unsqueeze(-1) == extra)
    if edit in IN_MEMORY:
        seen = extra
    return seen.where(scores, -math.inf).softmax(-1).cast("bfloat16") @ v


def flex_edits(edit, extra):
    """Write the same for FlexAttention: what edits a score, and what shows it."""

    def score(x, b, h, i, j):
        if edit == "alibi":
            return x + extra[h] * (j - i)
        if edit == "bias":
            return x + extra[h, i, j]
        if edit == "softcap":
            return torch.tanh(x / CAP) * CAP
        return x

    def shown(b, h, i, j):
        seen = j <= i
        if edit == "window":
            seen = seen & (i - j < WINDOW)
        if edit == "document":
            seen = seen & (extra[i] == extra[j])
        return extra[i, j] if edit in IN_MEMORY else seen

    return (score if edit in ("alibi", "softcap", "bias") else None), shown


def extra_of(edit, heads, length):
    """Make what an edit reads: slopes of heads, or documents of tokens."""
    if edit == "alibi":
        return torch.pow(2.0, -8 * torch.arange(1, heads + 1, device="cuda") / heads)
    if edit == "bias":
        return torch.randn(heads, length, length, device="cuda", dtype=torch.bfloat16)
    count = max(length // 512, 2)
    same = torch.Generator().manual_seed(0)  # documents of a length are those of every run
    stops = torch.sort(torch.randperm(length, generator=same)[: count - 1]).values.cuda()
    where = torch.arange(length, device="cuda")
    apart = where[:, None] - where
    if edit == "sinks":
        return (apart >= 0) & ((apart < WINDOW) | (where < BLOCK))
    if edit == "blocks":
        blocks = -(-length // BLOCK)
        seen = (torch.rand(blocks, blocks, generator=same) < SHOWN).cuda()
        block = where // BLOCK
        return (apart >= 0) & (seen[block[:, None], block] | (block[:, None] == block))
    documents = torch.searchsorted(stops, where, right=True).to(torch.int32)
    if edit == "boolean":
        return (documents[:, None] == documents) & (apart >= 0)
    return documents


def learned(edit):
    """Name what has gradients."""
    return "qkvx" if edit == "bias" else "qkv"


def plan_of(edit, mode, shape, target):
    """Schedule one attention; the plan, and which operand each input is."""
    leaves = {name: Node("buffer", (), Storage(None), shape, bfloat16, "cpu") for name in "qkvg"}
    length = shape[2]
    kinds = dict.fromkeys(IN_MEMORY, (bool_, (length, length)))
    kinds["alibi"] = float32, (shape[1],)
    kinds["bias"] = bfloat16, (shape[1], length, length)
    kind, sizes = kinds.get(edit, (int32, (length,)))
    leaves["x"] = Node("buffer", (), Storage(None), sizes, kind, "cpu")
    q, k, v, g, extra = (Tensor.from_node(leaves[name]) for name in "qkvgx")
    output = ours(edit, q, k, v, extra).node
    roots = [output]
    if mode == "both":
        roots += gradient([(output, g.node)], [leaves[name] for name in learned(edit)])
    plan = schedule(roots, target)
    roles = {id(node): name for name, node in leaves.items()}
    return plan, [roles[id(node)] for node in plan.inputs]


def built_of(plan, target):
    """Write and compile the kernels of a plan."""
    found = []
    for program, slots in programs(plan, target):
        cubin, log = compile_cuda(render(program), target.arch)
        spilled = [part for part in log.split(",") if "spill stores" in part]
        found.append((program, slots, cubin))
        if any(" 0 bytes spill" not in f" {part.strip()}" for part in spilled):
            print("    spills:", program.name, "; ".join(part.strip() for part in spilled))
    return found


def flex_call(edit, mode, given, block_mask, flex):
    """Make what computes the same with FlexAttention."""
    leaves = {n: given[n].clone().requires_grad_(mode == "both") for n in learned(edit)}
    q, k, v, *_ = leaves.values()
    score, _ = flex_edits(edit, leaves.get("x", given["x"]))

    def run():
        out = flex(q, k, v, score_mod=score, block_mask=block_mask)
        if mode == "forward":
            return [out]
        return [out, *torch.autograd.grad(out, list(leaves.values()), given["g"])]

    return run


def wide_call(edit, given):
    """Compute the same in float64, with gradients."""
    leaves = [given[name].double().requires_grad_() for name in learned(edit)]
    q, k, v, *extra = leaves
    score, shown = flex_edits(edit, extra[0] if extra else given["x"])
    heads, length = q.shape[1], q.shape[2]
    rows = torch.arange(length, device="cuda")
    h = torch.arange(heads, device="cuda").reshape(-1, 1, 1)
    x = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    x = x if score is None else score(x, 0, h, rows.unsqueeze(-1), rows)
    x = x.masked_fill(~shown(0, 0, rows.unsqueeze(-1), rows), -math.inf)
    out = x.softmax(-1) @ v
    return [out, *torch.autograd.grad(out, leaves, given["g"].double())]


def tensors_of(edit, shape):
    """Make random operands."""
    given = {n: torch.randn(shape, device="cuda", dtype=torch.bfloat16) for n in "qkvg"}
    given["x"] = extra_of(edit, shape[1], shape[2])
    return given


def check(edit, shape, target):
    """Compare values and gradients with float64, and two runs."""
    plan, roles = plan_of(edit, "both", shape, target)
    given = tensors_of(edit, shape)
    call, results = plan_call(plan, roles, built_of(plan, target), given)
    runs = []
    for _ in range(2):
        call()
        torch.cuda.synchronize()
        runs.append([each.clone() for each in results])
    is_same = all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
    expected = wide_call(edit, given)
    errors = [((a.double() - b).norm() / b.norm()).item() for a, b in zip(runs[0], expected)]
    is_right = max(errors) < 1e-2 and is_same
    numbers = " ".join(f"{each:.1e}" for each in errors)
    print("ok   " if is_right else "WRONG", edit, shape, numbers, f"same {is_same}", flush=True)


def compare(edit, mode, shape, target, options):
    """Time one attention beside FlexAttention; their ratio."""
    given = tensors_of(edit, shape)
    _, shown = flex_edits(edit, given["x"])
    torch._dynamo.reset()  # else it gives up compiling after eight cases
    flex = torch.compile(flex_attention, dynamic=False)
    mask = create_block_mask(shown, None, None, shape[2], shape[2], device="cuda")
    theirs = flex_call(edit, mode, given, mask, flex)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            theirs()
    torch.cuda.synchronize()
    if options.warm:
        return 1.0
    plan, roles = plan_of(edit, mode, shape, target)
    call, _ = plan_call(plan, roles, built_of(plan, target), given)
    rivals = [Rival("ours", [call]), Rival("flex", [theirs])]
    times = in_turns(rivals, options.rounds, options.seconds, 1e-3)
    median = {name: statistics.median(each) * 1e6 for name, each in times.items()}
    pairs = list(zip(times["flex"], times["ours"]))
    ratio = statistics.median(f / o for f, o in pairs)
    spread = f"{min(f / o for f, o in pairs):.2f} to {max(f / o for f, o in pairs):.2f}"
    sizes = "x".join(map(str, shape))
    print(f"{edit:9} {mode:8} {sizes:16} {len(plan.steps)} kernels | ours {median['ours']:8.1f} us"
          f" | flex {median['flex']:8.1f} us | {ratio:.2f} ({spread})", flush=True)  # fmt: skip
    if options.kernels:
        for step, launch in zip(plan.steps, call.launches, strict=True):
            rival = Rival("kernel", [launch])
            count = capture(rival, options.seconds, 5e-4)
            taken = statistics.median(sample(rival, count, 0) for _ in range(3))
            print(f"    {step.kernel.name:44} {taken * 1e6:7.1f} us", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare values, time nothing")
    parser.add_argument("--warm", action="store_true", help="compile FlexAttention, time nothing")
    parser.add_argument("--edits", nargs="+", default=EDITS)
    parser.add_argument("--modes", nargs="+", default=["forward", "both"])
    parser.add_argument("--heads", nargs="+", type=int, default=[64, 128])
    parser.add_argument("--sizes", nargs="+", default=["4x16x4096"], help="batch x heads x length")
    parser.add_argument("--kernels", action="store_true", help="time each kernel by itself too")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4e-3, help="of a sample")
    options = parser.parse_args()
    target = target_here()
    print(torch.cuda.get_device_name(), torch.__version__)
    if options.check:
        for edit in options.edits:
            for depth in options.heads:
                for length in (1027, 1032):  # of these, boxes bring the second
                    check(edit, (2, 3, length, depth), target)
        return
    for mode in options.modes:
        for edit in options.edits:
            for depth in options.heads:
                for size in options.sizes:
                    shape = (*map(int, size.split("x")), depth)
                    compare(edit, mode, shape, target, options)
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
