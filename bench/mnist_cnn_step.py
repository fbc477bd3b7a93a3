"""One steady training step of examples/mnist_cnn.py against the same network in PyTorch (CPU).

PyTorch runs twice, with its default layout and channels-last; the better one is the rival.
Both start from the same weights and see the same batches; their losses must agree.

    python bench/mnist_cnn_step.py [--batch-size 128] [--rounds 25] [--threads 2]
"""

import argparse
import copy
import os
import sys

import numpy as np
from mnist_steps import picograd_step, repeated, torch_step
from timing import interleave, machine, refuse_pinned_blas, report


def torch_network():
    """Build the network of examples/mnist_cnn.py in PyTorch."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
            self.norm1 = nn.BatchNorm2d(32)
            self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
            self.norm2 = nn.BatchNorm2d(64)
            self.conv3 = nn.Conv2d(64, 64, 3, padding=1)
            self.norm3 = nn.BatchNorm2d(64)
            self.fc1 = nn.Linear(3136, 128)
            self.fc2 = nn.Linear(128, 10)

        def forward(self, x):
            relu, pool = torch.relu, torch.nn.functional.max_pool2d
            x = pool(relu(self.norm1(self.conv1(x))), 2)
            x = pool(relu(self.norm2(self.conv2(x))), 2)
            x = x + relu(self.norm3(self.conv3(x)))
            return self.fc2(relu(self.fc1(x.flatten(1))))

    torch.manual_seed(0)
    return Network()


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_DEVICE"] = "cpu"
    os.environ["PICOGRAD_THREADS"] = str(options.threads)
    import torch
    from mnist_cnn import Network

    torch.set_num_threads(options.threads)
    generator = np.random.default_rng(0)
    images = generator.normal(size=(options.batch_size, 1, 28, 28)).astype(np.float32)
    labels = generator.integers(0, 10, options.batch_size)
    network = torch_network()
    steps = {
        "picograd": picograd_step(Network(), network, images, labels),
        "torch default": torch_step(copy.deepcopy(network), images, labels),
        "torch channels-last": torch_step(copy.deepcopy(network), images, labels, True),
    }
    rivals = {name: repeated(step) for name, step in steps.items()}
    losses = [[round(run(), 3) for _ in range(3)] for run in rivals.values()]
    print(machine(), f"threads {options.threads}")
    print("losses of the first steps:", losses)
    if not np.allclose(losses, losses[0], atol=5e-3):
        sys.exit("the losses differ: the timing would mean nothing")
    title = f"MNIST CNN training step, batch {options.batch_size}"
    report(title, interleave(rivals, options.rounds), "picograd")


if __name__ == "__main__":
    main()
