"""A small convolutional network reaches 99 % on MNIST in a fraction of a second on a GPU.

All images lie on the device. A jitted function trains for a third of an epoch, so that the host
gives the device three plans an epoch and waits for none. Networks are trained from several seeds,
one after the other; the first run, which compiles, is not timed.

    python examples/mnist_speedrun.py [--device cuda] [--seeds 30] [--epochs 2] [--batch-size 512]

On a CPU `--seeds 1` takes about a minute.
"""

import statistics
import time

from common import Clock, accuracy, positive, read_options

import picograd
from picograd import nn

PEAK_RATE = 1e-2  # Adam's learning rate after the first quarter of the steps
BETAS = (0.9, 0.98)
STRETCH = 39  # steps of one call: a third of an epoch of 117
WARM_UP = {"cpu": 1, "cuda": 14}  # calls until all is compiled, and a GPU has its graph


class Network(nn.Module):
    """Three convolutions with batch norms, two of which halve the image, and a linear layer."""

    def __init__(self):
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 5, stride=2, padding=2), nn.BatchNorm2d(32), nn.ReLU(),  # 32 14 14
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),  # 64 7 7
            nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 7 * 7, 10),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def rates_of(steps):
    """Learning rates that rise for a quarter of the steps, then fall to 0."""
    return [
        PEAK_RATE * min((step + 1) / (0.25 * steps), (steps - step) / (0.75 * steps))
        for step in range(steps)
    ]


def make_stretch(model, optimizer, images, labels, batch_size):
    """Build the function that takes some steps: on images in some order, at these rates."""

    def stretch(order, rates):
        for chosen, rate in zip(order.split(batch_size), rates):
            optimizer.param_groups[0]["lr"] = rate
            loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return stretch


def begin_again(model, optimizer, seed):
    """Give a network the weights that a seed draws, in the same memory, and Adam empty averages."""
    picograd.manual_seed(seed)
    state = model.state_dict()
    fresh = Network().to(next(iter(state.values())).device).state_dict()
    written = [state[name].copy_(value) for name, value in fresh.items()]
    for averages in optimizer.state.values():
        written += [value.zero_() for value in averages.values()]
    written[0].realize(*written[1:])


def train(stretch, rates, length, batch_size, count, device):
    """Take a step for each rate, `length` of them a call, in new order each epoch.

    Returns the last loss.
    """
    calls = max(count // batch_size // length, 1)  # of an epoch
    for number, first in enumerate(range(0, len(rates) - length + 1, length)):
        if number % calls == 0:
            order = picograd.randperm(count, device=device)
        place = number % calls * length * batch_size
        chosen = order[place : place + length * batch_size]
        loss = stretch(chosen, rates[first : first + length])
    return loss


def add_options(parser):
    parser.add_argument("--seeds", type=positive, default=30)
    parser.add_argument("--precision", choices=("highest", "high"), default="high",
                        help="of float32 products on a GPU; high: TF32")  # fmt: skip


def main(arguments=None):
    """Train a network for each seed and print what they get right; returns the mean in per cent."""
    options = read_options(__doc__, arguments, epochs=2, batch_size=512, more=add_options)
    picograd.set_float32_matmul_precision(options.precision)
    clock = Clock()
    with clock("set-up"):
        data = nn.datasets.mnist(options.device)
        images, labels = data.train_images.realize(), data.train_labels.realize()
        device, count = images.device, len(images)
        model = Network().to(device)
        optimizer = nn.optim.Adam(model.parameters(), lr=PEAK_RATE, betas=BETAS)
    steps = options.steps or options.epochs * (count // options.batch_size)
    stretch = make_stretch(model, optimizer, images, labels, options.batch_size)
    stretch = stretch if options.no_jit else picograd.jit(stretch)
    rates, length = rates_of(steps), min(STRETCH, steps)
    sizes = length, options.batch_size, count, device
    with clock("compilation"):
        calls = WARM_UP[str(device).partition(":")[0]]
        train(stretch, rates[:length] * calls, *sizes).item()
    seconds, found = [], []
    for seed in range(options.seed, options.seed + options.seeds):
        begin_again(model, optimizer, seed)
        picograd.synchronize(str(device))
        with clock("training"):
            start = time.perf_counter()
            loss = train(stretch, rates, *sizes).item()
            seconds.append(time.perf_counter() - start)
        with clock("evaluation"):
            found.append(accuracy(model, data.test_images, data.test_labels))
        print(f"seed {seed}: loss {loss:.4f}, {found[-1]:.2f} %, {seconds[-1] * 1e3:.1f} ms")
    mean, median = statistics.mean(found), statistics.median(seconds)
    print(f"mean of {len(found)} seeds: {mean:.3f} %, at least {min(found):.2f} %")
    print(f"training: median {median * 1e3:.1f} ms, at most {max(seconds) * 1e3:.1f} ms")
    print(f"seconds: {clock}")
    return mean


if __name__ == "__main__":
    main()
