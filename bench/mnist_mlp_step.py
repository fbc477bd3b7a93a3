"""One steady training step of examples/mnist_mlp.py against PyTorch (CPU).

python bench/mnist_mlp_step.py [--batch-size 128] [--rounds 50]

Ancestors' list: M29.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from timing import interleave, machine, refuse_pinned_blas, report

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
STEPS = 20  # steps inside one timed call, so that the clock does not matter


def torch_steps(network, images, labels, fused):
    """Make a function that runs STEPS training steps in PyTorch."""
    import torch

    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)

    def run():
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(images), labels)
            loss.backward()
            optimizer.step()
        return loss.item()

    return run


def picograd_steps(network, images, labels):
    """Make a function that runs STEPS training steps in picograd."""
    from mnist_mlp import Network

    import picograd
    from picograd import Tensor, nn

    ours = Network()
    state = zip(ours.state_dict(), network.state_dict().values(), strict=True)
    ours.load_state_dict({name: Tensor(value.numpy().copy()) for name, value in state})
    optimizer = nn.optim.Adam(ours.parameters(), lr=1e-3)
    x, y = Tensor(images), Tensor(labels)

    @picograd.jit
    def train(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ours(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def run():
        for _ in range(STEPS):
            loss = train(x, y)
        return loss.item()

    return run


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_DEVICE"] = "cpu"
    import copy

    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    generator = np.random.default_rng(0)
    images = generator.normal(size=(options.batch_size, 1, 28, 28)).astype(np.float32)
    labels = generator.integers(0, 10, options.batch_size)
    torch.manual_seed(0)
    layers = (torch.nn.Flatten(), torch.nn.Linear(784, 128), torch.nn.ReLU())
    network = torch.nn.Sequential(*layers, torch.nn.Linear(128, 10))
    rivals = {
        "picograd": picograd_steps(network, images, labels),
        "torch": torch_steps(copy.deepcopy(network), images, labels, False),
        "torch fused Adam": torch_steps(copy.deepcopy(network), images, labels, True),
    }
    losses = [round(run(), 3) for run in rivals.values()]
    print(machine())
    print(f"loss after {STEPS} steps:", losses)
    if not np.allclose(losses, losses[0], atol=5e-3):
        sys.exit("the losses differ: the timing would mean nothing")
    title = f"MNIST MLP, {STEPS} training steps, batch {options.batch_size}"
    report(title, interleave(rivals, options.rounds), "picograd")


if __name__ == "__main__":
    main()
