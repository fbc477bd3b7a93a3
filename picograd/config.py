"""Every setting of picograd: one table, one object.

An environment variable only gives a setting its first value; a program may change it at any time
(`config.debug = 2`). Each row declares what it affects, and cache keys are derived from that:

    semantics   the values computed        both are part of `config.key()`, and a change
    codegen     the kernels generated      bumps `config.epoch`, which outdates cached plans
    debug       neither
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from picograd.cores import usable_cores
from picograd.errors import ValueRangeError

PREFIX = "PICOGRAD_"


@dataclass(frozen=True, slots=True)
class Flag:
    """One setting: environment variable, type, default, meaning, what it affects."""

    variable: str
    type: type
    default: int | str
    meaning: str
    affects: str  # "semantics", "codegen" or "debug"
    shown_default: str = ""  # for the documentation, when the default depends on the machine

    @property
    def name(self) -> str:
        """Attribute of `config`: the variable in lower case without the prefix."""
        return self.variable.removeprefix(PREFIX).lower()


def default_cache() -> str:
    """Name the folder for compiled kernels."""
    return os.path.join(os.path.expanduser("~"), ".cache", "picograd")


FLAGS = (
    Flag("DEBUG", int, 0, "1 kernels and times, 2 device operations, 3 IRs and source, 4 assembly",
         "debug"),
    Flag("PICOGRAD_DEVICE", str, "", "default device; empty: CUDA if usable, else the CPU",
         "semantics"),
    Flag("PICOGRAD_THREADS", int, usable_cores(), "CPU threads kernels run on", "codegen",
         "usable cores"),
    Flag("PICOGRAD_CACHE", str, default_cache(), "folder of compiled kernels; 0 or empty: none",
         "debug", "~/.cache/picograd"),
    Flag("PICOGRAD_CACHE_SIZE", int, 1024, "MiB the cache folder may take", "debug"),
    Flag("PICOGRAD_DATA", str, "", "folder of downloaded data sets", "debug",
         "~/.cache/picograd/datasets"),
    Flag("VERIFY", int, 0, "1: verify every IR after every stage", "debug"),
)  # fmt: skip
BY_NAME = {flag.name: flag for flag in FLAGS}


def parse(flag: Flag, value: object) -> int | str:
    """Convert a value to the flag's type; ValueRangeError if it does not fit."""
    if flag.type is str:
        return str(value)
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        problem = f"{flag.variable} is an integer, not {value!r}"
        raise ValueRangeError("config", problem, f"give a number ({flag.meaning})") from None
    if number < (1 if flag.name == "threads" else 0):
        least = 1 if flag.name == "threads" else 0
        problem = f"{flag.variable} is {number}, less than {least}"
        raise ValueRangeError("config", problem, f"give a number of at least {least}")
    return int(number)


def find_flag(name: str) -> Flag:
    """Find the setting behind an attribute; ValueRangeError if there is none."""
    if name not in BY_NAME:
        raise ValueRangeError("config", f"no setting {name!r}", f"use {', '.join(BY_NAME)}")
    return BY_NAME[name]


class Config:
    """The settings as attributes; see FLAGS. `epoch` counts changes that outdate cached plans."""

    debug: int
    device: str
    threads: int
    cache: str
    cache_size: int
    data: str
    verify: int
    epoch: int

    def __init__(self, environment: Mapping[str, str]) -> None:
        for flag in FLAGS:
            text = environment.get(flag.variable)
            self.__dict__[flag.name] = flag.default if text is None else parse(flag, text)
        self.__dict__["epoch"] = 0

    def __setattr__(self, name: str, value: object) -> None:
        flag = find_flag(name)
        parsed = parse(flag, value)
        if parsed != self.__dict__[name] and flag.affects != "debug":
            self.__dict__["epoch"] += 1
        self.__dict__[name] = parsed

    def key(self) -> tuple[tuple[str, int | str], ...]:
        """List the settings that change results or kernels: part of every cache key."""
        return tuple((f.name, self.__dict__[f.name]) for f in FLAGS if f.affects != "debug")

    @contextmanager
    def override(self, **settings: int | str) -> Iterator[None]:
        """Change settings for the length of a `with` block."""
        for name in settings:
            find_flag(name)
        before: dict[str, int | str] = {name: self.__dict__[name] for name in settings}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)


def format_flags() -> str:
    """Write docs/flags.md: one row per setting."""
    lines = [
        "# Settings",
        "",
        "Generated from `picograd/config.py`. Set the environment variable before the program",
        "starts, or the attribute while it runs: `from picograd.config import config;",
        "config.debug = 2`.",
        "",
        "| variable | attribute | type | default | affects | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for flag in FLAGS:
        default = flag.shown_default or repr(flag.default)
        cells = (f"`{flag.variable}`", f"`config.{flag.name}`", flag.type.__name__, default)
        lines.append(f"| {' | '.join(cells)} | {flag.affects} | {flag.meaning} |")
    return "\n".join(lines) + "\n"


config = Config(os.environ)
