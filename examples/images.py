"""A ResNet-18 learns to tell pictures apart: a folder of folders, one for each class.

    python examples/images.py FOLDER [--weights resnet18.pth] [--pixels 64] [--epochs 10] [--plot]

FOLDER/cat/*.jpg, FOLDER/dog/*.png, ...: every fifth picture of a class is held out for the
accuracy. `--weights` starts from a file of torchvision's ResNet-18, whose last layer is made anew;
without it the network starts fresh, a quarter as wide. `--plot` draws the pictures that it gets
wrong. It takes the package Pillow. Without a folder it draws crosses, rings and bars, and learns
those.
"""

import tempfile
from pathlib import Path

import numpy as np
from common import (
    Clock,
    accuracy,
    existing,
    load_pyplot,
    need_package,
    positive,
    predict,
    read_options,
    write,
)
from resnet18 import ResNet18

import picograd
from picograd import Tensor, nn

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
HELD_OUT = 5  # every fifth picture is not learned
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's colours
SHAPES = ("cross", "ring", "bar")


def more_options(parser):
    parser.add_argument("folder", type=existing, nargs="?", help="of folders with pictures")
    parser.add_argument("--weights", type=existing, help="a file of torchvision's ResNet-18")
    parser.add_argument("--pixels", type=positive, default=64, help="side of scaled pictures")


def draw_pictures(folder, count=250, side=48, seed=0):
    """Write pictures of three shapes in random places and colours, as there are none."""
    from PIL import Image, ImageDraw

    generator = np.random.default_rng(seed)
    for name in SHAPES:
        (folder / name).mkdir()
        for number in range(count):
            ground, colour = (tuple(generator.integers(0, 256, 3).tolist()) for _ in range(2))
            image = Image.new("RGB", (side, side), ground)
            pen = ImageDraw.Draw(image)
            x, y = generator.integers(14, side - 14, 2).tolist()
            if name == "ring":
                pen.ellipse((x - 10, y - 10, x + 10, y + 10), outline=colour, width=4)
            if name in ("cross", "bar"):
                pen.line((x - 10, y, x + 10, y), fill=colour, width=4)
            if name == "cross":
                pen.line((x, y - 10, x, y + 10), fill=colour, width=4)
            image.save(folder / name / f"{number}.png")


def read_picture(path, pixels):
    """Read a picture as 3 H W of bytes, cut to a square around its middle."""
    from PIL import Image, ImageOps

    image = ImageOps.fit(Image.open(path).convert("RGB"), (pixels, pixels))
    return np.asarray(image).transpose(2, 0, 1)


def read_folder(folder, pixels):
    """Read all pictures; returns class names, and (images, labels) to learn and to check."""
    names = sorted(each.name for each in folder.iterdir() if each.is_dir())
    parts = {True: ([], []), False: ([], [])}
    for label, name in enumerate(names):
        paths = sorted(p for p in (folder / name).iterdir() if p.suffix.lower() in PICTURES)
        for number, path in enumerate(paths):
            images, labels = parts[number % HELD_OUT > 0]
            images.append(read_picture(path, pixels))
            labels.append(label)
    if len(names) < 2 or not parts[False][0] or not parts[True][0]:
        message = f"{folder} needs two folders or more, with two pictures or more in each"
        raise SystemExit(message)
    arrays = [(np.stack(images), np.array(labels)) for images, labels in parts.values()]
    return names, *arrays


class Scaled(nn.Module):
    """A network that takes bytes, as pictures have them."""

    def __init__(self, network):
        self.network = network

    def forward(self, x):
        mean, spread = (Tensor(each, device=x.device).reshape(3, 1, 1) for each in (MEAN, SPREAD))
        return self.network((x.float() / 255 - mean) / spread)


def make_model(options, classes):
    """Start from given weights, all but the last layer, or fresh."""
    if options.weights is None:
        return Scaled(ResNet18(classes, width=16))
    network = ResNet18(classes)
    state = nn.load(options.weights)
    known = {name: each for name, each in state.items() if not name.startswith("fc.")}
    network.load_state_dict(known, strict=False)
    return Scaled(network)


def train(model, data, options, clock):
    """Train with AdamW on mirrored pictures; returns the losses."""
    mirror = nn.transforms.RandomHorizontalFlip()
    optimizer = nn.optim.AdamW(model.parameters(), lr=1e-3 if options.weights is None else 1e-4)
    loader = nn.DataLoader(data, options.batch_size, shuffle=True, seed=options.seed)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(mirror(x)), y)
        loss.backward()
        optimizer.step()
        return loss

    train_step = step if options.no_jit else picograd.jit(step)
    losses = []
    for epoch in range(options.epochs):
        for x, y in loader:
            if options.steps is not None and len(losses) >= options.steps:
                return losses
            with clock("training" if losses else "compilation"):
                losses.append(train_step(x, y).item())
        print(f"epoch {epoch + 1}/{options.epochs}: loss {losses[-1]:.3f}")
    return losses


def plot_mistakes(images, guesses, labels, names):
    """Draw up to 24 pictures that the network gets wrong."""
    wrong = np.flatnonzero(guesses != labels)[:24]
    pyplot = load_pyplot()
    if pyplot is None:
        return
    rows = max(1, -(-len(wrong) // 8))
    figure, grid = pyplot.subplots(rows, 8, figsize=(12, 1.8 * rows), squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, place in zip(grid.flat, wrong):
        axes.imshow(images[place].transpose(1, 2, 0))
        axes.set_title(f"{names[guesses[place]]}, is {names[labels[place]]}", fontsize=8)
    write(figure, "images_mistakes.png")


def main(arguments=None):
    """Run everything; returns the accuracy on the pictures held out, in per cent."""
    options = read_options(__doc__, arguments, epochs=10, batch_size=32, more=more_options)
    need_package("PIL", "pillow")
    clock = Clock()
    with clock("set-up"), tempfile.TemporaryDirectory() as drawn:
        picograd.manual_seed(options.seed)
        if options.folder is None:
            print("no folder of pictures: draws crosses, rings and bars")
            draw_pictures(Path(drawn))
        names, learned, held = read_folder(options.folder or Path(drawn), options.pixels)
        place = dict(device=options.device)
        (x, y), (images, labels) = ([Tensor(each, **place) for each in p] for p in (learned, held))
        model = make_model(options, len(names)).to(options.device)
    print(f"{len(x)} pictures of {len(names)} classes, {len(images)} held out")
    train(model, nn.TensorDataset(x, y), options, clock)
    with clock("evaluation"):
        percent = accuracy(model, images, labels, batch_size=options.batch_size)
    if options.plot:
        plot_mistakes(held[0], predict(model, images), held[1], names)
    print(f"accuracy on pictures held out: {percent:.1f} %")
    print(f"seconds: {clock}")
    return percent


if __name__ == "__main__":
    main()
