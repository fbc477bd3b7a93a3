"""Every setting of picograd: one table, one object.

An environment variable only gives a setting its first value, an empty one the default; a program
may change it at any time (`config.debug = 2`). A wrong value in the environment is one line on
stderr and the default is used: `DEBUG=true` may be meant for another program, and an import is no
place for a traceback. A wrong value from the program is an error. Each row declares what it
affects, and cache keys are derived from that:

    semantics   the values computed        both are part of `config.key()`, and a change
    codegen     the kernels generated      bumps `config.epoch`, which outdates cached plans
    debug       neither
"""

import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from picograd.cores import usable_cores
from picograd.errors import ValueRangeError
from picograd.late_methods import dataclass

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
    least: int = 0
    most: float = math.inf

    @property
    def name(self) -> str:
        """Attribute of `config`: the variable in lower case without the prefix."""
        return self.variable.removeprefix(PREFIX).lower()


def default_cache() -> str:
    """Name the folder for compiled kernels."""
    return os.path.join(os.path.expanduser("~"), ".cache", "picograd")


FLAGS = (
    Flag("DEBUG", int, 0, "1 kernels and times, 2 device operations, 3 IRs and source, 4 assembly, "
         "-1 the table of kernels at exit alone", "debug", least=-1),
    Flag("PICOGRAD_DEVICE", str, "", "default device; empty: CUDA if usable, else the CPU",
         "semantics"),
    Flag("PICOGRAD_THREADS", int, usable_cores(), "CPU threads kernels run on", "codegen",
         "usable cores", least=1, most=1024),
    Flag("PICOGRAD_DYNAMIC", int, 1, "1: sizes that vary share a plan; 0: each has its own",
         "codegen", most=1),
    Flag("PICOGRAD_TF32", int, 0, "1: GPUs may read 10 of a float32's 23 bits of mantissa in "
         "products (`set_float32_matmul_precision`)", "semantics", most=1),
    Flag("PICOGRAD_CACHE", str, default_cache(), "folder of compiled kernels and plans; 0: none",
         "debug", "~/.cache/picograd"),
    Flag("PICOGRAD_CACHE_SIZE", int, 1024, "MiB the cache folder may take", "debug"),
    Flag("PICOGRAD_PLANS_SIZE", int, 512, "MiB of memory for plans and loaded kernels", "debug"),
    Flag("PICOGRAD_NATIVE", int, 1, "1: small calls are machine code that Python calls, where the "
         "interpreter is a known one; 0: never", "debug", most=1),
    Flag("PICOGRAD_COMPILE_PROCESSES", int, min(usable_cores(), 16), "processes that compile "
         "CUDA C at a time; 1: this one alone", "debug", "usable cores, at most 16"),
    Flag("PICOGRAD_DATA", str, "", "folder of downloaded data sets", "debug",
         "~/.cache/picograd/datasets"),
    Flag("VERIFY", int, 0, "1: verify every IR after every stage", "debug", most=1),
)  # fmt: skip
BY_NAME = {flag.name: flag for flag in FLAGS}


def parse(flag: Flag, value: object) -> int | str:
    """Convert a value to the flag's type; ValueRangeError if it does not fit."""
    if flag.type is str:
        return str(value)
    try:
        number = int(value)  # type: ignore[call-overload]
        is_whole = isinstance(value, str) or number == value
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        problem = f"{flag.variable} is an integer, not {shorten(value)}"
        raise ValueRangeError("config", problem, f"give a number ({flag.meaning})")
    if number < flag.least:
        problem = f"{flag.variable} is {shorten(number)}, less than {flag.least}"
        raise ValueRangeError("config", problem, f"give a number of at least {flag.least}")
    if number > flag.most:
        problem = f"{flag.variable} is {shorten(number)}, more than {flag.most}"
        raise ValueRangeError("config", problem, f"give a number of at most {flag.most}")
    return int(number)


def shorten(value: object) -> str:
    """Write a value on one line that stays readable."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def drop_wrong(environment: Mapping[str, str]) -> dict[str, str]:
    """Copy the settings of an environment but for the wrong ones: a line on stderr names each."""
    kept = {}
    for flag in FLAGS:
        text = environment.get(flag.variable, "")
        try:
            parse(flag, text.strip() or flag.default)
            kept[flag.variable] = text
        except ValueRangeError as error:
            default = flag.shown_default or flag.default
            line = f"picograd: {error.problem}: ignored, the default ({default}) is used"
            print(f"{line}; {error.fix}", file=sys.stderr)
    return kept


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
    plans_size: int
    dynamic: int
    tf32: int
    native: int
    compile_processes: int
    data: str
    verify: int
    epoch: int

    def __init__(self, environment: Mapping[str, str]) -> None:
        for flag in FLAGS:
            text = environment.get(flag.variable, "").strip()
            self.__dict__[flag.name] = parse(flag, text) if text else flag.default
        self.__dict__["epoch"] = 0

    def __setattr__(self, name: str, value: object) -> None:
        flag = find_flag(name)
        parsed = parse(flag, value)
        if parsed != self.__dict__[name] and flag.affects != "debug":
            self.__dict__["epoch"] += 1
        self.__dict__[name] = parsed

    def outdate(self) -> None:
        """Let cached plans and traces be made again: something else that they depend on changed."""
        self.__dict__["epoch"] += 1

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


config: Final = Config(drop_wrong(os.environ))
