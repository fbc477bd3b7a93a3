"""A variational autoencoder draws digits it has never seen (Kingma and Welling, 2013).

An encoder turns a digit of MNIST into a normal distribution over a few numbers, a decoder turns
numbers drawn from it back into a digit. The loss is a bound of the likelihood: how badly pixels are
guessed, and how far the distribution is from the standard one. `--plot` writes new digits, and
digits of the test set above what became of them.

    python examples/vae.py [--device cuda] [--epochs 5] [--batch-size 128] [--seed 0] [--plot]
"""

import numpy as np
from common import Clock, load_pyplot, plot_losses, read_options, write

import picograd
from picograd import Tensor, nn

PIXELS, INSIDE, NUMBERS = 28 * 28, 400, 20


class Network(nn.Module):
    """Two perceptrons, with numbers drawn at random between."""

    def __init__(self):
        self.encoder = nn.Sequential(nn.Linear(PIXELS, INSIDE), nn.ReLU())
        self.mean, self.log_variance = (nn.Linear(INSIDE, NUMBERS) for _ in range(2))
        self.decoder = nn.Sequential(
            nn.Linear(NUMBERS, INSIDE), nn.ReLU(), nn.Linear(INSIDE, PIXELS)
        )

    def forward(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)  # B Z
        noise = Tensor.randn(*mean.shape, device=x.device)
        return self.decoder(mean + noise * (0.5 * log_variance).exp()), mean, log_variance


def bound(model, x):
    """Give the two parts of the loss, in nats a digit."""
    guess, mean, log_variance = model(x)
    wrong = nn.functional.binary_cross_entropy_with_logits(guess, x, reduction="sum")
    far = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
    return wrong / len(x), far / len(x)


def draw(model, count):
    """Turn numbers of the standard normal distribution into digits: count 28 28."""
    device = model.mean.weight.device
    with picograd.no_grad():
        return model.decoder(Tensor.randn(count, NUMBERS, device=device)).sigmoid().numpy()


def plot_rows(rows, name):
    """Write rows of digits as a picture."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    sheet = np.vstack([np.hstack(row.reshape(-1, 28, 28)) for row in rows])
    figure, axes = pyplot.subplots(figsize=(sheet.shape[1] / 40, sheet.shape[0] / 40))
    axes.imshow(sheet, cmap="gray_r")
    axes.axis("off")
    write(figure, f"{name}.png")


def main(arguments=None):
    """Train, report; returns the loss of the test set, in nats a digit."""
    options = read_options(__doc__, arguments, epochs=5)
    clock = Clock()
    with clock("set-up"):
        picograd.manual_seed(options.seed)
        data = nn.datasets.mnist(options.device)
        train, test = (
            # grey levels from 0 to 1, whatever the data set was scaled to
            (x - x.min()).flatten(1) / (x.max() - x.min())
            for x in (data.train_images, data.test_images)
        )
        model = Network().to(options.device)
        optimizer = nn.optim.Adam(model.parameters(), lr=1e-3)

    def step(x):
        optimizer.zero_grad()
        wrong, far = bound(model, x)
        (wrong + far).backward()
        optimizer.step()
        return wrong + far

    train_step = step if options.no_jit else picograd.jit(step)
    given = nn.TensorDataset(train.realize())
    batches = nn.DataLoader(given, options.batch_size, shuffle=True, seed=options.seed)
    losses = []
    for epoch in range(options.epochs):
        for (x,) in batches:
            if options.steps is not None and len(losses) >= options.steps:
                break
            with clock("training" if losses else "compilation"):
                losses.append(train_step(x).item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses[-len(batches) :]):.1f}", flush=True)
    with picograd.no_grad():
        found = [part.item() for part in bound(model, test)]
    print(f"test: {sum(found):.1f} nats a digit, {found[1]:.1f} of them in the numbers between")
    if options.plot:
        plot_losses(losses, "vae")
        plot_rows([draw(model, 10) for _ in range(5)], "vae_digits")
        with picograd.no_grad():
            again = model(test[:10])[0].sigmoid().numpy()
        plot_rows([test[:10].numpy(), again], "vae_again")
    print(f"seconds: {clock}")
    return sum(found)


if __name__ == "__main__":
    main()
