"""Calls that users make daily, over shapes, axes and dtypes drawn at random, beside PyTorch.

    python bench/odd_rows.py [--rows 500] [--seed 0] [--only sort,topk] [--least 1] [--largest 1e6]

Every row is one call: microseconds of CPU time of one thread, least of ours and of PyTorch's in
turns, the result realised inside and values compared, and

    ratio    PyTorch's time over ours: above 1 we are faster
    kernel   the same, with the time that the call takes for two elements an axis taken off both

A row below 0.5 is measured again, up to three times, and counts if it is below each time.
"""

import argparse
import math
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ["PICOGRAD_THREADS"] = "1"

import numpy as np
import torch
from timing import machine, refuse_pinned_blas

import picograd
from picograd.errors import PicogradError

Call = Callable[[Any, Any, int], Any]  # library, tensor, axis -> result
FLOATS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
NUMBERS = (*FLOATS, "int8", "int32", "int64", "uint8")
ALL = (*NUMBERS, "bool")
REFUSALS = (PicogradError, RuntimeError, IndexError, TypeError, ValueError)
BAR, LEAST = 0.5, 1.0  # of PyTorch's speed; microseconds that a kernel takes at least


def halves(t: Any, axis: int) -> tuple[Any, Any]:
    """Cut a tensor in two along an axis."""
    half = max(t.shape[axis] // 2, 1)
    return t.narrow(axis, 0, half), t.narrow(axis, t.shape[axis] - half, half)


def places(lib: Any, t: Any, axis: int) -> Any:
    """Places along an axis, one for each element: each row the other way round."""
    return lib.arange(t.shape[axis] - 1, -1, -1)


def gathered(lib: Any, t: Any, axis: int) -> Any:
    """Read every other row from behind, by gather."""
    shape = [1] * t.ndim
    shape[axis] = t.shape[axis]
    return t.gather(axis, places(lib, t, axis).reshape(*shape).expand(*t.shape))


def images(t: Any) -> Any:
    """Make (N, C, H, W) of any shape."""
    shape = (1, 1, 1, *t.shape)[-4:] if t.ndim <= 4 else (-1, *t.shape[-3:])
    return t.reshape(*shape)


def pooled(lib: Any, t: Any, axis: int) -> Any:
    """Means of windows of two, as far as there are two."""
    h, w = images(t).shape[2:]
    return lib.nn.functional.avg_pool2d(images(t), (min(h, 2), min(w, 2)))


def resized(mode: str) -> Call:
    """Twice as many points."""
    return lambda lib, t, axis: lib.nn.functional.interpolate(images(t), scale_factor=2, mode=mode)


def padded(mode: str) -> Call:
    """One element more at each end of the last axis."""
    if mode == "constant":
        return lambda lib, t, axis: lib.nn.functional.pad(t, (1, 1) * (t.ndim - axis))
    return lambda lib, t, axis: lib.nn.functional.pad(images(t), (1, 1, 1, 1), mode=mode)


def batched(lib: Any, t: Any, axis: int) -> Any:
    """Small products: each of the last two axes' matrices times its transpose."""
    t = images(t)[..., :16, :48]
    return t @ t.mT


def summed(lib: Any, t: Any, axis: int) -> Any:
    """The rows along an axis times one another, as letters."""
    letters = "abcdef"[: t.ndim]
    rest = letters.replace(letters[axis], "")
    return lib.einsum(f"{letters},{letters}->{rest}", t, t)


def rolled_axes(lib: Any, t: Any, axis: int) -> Any:
    """Copy with an axis behind the others."""
    return t.movedim(axis, -1).contiguous() + 0


CALLS: dict[str, tuple[tuple[str, ...], Call]] = {
    "sum": (ALL, lambda lib, t, d: t.sum(d)),
    "mean": (FLOATS, lambda lib, t, d: t.mean(d)),
    "prod": (FLOATS, lambda lib, t, d: t.prod(d)),
    "any": (ALL, lambda lib, t, d: t.any(d)),
    "all": (ALL, lambda lib, t, d: t.all(d)),
    "max": (NUMBERS, lambda lib, t, d: tuple(t.max(d))),
    "min": (NUMBERS, lambda lib, t, d: tuple(t.min(d))),
    "amax": (ALL, lambda lib, t, d: t.amax(d)),
    "argmin": (NUMBERS, lambda lib, t, d: t.argmin(d)),
    "logsumexp": (FLOATS, lambda lib, t, d: t.logsumexp(d)),
    "norm": (FLOATS, lambda lib, t, d: t.norm(dim=d)),
    "norm1": (FLOATS, lambda lib, t, d: t.norm(p=1, dim=d)),
    "std": (FLOATS, lambda lib, t, d: t.std(d)),
    "var_mean": (FLOATS, lambda lib, t, d: lib.var_mean(t, d)),
    "median": (NUMBERS, lambda lib, t, d: t.median(d)[0]),
    "sort": (NUMBERS, lambda lib, t, d: t.sort(d)[0]),
    "argsort": (NUMBERS, lambda lib, t, d: t.argsort(dim=d, stable=True)),
    "topk": (NUMBERS, lambda lib, t, d: t.topk(min(5, t.shape[d]), d)[0]),
    "cumsum": (NUMBERS, lambda lib, t, d: t.cumsum(d)),
    "cumprod": (FLOATS, lambda lib, t, d: t.cumprod(d)),
    "cummax": (NUMBERS, lambda lib, t, d: t.cummax(d)[0]),
    "softmax": (FLOATS, lambda lib, t, d: t.softmax(d)),
    "log_softmax": (FLOATS, lambda lib, t, d: t.log_softmax(d)),
    "normalize": (FLOATS, lambda lib, t, d: lib.nn.functional.normalize(t, dim=d)),
    "layer_norm": (FLOATS, lambda lib, t, d: lib.nn.functional.layer_norm(t, t.shape[d:])),
    "count_nonzero": (ALL, lambda lib, t, d: t.count_nonzero(d)),
    "total": (ALL, lambda lib, t, d: t.sum()),
    "flip": (ALL, lambda lib, t, d: t.flip(d)),
    "roll": (ALL, lambda lib, t, d: t.roll(3, d)),
    "cat": (ALL, lambda lib, t, d: lib.cat([t, t, t], d)),
    "cat_halves": (ALL, lambda lib, t, d: lib.cat(halves(t, d)[::-1], d)),
    "stack": (ALL, lambda lib, t, d: lib.stack([t, t], d)),
    "where": (NUMBERS, lambda lib, t, d: lib.where(t > 0, t, 0)),
    "pad": (ALL, padded("constant")),
    "pad_reflect": (("float32",), padded("replicate")),
    "repeat": (ALL, lambda lib, t, d: t.repeat(*[1 + (n == d) for n in range(t.ndim)])),
    "interleave": (ALL, lambda lib, t, d: t.repeat_interleave(2, d)),
    "gather": (ALL, gathered),
    "index_select": (ALL, lambda lib, t, d: t.index_select(d, places(lib, t, d))),
    "movedim": (ALL, rolled_axes),
    "transpose": (ALL, lambda lib, t, d: t.transpose(d, 0).contiguous() + 0),
    "step": (ALL, lambda lib, t, d: t[..., ::2] + 0),
    "einsum": (FLOATS, summed),
    "batched": (FLOATS, batched),
    "avg_pool": (("float32", "float64", "bfloat16"), pooled),
    "nearest": (("float32", "float64", "bfloat16", "uint8"), resized("nearest")),
    "bilinear": (("float32", "float64", "bfloat16"), resized("bilinear")),
    "add": (NUMBERS, lambda lib, t, d: t + t),
    "broadcast": (NUMBERS, lambda lib, t, d: t * t.narrow(d, 0, 1)),
    "divide": (NUMBERS, lambda lib, t, d: t / 3),
    "floor_divide": (NUMBERS, lambda lib, t, d: t // 3),
    "remainder": (NUMBERS, lambda lib, t, d: t % 7),
    "compare": (NUMBERS, lambda lib, t, d: t >= 1),
    "equal": (ALL, lambda lib, t, d: t == t.flip(d)),
    "to_float": (ALL, lambda lib, t, d: t.to(lib.float32) + 0),
    "to_half": (ALL, lambda lib, t, d: t.to(lib.bfloat16)),
    "to_int": (NUMBERS, lambda lib, t, d: t.to(lib.int32)),
    "abs": (NUMBERS, lambda lib, t, d: t.abs()),
    "clamp": (NUMBERS, lambda lib, t, d: t.clamp(0, 2)),
    "exp": (FLOATS, lambda lib, t, d: t.exp()),
    "sigmoid": (FLOATS, lambda lib, t, d: t.sigmoid()),
    "gelu": (FLOATS, lambda lib, t, d: lib.nn.functional.gelu(t)),
    "sqrt": (FLOATS, lambda lib, t, d: (t * t).sqrt()),
    "round": (FLOATS, lambda lib, t, d: t.round()),
    "pow": (FLOATS, lambda lib, t, d: t**3),
    "bits": (("int8", "int32", "int64", "uint8", "bool"), lambda lib, t, d: t ^ t.flip(d)),
    "tril": (ALL, lambda lib, t, d: images(t).tril()),
    "diff": (NUMBERS, lambda lib, t, d: t.diff(dim=d)),
    "masked_fill": (ALL, lambda lib, t, d: t.masked_fill(t > 0, 0)),
    "unfold": (ALL, lambda lib, t, d: t.unfold(d, min(3, t.shape[d]), 1) + 0),
}  # fmt: skip


def draw_shape(draw: random.Random, least: float, largest: float) -> tuple[int, ...]:
    """Draw 1 to 4 axes, of each scale as often as of another; some are powers of two."""
    weights = [draw.random() for _ in range(draw.randint(1, 4))]
    scale = draw.uniform(math.log(least), math.log(largest)) / sum(weights)
    shape = [max(1, round(math.exp(scale * each))) for each in weights]
    if draw.random() < 0.3:
        shape = [1 << round(math.log2(n)) for n in shape]
    return tuple(shape)


def draw_rows(names: list[str], count: int, seed: int, span: tuple[float, float]) -> list[tuple]:
    """Draw (call, shape, axis, dtype, is stored transposed)."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        name = names[number % len(names)]
        shape = draw_shape(draw, *span)
        dtype = draw.choice(CALLS[name][0])
        rows.append((name, shape, draw.randrange(len(shape)), dtype, draw.random() < 0.2))
    return rows


def operands(shape: tuple[int, ...], dtype: str, is_strided: bool) -> tuple[Any, Any]:
    """The same numbers for both; stored the other way round if strided."""
    stored = shape[::-1] if is_strided else shape
    values = np.random.default_rng(0).standard_normal(stored).astype(np.float32) * 4
    if not dtype.startswith(("float", "bfloat")):
        values = np.abs(values) if dtype == "uint8" else np.trunc(values)
    theirs = torch.from_numpy(values).to(getattr(torch, dtype))
    mine = picograd.tensor(values).to(getattr(picograd, dtype)).realize()
    if is_strided:
        order = tuple(range(len(shape)))[::-1]
        mine, theirs = mine.permute(*order), theirs.permute(*order)
    return mine, theirs


def realised(result: Any) -> Any:
    """Compute one result, or several at once."""
    if isinstance(result, tuple):
        result[0].realize(*result[1:])
        return result
    return result.realize()


def is_equal(mine: Any, theirs: Any) -> bool:
    """Compare values, at the digits of the dtype."""
    if isinstance(theirs, (tuple, list)):
        return all(map(is_equal, mine, theirs))
    digits = 2e-2 if theirs.dtype in (torch.float16, torch.bfloat16) else 1e-3
    found = np.asarray(mine.to(picograd.float64).numpy(), np.float64)
    wanted = theirs.to(torch.float64).numpy()
    scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
    return np.allclose(found, wanted, digits, digits * scale, equal_nan=True)


def clocked(run: Callable[[], Any], times: int) -> float:
    """Microseconds of this thread for a run."""
    start = time.thread_time()
    for _ in range(times):
        run()
    return (time.thread_time() - start) / times * 1e6


def in_turns(mine: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple:
    """Least microseconds of both, in turns; short calls find their way in the first hundreds."""
    least = []
    for run in (mine, theirs):
        once, spent = clocked(run, 1), 0.0
        while spent < 60e3 and once < 50e3:
            once = min(once, clocked(run, 10))
            spent += 10 * once
            if spent > 330 * once:
                break
        least.append(max(1, min(40, int(1500 / max(once, 1)))))
    found = [(clocked(mine, least[0]), clocked(theirs, least[1])) for _ in range(rounds)]
    return tuple(map(min, zip(*found)))


def row(name: str, shape: tuple, axis: int, dtype: str, is_strided: bool, rounds: int) -> tuple:
    """Time one row; returns (ratio, kernel's ratio, ours, PyTorch's, ours of few elements)."""
    call = CALLS[name][1]

    def of(shape: tuple[int, ...]) -> tuple[Callable[[], Any], Callable[[], Any]]:
        x, y = operands(shape, dtype, is_strided)
        return lambda: realised(call(picograd, x, axis)), lambda: call(torch, y, axis)

    mine, theirs = of(shape)
    wanted = theirs()
    if not is_equal(mine(), wanted):
        print("DIFFERENT", name, shape, axis, dtype, is_strided, flush=True)
    best: tuple = ()
    for _ in range(3):
        ours, its = in_turns(mine, theirs, rounds)
        best = max(best, (its / ours, ours, its))
        if best[0] >= BAR:
            break
    small = in_turns(*of((2,) * len(shape)), rounds) if best[0] < BAR else (0.0, 0.0)
    ratio, ours, its = best
    kernel = max(its - small[1], LEAST) / max(ours - small[0], LEAST)
    return ratio, kernel, ours, its, small[0], small[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default=",".join(CALLS))
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=float, default=1, help="elements")
    parser.add_argument("--largest", type=float, default=1e6, help="elements")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    print(machine())
    columns = ("ratio", "kernel", "ours us", "PyTorch", "few, ours", "PyTorch")
    print(f"{'':44}{columns[0]:>8}{columns[1]:>8}" + "".join(f"{c:>10}" for c in columns[2:]))
    found = []
    span = options.least, options.largest
    for drawn in draw_rows(options.only.split(","), options.rows, options.seed, span):
        name, shape, axis, dtype, is_strided = drawn
        text = f"{name}({axis}) {'x'.join(map(str, shape))}{'!' * is_strided} {dtype}"
        try:
            times = row(*drawn, options.rounds)
        except REFUSALS as error:
            print(f"skipped {text}: {str(error)[:90]}", flush=True)
            continue
        found.append((times, text))
        if times[0] < BAR:
            ratio, kernel, *rest = times
            numbers = "".join(f"{each:10.1f}" for each in rest)
            print(f"{text:44}{ratio:8.2f}{kernel:8.2f}{numbers}", flush=True)
    slow = [times for times, _ in found if times[0] < BAR]
    middle = statistics.median(times[0] for times, _ in found)
    heavy = sum(times[1] < BAR for times in slow)
    print(f"{len(slow)} of {len(found)} below {BAR}, median {middle:.2f}")
    print(f"{heavy} of them by more than a call of few elements")


if __name__ == "__main__":
    main()
