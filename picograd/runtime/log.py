"""One line of DEBUG output, for the engine and the devices; a level that is off costs one test."""

import sys

from picograd.config import config


def log(level: int, text: str) -> None:
    """Print one line when DEBUG is at least `level`, but not while the process falls apart."""
    if config.debug >= level and not sys.is_finalizing():
        print(text, file=sys.stderr)


def log_action(action: str, text: str) -> None:
    """Print one line about a device operation (DEBUG=2)."""
    log(2, f"       {action:9} {text}")
