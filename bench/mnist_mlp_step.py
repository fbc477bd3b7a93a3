"""One steady training step of examples/mnist_mlp.py against PyTorch (CPU).

python bench/mnist_mlp_step.py [--batch-size 128] [--rounds 50]

Ancestors' list: M29.
"""

import argparse
import copy
import os
import sys

import numpy as np
from mnist_steps import picograd_step, repeated, torch_step
from timing import interleave, machine, refuse_pinned_blas, report

STEPS = 20  # steps inside one timed call, so that the clock does not matter


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_DEVICE"] = "cpu"
    import torch
    from mnist_mlp import Network

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    generator = np.random.default_rng(0)
    images = generator.normal(size=(options.batch_size, 1, 28, 28)).astype(np.float32)
    labels = generator.integers(0, 10, options.batch_size)
    torch.manual_seed(0)
    layers = (torch.nn.Flatten(), torch.nn.Linear(784, 128), torch.nn.ReLU())
    network = torch.nn.Sequential(*layers, torch.nn.Linear(128, 10))
    steps = {
        "picograd": picograd_step(Network(), network, images, labels),
        "torch": torch_step(copy.deepcopy(network), images, labels, fused=False),
        "torch fused Adam": torch_step(copy.deepcopy(network), images, labels, fused=True),
    }
    rivals = {name: repeated(step, STEPS) for name, step in steps.items()}
    losses = [round(run(), 3) for run in rivals.values()]
    print(machine())
    print(f"loss after {STEPS} steps:", losses)
    if not np.allclose(losses, losses[0], atol=5e-3):
        sys.exit("the losses differ: the timing would mean nothing")
    title = f"MNIST MLP, {STEPS} training steps, batch {options.batch_size}"
    report(title, interleave(rivals, options.rounds), "picograd")


if __name__ == "__main__":
    main()
