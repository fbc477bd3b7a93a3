"""Decoding on an NVIDIA GPU beside PyTorch: few queries over a cache of keys and values.

Plans are those of `scaled_dot_product_attention` with grouped queries; `--filled` masks what lies
behind a length that is in memory. Launches rotate over operands larger than the L2 cache, rivals
take turns, each a CUDA graph. Times are compared with the best of PyTorch's backends and with a
copy: one of a tensor that makes as much traffic as keys and values are long, and the rate of a
copy of 2 GB. `--check` compares values with float64 instead. `--pages` keeps keys and values in
pages of so many places, which a table orders at random; PyTorch gathers them first, and what a
kernel without pages takes for the same keys is shown beside.

    python bench/gpu_decode.py [--check] [--batches 1 8 64] [--lengths 1024 8192 32768]
        [--queries 1] [--heads 32/8/128 16/16/64] [--filled 1.0] [--pages 0] [--rounds 5]
"""

import argparse
import statistics
from dataclasses import dataclass, replace
from itertools import product

import torch
from gpu_attention import BACKENDS, programs
from gpu_contract import (
    L2_BYTES,
    Rival,
    capture,
    compile_cuda,
    in_turns,
    plan_call,
    sample,
    target_here,
)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as torch_attention

import picograd.nn.functional as F
from picograd import Tensor
from picograd.buffer import Storage
from picograd.codegen.render.cuda import render
from picograd.dtype import int64, to_dtype
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule

RIVALS = BACKENDS | {"efficient": SDPBackend.EFFICIENT_ATTENTION}


@dataclass(frozen=True)
class Case:
    """One step of decoding: `queries` rows of each head, `length` keys, of which some are seen."""

    batch: int
    queries: int
    length: int
    heads: tuple[int, int, int]  # of queries, of keys, and their size
    filled: float = 1.0
    dtype: str = "bfloat16"
    page: int = 0  # places of a page; 0: a cache without

    def __str__(self):
        heads = "/".join(map(str, self.heads))
        seen = f" seen {self.seen}" if self.filled < 1 else ""
        pages = f" pages of {self.page}" if self.page else ""
        return f"B{self.batch} Q{self.queries} {heads} S{self.length}{seen}{pages} {self.dtype}"

    @property
    def seen(self):
        """Keys that queries may see."""
        return max(self.queries, int(self.length * self.filled))

    @property
    def shapes(self):
        """Sizes of queries, keys and values."""
        many, few, size = self.heads
        cache = self.batch, few, self.length, size
        if self.page:
            cache = self.batch * self.length // self.page, self.page, few, size
        return {"q": (self.batch, many, self.queries, size), "k": cache, "v": cache}

    @property
    def table(self):
        """Size of the table of pages."""
        return self.batch, self.length // self.page

    @property
    def traffic(self):
        """Bytes of the keys and values that are seen."""
        item = to_dtype(self.dtype).itemsize
        return 2 * self.batch * self.heads[1] * self.seen * self.heads[2] * item


def plan_of(case, target):
    """Schedule a step; the plan, and which operand each input is."""
    dtype = to_dtype(case.dtype)
    leaves = {
        name: Node("buffer", (), Storage(None), shape, dtype, "cpu")
        for name, shape in case.shapes.items()
    }
    mask = None
    if case.filled < 1:
        leaves["n"] = Node("buffer", (), Storage(None), (1,), int64, "cpu")
        columns = Tensor.arange(case.length, device="cpu")
        rows = columns[: case.queries] + Tensor.from_node(leaves["n"]) - case.queries
        mask = columns <= rows.unsqueeze(-1)
    q, k, v = (Tensor.from_node(leaves[name]) for name in "qkv")
    if case.page:
        table = Tensor.zeros(case.table, dtype=int64, device="cpu").contiguous().realize()
        leaves["t"] = table.node  # in memory: that every page is there is looked at
        k, v = (in_order(each[table]) for each in (k, v))
    output = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True).node
    plan = schedule([output], target)
    roles = {id(node): name for name, node in leaves.items()}
    return plan, [roles[id(node)] for node in plan.inputs]


def in_order(pages):
    """See (batch, pages, places, heads, size) as (batch, heads, all, size)."""
    batch, many, places, heads, size = pages.shape
    return pages.reshape(batch, many * places, heads, size).transpose(1, 2)


def tensors_of(case):
    """Make random operands."""
    kind = getattr(torch, case.dtype)
    given = {n: torch.randn(shape, device="cuda").to(kind) for n, shape in case.shapes.items()}
    given["n"] = torch.tensor([case.seen], device="cuda")
    if case.page:
        count = len(given["k"])
        given["t"] = torch.randperm(count, device="cuda").reshape(case.table)
    return given


def torch_call(case, given, backend):
    """Make what computes the same with PyTorch, over the keys that are seen."""
    q, k, v, table = (given.get(name) for name in "qkvt")
    copies = case.heads[0] // case.heads[1]
    is_grouped = copies > 1
    if is_grouped and backend is SDPBackend.EFFICIENT_ATTENTION:  # queries of a group as rows
        q = q.reshape(case.batch, case.heads[1], copies * case.queries, case.heads[2])
        is_grouped = False
    mask = None
    if case.filled < 1 and case.queries > 1:
        mask = torch.ones(case.queries, case.seen, dtype=torch.bool, device="cuda")
        mask = mask.tril(case.seen - case.queries)

    def run():
        keys, values = (k, v) if table is None else (in_order(each[table]) for each in (k, v))
        keys, values = (each[:, :, : case.seen] for each in (keys, values))
        with sdpa_kernel([backend]):
            return torch_attention(q, keys, values, mask, enable_gqa=is_grouped)

    return run


def build(case, target):
    """Write and compile the kernels of a case."""
    plan, roles = plan_of(case, target)
    written = programs(plan, target)
    built = [(p, slots, compile_cuda(render(p), target.arch)[0]) for p, slots in written]
    return plan, roles, built


def check(case, target):
    """Compare values with float64 and two runs with each other."""
    plan, roles, built = build(case, target)
    given = tensors_of(case)
    if case.filled < 1 and not case.page:  # nobody may look there
        given["k"][:, :, case.seen :], given["v"][:, :, case.seen :] = 100, 1e4
    ours, (result,) = plan_call(plan, roles, built, given)
    found = []
    for _ in range(2):
        ours()
        torch.cuda.synchronize()
        found.append(result.clone())
    wide = {name: each.double() for name, each in given.items()}
    wide |= {name: given[name] for name in "nt" if name in given}
    expected = torch_call(case, wide, SDPBackend.MATH)()
    error = ((found[0].double() - expected).norm() / expected.norm()).item()
    is_right = error < 1e-2 and torch.equal(*found)
    heroes = [step.kernel.hero for step in plan.steps]
    print("ok   " if is_right else "WRONG", case, f"{error:.1e}", heroes, flush=True)
    return is_right


def copy_rate():
    """Measure how many bytes a second a copy reads and writes."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    rival = Rival("copy", [lambda: target.copy_(source)])
    count = capture(rival, 5e-3, 6e-4)
    taken = statistics.median(sample(rival, count, 0) for _ in range(7))
    return 2 * source.numel() / taken


def compare(case, target, rate, options):
    """Time a case; its share of the rate of a copy."""
    plan, roles, built = build(case, target)
    sets = int(max(1, min(-(-L2_BYTES // case.traffic), 64)))
    every = [tensors_of(case) for _ in range(sets)]
    calls = {"ours": [plan_call(plan, roles, built, given)[0] for given in every]}
    if case.page:
        whole = replace(case, page=0)
        others = build(whole, target)
        calls["whole"] = [plan_call(*others, tensors_of(whole))[0] for _ in every]
    for name, backend in RIVALS.items():
        calls[name] = [torch_call(case, given, backend) for given in every]
    half = [torch.empty(case.traffic // 2, dtype=torch.uint8, device="cuda") for _ in range(sets)]
    into = torch.empty_like(half[0]), torch.empty_like(half[0])
    calls["copy"] = [lambda x=x, n=n: into[n % 2].copy_(x) for n, x in enumerate(half)]
    rivals = []
    for name, each in calls.items():
        try:
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):  # before a capture PyTorch wants a call beside
                each[0]()
            torch.cuda.synchronize()
            rivals.append(Rival(name, each))
        except RuntimeError:
            pass  # a backend that has no kernel for this
    estimate = case.traffic / 3e12 + 4e-6
    times = in_turns(rivals, options.rounds, options.seconds, estimate)
    median = {name: statistics.median(each) for name, each in times.items()}
    best = min((name for name in median if name in RIVALS), key=lambda name: median[name])
    over = {
        name: statistics.median(t / o for t, o in zip(times[name], times["ours"]))
        for name in (best, "copy")
    }
    texts = " | ".join(f"{name} {t * 1e6:.1f}" for name, t in median.items())
    share = case.traffic / median["ours"] / rate
    print(f"{case!s:42} {len(built)} kernels, us: {texts} | of rate {share:.2f}, "
          f"of copy {over['copy']:.2f}, {over[best]:.2f} of {best}", flush=True)  # fmt: skip
    return share


CHECKS = [
    Case(1, 1, 1024, (32, 8, 128)),
    Case(3, 1, 1000, (8, 8, 64)),
    Case(2, 4, 333, (8, 2, 128)),
    Case(1, 16, 4096, (4, 4, 64)),
    Case(2, 1, 4096, (8, 2, 128), 0.3),
    Case(2, 3, 4096, (8, 2, 64), 0.001),
    Case(1, 5, 2048, (4, 1, 128), 0.77),
    Case(16, 1, 2048, (32, 8, 128), dtype="float16"),
    Case(1, 1, 4096, (32, 8, 128), page=16),
    Case(3, 2, 1040, (8, 2, 64), 0.7, page=16),
    Case(2, 1, 4096, (8, 8, 64), 0.3, page=256),
    Case(2, 300, 1024, (8, 2, 128), page=64),
    Case(2, 3, 480, (4, 2, 64), dtype="float32", page=48),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare values, time nothing")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--lengths", nargs="+", type=int, default=[1024, 8192, 32768])
    parser.add_argument("--queries", nargs="+", type=int, default=[1])
    parser.add_argument("--heads", nargs="+", default=["32/8/128", "16/16/64"])
    parser.add_argument("--filled", type=float, default=1.0, help="part of the keys that is seen")
    parser.add_argument("--pages", nargs="+", type=int, default=[0], help="places of one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3e-3, help="of a sample")
    options = parser.parse_args()
    target = target_here()
    print(torch.cuda.get_device_name(), torch.__version__)
    if options.check:
        right = [check(case, target) for case in CHECKS]
        print(f"{sum(right)} of {len(right)} right")
        return
    rate = copy_rate()
    print(f"a copy of 2 GB: {rate / 1e12:.2f} TB/s read and written")
    shares = []
    every = product(options.heads, options.pages, options.queries, options.lengths, options.batches)
    for heads, page, queries, length, batch in every:
        sizes = tuple(map(int, heads.split("/")))
        case = Case(batch, queries, length, sizes, options.filled, page=page)
        shares.append(compare(case, target, rate, options))
        torch.cuda.empty_cache()
    print(f"{min(shares):.2f} to {max(shares):.2f} of the rate of a copy")


if __name__ == "__main__":
    main()
