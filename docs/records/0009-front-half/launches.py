"""Programs of few launches: microseconds of a jitted call.

    PYTHONPATH=. python docs/records/0009-front-half/launches.py cuda

Run it in two trees in turns to compare them.
"""

import statistics
import sys
import time
from typing import Any

import numpy as np

import picograd
from picograd import Tensor, nn

F = nn.functional
DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"
COUNT, ROUNDS = (100, 9) if DEVICE == "cuda" else (5, 5)
SMALL = [(64, 32 + n) for n in range(60)]
LAYER = [(768,)] * 4 + [(768, 2304), (2304,), (768, 768), (768,)]
LAYER += [(768, 3072), (3072,), (3072, 768), (768,)]
GPT2 = [(50304, 768), (1024, 768), *LAYER * 12, (768,), (768,)]
RANDOM = np.random.default_rng(0)


def leaf(*shape: int) -> Tensor:
    """Make numbers on the device."""
    values = RANDOM.standard_normal(shape, dtype=np.float32)
    return Tensor(values, device=DEVICE).realize()


def optimizer(make: Any, shapes: Any, most: float = 0.0) -> Any:
    """Make a step of an optimizer, with the norm of gradients clipped."""
    parameters = [nn.Parameter(leaf(*shape)) for shape in shapes]
    for p in parameters:
        p.grad = leaf(*p.shape)
    ours = make(parameters)

    def step() -> Tensor:
        if most:
            nn.utils.clip_grad_norm_(parameters, most)
        ours.step()
        return parameters[0][:1]

    return step


def normed(groups: int, shape: tuple[int, ...]) -> Any:
    """Make a group norm with SiLU."""
    x, weight, bias = leaf(*shape), leaf(shape[1]), leaf(shape[1])
    return lambda: F.silu(F.group_norm(x, groups, weight, bias))


def rotated(shape: tuple[int, ...]) -> Any:
    """Make a norm with a rotation of halves."""
    x, weight = leaf(*shape), leaf(shape[-1])
    cos, sin = (leaf(shape[-2], shape[-1] // 2) for _ in range(2))

    def call() -> Tensor:
        a, b = F.rms_norm(x, shape[-1:], weight).chunk(2, -1)
        return Tensor.cat([a * cos - b * sin, b * cos + a * sin], -1)

    return call


def gate(rows: int, experts: int, count: int) -> Any:
    """Make the choice of experts."""
    x = leaf(rows, experts)

    def call() -> list[Tensor]:
        values, indices = x.softmax(-1).topk(count, -1)
        return [values / values.sum(-1, keepdim=True), indices]

    return call


CASES = {
    "group norm 64x32x28x28": lambda: normed(8, (64, 32, 28, 28)),
    "group norm 8x320x64x64": lambda: normed(32, (8, 320, 64, 64)),
    "norm and rotation": lambda: rotated((8, 12, 1024, 64)),
    "8 of 4096 x 64": lambda: gate(4096, 64, 8),
    "AdamW of 60": lambda: optimizer(nn.optim.AdamW, SMALL),
    "AdamW of 60, clipped": lambda: optimizer(nn.optim.AdamW, SMALL, 1.0),
    "Adagrad of 60": lambda: optimizer(nn.optim.Adagrad, SMALL),
    "AdamW of GPT-2, clipped": lambda: optimizer(nn.optim.AdamW, GPT2, 1.0),
}
for name, prepare in CASES.items():
    if "GPT" in name and DEVICE != "cuda":
        continue
    call = picograd.jit(prepare())
    for _ in range(4):
        call()
    picograd.synchronize()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(COUNT):
            call()
        picograd.synchronize()
        seconds.append((time.perf_counter() - start) / COUNT)
    low, middle, high = (1e6 * each for each in statistics.quantiles(seconds, n=4))
    print(f"{name:26} {middle:9.1f} us  ({low:.1f} .. {high:.1f})", flush=True)
