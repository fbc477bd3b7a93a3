"""A small residual network learns CIFAR-10 from shifted and mirrored images.

The data set is downloaded once (170 MB; without a connection the error says where to put the file).
Batches are drawn, scaled, normalised and varied on the device, inside the jitted step; the rate
follows one cycle (Smith and Topin, 2018).

    python examples/cifar10.py [--device cuda] [--epochs 10] [--batch-size 128] [--seed 0] [--plot]

Run so far on generated images only, which it learns within 50 steps. Not measured: the
accuracy on CIFAR-10 and the time of an epoch.
"""

import sys

from common import Clock, need_batches, plot_losses, read_options
from tqdm import tqdm

import picograd
from picograd import nn
from picograd.errors import DataError
from picograd.nn import datasets, transforms

PEAK_RATE = 2e-3  # AdamW's learning rate at the top of the cycle


def unit(channels_in, channels_out):
    """Convolution, batch norm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
    )


class Residual(nn.Module):
    """Two units beside the identity."""

    def __init__(self, channels):
        self.units = nn.Sequential(unit(channels, channels), unit(channels, channels))

    def forward(self, x):
        return x + self.units(x)


class Network(nn.Module):
    """A stem, two residual stages, one linear layer."""

    def __init__(self):
        self.stem = unit(3, 32)
        self.stage1 = nn.Sequential(unit(32, 64), nn.MaxPool2d(2), Residual(64))
        self.stage2 = nn.Sequential(unit(64, 128), nn.MaxPool2d(2), Residual(128))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        x = self.stem(x)  # B 32 32 32
        x = self.stage1(x)  # B 64 16 16
        x = self.stage2(x)  # B 128 8 8
        return self.head(x.amax((2, 3)))  # B 10


def make_transforms():
    """What every image passes through, and what training adds."""
    plain = transforms.Compose(
        [transforms.ToFloat(), transforms.Normalize(datasets.CIFAR10_MEAN, datasets.CIFAR10_STD)]
    )
    varied = transforms.Compose(
        [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), plain]
    )
    return plain, varied


def train(model, varied, data, options, clock):
    """Train with one cycle of the learning rate; returns the losses."""
    batches = nn.DataLoader(
        nn.TensorDataset(data.train_images, data.train_labels),
        batch_size=options.batch_size,
        shuffle=True,
        seed=options.seed,
        drop_last=True,
    )
    optimizer = nn.optim.AdamW(model.parameters(), lr=PEAK_RATE)
    steps = options.epochs * need_batches(batches)
    schedule = nn.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, total_steps=steps)

    def step(x, y):
        loss = nn.functional.cross_entropy(model(varied(x)), y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    train_step = step if options.no_jit else picograd.jit(step)
    losses = []
    for epoch in range(options.epochs):
        progress = tqdm(batches, desc=f"epoch {epoch + 1}/{options.epochs}")
        for x, y in progress:
            if options.steps is not None and len(losses) >= options.steps:
                return losses
            with clock("training" if losses else "compilation"):
                losses.append(train_step(x, y).item())
                schedule.step()
            if len(losses) % 20 == 0:
                progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return losses


def evaluate(model, plain, data, batch_size):
    """Share of test images that the model gets right, in per cent."""
    model.eval()

    @picograd.jit
    def count_correct(x, y):
        with picograd.no_grad():
            return (model(plain(x)).argmax(1) == y).sum()

    test = nn.TensorDataset(data.test_images, data.test_labels)
    batches = nn.DataLoader(test, batch_size)
    correct = sum(int(count_correct(x, y).item()) for x, y in batches)
    model.train()
    return 100.0 * correct / len(test)


def main(arguments=None):
    """Run everything; returns the test accuracy in per cent."""
    options = read_options(__doc__, arguments, epochs=10)
    clock = Clock()
    with clock("set-up"):
        picograd.manual_seed(options.seed)
        try:
            data = datasets.cifar10(options.device)
        except DataError as error:  # no network
            sys.exit(str(error))
        model = Network().to(options.device)
        plain, varied = make_transforms()
    losses = train(model, varied, data, options, clock)
    with clock("evaluation"):
        percent = evaluate(model, plain, data, options.batch_size)
    if options.plot:
        plot_losses(losses, "cifar10")
    print(f"test accuracy: {percent:.2f} %")
    print(f"seconds: {clock}")
    return percent


if __name__ == "__main__":
    main()
