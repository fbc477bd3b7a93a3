"""Training steps of 21 networks, plain or jitted, beside plain PyTorch: losses, speed, plans.

python bench/plain_models.py [--jit] [--device cuda] [--steps 110] [--only GPT] [--plans]

Both libraries start from the same weights and step in turn in one process, on one thread. Printed:
how far the losses are apart, the steady times, the ratio, the time at the last steps over that at
the tenth, the plans made after the third step. On the CPU it is the time of the thread, as others
may run too. `--jit` jits our steps, as a user would: PyTorch's stay plain. `--plans` prints a
digest of the list of plans and their kernels only: it is the same in every process.
"""

import argparse
import hashlib
import math
import statistics
import time

import torch
from plain_networks import NETWORKS, Data
from timing import machine, refuse_pinned_blas

import picograd
from picograd.engine.executable import all_launches
from picograd.engine.realize import PLANS
from picograd.schedule.canonical import canonical_key

WARM, WINDOW = 10, 10
COMPARED = 2  # later a relu whose input is 0 but for rounding takes float32 networks apart


class Training:
    """This class is one network with Adam in one library."""

    def __init__(self, library, network, device, weights=None, is_jitted=False):
        picograd.manual_seed(0)
        torch.manual_seed(0)
        set_device(library, device)
        modules, self.loss = network(library, Data(library))
        self.modules = library.nn.ModuleList(modules).to(device)
        if weights is not None:
            self.modules.load_state_dict(weights)
        parameters = list(self.modules.parameters())
        rooms = library.optim if library is torch else library.nn.optim
        self.optimizer = rooms.Adam(parameters, lr=1e-3)
        self.update = picograd.jit(self.learn) if is_jitted else self.learn

    def weights(self):
        state = self.modules.state_dict()
        return {name: value.detach().cpu().numpy() for name, value in state.items()}

    def learn(self):
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss

    def step(self):
        return self.update().item()


def set_device(library, device):
    if library is torch:
        torch.set_default_device(device)
    else:
        picograd.config.device = device


def timed(function, device):
    clock = time.thread_time if device == "cpu" else time.perf_counter
    start = clock()
    value = function()
    return value, (clock() - start) * 1e3


def measure(name, device, steps, is_jitted):
    """Step both libraries in turn, print one row, and return the ratio of their speeds."""
    theirs = Training(torch, NETWORKS[name], device)
    ours = Training(picograd, NETWORKS[name], device, theirs.weights(), is_jitted)
    mine, others, apart, third = [], [], 0.0, 0
    for number in range(steps):
        found, milliseconds = timed(ours.step, device)
        mine.append(milliseconds)
        wanted, milliseconds = timed(theirs.step, device)
        others.append(milliseconds)
        if number < COMPARED:
            apart = max(apart, abs(found - wanted) / max(abs(wanted), 1e-3))
        third = len(PLANS) if number == 2 else third
    ratio = statistics.median(b / a for a, b in zip(mine[WARM:], others[WARM:], strict=True))
    quarters = statistics.quantiles(mine[WARM:], n=4)
    early, late = (statistics.median(part) for part in (mine[WARM:][:WINDOW], mine[-WINDOW:]))
    row = (
        f"{name:16} losses apart {apart:7.1e}",
        f"picograd {statistics.median(mine[WARM:]):7.2f} ms ({quarters[0]:.2f}, {quarters[2]:.2f})",
        f"PyTorch {statistics.median(others[WARM:]):7.2f} ms",
        f"ratio {ratio:5.2f}",
        f"last/tenth {late / early:4.2f}",
        f"first {mine[0] / 1e3:5.1f} s",
        f"plans after step 3: {len(PLANS) - third}",
    )
    print("  ".join(row), flush=True)
    return ratio


def digest(name, device):
    """Train four steps, and print a digest of the plans that were made."""
    picograd.config.verify = 1  # a plan found on disk would not show its kernels
    training = Training(picograd, NETWORKS[name], device)
    known = len(PLANS)
    for _ in range(4):
        training.step()
    made = []
    for key in list(PLANS)[known:]:
        launches = all_launches(PLANS[key].plan)
        made.append((key, [(canonical_key(x.kernel), x.slots, x.scalars) for x in launches]))
    print(f"{name:16} {len(made)} plans {hashlib.sha256(repr(made).encode()).hexdigest()[:16]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=110)
    parser.add_argument("--only", default="")
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--jit", action="store_true")
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    picograd.config.threads = 1
    chosen = [name for name in NETWORKS if options.only in name]
    if options.plans:
        for name in chosen:
            digest(name, options.device)
        return
    print(machine(), options.device)
    ratios = [measure(name, options.device, options.steps, options.jit) for name in chosen]
    middle = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    print(f"geometric mean {middle:.2f}, slowest {min(ratios):.2f}, of {len(ratios)} networks")


if __name__ == "__main__":
    main()
