"""Recurrent layers as loops of the graph, beside PyTorch: scheduling, the first call, a step.

    python bench/recurrent.py [--device cuda] [--rounds 7] [--shapes 256,64,512 512,64,256]

A step is forward, mean of squares and the gradients of all weights, on the same input. Shapes are
steps, batch, hidden size (and as many features). The bar: a step in at most 2 x PyTorch's time.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from timing import interleave, machine, refuse_pinned_blas, report

FIRST = """
import time
import numpy as np
import picograd
from picograd import Tensor, nn
x = Tensor(np.random.default_rng(0).normal(size=({T}, {B}, {H})).astype("f"), device={device!r})
layer = nn.{name}({H}, {H}).to({device!r})
layer.weight_hh_l0.numpy()
start, busy = time.perf_counter(), time.process_time()
@picograd.jit
def step(x):
    loss = layer(x)[0].square().mean()
    return loss, picograd.grad(loss, list(layer.parameters()))
step(x)[1][1].numpy()
print(time.perf_counter() - start, time.process_time() - busy)
"""


def sizes(device: str, name: str, steps: int) -> tuple[int, int, float]:
    """Graph nodes, kernels and median seconds of scheduling one training step."""
    from picograd import Tensor, nn
    from picograd.engine.backends import get_device
    from picograd.engine.plan_key import walk_pending
    from picograd.schedule.schedule import schedule

    layer = getattr(nn, name)(64, 64).to(device)
    x = Tensor(np.zeros((steps, 16, 64), np.float32), device=device)
    y, _ = layer(x)
    y.square().mean().backward()
    roots = [p.grad.node for p in layer.parameters()]
    seconds = []
    for _ in range(15):
        start = time.perf_counter()
        plan = schedule(roots, get_device(device).target, verify=False)
        seconds.append(time.perf_counter() - start)
    return len(walk_pending(roots)), len(plan.kernels), statistics.median(seconds)


def first_call(device: str, name: str, shape: tuple[int, int, int]) -> tuple[float, float]:
    """Time the first forward and backward pass of a fresh process without a cache.

    Returns seconds by the wall clock, and of processor time.
    """
    steps, batch, hidden = shape
    text = FIRST.format(T=steps, B=batch, H=hidden, device=device, name=name)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PICOGRAD_CACHE": folder}
        command = [sys.executable, "-c", text]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    wall, processor = (float(each) for each in found.stdout.split()[-2:])
    return wall, processor


def picograd_step(reference, x, device):
    """Make a function that runs one step in picograd."""
    import picograd
    from picograd import Tensor, nn

    layer = getattr(nn, type(reference).__name__)(x.shape[-1], reference.hidden_size).to(device)
    layer.load_state_dict({k: v.cpu().numpy() for k, v in reference.state_dict().items()})
    given = Tensor(x, device=device)
    parameters = list(layer.parameters())

    @picograd.jit
    def step(given):
        loss = layer(given)[0].square().mean()
        return loss, picograd.grad(loss, parameters)

    def run():
        loss, gradients = step(given)
        picograd.synchronize(device)
        return loss, gradients

    return run


def torch_step(layer, x, device):
    """Make a function that runs one step in PyTorch."""
    import torch

    given = torch.tensor(x, device=device)
    parameters = list(layer.parameters())

    def run():
        loss = layer(given)[0].square().mean()
        gradients = torch.autograd.grad(loss, parameters)
        if device != "cpu":
            torch.cuda.synchronize()
        return loss, gradients

    return run


def compare(name: str, shape: tuple[int, int, int], device: str, rounds: int) -> None:
    """Time one step of both, after checking that they agree."""
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    steps, batch, hidden = shape
    x = np.random.default_rng(0).normal(size=(steps, batch, hidden)).astype(np.float32)
    layer = getattr(torch.nn, name)(hidden, hidden).to(device)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    rivals = {"picograd": picograd_step(layer, x, device), "torch": torch_step(layer, x, device)}
    (loss, found), (goal, wanted) = (run() for run in rivals.values())
    np.testing.assert_allclose(loss.numpy(), goal.detach().cpu().numpy(), rtol=1e-4)
    for a, b in zip(found, wanted, strict=True):
        scale = abs(b).max().item()
        np.testing.assert_allclose(a.numpy() / scale, b.cpu().numpy() / scale, atol=1e-3)
    times = interleave(rivals, rounds, warmup=2)
    gates = {"LSTM": 4, "GRU": 3}.get(name, 1)
    # input and state product, forward and for the weights; the state's once more for its gradient
    work = 5 * 2.0 * steps * batch * hidden * gates * hidden
    report(f"{name} {steps} steps x batch {batch} x hidden {hidden}", times, "picograd", work)


def main() -> None:
    """Measure and print."""
    refuse_pinned_blas()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--shapes", nargs="+", default=["256,64,512", "512,64,256"])
    parser.add_argument("--names", nargs="+", default=["LSTM"])
    parser.add_argument("--first", type=int, default=3, help="fresh processes for the first call")
    options = parser.parse_args()
    import torch  # noqa: F401  (its version is part of the next line)

    print(machine(), f"load {os.getloadavg()[0]:.1f}")
    device = options.device
    for steps in (64, 512):
        nodes, kernels, seconds = sizes(device, "LSTM", steps)
        text = f"{nodes} nodes  {kernels} kernels  {seconds * 1e3:.2f} ms to plan"
        print(f"LSTM {steps:4} steps  {text}")
    shape = (512, 64, 256)
    found = [first_call(device, "LSTM", shape) for _ in range(options.first)]
    if found:
        text = ", ".join(f"{wall:.2f} s ({busy:.2f} s busy)" for wall, busy in sorted(found))
        print(f"LSTM {shape} first forward and backward, nothing cached: {text}")
    for name in options.names:
        for each in options.shapes:
            steps, batch, hidden = (int(number) for number in each.split(","))
            compare(name, (steps, batch, hidden), device, options.rounds)


if __name__ == "__main__":
    main()
