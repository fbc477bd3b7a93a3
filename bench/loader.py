"""What a batch of a DataLoader costs beside PyTorch's: MNIST images, batches of 64 (CPU).

python bench/loader.py [--batch-size 64] [--rounds 15]

Every rival walks 200 shuffled batches of float32 images and int64 labels and reads nothing else:
the time is the loader's own.
"""

import argparse

import numpy as np
import torch
from timing import interleave, machine, refuse_pinned_blas, report

import picograd
from picograd import Tensor, nn

BATCHES = 200


def walk(loader):
    """Make a function that draws every batch of a loader."""

    def run():
        for _batch in loader:
            pass

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    refuse_pinned_blas()
    picograd.config.device = "cpu"
    count = BATCHES * options.batch_size
    images = np.random.default_rng(0).random((count, 1, 28, 28), np.float32)
    labels = np.arange(count) % 10
    shared = {"batch_size": options.batch_size, "shuffle": True}
    ours = nn.TensorDataset(Tensor(images), Tensor(labels))
    theirs = torch.utils.data.TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    arrays = nn.ArrayDataset(images, labels)
    rivals = {
        "picograd TensorDataset": walk(nn.DataLoader(ours, **shared)),
        "picograd ArrayDataset": walk(nn.DataLoader(arrays, **shared)),
        "picograd ArrayDataset, 2 workers": walk(nn.DataLoader(arrays, num_workers=2, **shared)),
        "PyTorch TensorDataset": walk(torch.utils.data.DataLoader(theirs, **shared)),
    }
    print(machine())
    title = f"{BATCHES} batches of {options.batch_size} MNIST images"
    report(title, interleave(rivals, options.rounds), "picograd TensorDataset")


if __name__ == "__main__":
    main()
