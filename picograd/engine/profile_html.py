"""What a notebook shows of a profile: its kernels, the program's lines, the memory in use."""

from typing import Any

from picograd.engine.debug import rate
from picograd.engine.held_back import held_back, spent
from picograd.engine.memory_picture import memory_picture
from picograd.html import Markup, details, heading, table

KERNELS = 30  # that are listed


def profile_html(profile: Any) -> str:
    """Write a profile as HTML."""
    totals = profile.totals
    rows = sorted(totals.rows.values(), key=lambda row: -row.seconds)
    shown = [
        [
            row.name,
            row.launches,
            f"{row.seconds * 1e3:.4f}",
            f"{totals.share(row):.1f} %",
            f"{rate(row.flops, row.seconds):.1f}",
            f"{rate(row.bytes_moved, row.seconds):.1f}",
        ]
        for row in rows[:KERNELS]
    ]
    lines = sorted(profile.lines.items(), key=lambda pair: -pair[1])
    asked = [[line, f"{seconds * 1e3:.4f}"] for line, seconds in lines]
    seconds = profile.seconds
    return "".join(
        [
            heading(f"{totals.launches} kernels, {totals.seconds * 1e3:.2f} ms on devices"),
            table(["kernel", "launches", "ms", "share", "GFLOP/s", "GB/s"], shown),
            details("lines of the program", table(["line", "ms"], asked)),
            details("memory in use", Markup(memory_picture(profile.memory, seconds))),
            f"<div>{spent(profile.spans, profile.counts, seconds)}</div>",
            f"<div>{held_back(rows, profile.spans, seconds)}</div>",
        ]
    )
