"""The command line of the caches on disk: `python -m picograd.cache` shows them, `--clear` empties.

    python -m picograd.cache [--clear] [--folder FOLDER]

The folder is that of `PICOGRAD_CACHE`. Processes that run go on with what they have loaded.
"""

import argparse
import time
from collections import Counter
from collections.abc import Sequence

from picograd.config import config
from picograd.engine.cache import DiskCache, disk_cache, start_of
from picograd.runtime.memory import format_bytes

KINDS = (("plans", b'{"slots"'), ("descriptions of kernels", b"{"), ("kernels", b""))


def kind_of(beginning: bytes) -> str:
    """Tell what an entry holds by how it begins."""
    return next(kind for kind, start in KINDS if beginning.startswith(start))


def describe(cache: DiskCache) -> str:
    """Write what a cache holds: entries and bytes by kind, and when the oldest was used."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    entries = cache.entries()
    for _, size, name in entries:
        kind = kind_of(start_of(cache, name))
        sizes[kind] += size
        counts[kind] += 1
    lines = [cache.folder.path]
    lines += [f"{counts[k]:8} {k:24} {format_bytes(sizes[k]):>12}" for k, _ in KINDS if counts[k]]
    whole = f"{format_bytes(sum(sizes.values()))} of {format_bytes(cache.limit)}"
    lines.append(f"{len(entries):8} entries                  {whole:>12}")
    if entries:
        days = max(time.time() - min(entries)[0], 0.0) / 86400
        lines.append(f"         used longest ago: {days:.1f} days")
    return "\n".join(lines)


def clear(cache: DiskCache) -> str:
    """Remove every entry; what was removed, in words."""
    entries = cache.entries()
    for _, _, name in entries:
        cache.remove(name)
    cache.memory.clear()
    freed = sum(size for _, size, _ in entries)
    return f"{cache.folder.path}\nremoved {len(entries)} entries, {format_bytes(freed)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 where there is no cache on disk."""
    parser = argparse.ArgumentParser("python -m picograd.cache", description="Show the cache.")
    parser.add_argument("--clear", action="store_true", help="remove every entry")
    parser.add_argument("--folder", default="", help="another folder than PICOGRAD_CACHE")
    options = parser.parse_args(arguments)
    with config.override(cache=options.folder or config.cache):
        cache = disk_cache()
        if cache is None:
            print("no cache on disk: PICOGRAD_CACHE is 0")
            return 1
        print(clear(cache) if options.clear else describe(cache))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
