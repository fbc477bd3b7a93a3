"""Time from recording to the first result of programs that record thousands of operations.

Each case runs in a process of its own, on one thread, without kernels on disk:

    python bench/chains.py            # all cases
    python bench/chains.py cat3000    # one of them

It prints seconds of processor time of recording, of the first computation, and of both again, and
how many kernels the plans have.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import picograd
from picograd import Tensor, nn
from picograd.engine import realize as engine

F = nn.functional
LIMIT = 300  # seconds that one case may take
Case = Callable[[], list[Tensor]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """List a case."""
    CASES[function.__name__] = function
    return function


def small(*shape: int) -> Tensor:
    """Make a tensor that is memory."""
    return picograd.rand(*shape).realize()


SMALL = [Tensor([float(number), 1.0]) for number in range(3000)]
STORED = small(8, 16)


@case
def cat3000() -> list[Tensor]:
    return [picograd.cat(SMALL)]


@case
def stack3000() -> list[Tensor]:
    return [picograd.stack(SMALL)]


@case
def cat3000_computed() -> list[Tensor]:
    return [picograd.cat([each * 2 for each in SMALL])]


@case
def cat3000_sizes() -> list[Tensor]:
    return [picograd.cat([small(number % 5 + 1, 2) for number in range(3000)])]


@case
def cat_growing() -> list[Tensor]:
    x = STORED
    for _ in range(1600):
        x = picograd.cat([x, x[:1]])
    return [x]


@case
def layer_norms() -> list[Tensor]:
    x = STORED
    for _ in range(1600):
        x = F.layer_norm(x, (16,))
    return [x]


def mixed(count: int) -> list[Tensor]:
    """Chain elementwise operations of ten kinds."""
    x, y = STORED, STORED + 1
    kinds: list[Callable[[Tensor], Tensor]] = [
        lambda x: x + 1, lambda x: x * y, Tensor.sin, Tensor.exp, lambda x: -x, Tensor.tanh,
        lambda x: x - y, Tensor.abs, lambda x: x.clamp(-1, 1), Tensor.sigmoid,
    ]  # fmt: skip
    for number in range(count):
        x = kinds[number % len(kinds)](x)
    return [x]


@case
def mixed10000() -> list[Tensor]:
    return mixed(10_000)


@case
def mixed100000() -> list[Tensor]:
    return mixed(100_000)


def sequential() -> nn.Module:
    """Stack 345 layers, Linear and ReLU in turn."""
    layers = [nn.ReLU() if number % 2 else nn.Linear(16, 16) for number in range(345)]
    return nn.Sequential(*layers)


@case
def sequential345() -> list[Tensor]:
    return [sequential()(STORED)]


@case
def sequential345_trained() -> list[Tensor]:
    model = sequential()
    model(STORED).sum().backward()
    return [p.grad for p in model.parameters()]


PARAMETERS = [small(4, 4).requires_grad_(True) for _ in range(1000)]
ADAM = nn.optim.Adam(PARAMETERS, lr=0.01)


@case
def adam1000() -> list[Tensor]:
    ADAM.zero_grad()
    sum((p * p).sum() for p in PARAMETERS).backward()
    ADAM.step()
    return PARAMETERS


@case
def views1000() -> list[Tensor]:
    x = STORED
    for number in range(1000):
        x = (x.t(), x.reshape(x.shape[::-1]), x[None, :, :][0], x.flip(0))[number % 4]
    return [x]


@case
def slices1000() -> list[Tensor]:
    x = picograd.arange(3000.0).realize()
    for number in range(1000):
        x = x[1:] if number % 2 else x[:-1]
    return [x]


@case
def view_writes1000() -> list[Tensor]:
    x = picograd.zeros(1000, 4).realize()
    for number in range(1000):
        x[number].add_(number)
    return [x]


def measure(run: Case) -> str:
    """Time a case twice in this process."""
    kernels: list[Any] = []
    make = engine.make_plan

    def noted(roots: Sequence[Any]) -> Any:
        plan = make(roots)
        kernels.extend(plan.kernels)
        return plan

    engine.make_plan = noted
    times = []
    for _ in range(2):
        begin = time.process_time()
        found = run()
        recorded = time.process_time()
        Tensor.realize(*found)
        times.append((recorded - begin, time.process_time() - recorded))
    text = "".join(f"{each:9.2f}" for pair in times for each in pair)
    return f"{text} {len(kernels):9}"


def main() -> None:
    """Run each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--here", action="store_true", help="run in this process")
    given = parser.parse_args()
    if not given.here:
        print(f"{'':22}{'record':>9}{'first':>9}{'record':>9}{'again':>9}{'kernels':>10}")
    for name in given.cases:
        if given.here:
            print(f"{name:22}{measure(CASES[name])}", flush=True)
            continue
        settings = os.environ | {"PICOGRAD_CACHE": "0", "PICOGRAD_THREADS": "1"}
        command = [sys.executable, __file__, "--here", name]
        try:
            subprocess.run(command, env=settings, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            print(f"{name:22}did not end in {LIMIT} s", flush=True)


if __name__ == "__main__":
    main()
