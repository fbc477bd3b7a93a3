"""A small residual network learns MNIST: 3 epochs, over 99 % right.

It trains, evaluates on the 10,000 test images, saves its weights, loads them into a fresh network
and predicts.

    python examples/mnist_cnn.py [--device cuda] [--epochs 3] [--batch-size 128] [--seed 0] [--plot]

Ancestors' list: M9.
"""

from common import (
    OUTPUT,
    Clock,
    accuracy,
    need_batches,
    plot_digits,
    plot_losses,
    predict,
    read_options,
)
from tqdm import tqdm

import picograd
from picograd import nn

PEAK_RATE = 3e-3  # Adam's learning rate after the first fifth of the steps


class Network(nn.Module):
    """Two convolutions with pooling, a residual block, two linear layers: 458,890 numbers."""

    def __init__(self):
        self.conv1 = nn.Conv2d(1, 32, 3, padding="same")
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding="same")
        self.norm2 = nn.BatchNorm2d(64)
        self.conv3 = nn.Conv2d(64, 64, 3, padding="same")
        self.norm3 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(64 * 7 * 7, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.pool(self.norm1(self.conv1(x)).relu())  # B 32 14 14
        x = self.pool(self.norm2(self.conv2(x)).relu())  # B 64 7 7
        x = x + self.norm3(self.conv3(x)).relu()  # the residual block
        x = self.fc1(x.flatten(1)).relu()  # B 128
        return self.fc2(x)  # B 10


def make_step(model, optimizer):
    """Build the training step; `picograd.jit` captures it on the first call."""

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()  # nobody reads the gradients: they need not reach memory
        return loss

    return step


def train(model, data, options, clock):
    """Train for some epochs with a rate that rises for a fifth of the steps, then falls to 0."""
    batches = nn.DataLoader(
        nn.TensorDataset(data.train_images, data.train_labels),
        batch_size=options.batch_size,
        shuffle=True,
        seed=options.seed,
        drop_last=True,
    )
    optimizer = nn.optim.Adam(model.parameters(), lr=PEAK_RATE)
    total = options.epochs * need_batches(batches)
    schedule = nn.lr.TriangleLR(optimizer, total_steps=total, rise=0.2)
    step = make_step(model, optimizer)
    train_step = step if options.no_jit else picograd.jit(step)
    losses = []
    for epoch in range(options.epochs):
        progress = tqdm(batches, desc=f"epoch {epoch + 1}/{options.epochs}")
        for x, y in progress:
            if options.steps is not None and len(losses) >= options.steps:
                break
            with clock("training" if losses else "compilation"):
                losses.append(train_step(x, y).item())
                schedule.step()
            if len(losses) % 20 == 0:
                progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return losses


def reload(model, device):
    """Save the weights and load them into a fresh network."""
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / "mnist_cnn.safetensors"
    nn.save(model.state_dict(), path)
    fresh = Network().to(device)
    fresh.load_state_dict(nn.load(path))
    print(f"saved and loaded {path}")
    return fresh


def main(arguments=None):
    """Run everything; returns the test accuracy in per cent."""
    options = read_options(__doc__, arguments, epochs=3)
    clock = Clock()
    with clock("set-up"):
        picograd.manual_seed(options.seed)
        data = nn.datasets.mnist(options.device)
        model = Network().to(options.device)
    losses = train(model, data, options, clock)
    with clock("evaluation"):
        percent = accuracy(model, data.test_images, data.test_labels)
    shown, labels = data.test_images[:50], data.test_labels[:50].numpy()
    predictions = predict(reload(model, options.device), shown)
    print("predicted:", *predictions[:10])
    print("truth:    ", *labels[:10])
    if options.plot:
        plot_losses(losses, "mnist_cnn")
        plot_digits(shown.numpy(), predictions, labels, "mnist_cnn")
    print(f"test accuracy: {percent:.2f} %")
    print(f"seconds: {clock}")
    return percent


if __name__ == "__main__":
    main()
