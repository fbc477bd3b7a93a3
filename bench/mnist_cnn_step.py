"""One steady training step of examples/mnist_cnn.py against the same network in PyTorch (CPU).

PyTorch runs twice, with its default layout and channels-last; the better one is the rival.
Both start from the same weights and see the same batches; their losses must agree.

    python bench/mnist_cnn_step.py [--batch-size 128] [--rounds 25] [--threads 2]
"""

import argparse
import copy
import os
import sys
from pathlib import Path

import numpy as np
from timing import interleave, machine, refuse_pinned_blas, report

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


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


def torch_step(network, images, labels, channels_last):
    """Make a function that runs one training step in PyTorch and returns the loss."""
    import torch

    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def picograd_step(network, images, labels):
    """Make a function that runs one training step in picograd and returns the loss."""
    from mnist_cnn import Network

    import picograd
    from picograd import Tensor, nn

    ours = Network()
    ours.load_state_dict({k: Tensor(v.numpy().copy()) for k, v in network.state_dict().items()})
    optimizer = nn.optim.Adam(ours.parameters(), lr=1e-3)
    x, y = Tensor(images), Tensor(labels)

    @picograd.jit
    def train(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ours(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: train(x, y).item()


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

    torch.set_num_threads(options.threads)
    generator = np.random.default_rng(0)
    images = generator.normal(size=(options.batch_size, 1, 28, 28)).astype(np.float32)
    labels = generator.integers(0, 10, options.batch_size)
    network = torch_network()
    rivals = {
        "picograd": picograd_step(network, images, labels),
        "torch default": torch_step(copy.deepcopy(network), images, labels, False),
        "torch channels-last": torch_step(copy.deepcopy(network), images, labels, True),
    }
    losses = [[round(run(), 3) for _ in range(3)] for run in rivals.values()]
    print(machine(), f"threads {options.threads}")
    print("losses of the first steps:", losses)
    if not np.allclose(losses, losses[0], atol=5e-3):
        sys.exit("the losses differ: the timing would mean nothing")
    title = f"MNIST CNN training step, batch {options.batch_size}"
    report(title, interleave(rivals, options.rounds), "picograd")


if __name__ == "__main__":
    main()
