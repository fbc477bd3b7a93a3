"""Lines for people on the error stream; one of DEBUG costs one test when its level is off."""

import sys

from picograd.config import config


def say(text: str) -> None:
    """Print lines on the error stream; progress bars there, the user's too, make room for them."""
    bars = sys.modules.get("tqdm")  # which takes a tenth of the time of importing picograd
    if bars is None:
        print(text, file=sys.stderr)
    else:
        bars.tqdm.write(text, file=sys.stderr)


def log(level: int, text: str) -> None:
    """Print one line when DEBUG is at least `level`, but not while the process falls apart."""
    if config.debug >= level and not sys.is_finalizing():
        say(text)


def log_action(action: str, text: str) -> None:
    """Print one line about a device operation (DEBUG=2)."""
    log(2, f"       {action:9} {text}")
