"""How many processor cores this process may use: what the machine, its mask and its cgroups say.

A container is often limited by time rather than by cores: so many microseconds a period (CFS
bandwidth, Linux kernel documentation "CFS Bandwidth Control" and "Control Group v2"). More threads
than that many whole cores are stopped in the middle of their work. Every group up to the root may
have a limit, the smallest counts.
"""

import os
from collections.abc import Iterator


def usable_cores(root: str = "/") -> int:
    """Count the cores this process may run on at a time; at least one. `root` is for tests."""
    has_affinity = hasattr(os, "sched_getaffinity")  # Linux only; knows cpusets and masks
    count = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    for limit in cpu_limits(root):
        count = min(count, int(limit))
    return max(1, count)


def cpu_limits(root: str) -> Iterator[float]:
    """List the limits of this process's control groups, in cores."""
    groups = read_text(os.path.join(root, "proc/self/cgroup"))
    for line in groups.splitlines():
        _number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:  # version 2: one tree
            mounts = [".", "unified"]
            names = ["cpu.max"]
        elif "cpu" in controllers.split(","):
            mounts = [controllers, "cpu"]
            names = ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        for mount in mounts:
            base = os.path.join(root, "sys/fs/cgroup", mount)
            for folder in groups_above(base, group):
                texts = [read_text(os.path.join(folder, name)) for name in names]
                yield from limit_of(" ".join(texts))


def groups_above(mount: str, group: str) -> list[str]:
    """List the folder of a group and those above it; a container may see but the last of them."""
    parts = [part for part in group.split("/") if part not in ("", "..")]
    return [os.path.join(mount, *parts[:depth]) for depth in range(len(parts), -1, -1)]


def limit_of(text: str) -> Iterator[float]:
    """Read quota and period, in microseconds; "max" and -1 are no limit."""
    try:
        quota, period = map(int, text.split())
    except ValueError:
        return
    if quota > 0 and period > 0:
        yield quota / period


def read_text(path: str) -> str:
    """Read a small file; empty if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
