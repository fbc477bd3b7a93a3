"""What the examples share: options, the clock behind the last line, accuracy, pictures."""

import argparse
import importlib
import lzma
import sys
import time
from pathlib import Path

import numpy as np

import picograd
from picograd import Tensor, nn
from picograd.errors import DeviceError

OUTPUT = Path(__file__).parent / "output"
TEXT = Path(__file__).parent / "texts" / "austen.txt.xz"  # texts/README.md says what it is


def shipped_text():
    """Read two novels by Jane Austen: 1.35 million characters, a paragraph a line."""
    return lzma.decompress(TEXT.read_bytes()).decode("ascii")


def read_options(description, arguments=None, epochs=1, batch_size=128, more=None):
    """Read the options every example takes, and those that `more(parser)` adds."""
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("--device", default=None, help="cpu, cuda; default: CUDA if usable")
    parser.add_argument("--epochs", type=positive, default=epochs)
    parser.add_argument("--batch-size", type=positive, default=batch_size)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", action="store_true", help=f"write pictures to {OUTPUT}")
    parser.add_argument("--steps", type=natural, default=None, help="stop after this many steps")
    parser.add_argument("--no-jit", action="store_true", help="do not capture the training step")
    if more is not None:
        more(parser)
    options = parser.parse_args(arguments)
    check_device(parser, options.device)
    return options


def positive(text):
    """Read a count of 1 or more."""
    return at_least(1, text)


def natural(text):
    """Read a count that may be 0."""
    return at_least(0, text)


def at_least(least, text):
    """Read an integer; argparse ends with a line if it is less than `least`."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is less than {least}")
    return number


def existing(text):
    """Read an option that names a file or folder; argparse ends with a line if it is missing."""
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"there is no {path}")
    return path


def check_device(parser, device):
    """End with a line on the options if there is no such device."""
    try:
        Tensor([0.0], device=device)
    except DeviceError as error:
        parser.error(f"--device {device}: {error}")


def need_package(name, install):
    """End with a line that says how to get a package that the example needs, if it is missing."""
    try:
        importlib.import_module(name)
    except ImportError:
        sys.exit(f"this example needs {name}: python -m pip install {install}")


def need_batches(batches):
    """Give the number of batches of an epoch; end with a line if there is none."""
    if len(batches) == 0:
        sys.exit("--batch-size is larger than the number of training images")
    return len(batches)


class Clock:
    """Adds up seconds under names: `with clock("training"): ...`."""

    def __init__(self):
        self.seconds = {}

    def __call__(self, name):
        self.name = name
        return self

    def __enter__(self):
        self.start = time.perf_counter()

    def __exit__(self, *_):
        passed = time.perf_counter() - self.start
        self.seconds[self.name] = self.seconds.get(self.name, 0.0) + passed

    def __str__(self):
        return ", ".join(f"{name} {passed:.2f} s" for name, passed in self.seconds.items())


def accuracy(model, images, labels, batch_size=1000):
    """Share of test images that the model gets right, in per cent."""
    model.eval()

    @picograd.jit
    def count_correct(x, y):
        with picograd.no_grad():
            return (model(x).argmax(1) == y).sum()

    batches = nn.DataLoader(nn.TensorDataset(images, labels), batch_size)
    correct = sum(int(count_correct(x, y).item()) for x, y in batches)
    model.train()
    return 100.0 * correct / len(images)


def predict(model, images):
    """Most likely digit of each image."""
    model.eval()
    with picograd.no_grad():
        digits = model(images).argmax(1).numpy()
    model.train()
    return digits


def plot_losses(losses, name):
    """Write the loss curve as a picture."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    figure, axes = pyplot.subplots(figsize=(7, 4))
    axes.plot(losses, linewidth=0.5, color="#8aa")
    width = max(1, len(losses) // 50)
    smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
    mark = "o" if len(losses) <= 50 else ""  # a line through one point cannot be seen
    axes.plot(np.arange(len(smooth)) + width // 2, smooth, color="#05a", marker=mark)
    axes.set(xlabel="step", ylabel="training loss", yscale="log", title=name)
    write(figure, f"{name}_loss.png")


def plot_digits(images, predictions, labels, name):
    """Write a grid of test digits with predictions; wrong ones are red."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    columns = 10
    rows = -(-len(images) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(columns, rows * 1.25), squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, image, guess, label in zip(grid.flat, images, predictions, labels):
        axes.imshow(image.reshape(28, 28), cmap="gray_r")
        axes.set_title(f"{guess}", color="black" if guess == label else "red", fontsize=10)
    write(figure, f"{name}_digits.png")


def load_pyplot():
    """Find matplotlib without a display, or say how to get it."""
    try:
        import matplotlib
    except ImportError:
        print("--plot needs Matplotlib: python -m pip install -e '.[plot]'", file=sys.stderr)
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def write(figure, name):
    OUTPUT.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(OUTPUT / name, dpi=120)
    print(f"wrote {OUTPUT / name}")
