"""A small computation for the engine's tests, and its DEBUG output with times masked."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from picograd import Tensor
from picograd.config import config
from picograd.engine import compile as compiling
from picograd.engine import debug, realize
from picograd.engine.cache import CACHES
from picograd.engine.size_patterns import PATTERNS
from picograd.engine.sizes import FAMILIES

MASKS = (
    (r"\S*/(\w+\.py):\d+", r"\1:LINE"),
    (r"\d+ vector registers.*|// 0 bytes stack.*", "USED"),
    (r"\d+\.\d+(?! KiB| MiB)", "TIME"),
    (r" +", " "),
    (r" +\n", "\n"),
)
REPORT = re.compile(
    r" {7}(allocate|free|give back|copy|schedule|generate|compile|plan|wait) "
    r"|number|  share|\d+ kernels, | *\d+ (null|cpu)|  *\d+\.\d %"
)


def masked(text: str) -> str:
    """Replace what differs between runs and machines."""
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text)
    return text


def outline(text: str) -> str:
    """Keep of an IR only the heading and the first line, of a source only the heading."""
    lines, left = [], 1
    for line in text.splitlines():
        if line.startswith("---"):
            left = 1 if line == "--- source" else 2
        elif REPORT.match(line):
            left = 1
        if left:
            lines.append(line)
            left -= 1
    return "\n".join(lines) + "\n"


@contextmanager
def fresh_engine(**settings: int | str) -> Iterator[None]:
    """Forget plans, kernels and counts for the length of a `with` block, and change settings."""
    plans, loaded, caches = dict(realize.PLANS), dict(compiling.LOADED), dict(CACHES)
    realize.PLANS.clear()
    compiling.LOADED.clear()
    CACHES.clear()
    FAMILIES.clear()
    PATTERNS.clear()
    debug.TOTALS.__init__()  # type: ignore[misc]
    try:
        with config.override(**settings):
            yield
    finally:
        for kept, store in ((plans, realize.PLANS), (loaded, compiling.LOADED), (caches, CACHES)):
            store.clear()
            store.update(kept)


def small_network(device: str) -> Tensor:
    """Two kernels: a product, and a softmax of rows that takes the relu into itself."""
    x = Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), device=device)
    w = Tensor(np.linspace(-2, 1, 20, dtype=np.float32).reshape(4, 5), device=device)
    return (x @ w).relu().softmax(axis=1)
