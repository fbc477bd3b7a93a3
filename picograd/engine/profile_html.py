"""What a notebook shows of a profile, and a picture of memory in use: one curve a device."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from picograd.engine.debug import rate
from picograd.engine.held_back import held_back, spent
from picograd.html import Markup, details, heading, table
from picograd.runtime.memory import format_bytes

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


WIDTH, HEIGHT, MARGIN = 900, 260, 40
POINTS = 2000  # of a curve: more are not seen
COLORS = ("#1971c2", "#e8590c", "#2f9e44", "#9c36b5")
Samples = Sequence[tuple[float, int]]  # seconds, bytes in use from then on


def memory_picture(samples: Mapping[str, Samples], seconds: float) -> str:
    """Draw the bytes in use of every device over so many seconds, with their peaks."""
    most = max([size for each in samples.values() for _, size in each], default=0) or 1
    shapes = [frame(most, seconds)]
    for number, (device, each) in enumerate(samples.items()):
        color = COLORS[number % len(COLORS)]
        points = " ".join(corners(thin(each), seconds or 1.0, most))
        shapes.append(f'<polyline fill="none" stroke="{color}" points="{points}"/>')
        peak = max([size for _, size in each], default=0)
        text = f"{device}: peak {format_bytes(peak)}"
        place = f'x="{WIDTH - MARGIN}" y="{MARGIN - 8 + 16 * number}"'
        shapes.append(f'<text {place} fill="{color}" text-anchor="end">{escape(text)}</text>')
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, *shapes, "</svg>"]) + "\n"


def frame(most: int, seconds: float) -> str:
    """Draw the axes and what they are marked with."""
    bottom = HEIGHT - MARGIN
    axes = f"M{MARGIN} {MARGIN} V{bottom} H{WIDTH - MARGIN}"
    top = f'<text x="{MARGIN}" y="{MARGIN - 8}">{format_bytes(most)}</text>'
    right = f'x="{WIDTH - MARGIN}" y="{bottom + 16}" text-anchor="end"'
    end = f"<text {right}>{seconds * 1e3:.1f} ms</text>"
    return f'<path d="{axes}" fill="none" stroke="#868e96"/>\n{top}\n{end}'


def corners(samples: Samples, seconds: float, most: int) -> list[str]:
    """List the corners of a curve that keeps each value until the next."""
    found = []
    wide, high = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    last = float(HEIGHT - MARGIN)
    for time, size in [*samples, (seconds, samples[-1][1] if samples else 0)]:
        x = MARGIN + wide * time / seconds
        found.append(f"{x:.1f},{last:.1f}")
        last = HEIGHT - MARGIN - high * size / most
        found.append(f"{x:.1f},{last:.1f}")
    return found


def thin(samples: Samples) -> Samples:
    """Keep the largest of every few samples."""
    step = -(-len(samples) // POINTS)
    if step <= 1:
        return samples
    groups = (samples[n : n + step] for n in range(0, len(samples), step))
    return [max(group, key=lambda sample: sample[1]) for group in groups]
