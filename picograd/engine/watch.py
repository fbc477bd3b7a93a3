"""Who watches what runs: profiles are told of every span of time; without one it costs a test."""

import time
from typing import Any

PROFILES: list[Any] = []  # those that watch now
RECORDERS: list[Any] = []  # those of them that are told of plans too: no plan comes from disk


def tell_span(track: str, name: str, start: float, facts: dict[str, Any] | None = None) -> None:
    """Tell every profile of what began at `start`, by the clock, and ends now."""
    if PROFILES:
        seconds = time.perf_counter() - start
        for profile in PROFILES:
            profile.add_span(track, name, start, seconds, facts or {})
