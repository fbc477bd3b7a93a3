"""Decoding under `jit` with a cache read as far as it is filled: a step at new and at seen lengths.

python docs/records/0008-compiles-once/decoding.py
"""

import statistics
import time

import picograd
from picograd import Dim, Tensor

WIDTH, HEADS, ROWS, LAYERS = 16, 2, 640, 2
SIZE = WIDTH // HEADS


def made(*shape):
    """Draw weights."""
    return (Tensor.randn(*shape) * 0.2).realize()


picograd.manual_seed(0)
embedding = made(50, WIDTH)
layers = [[made(WIDTH, WIDTH) for _ in range(4)] for _ in range(LAYERS)]
caches = [[picograd.zeros(1, HEADS, ROWS, SIZE) for _ in range(2)] for _ in range(LAYERS)]


def split(x):
    """Give each head its axis: 1 H T D."""
    return x.reshape(1, -1, HEADS, SIZE).transpose(1, 2)


@picograd.jit(dynamic={"tokens": {1: Dim("T", 1, 512)}})
def scores(tokens, at):
    """Score the next tokens after `tokens`, which stand at `at`."""
    count = tokens.shape[1]
    x = embedding[tokens]
    rows = picograd.arange(count)[:, None] + at
    mask = picograd.arange(at + count)[None] > rows
    for (q, k, v, out), (keys, values) in zip(layers, caches, strict=True):
        keys[:, :, at : at + count] = split(x @ k)
        values[:, :, at : at + count] = split(x @ v)
        y = split(x @ q) @ keys[:, :, : at + count].transpose(2, 3) * SIZE**-0.5
        y = y.masked_fill(mask, float("-inf")).softmax(-1) @ values[:, :, : at + count]
        x = x + y.transpose(1, 2).reshape(1, count, WIDTH) @ out
    return x @ embedding.T


scores(picograd.arange(5)[None], 0).numpy()
for name in ("new lengths", "seen lengths"):
    times = []
    for at in range(5, 205):
        token = picograd.tensor([[at % 50]])
        start = time.thread_time()
        scores(token, at).numpy()
        times.append(time.thread_time() - start)
    print(f"{name}: {statistics.median(times) * 1e6:.0f} us a step, {scores.count} traces")
