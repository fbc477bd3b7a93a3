"""What PyTorch calls libraries for, on an NVIDIA GPU: sums at places, searches, sorts, scans,
factorizations and transforms of ordinary sizes.

`picograd.jit` and PyTorch in turns, float32 without TF32: medians of ROUNDS rounds of calls for a
few milliseconds, values compared. PyTorch is captured in a CUDA graph where it can be. Names choose
rows by what they contain; `--profiles` writes the kernels of each row into a folder, `--warm` only
computes each row once, which fills the cache of kernels.

    python bench/gpu_libraries.py [sort scatter ...] [--profiles FOLDER] [--warm PART/PARTS]
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np

import picograd
from picograd import Tensor

R = np.random.default_rng(0)
ROUNDS = 3


def numbers(*shape):
    """Draw float32 numbers."""
    return R.standard_normal(shape, np.float32)


def between(low, high):
    """Draw four million float32 numbers between two, when they are asked for."""
    return lambda: (R.uniform(low, high, 4 * N).astype(np.float32),)


def places(count, *shape):
    """Draw places below a count."""
    return R.integers(0, count, shape)


def positive(size, count=None):
    """Make symmetric positive definite matrices."""
    x = numbers(*((size, size) if count is None else (count, size, size)))
    return x @ np.swapaxes(x, -1, -2) / size + np.eye(size, dtype=np.float32)


def dominant(size):
    """Make a matrix that is no trouble to invert, which needs its pivots."""
    return numbers(size, size) + np.float32(2) * np.eye(size, dtype=np.float32)


def zeros(*shape):
    """Make zeros."""
    return np.zeros(shape, np.float32)


def embedding_gradient(m, table, index, seed):
    """Compute the gradient of rows of a table."""
    table = table.detach().requires_grad_()
    rows = (m.nn.functional).embedding(index, table)
    return m.autograd.grad(rows, table, seed)[0]


def nucleus(m, x):
    """Choose tokens that make up 0.9 of the probability."""
    ordered = m.sort(x.softmax(-1), descending=True)[0]
    kept = ordered.cumsum(-1) - ordered < 0.9
    return m.where(kept, ordered, 0.0).sum(-1)


def ranks(m, x):
    """Rank elements, equal ones in their order."""
    return m.argsort(x, dim=-1, stable=True)


def vectors(m, a):
    """Put together what singular values and vectors were taken from."""
    u, values, vh = m.linalg.svd(a, full_matrices=False)
    return u @ (values[..., None] * vh)


def solve(m, a, b):
    """Solve systems."""
    return m.linalg.solve(a, b)


VOCABULARY = 50257
N = 1_000_000
CASES = {
    # sums at places
    "scatter_add 65536x256 4096": (
        lambda m, z, i, x: z.scatter_add(0, i, x),
        lambda: (zeros(4096, 256), places(4096, 65536, 256), numbers(65536, 256)),
    ),
    "scatter_add 4096x256 4096": (
        lambda m, z, i, x: z.scatter_add(0, i, x),
        lambda: (zeros(4096, 256), places(4096, 4096, 256), numbers(4096, 256)),
    ),
    "embedding grad 8192 50257x768": (
        embedding_gradient,
        lambda: (numbers(VOCABULARY, 768), places(VOCABULARY, 8192), numbers(8192, 768)),
    ),
    "embedding grad 200k 100kx64": (
        embedding_gradient,
        lambda: (numbers(100_000, 64), places(100_000, 200_000), numbers(200_000, 64)),
    ),
    "index_add 1Mx64 50k (graph)": (
        lambda m, z, i, x: z.index_add(0, i, x),
        lambda: (zeros(50_000, 64), places(50_000, N), numbers(N, 64)),
    ),
    "index_add 10k x16 2708": (
        lambda m, z, i, x: z.index_add(0, i, x),
        lambda: (zeros(2708, 16), places(2708, 10_556), numbers(10_556, 16)),
    ),
    "scatter_reduce mean 1Mx16 50k": (
        lambda m, z, i, x: z.scatter_reduce(
            0, i[:, None].expand(N, 16), x, "mean", include_self=False
        ),
        lambda: (zeros(50_000, 16), places(50_000, N), numbers(N, 16)),
    ),
    "index_add 10M numbers 1M": (
        lambda m, z, i, x: z.index_add(0, i, x),
        lambda: (zeros(N), places(N, 10 * N), numbers(10 * N)),
    ),
    "bincount 10M 256": (lambda m, i: m.bincount(i, minlength=256), lambda: (places(256, 10 * N),)),
    "bincount 10M 50k": (
        lambda m, i: m.bincount(i, minlength=50_000),
        lambda: (places(50_000, 10 * N),),
    ),
    "histc 10M 100": (lambda m, x: m.histc(x, 100, -4, 4), lambda: (numbers(10 * N),)),
    # sorts and searches
    "sort 1M": (lambda m, x: m.sort(x)[0], lambda: (numbers(N),)),
    "sort 16M": (lambda m, x: m.sort(x)[0], lambda: (numbers(1 << 24),)),
    "sort 100M": (lambda m, x: m.sort(x)[0], lambda: (numbers(100 * N),)),
    "sort 64x50257": (lambda m, x: m.sort(x)[0], lambda: (numbers(64, VOCABULARY),)),
    "argsort 4096x1024": (ranks, lambda: (numbers(4096, 1024),)),
    "argsort int64 1M": (ranks, lambda: (places(1 << 40, N),)),
    "randperm-like argsort 60k": (ranks, lambda: (numbers(60_000),)),
    "topk 50 of 64x50257": (lambda m, x: m.topk(x, 50)[0], lambda: (numbers(64, VOCABULARY),)),
    "topk 50 of 1x151936": (lambda m, x: m.topk(x, 50)[0], lambda: (numbers(1, 151_936),)),
    "topk 5 of 256x1000": (lambda m, x: m.topk(x, 5)[0], lambda: (numbers(256, 1000),)),
    "topk 2 of 8192x8 (experts)": (lambda m, x: m.topk(x, 2)[0], lambda: (numbers(8192, 8),)),
    "topk 100 of 1M": (lambda m, x: m.topk(x, 100)[0], lambda: (numbers(N),)),
    "topk 1000 of 32x100k": (lambda m, x: m.topk(x, 1000)[0], lambda: (numbers(32, 100_000),)),
    "nucleus 8x50257": (nucleus, lambda: (numbers(8, VOCABULARY),)),
    "median 1M": (lambda m, x: m.median(x), lambda: (numbers(N),)),
    "quantile 1M": (lambda m, x: m.quantile(x, 0.9), lambda: (numbers(N),)),
    "argmax 64x50257": (lambda m, x: m.argmax(x, -1), lambda: (numbers(64, VOCABULARY),)),
    "argmax 10M": (lambda m, x: m.argmax(x), lambda: (numbers(10 * N),)),
    "searchsorted 1M in 1M": (
        lambda m, s, x: m.searchsorted(s, x),
        lambda: (np.sort(numbers(N)), numbers(N)),
    ),
    "bucketize 1M in 1000": (
        lambda m, s, x: m.bucketize(x, s),
        lambda: (np.sort(numbers(1000)), numbers(N)),
    ),
    # scans
    "cumsum 10M": (lambda m, x: m.cumsum(x, 0), lambda: (numbers(10 * N),)),
    "cumsum 64x50257": (lambda m, x: m.cumsum(x, -1), lambda: (numbers(64, VOCABULARY),)),
    "cumsum 4096x1024": (lambda m, x: m.cumsum(x, -1), lambda: (numbers(4096, 1024),)),
    "cumsum(0) 1024x4096": (lambda m, x: m.cumsum(x, 0), lambda: (numbers(1024, 4096),)),
    "cummax 64x50257": (lambda m, x: m.cummax(x, -1)[0], lambda: (numbers(64, VOCABULARY),)),
    # transforms
    "fft 16x1024": (lambda m, x: m.fft.fft(x).abs(), lambda: (numbers(16, 1024),)),
    "rfft 64x16000": (lambda m, x: m.fft.rfft(x).abs(), lambda: (numbers(64, 16_000),)),
    "rfft 1M": (lambda m, x: m.fft.rfft(x).abs(), lambda: (numbers(1 << 20),)),
    "fft2 8x3x224x224": (lambda m, x: m.fft.fft2(x).abs(), lambda: (numbers(8, 3, 224, 224),)),
    "FNO 16x32x64x64": (
        lambda m, x, w: m.fft.irfft2(m.fft.rfft2(x) * w, s=(64, 64)),
        lambda: (numbers(16, 32, 64, 64), numbers(32, 64, 33)),
    ),
    "long conv 16x64x2048": (
        lambda m, x, k: m.fft.irfft(m.fft.rfft(x, 4096) * m.fft.rfft(k, 4096), 4096)[..., :2048],
        lambda: (numbers(16, 64, 2048), numbers(64, 2048)),
    ),
    "stft 16x48000": (
        lambda m, x, w: m.stft(x, 1024, 256, window=w, return_complex=True).abs(),
        lambda: (numbers(16, 48_000), np.hanning(1024).astype(np.float32)),
    ),
}
CASES |= {  # products of float64, turns
    f"float64 product {size}": (
        lambda m, a, b: a @ b,
        lambda size=size: (R.standard_normal((size, size)), R.standard_normal((size, size))),
    )
    for size in (512, 1024, 4096)
}
CASES |= {  # draws, images at places, special functions
    "randn 10M": (lambda m, x: m.randn_like(x) * 0, lambda: (zeros(10 * N),)),
    "cumsum 10M int64": (lambda m, x: m.cumsum(x, 0), lambda: (places(9, 10 * N),)),
    "grid_sample 8x64x56x56": (
        lambda m, x, at: m.nn.functional.grid_sample(x, at, align_corners=False),
        lambda: (numbers(8, 64, 56, 56), R.uniform(-1, 1, (8, 56, 56, 2)).astype(np.float32)),
    ),
    "grid_sample 4x3x224x224": (
        lambda m, x, at: m.nn.functional.grid_sample(x, at, align_corners=False),
        lambda: (numbers(4, 3, 224, 224), R.uniform(-1, 1, (4, 224, 224, 2)).astype(np.float32)),
    ),
    "special erfinv 4M": (
        lambda m, x: m.erfinv(x),
        lambda: (R.uniform(-1, 1, 4 * N).astype(np.float32),),
    ),
    "special lgamma 4M": (lambda m, x: m.lgamma(x), lambda: (numbers(4 * N) * 4,)),
    "special lgamma 4M positive": (lambda m, x: m.lgamma(x), between(0, 20)),
    "special i0 4M": (lambda m, x: m.i0(x), lambda: (numbers(4 * N),)),
    "special i0e 4M": (lambda m, x: m.special.i0e(x), between(-20, 20)),
    "special i1 4M": (lambda m, x: m.special.i1(x), between(-20, 20)),
    "special i1e 4M": (lambda m, x: m.special.i1e(x), between(-20, 20)),
    "special digamma 4M": (lambda m, x: m.digamma(x), lambda: (numbers(4 * N) * 4,)),
}
CASES |= {  # functions of numbers between two; a jitted one with default arguments waits for Python
    "special expm1 4M": (lambda m, x: m.expm1(x), between(-3, 3)),
    "special sinh 4M": (lambda m, x: m.sinh(x), between(-4, 4)),
    "special cosh 4M": (lambda m, x: m.cosh(x), between(-4, 4)),
    "special asinh 4M": (lambda m, x: m.asinh(x), between(-4, 4)),
    "special acosh 4M": (lambda m, x: m.acosh(x), between(1, 9)),
    "special atanh 4M": (lambda m, x: m.atanh(x), between(-1, 1)),
    "special logit 4M": (lambda m, x: m.logit(x), between(0, 1)),
    "special sin 4M": (lambda m, x: m.sin(x), between(-9, 9)),
    "special cos 4M": (lambda m, x: m.cos(x), between(-9, 9)),
    "special tan 4M": (lambda m, x: m.tan(x), between(-9, 9)),
    "special sinc 4M": (lambda m, x: m.sinc(x), between(-9, 9)),
    "special atan 4M": (lambda m, x: m.atan(x), between(-3, 3)),
    "special atan2 4M": (lambda m, y, x: m.atan2(y, x), lambda: (numbers(4 * N), numbers(4 * N))),
    "special pow 4M": (lambda m, x, y: m.pow(x, y), lambda: (*between(0, 9)(), numbers(4 * N))),
    "special pow 4M 2.37": (lambda m, x: m.pow(x, 2.37), between(0, 9)),
    "special softplus 4M": (lambda m, x: m.nn.functional.softplus(x), between(-9, 9)),
    "special logsigmoid 4M": (lambda m, x: m.nn.functional.logsigmoid(x), between(-9, 9)),
}
CASES |= {  # sums of rows by an index: places, rows, columns
    f"index_add {count}x{columns} {places_of}": (
        lambda m, z, i, x: z.index_add(0, i, x),
        lambda n=places_of, k=count, d=columns: (zeros(n, d), places(n, k), numbers(k, d)),
    )
    for places_of, count, columns in (
        (64, 8192, 256),
        (1000, 20_000, 128),
        (5000, 50_000, 32),
        (10_000, 100_000, 64),
        (100_000, 500_000, 128),
    )
}
CASES |= {  # counts, segments, extremes at places, tiny matrices, logarithms
    "histc 1M 256": (lambda m, x: m.histc(x, 256, -4, 4), lambda: (numbers(N),)),
    "histc 10M 5000": (lambda m, x: m.histc(x, 5000, -4, 4), lambda: (numbers(10 * N),)),
    "segment_reduce sum 100kx32 5k": (
        lambda m, x, n: m.segment_reduce(x, "sum", lengths=n, unsafe=True),
        lambda: (numbers(100_000, 32), np.full(5000, 20)),
    ),
    "segment_reduce max 1M 1000": (
        lambda m, x, n: m.segment_reduce(x, "max", lengths=n, unsafe=True),
        lambda: (numbers(N), np.full(1000, 1000)),
    ),
    "scatter_reduce amax sorted": (
        lambda m, z, i, x: z.scatter_reduce(0, i, x, "amax"),
        lambda: (zeros(1000), np.sort(places(1000, N)), numbers(N)),
    ),
    "det 100k of 3x3": (lambda m, a: m.linalg.det(a), lambda: (numbers(100_000, 3, 3),)),
    "slogdet 100k of 4x4": (lambda m, a: m.linalg.slogdet(a)[1], lambda: (numbers(100_000, 4, 4),)),
    "special log1p 4M": (lambda m, x: m.log1p(x), lambda: (numbers(4 * N) ** 2,)),
}
CASES["rot90 4096"] = lambda m, x: m.rot90(x, 1, (0, 1)), lambda: (numbers(4096, 4096),)
EAGER = {  # PyTorch looks at results of these, or allocates by them
    "unique 1M of 1000": (lambda m, x: m.unique(x), lambda: (places(1000, N),)),
    "unique counts 1M": (lambda m, x: m.unique(x, return_counts=True)[1], lambda: (places(N, N),)),
    "nonzero 1M half": (lambda m, x: m.nonzero(x > 0), lambda: (numbers(N),)),
    "masked_select 1M half": (lambda m, x: m.masked_select(x, x > 0), lambda: (numbers(N),)),
    "multinomial 64x50257": (
        lambda m, x: m.multinomial(x.softmax(-1), 1) * 0,
        lambda: (numbers(64, VOCABULARY),),
    ),
    "multinomial 10 of 64x50257": (
        lambda m, x: m.multinomial(x.softmax(-1), 10) * 0,
        lambda: (numbers(64, VOCABULARY),),
    ),
    "repeat_interleave 100kx8": (
        lambda m, x, i: m.repeat_interleave(x, i, 0),
        lambda: (numbers(100_000, 8), places(8, 100_000)),
    ),
    "solve 100k of 3x3": (solve, lambda: (numbers(100_000, 3, 3), numbers(100_000, 3, 1))),
    "solve 100k of 4x4": (solve, lambda: (numbers(100_000, 4, 4), numbers(100_000, 4, 1))),
    "inv 100k of 3x3": (lambda m, a: m.linalg.inv(a), lambda: (numbers(100_000, 3, 3),)),
    "inv 100k of 4x4": (lambda m, a: m.linalg.inv(a), lambda: (numbers(100_000, 4, 4),)),
    "solve 256": (solve, lambda: (dominant(256), numbers(256, 1))),
    "solve 1024": (solve, lambda: (dominant(1024), numbers(1024, 1))),
    "solve 4096": (solve, lambda: (dominant(4096), numbers(4096, 64))),
    "inv 512": (lambda m, a: m.linalg.inv(a), lambda: (dominant(512),)),
    "inv 2048": (lambda m, a: m.linalg.inv(a), lambda: (dominant(2048),)),
    "slogdet 512": (lambda m, a: m.linalg.slogdet(a)[1], lambda: (dominant(512),)),
    "cholesky 256": (lambda m, a: m.linalg.cholesky(a), lambda: (positive(256),)),
    "cholesky 4096 of 32x32": (lambda m, a: m.linalg.cholesky(a), lambda: (positive(32, 4096),)),
    "cholesky 256 of 64x64": (lambda m, a: m.linalg.cholesky(a), lambda: (positive(64, 256),)),
    "cholesky 64 of 128x128": (lambda m, a: m.linalg.cholesky(a), lambda: (positive(128, 64),)),
    "cholesky 1024": (lambda m, a: m.linalg.cholesky(a), lambda: (positive(1024),)),
    "cholesky 4096": (lambda m, a: m.linalg.cholesky(a), lambda: (positive(4096),)),
    "triangle 1024, 1 column": (
        lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False),
        lambda: (np.linalg.cholesky(positive(1024)), numbers(1024, 1)),
    ),
    "triangle 1024, 1024 columns": (
        lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False),
        lambda: (np.linalg.cholesky(positive(1024)), numbers(1024, 1024)),
    ),
    "triangle 4096, 1 column": (
        lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False),
        lambda: (np.linalg.cholesky(positive(4096)), numbers(4096, 1)),
    ),
    "cholesky_solve 1024": (
        lambda m, a, b: m.cholesky_solve(b, a),
        lambda: (np.linalg.cholesky(positive(1024)), numbers(1024, 4)),
    ),
    "cholesky 2048": (lambda m, a: m.linalg.cholesky(a), lambda: (positive(2048),)),
    "lu_factor 1024": (lambda m, a: m.linalg.lu_factor(a)[0], lambda: (dominant(1024),)),
    "qr 1024x64": (lambda m, a: m.linalg.qr(a)[1].abs(), lambda: (numbers(1024, 64),)),
    "qr 4096 of 8x8": (lambda m, a: m.linalg.qr(a)[1].abs(), lambda: (numbers(4096, 8, 8),)),
    "qr 20000x100": (lambda m, a: m.linalg.qr(a)[1].abs(), lambda: (numbers(20_000, 100),)),
    "qr 4096": (lambda m, a: m.linalg.qr(a)[1].abs(), lambda: (numbers(4096, 4096),)),
    "qr 1024": (lambda m, a: m.linalg.qr(a)[1].abs(), lambda: (numbers(1024, 1024),)),
    "eigh 256": (lambda m, a: m.linalg.eigh(a)[0], lambda: (positive(256),)),
    "eigh 1024": (lambda m, a: m.linalg.eigh(a)[0], lambda: (positive(1024),)),
    "eigh 16 of 256": (lambda m, a: m.linalg.eigh(a)[0], lambda: (positive(256, 16),)),
    "eigh 64 of 64": (lambda m, a: m.linalg.eigh(a)[0], lambda: (positive(64, 64),)),
    "eigvalsh 4096 of 8x8": (lambda m, a: m.linalg.eigvalsh(a), lambda: (positive(8, 4096),)),
    "eigvalsh 4096 of 32x32": (lambda m, a: m.linalg.eigvalsh(a), lambda: (positive(32, 4096),)),
    "svd 4096 of 8x8": (lambda m, a: vectors(m, a), lambda: (numbers(4096, 8, 8),)),
    "svd 4096 of 32x32": (lambda m, a: vectors(m, a), lambda: (numbers(4096, 32, 32),)),
    "svd 64 of 64x64": (lambda m, a: vectors(m, a), lambda: (numbers(64, 64, 64),)),
    "svd 64x64": (lambda m, a: vectors(m, a), lambda: (numbers(64, 64),)),
    "svd 256": (lambda m, a: vectors(m, a), lambda: (numbers(256, 256),)),
    "svd 1024": (lambda m, a: vectors(m, a), lambda: (numbers(1024, 1024),)),
    "svd 16 of 256": (lambda m, a: vectors(m, a), lambda: (numbers(16, 256, 256),)),
    "svd 4096x32": (lambda m, a: vectors(m, a), lambda: (numbers(4096, 32),)),
    "svdvals 4096 of 32x32": (lambda m, a: m.linalg.svdvals(a), lambda: (numbers(4096, 32, 32),)),
    "pinv 4096 of 32x16": (lambda m, a: m.linalg.pinv(a), lambda: (numbers(4096, 32, 16),)),
    "svdvals 512": (lambda m, a: m.linalg.svdvals(a), lambda: (numbers(512, 512),)),
    "lstsq 10000x50": (
        lambda m, a, b: m.linalg.lstsq(a, b)[0],
        lambda: (numbers(10_000, 50), numbers(10_000, 1)),
    ),
    "pinv 256x128": (lambda m, a: m.linalg.pinv(a), lambda: (numbers(256, 128),)),
    "matrix_exp 64x32": (lambda m, a: m.linalg.matrix_exp(a), lambda: (numbers(64, 32, 32) / 8,)),
    "matrix_exp 1024": (lambda m, a: m.linalg.matrix_exp(a), lambda: (numbers(1024, 1024) / 32,)),
}
PLAIN = (
    "unique",
    "nonzero",
    "masked_select",
    "repeat_interleave",
)  # sizes that values decide: no jit


def seconds(call, count, wait):
    """Time some calls, until the device is done."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return (time.perf_counter() - start) / count


def replayed(call):
    """Capture a call of PyTorch in a CUDA graph; what replays it."""
    from torch_capture import capture

    graph, _ = capture(call, 2)
    return lambda kept=call: graph.replay()


def compare(name, call, arrays, folder):
    """Check and time one case."""
    import torch

    ours = [Tensor(each, device="cuda") for each in arrays]
    theirs = [torch.tensor(each, device="cuda") for each in arrays]
    step = lambda *given: call(picograd, *given)  # noqa: E731
    step = step if name.startswith(PLAIN) else picograd.jit(step)
    mine, other = lambda: step(*ours), lambda: call(torch, *theirs)
    try:
        found = mine().numpy()
        wanted = other().cpu().numpy()
        error = np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-30)
    except Exception as fault:  # one row does not stop the others
        return print(f"{name:32} FAILED {type(fault).__name__}: {str(fault)[:200]}", flush=True)
    how = "eager"
    if name in CASES:
        try:
            other, how = replayed(other), "graph"
        except Exception as fault:
            how = f"eager, {type(fault).__name__}"
    waits = picograd.synchronize, torch.cuda.synchronize
    rivals = mine, other
    for each in rivals * 20:  # graphs are made meanwhile
        each()
    counts = [
        max(1, min(30, int(5e-3 / seconds(c, 1, w)))) for c, w in zip(rivals, waits, strict=True)
    ]
    rounds = [
        [seconds(c, k, w) for c, k, w in zip(rivals, counts, waits, strict=True)]
        for _ in range(ROUNDS)
    ]
    us, them = (statistics.median(each) * 1e6 for each in zip(*rounds, strict=True))
    print(f"{name:32} {us:9.1f} us, PyTorch {them:9.1f} ({how}): {them / us:6.2f}, {error:.0e}",
          flush=True)  # fmt: skip
    if folder:
        with picograd.profile() as profile:
            for _ in range(min(5, counts[0])):
                mine()
            picograd.synchronize()
        file = Path(folder) / (name.replace(" ", "_").replace("/", "_") + ".txt")
        file.write_text(str(profile))


def main():
    """Compare the cases that are asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--profiles")
    parser.add_argument("--warm")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    stop = time.perf_counter() + options.seconds
    cases = {**CASES, **EAGER}
    if options.names:
        cases = {k: v for k, v in cases.items() if any(each in k for each in options.names)}
    if options.warm:
        part, parts = map(int, options.warm.split("/"))
        for name in list(cases)[part::parts]:
            call, make = cases[name]
            arrays = [Tensor(each, device=options.device) for each in make()]
            step = lambda *given, call=call: call(picograd, *given)  # noqa: E731
            step = step if name.startswith(PLAIN) else picograd.jit(step)
            start = time.perf_counter()
            try:
                for _ in range(2):
                    step(*arrays)
                picograd.synchronize()
            except Exception as fault:
                print(name, type(fault).__name__, str(fault)[:300], flush=True)
            print(f"warm {name} {time.perf_counter() - start:.1f} s", flush=True)
            if time.perf_counter() > stop:
                break
        return
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    for name, (call, make) in cases.items():
        if time.perf_counter() > stop:
            print("stopped at", name)
            break
        compare(name, call, make(), options.profiles)
    os._exit(0)


if __name__ == "__main__":
    main()
