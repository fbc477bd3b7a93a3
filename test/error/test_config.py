"""Settings with impossible values, from the environment or the program."""

from error_support import Case, check, named

import picograd
from picograd import Tensor
from picograd.config import Config
from picograd.errors import DeviceError, ValueRangeError


def on_device(name: str) -> None:
    with picograd.config.override(device=name):
        Tensor([1.0])


def setting(name: str, value: object) -> None:
    setattr(picograd.config, name, value)


CASES = [
    Case(
        "DEBUG of text", lambda: Config({"DEBUG": "loud"}), ValueRangeError,
        "config: DEBUG is an integer, not 'loud'. Fix: give a number (1 kernels and "
        "times, 2 device operations, 3 IRs and source, 4 assembly, -1 the table of kernels at "
        "exit alone).",
    ),
    Case(
        "DEBUG negative", lambda: Config({"DEBUG": "-2"}), ValueRangeError,
        "config: DEBUG is -2, less than -1. Fix: give a number of at least -1.",
    ),
    Case(
        "no threads", lambda: Config({"PICOGRAD_THREADS": "0"}), ValueRangeError,
        "config: PICOGRAD_THREADS is 0, less than 1. Fix: give a number of at least 1.",
    ),
    Case(
        "threads of text", lambda: Config({"PICOGRAD_THREADS": "many"}), ValueRangeError,
        "config: PICOGRAD_THREADS is an integer, not 'many'. Fix: give a number (CPU "
        "threads kernels run on).",
    ),
    Case(
        "cache size", lambda: Config({"PICOGRAD_CACHE_SIZE": "-5"}), ValueRangeError,
        "config: PICOGRAD_CACHE_SIZE is -5, less than 0. Fix: give a number of at least 0.",
    ),
    Case(
        "attribute of text", lambda: setting("debug", "loud"), ValueRangeError,
        "config: DEBUG is an integer, not 'loud'. Fix: give a number (1 kernels and "
        "times, 2 device operations, 3 IRs and source, 4 assembly, -1 the table of kernels at "
        "exit alone).",
    ),
    Case(
        "attribute negative", lambda: setting("threads", 0), ValueRangeError,
        "config: PICOGRAD_THREADS is 0, less than 1. Fix: give a number of at least 1.",
    ),
    Case(
        "unknown device", lambda: on_device("tpu"), DeviceError,
        "device: there is no device 'tpu'. Fix: use cpu, cuda, opencl, null, meta, or cuda:1 "
        "for the second GPU.",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
