"""Ordinary sequence programs on an NVIDIA GPU beside PyTorch at its best; small ones on a CPU.

Training is by autocast to bfloat16, gradients clipped, AdamW; inference in bfloat16. PyTorch runs
as it is, with either order of its attention kernels, and compiled, all captured in a CUDA graph;
the best counts.

    python bench/gpu_sequences.py [--only llama bert] [--rounds 5]
    python bench/gpu_sequences.py --device cpu   # small sizes: values of three steps
    python bench/gpu_sequences.py --plan         # kernels of each for an H200, without a GPU

Programs are compiled in processes beside one another and timed one after the other.
"""

import argparse
import subprocess
import sys
import time

import numpy as np
import sequences as S
from sequences import LARGE, SMALL, padding, tokens

IS_WIDE = False  # whether floats have 32 bits
STEPS = {True: 5, False: 40}  # of a round, trained or not
WAIT = 95  # seconds in which all have compiled, or are left out


def floats(generator, *shape):
    return generator.standard_normal(shape, dtype=np.float32)


def words(count):
    return lambda g, s: tokens(g, s, count)


def additive(padded):
    return np.where(padded, -np.inf, 0).astype(np.float32)


def bias_of(s, hidden, slopes=False):
    """A mask of numbers: -inf where places are hidden, ALiBi's slopes elsewhere."""
    distance = np.arange(s.length)[:, None] - np.arange(s.length)[None]
    slope = 2.0 ** (-8 / s.heads * np.arange(1, s.heads + 1))[:, None, None] if slopes else 0.0
    return np.where(hidden(distance), -np.inf, -slope * distance).astype(np.float32)


def alibi(g, s):
    return floats(g, s.batch, s.length, s.width), bias_of(s, lambda d: d < 0, True)


def window(g, s):
    mask = bias_of(s, lambda d: (d < 0) | (d >= s.length // 4))
    return floats(g, s.batch, s.length, s.width), mask


def clicks(g, s):
    rows = 100 * s.vocabulary // 32
    count = s.batch * s.length // 2
    bags = g.integers(0, rows, (count, 8, 4))
    return floats(g, count, 13), bags, g.integers(0, 2, count).astype(np.float32)


def images(g, s):
    count, size = (64, 224) if s.width > 64 else (s.batch, 32)
    return floats(g, count, 3, size, size), g.integers(0, 1000, count)


def sounds(g, s):
    goals = g.integers(1, 128, (s.batch, s.length // 8))
    lengths = np.full(s.batch, s.length), np.full(s.batch, s.length // 8)
    return floats(g, s.batch, s.length, 80), goals, *lengths


def rows(g, s):
    return (floats(g, s.batch, s.length, s.width),)


def in_windows(g, s):
    return (floats(g, s.batch, 49, s.width),)


def one(g, s):
    return (floats(g, 1, s.width),)


def masked(as_numbers, make):
    def inputs(g, s):
        padded = padding(g, s)
        return make(g, s)[0], additive(padded) if as_numbers else padded

    return inputs


def with_labels(g, s):
    return floats(g, s.batch, s.length, s.width), tokens(g, s)[0]


def next_place(g, s):
    return g.integers(0, s.vocabulary, (1, 1)), np.array([s.length // 2])


WORDS = LARGE._replace(batch=32, length=128, width=512, vocabulary=10000)
WINDOWS = LARGE._replace(batch=256, width=96, heads=3)
SMALL_T5 = LARGE._replace(batch=4, length=512, width=512, heads=8)
BERT = LARGE._replace(batch=16, length=512, width=768, heads=12)
# name: what makes it, its inputs, whether it is trained, its sizes
CASES = {
    "llama": (S.llama, words(2), True, LARGE._replace(batch=4)),
    "llama prefill": (S.llama, words(1), False, LARGE),
    "bert boolean": (S.bert, masked(False, words(1)), True, BERT),
    "bert numbers": (S.bert, masked(True, words(1)), True, BERT),
    "shipped boolean": (S.shipped, masked(False, rows), True, BERT),
    "shipped numbers": (S.shipped, masked(True, rows), True, BERT),
    "shipped inference": (S.shipped, masked(False, rows), False, BERT),
    "t5": (S.t5, words(2), True, LARGE._replace(batch=8, length=512, width=768, heads=12)),
    "t5 small": (S.t5, words(2), True, SMALL_T5),
    "swin": (S.windows, in_windows, True, WINDOWS),
    "swin masked": (lambda T, s: S.windows(T, s, True), in_windows, True, WINDOWS),
    "alibi": (S.attention_alone, alibi, True, LARGE),
    "window": (S.attention_alone, window, True, LARGE._replace(batch=4, length=2048)),
    "window inference": (S.attention_alone, window, False, LARGE._replace(batch=4, length=2048)),
    "mixture dense": (lambda T, s: S.mixture(T, s, True), rows, True, LARGE._replace(batch=4)),
    "mixture sparse": (lambda T, s: S.mixture(T, s, False), rows, True, LARGE),
    "lstm": (lambda T, s: S.recurrent(T, s, "LSTM"), words(2), True, WORDS),
    "gru": (lambda T, s: S.recurrent(T, s, "GRU"), words(2), True, WORDS),
    "selective": (S.selective, rows, True, LARGE),
    "linear attention": (S.linear_attention, rows, True, LARGE),
    "recommender": (S.recommender, clicks, True, LARGE),
    "vision": (S.vision, images, True, LARGE._replace(width=768, heads=12)),
    "speech": (S.speech, sounds, True, LARGE._replace(batch=32, length=256, width=512)),
    "vocabulary": (S.vocabulary, with_labels, True, LARGE._replace(batch=4, width=768)),
    "adapted": (S.adapted, words(2), True, LARGE._replace(batch=4)),
    "int8 of one": (S.eight_bits, one, False, LARGE._replace(width=4096)),
    "int8 of many": (S.eight_bits, rows, False, LARGE._replace(batch=2, width=4096)),
    "generation": (S.generation, next_place, False, LARGE._replace(layers=4)),
}

ATTENTION = {
    "llama",
    "bert",
    "swin",
    "shipped",
    "alibi",
    "window",
    "vision",
    "adapted",
    "generation",
}
ATTENTION = {name for name in CASES if name.split()[0] in ATTENTION}
LEFT_ALONE = {"lstm", "gru", "speech"}  # cuDNN's, which compilation leaves as they are


def state_of(name, small):
    """Make PyTorch's network: its state, and the arrays it is given."""
    import torch

    torch.manual_seed(0)
    make, inputs, is_trained, large = CASES[name]
    s = SMALL if small else large
    return make(torch, s), inputs(np.random.default_rng(0), s), is_trained, s


def step_of(T, model, arrays, is_trained, device, **options):
    """Make a step: a loss after which weights are better, or a result."""
    given = [T.tensor(each).to(device) for each in arrays]
    if not is_trained:
        kind = T.float32 if device == "cpu" else T.bfloat16
        model = model.to(kind).eval()
        given = [each.to(kind) if each.is_floating_point() else each for each in given]

        def call():
            with T.no_grad():
                return model(*given)

        return call, model
    weights = [each for each in model.parameters() if each.requires_grad]
    optimizer = T.optim.AdamW(weights, lr=1e-4, **options)
    call_of = [model]

    def step():
        optimizer.zero_grad()
        with T.autocast("cuda", dtype=T.bfloat16, enabled=device != "cpu" and not IS_WIDE):
            loss = call_of[0](*given)
        loss.backward()
        T.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        return loss

    step.call_of = call_of
    return step, model


def ours_of(name, model, arrays, is_trained, s, device, is_jitted=True):
    """Make picograd's step with the weights of PyTorch's network."""
    import picograd
    from picograd import nn  # noqa: F401

    own = CASES[name][0](picograd, s)
    state = model.state_dict().items()
    own.load_state_dict({key: picograd.tensor(each.float().numpy()) if each.is_floating_point()
                         else picograd.tensor(each.numpy()) for key, each in state})  # fmt: skip
    step, own = step_of(picograd, own.to(device), arrays, is_trained, device)
    return picograd.jit(step) if is_jitted else step


def value(result):
    """What is compared: a loss, or the norm of a result."""
    return float(result.detach().float().norm().item())


def looked_at(name):
    """Print the values of three steps on a CPU."""
    import torch

    model, arrays, is_trained, s = state_of(name, True)
    ours = ours_of(name, model, arrays, is_trained, s, "cpu")
    theirs, _ = step_of(torch, model, arrays, is_trained, "cpu")
    pairs = [(value(ours()), value(theirs())) for _ in range(3)]
    worst = max(abs(a - b) / (abs(b) + 1e-9) for a, b in pairs)
    print(f"{name:18} {'ok' if worst < 2e-5 else 'NO'} {worst:.1e} {pairs}", flush=True)


def rivals_of(name, model, arrays, is_trained):
    """Make PyTorch's rivals: their names and what takes a step, and the first values."""
    import torch
    from torch.nn.attention import SDPBackend as B
    from torch.nn.attention import sdpa_kernel
    from torch_capture import capture

    torch.set_float32_matmul_precision("highest" if IS_WIDE else "high")
    options = {"fused": True, "capturable": True} if is_trained else {}
    step, model = step_of(torch, model.cuda(), arrays, is_trained, "cuda", **options)
    values = [value(step()) for _ in range(3)]
    rivals, problems = {}, []
    orders = {"flash": [B.FLASH_ATTENTION, B.EFFICIENT_ATTENTION, B.CUDNN_ATTENTION, B.MATH]}
    orders["cudnn"] = [B.CUDNN_ATTENTION, *orders["flash"]]
    for order in orders if name in ATTENTION else ["flash"]:
        try:
            with sdpa_kernel(orders[order], set_priority=True):
                rivals[order] = capture(step, 4)[0].replay
        except Exception as problem:  # what synchronizes cannot be captured
            problems.append(problem)
            torch.cuda.synchronize()
    if not rivals:
        return {"eager": step}, values, problems
    if name in LEFT_ALONE:
        return rivals, values, problems
    print("captured", flush=True)
    best = min(rivals, key=lambda each: min(timed({each: rivals[each]}, 5, 1)[each]))
    rivals = {best: rivals[best]}  # graphs have memory of their own
    torch.cuda.empty_cache()
    try:
        with sdpa_kernel(orders[best], set_priority=True):
            if is_trained:
                step.call_of[0] = torch.compile(model, dynamic=False)
                rivals["compiled"] = capture(step, 4)[0].replay
            else:
                rivals["compiled"] = capture(torch.compile(step, dynamic=False), 4)[0].replay
    except Exception as problem:
        problems.append(problem)
    return rivals, values, problems


def timed(rivals, rounds, steps):
    """Time each in turns: lists of milliseconds a step."""
    import torch

    import picograd

    times = {each: [] for each in rivals}
    for number in range(rounds + 1):
        for each, run in rivals.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(steps):
                run()
            picograd.cuda.synchronize()
            torch.cuda.synchronize()
            if number:
                times[each].append((time.perf_counter() - start) / steps * 1e3)
    return times


def kernels_of(step):
    """List the kernels of a step of PyTorch by what they take."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        step()
    table = sorted(found.key_averages(), key=lambda each: -each.device_time_total)
    lines = [f"  {x.device_time_total:9.1f} us {x.count:4} {x.key[:100]}" for x in table[:12]]
    return "\n".join(["PyTorch's:", *lines])


def child(name, rounds):
    """Compile, say so, wait for the word, time, and print a line."""
    import picograd

    began = time.monotonic()
    model, arrays, is_trained, s = state_of(name, False)
    print(f"made after {time.monotonic() - began:.1f} s", flush=True)
    ours = ours_of(name, model, arrays, is_trained, s, "cuda")
    values = [value(ours()) for _ in range(3)]
    print(f"picograd's first steps after {time.monotonic() - began:.1f} s", flush=True)
    rivals, theirs, problems = rivals_of(name, model, arrays, is_trained)
    apart = max(abs(a - b) / (abs(b) + 1e-9) for a, b in zip(values, theirs, strict=True))
    print("READY", flush=True)
    sys.stdin.readline()
    times = timed({"picograd": ours} | rivals, rounds, STEPS[is_trained])
    middle = {each: float(np.median(found)) for each, found in times.items()}
    spread = max(
        np.ptp(np.quantile(each, (0.25, 0.75))) / np.median(each) for each in times.values()
    )
    best = min(rivals, key=middle.get)
    print(
        f"{name:18} {middle['picograd']:8.3f} {middle[best]:8.3f} {best:9}"
        f" {middle[best] / middle['picograd']:5.2f}  spread {spread:.0%}  values {apart:.0e}"
        + "  " + " ".join(f"{each} {time:.3f}" for each, time in middle.items())
    )  # fmt: skip
    if middle[best] < middle["picograd"]:
        print(kernels_of(rivals[best]))
    for problem in problems:
        print("  no rival:", str(problem).split("\n")[0][:120])
    with picograd.profile() as found:
        ours()
        picograd.cuda.synchronize()
    print(found)


def planned(name, is_shown):
    """Print the kernels of a step for an H200, on a device that runs nothing."""
    from collections import Counter

    from plan_graphs import compute
    from plan_text import TARGETS, only_plans, plan_text

    from picograd.codegen.boxes import Persistent
    from picograd.codegen.pipeline import TEMPLATES
    from picograd.engine import pending

    model, arrays, is_trained, s = state_of(name, False)
    with only_plans("cuda:0") as plans:
        step = ours_of(name, model, arrays, is_trained, s, "cuda", is_jitted=False)
        pending.realize_all()
        compute(step)
        plans.is_open = True
        compute(step)
        pending.realize_all()
    kernels = [kernel for plan in plans for kernel in plan.kernels]
    plain = []
    for kernel in kernels:
        if kernel.hero in ("conv", "contract"):
            first = TEMPLATES[kernel.hero](kernel, TARGETS["cuda:0"]).parts[0].steps[0]
            plain += [] if isinstance(first, Persistent) else [kernel.name]
    heroes = dict(Counter(kernel.hero for kernel in kernels))
    print(f"{name:18} {len(kernels)} kernels {heroes}, products without boxes: {Counter(plain)}")
    if is_shown:
        print("\n".join(plan_text(plan) for plan in plans), flush=True)


def together(names, options):
    """Run a process for each program: compile beside one another, time in turn."""
    wide = ["--wide"] if options.wide else []
    command = [sys.executable, __file__, "--rounds", str(options.rounds), *wide, "--child"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    running = {each: subprocess.Popen([*command, each], text=True, **pipes) for each in names}
    end, lines, details = time.monotonic() + WAIT, [], []
    import threading

    said = {each: [] for each in names}
    ready = {each: threading.Event() for each in names}

    def read(name):
        for line in running[name].stdout:
            if line == "READY\n":
                ready[name].set()
            else:
                said[name].append(line.rstrip())
        ready[name].set()

    readers = [threading.Thread(target=read, args=(each,)) for each in names]
    for each in readers:
        each.start()
    for each in names:
        if not ready[each].wait(max(0.0, end - time.monotonic())):
            running[each].kill()
    for each, reader in zip(names, readers, strict=True):
        try:
            running[each].stdin.write("go\n")
            running[each].stdin.flush()
        except OSError:
            pass
        reader.join(20)
        if running[each].poll() is None:
            running[each].kill()
        found = [line for line in said[each] if line.startswith(f"{each:18} ")]
        lines += found or [f"{each:18} failed: {' | '.join(said[each][-3:])[-300:]}"]
        details += [f"=== {each}", *said[each]]
    print("\n".join(details))
    print(f"{'program':18} picograd  PyTorch           ratio")
    print("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--kernels", action="store_true", help="print the kernels of plans")
    parser.add_argument("--child")
    parser.add_argument("--wide", action="store_true", help="train in float32, without autocast")
    options = parser.parse_args()
    global IS_WIDE
    IS_WIDE = options.wide
    if options.child:
        child(options.child, options.rounds)
    elif options.plan:
        for name in options.only:
            planned(name, options.kernels)
    elif options.device == "cpu":
        for name in options.only:
            looked_at(name)
    else:
        together(options.only, options)


if __name__ == "__main__":
    main()
