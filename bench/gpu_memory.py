"""Kernels bound by memory on an NVIDIA GPU, beside PyTorch eager and compiled, without the engine.

A case is a formula, or its gradients, as picograd plans it and as PyTorch is told to: the same
code. Arrays are of 64 MiB and more. `floor` is the share of the rate at which PyTorch copies an
array of 256 MiB in the same turns: what must be read and written once, by the time taken. Rivals
take turns, each a CUDA graph of launches; a ratio is the median over rounds. Values are compared
with those of float32 (or float64), on NaN-poisoned results, twice for the same bits.

    python bench/gpu_memory.py [--cases softmax ...] [--dtypes float32 bfloat16] [--rounds 5]
        [--eager] [--kernels]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as torch_functional
from gpu_contract import Rival, compiled_all, in_turns, plan_call, show_kernels, target_here

import picograd.nn.functional as F
from picograd import Tensor
from picograd.buffer import Storage
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import TEMPLATES
from picograd.codegen.render.cuda import render
from picograd.dtype import to_dtype
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule

COPIED = 1 << 28  # bytes of the array that is copied
TOLERANCE = {"float32": 1e-5, "bfloat16": 1e-2}


@dataclass(frozen=True)
class Case:
    """A formula of arrays: `shapes` by name, those of integers with how many values they have.

    With `by`, its gradients by these arrays for a given gradient `g` of the result, and not the
    result; both if `with_result`. If `is_gathered` memory passes what is read of an array alone.
    """

    name: str
    formula: Callable
    shapes: dict[str, tuple[int, ...]]
    by: str = ""
    integers: dict[str, int] | None = None
    with_result: bool = False
    is_gathered: bool = False

    def is_integer(self, name: str) -> bool:
        return name in (self.integers or {})


def adam(f, p, g, m, v):
    """One step of Adam: new parameters and moments."""
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * m / (v.sqrt() + 1e-8), m, v


def batch_norm(f, x, w, b):
    """Normalise channels that lie last, as they do inside of a network."""
    mean = x.float().mean(0)
    var = (x.float() * x.float()).mean(0) - mean * mean
    return ((x.float() - mean) * (var + 1e-5).rsqrt() * w.float() + b.float()).to(x.dtype)


def rms_norm(f, x, w):
    return f.rms_norm(x, (x.shape[-1],), w)


def layer_norm(f, x, w, b):
    return f.layer_norm(x, (x.shape[-1],), w, b)


SQUARE = {"x": (8192, 8192)}
ROWS = {"x": (32768, 1024)}
LONG = {"x": (2048, 32768)}
IMAGES = {"x": (200704, 256), "w": (256,), "b": (256,)}  # 64 images of 56 x 56
NORM = {"x": (16384, 4096), "w": (4096,), "b": (4096,)}
NARROW = {"x": (65536, 768), "w": (768,), "b": (768,)}
LOGITS = {"x": (8192, 50304), "t": (8192,)}
UNEVEN = {"x": (8192, 50257), "t": (8192,)}  # rows that begin between vectors
VOCABULARY = {"x": (2048, 128256)}
CLASSES = {"t": 50304}
MOMENTS = dict.fromkeys("pgmv", (1 << 26,))


def without(shapes, name):
    """All shapes but one."""
    return {key: shape for key, shape in shapes.items() if key != name}


CASES = [
    Case("map gelu", lambda f, x: f.gelu(x), SQUARE),
    Case("map x * y + x", lambda f, x, y: x * y + x, {**SQUARE, "y": (8192, 8192)}),
    Case(
        "map row and column", lambda f, x, r, c: x * r + c, {**SQUARE, "r": (8192,), "c": (8192, 1)}
    ),
    Case("transpose", lambda f, x: x.transpose(0, 1).contiguous(), SQUARE),
    Case("transpose of 64", lambda f, x: x.transpose(1, 2).contiguous(), {"x": (64, 1024, 1024)}),
    Case("heads", lambda f, x: x.transpose(1, 2).contiguous(), {"x": (16, 2048, 16, 128)}),
    Case("sum rows", lambda f, x: x.sum(1), SQUARE),
    Case("sum columns", lambda f, x: x.sum(0), SQUARE),
    Case("sum all", lambda f, x: x.sum(), SQUARE),
    Case("softmax 1024", lambda f, x: x.softmax(-1), ROWS),
    Case("softmax 8192", lambda f, x: x.softmax(-1), SQUARE),
    Case("softmax 32768", lambda f, x: x.softmax(-1), LONG),
    Case("softmax 50257", lambda f, x: x.softmax(-1), without(UNEVEN, "t")),
    Case("softmax 128256", lambda f, x: x.softmax(-1), VOCABULARY),
    Case("softmax gradient 1024", lambda f, x: x.softmax(-1), ROWS, "x"),
    Case("softmax gradient 8192", lambda f, x: x.softmax(-1), SQUARE, "x"),
    Case("layer norm 4096", layer_norm, NORM),
    Case("layer norm 768", layer_norm, NARROW),
    Case("layer norm gradients 4096", layer_norm, NORM, "xwb"),
    Case("layer norm gradients 768", layer_norm, NARROW, "xwb"),
    Case("rms norm 4096", rms_norm, without(NORM, "b")),
    Case("rms norm gradients 4096", rms_norm, without(NORM, "b"), "xw"),
    Case("batch norm 256", batch_norm, IMAGES),
    Case("batch norm gradients 256", batch_norm, IMAGES, "xwb"),
    Case(
        "cross entropy",
        lambda f, x, t: f.cross_entropy(x, t.long().clamp(0, 50303)),
        LOGITS,
        "",
        CLASSES,
    ),
    Case(
        "cross entropy both",
        lambda f, x, t: f.cross_entropy(x, t.long().clamp(0, 50303)),
        LOGITS,
        "x",
        CLASSES,
        True,
    ),
    Case(
        "cross entropy 50257 both",
        lambda f, x, t: f.cross_entropy(x, t.long().clamp(0, 50256)),
        UNEVEN,
        "x",
        CLASSES,
        True,
    ),
    Case(
        "rows of a table",
        lambda f, x, t: x[t.long().clamp(0, 50303)],
        {"x": (50304, 768), "t": (65536,)},
        integers=CLASSES,
        is_gathered=True,
    ),
    Case(
        "residual, dropout of mask",
        lambda f, x, y, m: x + y * m * 1.25,
        {**SQUARE, "y": (8192, 8192), "m": (8192, 8192)},
    ),
    Case("adam", adam, MOMENTS),
]


def results_of(found):
    """The results of a formula, as a list."""
    return list(found) if isinstance(found, tuple | list) else [found]


def plan_of(case: Case, dtype: str, target):
    """Schedule a case; the plan, and the name of each of its inputs."""
    leaves = {}
    for name, shape in case.shapes.items():
        kind = to_dtype("int32" if case.is_integer(name) else dtype)
        leaves[name] = Node("buffer", (), Storage(None), shape, kind, "cpu")
    given = [Tensor.from_node(leaf) for leaf in leaves.values()]
    roots = [each.node for each in results_of(case.formula(F, *given))]
    if case.by:
        (out,) = roots
        leaves["g"] = Node("buffer", (), Storage(None), out.shape, out.dtype, "cpu")
        found = gradient([(out, leaves["g"])], [leaves[name] for name in case.by])
        roots = [*roots, *found] if case.with_result else list(found)
    plan = schedule(roots, target)
    roles = {id(node): name for name, node in leaves.items()}
    return plan, [roles[id(node)] for node in plan.inputs]


def tensors_of(case: Case, dtype: str):
    """Make random arrays."""
    kind = getattr(torch, dtype)
    for name, shape in case.shapes.items():
        if case.is_integer(name):
            yield name, torch.randint(case.integers[name], shape, device="cuda").int()
        else:
            made = torch.randn(shape, device="cuda")
            yield name, (made.abs() if name == "v" else made).to(kind)


def torch_call(case: Case, given):
    """What computes the same with PyTorch, as a function of the arrays."""

    def run(arrays):
        named = {name: arrays[name] for name in case.shapes}
        if not case.by:
            return results_of(case.formula(torch_functional, *named.values()))

        def part(*some):
            return case.formula(torch_functional, *(named | dict(zip(case.by, some))).values())

        out, back = torch.func.vjp(part, *(named[name] for name in case.by))
        grads = back(arrays["g"])
        return [out, *grads] if case.with_result else list(grads)

    return run


def prepare(case: Case, dtype: str, target):
    """Plan a case and write its kernels."""
    plan, roles = plan_of(case, dtype, target)
    written = []
    for step in plan.steps:
        program = linearize(TEMPLATES[step.kernel.hero](step.kernel, target), target)
        written.append((program, step.slots, render(program)))
    return case, dtype, plan, roles, written


def error_of(found, expected) -> float:
    """The largest relative error of a result."""
    pairs = zip(found, expected, strict=True)
    return max(((a.double() - b.double()).norm() / b.double().norm()).item() for a, b in pairs)


def compare(prepared, cubins, options):
    """Check and time one case; its ratio, and its share of the rate of copies."""
    case, dtype, plan, roles, written = prepared
    given = dict(tensors_of(case, dtype))
    call = torch_call(case, given)
    if case.by:
        out = case.formula(torch_functional, *given.values())
        given["g"] = torch.ones_like(out) if case.with_result else torch.randn_like(out)
        del out
    built = [(program, slots, cubins[text]) for program, slots, text in written]
    ours, results = plan_call(plan, roles, built, given)
    ours()
    first = [each.clone() for each in results]
    ours()
    is_same = all(torch.equal(a, b) for a, b in zip(first, results, strict=True))
    wide = {
        name: each.float() if each.is_floating_point() else each for name, each in given.items()
    }
    error = error_of(first, call(wide))
    is_right = is_same and error < TOLERANCE[dtype]
    used = [given[name] for name in dict.fromkeys(roles)]
    nbytes = sum(each.numel() * each.element_size() for each in (*used, *first))
    if case.is_gathered:
        nbytes = 2 * results[0].numel() * results[0].element_size()
    del wide, first
    torch.compiler.reset()
    compiled = torch.compile(call, dynamic=False)
    source = torch.empty(COPIED // 4, device="cuda")
    copy = torch.empty_like(source)
    calls = {"ours": ours, "compiled": lambda: compiled(given), "copy": lambda: copy.copy_(source)}
    if options.eager:
        calls["eager"] = lambda: call(given)
    for each in calls.values():
        with torch.cuda.stream(torch.cuda.Stream()):
            each()
    torch.cuda.synchronize()
    rivals = [Rival(name, [each]) for name, each in calls.items()]
    times = in_turns(rivals, options.rounds, options.seconds, nbytes / 2e12)
    median = {name: statistics.median(each) for name, each in times.items()}
    pairs = zip(times["compiled"], times["ours"], strict=True)
    ratio = statistics.median(t / o for t, o in pairs)
    floor = nbytes / median["ours"] / (2 * COPIED / median["copy"])
    texts = [f"{name} {each * 1e6:.0f} us" for name, each in median.items()]
    verdict = "" if is_right else f" WRONG error {error:.1e}, same {is_same}"
    kernels = f"{len(plan.steps)} kernels"
    print(
        f"{case.name:28} {dtype:8} {' | '.join(texts)} | {ratio:.2f} of compiled, floor {floor:.2f}"
        f" | {kernels}{verdict}",
        flush=True,
    )
    if options.kernels:
        show_kernels(plan, ours, options.seconds, nbytes / 2e12)
    return ratio, floor


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=[""], help="whose names begin so")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8e-3, help="of a sample")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--kernels", action="store_true", help="time each kernel by itself too")
    options = parser.parse_args()
    start = time.perf_counter()
    target = target_here()
    print(torch.cuda.get_device_name(), torch.__version__)
    wanted = [case for case in CASES if any(case.name.startswith(name) for name in options.cases)]
    given = [prepare(case, dtype, target) for case in wanted for dtype in options.dtypes]
    print(f"{len(given)} cases")
    cubins = compiled_all([text for *_, written in given for _, _, text in written], target)
    found = {}
    for each in given:
        try:
            found[each[0].name, each[1]] = compare(each, cubins, options)
        except Exception as error:
            print(each[0].name, each[1], repr(error)[:300], flush=True)
        torch.cuda.empty_cache()
    ratios, floors = zip(*found.values())
    print(f"geomean {statistics.geometric_mean(ratios):.3f} of compiled, least {min(ratios):.2f};")
    print(f"floors {min(floors):.2f} to {max(floors):.2f}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
