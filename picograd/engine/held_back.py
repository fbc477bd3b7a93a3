"""The last lines of a profile: where its time went, and what holds the program back."""

from collections.abc import Mapping, Sequence

from picograd.engine.debug import Row

BALANCE = 10  # operations a byte from which arithmetic, not memory, limits a kernel, about
LINES = 5  # of the program that are named
NAMES = {
    "schedule": "schedules", "compile": "compilations", "copy": "copies", "host": "plans",
}  # fmt: skip


def spent(totals: Mapping[str, float], counts: Mapping[str, int], wall: float) -> str:
    """Write the host's time: schedule, compile, copies, plans, and the gaps between them."""
    parts = [
        f"{counts[track]} {name} {totals[track] * 1e3:.2f} ms"
        for track, name in NAMES.items()
        if counts.get(track)
    ]
    parts.append(f"gaps {gap(totals, wall) * 1e3:.2f} ms")
    return f"host: {', '.join(parts)}; {wall * 1e3:.2f} ms in all"


def gap(totals: Mapping[str, float], wall: float) -> float:
    """Find the time in which picograd neither compiled, copied nor ran a plan."""
    known = sum(totals.get(track, 0.0) for track in NAMES)
    return max(wall - known, 0.0)


def by_line(lines: Mapping[str, float]) -> list[str]:
    """Write the lines of the program that asked for the most time on devices."""
    whole = sum(lines.values()) or 1.0
    ranked = sorted(lines.items(), key=lambda pair: -pair[1])[:LINES]
    return [
        f"{100 * seconds / whole:5.1f} % {seconds * 1e3:12.4f} ms  {line}"
        for line, seconds in ranked
    ]


def held_back(rows: Sequence[Row], totals: Mapping[str, float], wall: float) -> str:
    """Say what holds the program back: host, launches, memory or arithmetic."""
    device = sum(row.seconds for row in rows)
    share = f"the device worked {device * 1e3:.2f} of {wall * 1e3:.2f} ms"
    if device >= wall / 2:
        bound = [row.seconds for row in rows if row.flops > BALANCE * row.bytes_moved]
        what = "arithmetic" if sum(bound) > device / 2 else "memory"
        return f"held back by {what}: {share}"
    making = totals.get("schedule", 0.0) + totals.get("compile", 0.0)
    causes = {
        "the host, which schedules and compiles (once for each structure)": making,
        "launches (fewer and larger kernels, or jit)": totals.get("host", 0.0) - device,
        "the host, which copies": totals.get("copy", 0.0),
        "the host, between computations (jit, or less Python)": gap(totals, wall),
    }
    what = max(causes, key=lambda cause: causes[cause])
    return f"held back by {what}: {share}, {causes[what] * 1e3:.2f} ms went there"
