"""The kernels of a plan in one entry of the disk cache: who finds the plan opens one file for all.

A kernel is two entries, its description and its binary, and reading one takes 0.06 ms: of the
second process of a network with 200 kernels a twentieth went there. They stay entries of their own
as well, as plans share kernels.

    [["<name of an entry>", <bytes>], ...]\n<the first entry><the second one>...
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from picograd.engine.backends import get_device
from picograd.engine.cache import DiskCache, entry_key

LEAST = 16  # kernels that are worth another file


def pack_name(plan: str) -> str:
    """Name the entry that has the kernels of a plan, which has a name too."""
    return hashlib.sha256(f"kernels of {plan}".encode()).hexdigest()


def pack_entries(plan: str, described: Mapping[str, Any], cache: DiskCache) -> None:
    """Write the kernels of a plan as one entry, if they are many."""
    if count_kernels(described) < LEAST or not cache.is_private:
        return
    entries: dict[str, bytes] = {}
    for device, kernels in described["kernels"].items():
        for canonical in kernels:
            name = entry_key(canonical, get_device(device))
            facts = cache.get(name)
            binary = json.loads(facts)["binary"] if facts else ""
            content = cache.get(binary) if binary else None
            if facts is None or content is None:
                return
            entries |= {name: facts, binary: content}
    head = json.dumps([(name, len(content)) for name, content in entries.items()])
    cache.put(pack_name(plan), b"\n".join((head.encode(), b"".join(entries.values()))))


@contextmanager
def entries_of(plan: str, described: Mapping[str, Any], cache: DiskCache) -> Iterator[None]:
    """Have the kernels of a plan at hand; ValueError if their entry is none of ours."""
    packed = cache.get(pack_name(plan)) if count_kernels(described) >= LEAST else None
    try:
        if packed is not None:
            head, _, content = packed.partition(b"\n")
            names, sizes = zip(*json.loads(head))
            ends = list(accumulate(sizes))
            cache.near = {
                name: content[end - size : end] for name, size, end in zip(names, sizes, ends)
            }
        yield
    finally:
        cache.near = {}


def count_kernels(described: Mapping[str, Any]) -> int:
    """Count the kernels of a plan."""
    return sum(map(len, described["kernels"].values()))
