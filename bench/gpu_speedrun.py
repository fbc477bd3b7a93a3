"""The training of examples/mnist_speedrun.py beside the same recipe in PyTorch, on an NVIDIA GPU.

The same network, batches, rates and Adam; channels-last, fused Adam; eager, and with as many steps
captured by hand in a CUDA graph as one call of the example takes. Milliseconds of training from the
first step to the last loss on the host, without compilation and capture, and the mean accuracy.

    python bench/gpu_speedrun.py [--seeds 5] [--precision highest]
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from timing import machine

import picograd
from picograd import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import mnist_speedrun as example

BATCH, EPOCHS = 512, 2


def network():
    """The example's network."""
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 5, stride=2, padding=2), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, stride=2, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
        torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(64 * 7 * 7, 10),
    )  # fmt: skip
    return layers.cuda().to(memory_format=torch.channels_last)


class Rival:
    """This class trains with PyTorch, eagerly or by replays of a graph of STRETCH steps."""

    def __init__(self, data, is_captured):
        self.images, self.labels, self.test_images, self.test_labels = data
        self.model = network()
        self.first = {k: v.clone() for k, v in self.model.state_dict().items()}
        rate = torch.tensor(example.PEAK_RATE, device="cuda")
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=rate, betas=example.BETAS, fused=True, capturable=True
        )
        self.order = torch.randperm(example.STRETCH * BATCH, device="cuda")
        self.rates = torch.zeros(example.STRETCH, device="cuda")
        self.replay = None
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            self.stretch()
        torch.cuda.synchronize()
        if is_captured:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.loss = self.stretch()
            self.replay = graph.replay

    def stretch(self):
        """Take STRETCH steps."""
        for number, chosen in enumerate(self.order.split(BATCH)):
            self.optimizer.param_groups[0]["lr"].copy_(self.rates[number])
            found = self.model(self.images[chosen])
            loss = torch.nn.functional.cross_entropy(found, self.labels[chosen])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        return loss.detach()

    def begin_again(self, seed):
        """Draw new weights in the same memory."""
        torch.manual_seed(seed)
        for name, value in network().state_dict().items():
            self.model.state_dict()[name].copy_(value)
        for averages in self.optimizer.state.values():
            for value in averages.values():
                value.zero_()

    def train(self, rates):
        """Train, and read the last loss."""
        count, length = len(self.images), example.STRETCH * BATCH
        calls = count // length
        for number, some in enumerate(rates.split(example.STRETCH)):
            if number % calls == 0:
                order = torch.randperm(count, device="cuda")
            self.order.copy_(order[number % calls * length :][:length])
            self.rates.copy_(some)
            if self.replay is None:
                loss = self.stretch()
            else:
                self.replay()
                loss = self.loss
        return loss.item()

    def run(self, seed):
        """Train from a seed: seconds, and per cent right."""
        self.begin_again(seed)
        rates = example.rates_of(EPOCHS * (len(self.images) // BATCH))
        rates = torch.tensor(rates, device="cuda")
        self.model.train()
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.train(rates)
        seconds = time.perf_counter() - start
        self.model.eval()
        with torch.no_grad():
            right = self.model(self.test_images).argmax(1) == self.test_labels
        return seconds, 100 * right.float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--precision", default="high", choices=("highest", "high"))
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = options.precision == "high"
    torch.set_float32_matmul_precision(options.precision)
    data = nn.datasets.mnist("cpu")
    sets = data.train_images, data.train_labels, data.test_images, data.test_labels
    there = [torch.tensor(each.numpy(), device="cuda") for each in sets]
    print(torch.cuda.get_device_name(), "|", machine(), "|", options.precision, flush=True)
    arguments = ["--device", "cuda", "--seeds", str(options.seeds), "--batch-size", str(BATCH)]
    example.main([*arguments, "--epochs", str(EPOCHS), "--precision", options.precision])
    for name, is_captured in (("torch captured", True), ("torch eager", False)):
        rival = Rival(there, is_captured)
        rival.run(0)
        found = [rival.run(seed) for seed in range(options.seeds)]
        seconds, right = zip(*found, strict=True)
        print(
            f"{name:16} median {statistics.median(seconds) * 1e3:.1f} ms, at most "
            f"{max(seconds) * 1e3:.1f} ms; mean {statistics.mean(right):.3f} %", flush=True,
        )  # fmt: skip
    print(f"picograd's peak memory {picograd.memory_stats('cuda')['peak'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
