"""The first program of micrograd-cuda: an MLP 300 -> [300, 300, 1] with tanh fits random targets.

Batch 100, sum of squared errors, gradient descent. The sum over a batch has a large gradient: at a
rate of 0.1 the loss grows; at 0.003 it falls.

    python examples/micrograd_mlp.py [--device cuda] [--epochs 30] [--batch-size 100] [--seed 0]
"""

from itertools import pairwise

from common import Clock, plot_losses, read_options

import picograd
from picograd import Tensor, nn


def main(arguments=None):
    """Train and print the loss of each epoch; returns the last one."""
    options = read_options(__doc__, arguments, epochs=30, batch_size=100)
    clock = Clock()
    with clock("set-up"):
        picograd.manual_seed(options.seed)
        sizes = [300, 300, 300, 1]
        layers = [m for i, o in pairwise(sizes) for m in (nn.Linear(i, o), nn.Tanh())]
        model = nn.Sequential(*layers).to(options.device)
        optimizer = nn.optim.SGD(model.parameters(), lr=0.003)
        x = Tensor.uniform(options.batch_size, 300, low=-1, high=1, device=options.device)
        y = Tensor.uniform(options.batch_size, 1, low=-1, high=1, device=options.device)

    def step(x, y):
        loss = ((model(x) - y) ** 2).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    train_step = step if options.no_jit else picograd.jit(step)
    losses = []
    for epoch in range(options.epochs):
        with clock("training" if losses else "compilation"):
            losses.append(train_step(x, y).item())
        print(f"epoch {epoch}: loss {losses[-1]:.3f}")
    if options.plot:
        plot_losses(losses, "micrograd_mlp")
    print(f"seconds: {clock}")
    return losses[-1]


if __name__ == "__main__":
    main()
