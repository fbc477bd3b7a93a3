"""What is left of a step on an NVIDIA GPU beside its kernels, beside PyTorch at its best.

Small operations beside PyTorch's plain calls; training steps beside PyTorch's eager ones and those
captured by hand in a CUDA graph; and plain steps of picograd beside its jitted ones. Each timed run
makes COUNT calls and then waits for the device once; rivals take turns, and what they compute is
compared first.

    python bench/gpu_replay.py [--only small micrograd mlp plain] [--rounds 15]

Ancestors' lists: micrograd-cuda's first program, M8, M9, M45.
"""

import argparse
import statistics
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from timing import interleave, machine
from torch_capture import captured

import picograd
from picograd import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
COUNT = 200
SIZES = 300, 300, 300, 1  # of micrograd-cuda's first program


def repeated(call, wait, count):
    """Make a function that makes some calls and waits for the device."""

    def run():
        for _ in range(count):
            call()
        wait()

    return run


def compare(title, rivals, rounds, count=COUNT):
    """Print microseconds a call of each rival, quartiles, and our speed as a ratio to it.

    Rivals of picograd wait for its device, those of PyTorch (with `torch` in their names) for
    theirs; the first one is the one that ratios are of.
    """
    runs = {}
    for name, call in rivals.items():
        wait = torch.cuda.synchronize if "torch" in name else picograd.synchronize
        runs[name] = call if name.endswith("captured") else repeated(call, wait, count)
    times = interleave(runs, rounds)
    ours = times[next(iter(rivals))]
    print(title, flush=True)
    for name, seconds in times.items():
        low, middle, high = statistics.quantiles(seconds, n=4)
        ratio = statistics.median(b / a for a, b in zip(ours, seconds, strict=True))
        scale = 1e6 / count
        print(
            f"  {name:20} {middle * scale:9.1f} us  ({low * scale:.1f} .. {high * scale:.1f})"
            f"  {ratio:5.2f} of the first's time", flush=True,
        )  # fmt: skip


def same(ours, theirs, tolerance=2e-3):
    """Check that two lists of losses agree."""
    print("  losses", *(f"{a:.4f} {b:.4f}" for a, b in zip(ours, theirs)), sep="  ")
    np.testing.assert_allclose(ours, theirs, rtol=tolerance)


def small(options):
    """A cached `a + b`, and a product with its sum and gradient, of 2 x 2."""
    values = np.array([[1, 2], [3, 4]], np.float32)
    a, w = (Tensor(values / n, device="cuda").realize() for n in (1, 4))
    a_torch, w_torch = (torch.tensor(values / n, device="cuda") for n in (1, 4))
    add = picograd.jit(lambda a, b: a + b)
    rivals = {
        "jit": lambda: add(a, w),
        "eager": lambda: (a + w).realize(),
        "torch": lambda: a_torch + w_torch,
    }
    compare("a + b of 2 x 2", rivals, options.rounds)
    w.requires_grad_(True)
    w_torch.requires_grad_(True)

    def learn(a, w):
        w.grad = None
        loss = (a @ w).sum()
        loss.backward()
        return loss

    step = picograd.jit(lambda a: learn(a, w))

    def eager():
        loss = learn(a, w)
        loss.realize(w.grad)

    eager(), learn(a_torch, w_torch), step(a)
    np.testing.assert_allclose(w.grad.numpy(), w_torch.grad.cpu().numpy())
    rivals = {"jit": lambda: step(a), "eager": eager, "torch": lambda: learn(a_torch, w_torch)}
    compare("product of 2 x 2, sum, backward", rivals, options.rounds)


def both_models(layers):
    """The same network in both libraries: (kind, arguments) for each layer."""
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(*(getattr(torch.nn, kind)(*args) for kind, *args in layers))
    ours = nn.Sequential(*(getattr(nn, kind)(*args) for kind, *args in layers))
    ours.load_state_dict({k: Tensor(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    return ours.to("cuda"), theirs.cuda()


def training(model, optimizer, loss_of):
    """Make a step."""

    def step(x, y):
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def torch_training(model, optimizer, loss_of):
    """Make a step as PyTorch captures it: gradients are set, not added to."""

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def beside_torch(title, layers, x, y, loss, optimizers, options, count=COUNT):
    """Compare a jitted step with PyTorch's eager one and the captured one."""
    theirs_loss, ours_loss = loss
    pairs = [both_models(layers) for _ in range(2)]
    ours = picograd.jit(training(pairs[0][0], optimizers[0](pairs[0][0]), ours_loss))
    eager = torch_training(pairs[0][1], optimizers[1](pairs[0][1]), theirs_loss)
    other = torch_training(pairs[1][1], optimizers[1](pairs[1][1]), theirs_loss)
    data, data_torch = [Tensor(each, device="cuda") for each in (x, y)], torch_data(x, y)
    print(title)
    losses = [[ours(*data).item() for _ in range(8)], [eager(*data_torch).item() for _ in range(8)]]
    same(*losses)
    rivals = {
        "picograd jit": lambda: ours(*data),
        "torch captured": captured(lambda: other(*data_torch), count, 4),
        "torch": lambda: eager(*data_torch),
    }
    compare(f"{title}, {count} steps", rivals, options.rounds, count)


def torch_data(x, y):
    """Put arrays on PyTorch's device."""
    return [torch.tensor(each, device="cuda") for each in (x, y)]


def micrograd(options):
    """examples/micrograd_mlp.py."""
    layers = [each for i, o in pairwise(SIZES) for each in (("Linear", i, o), ("Tanh",))]
    draw = np.random.default_rng(0)
    x, y = (draw.uniform(-1, 1, (100, n)).astype(np.float32) for n in (300, 1))

    def loss(found, wanted):
        return ((found - wanted) ** 2).sum()

    optimizers = (
        lambda model: nn.optim.SGD(model.parameters(), lr=0.003),
        lambda model: torch.optim.SGD(model.parameters(), lr=0.003, fused=True),
    )
    beside_torch("micrograd-cuda's step", layers, x, y, (loss, loss), optimizers, options)


def adam(library_optim, **more):
    """Make a function that makes an optimizer for a network."""
    return lambda model: library_optim.Adam(model.parameters(), lr=1e-3, **more)


def perceptron(options):
    """784-128-10 on 512 images, without and with TF32 on both sides."""
    layers = ("Flatten",), ("Linear", 784, 128), ("ReLU",), ("Linear", 128, 10)
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(512, 784)).astype(np.float32), draw.integers(0, 10, 512)
    losses = torch.nn.functional.cross_entropy, nn.functional.cross_entropy
    optimizers = adam(nn.optim), adam(torch.optim, fused=True, capturable=True)
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        picograd.set_float32_matmul_precision(precision)
        title = f"perceptron 784-128-10, 512 images, {precision}"
        beside_torch(title, layers, x, y, losses, optimizers, options)
    torch.set_float32_matmul_precision("highest")
    picograd.set_float32_matmul_precision("highest")


def plain_and_jitted(title, make_step, data, options, count):
    """Compare a plain step with the jitted one: how many times its time it takes.

    The first step of a run is told while the GPU has nothing to do, which many steps hide.
    """
    jitted, plain = picograd.jit(make_step()), make_step()
    same([jitted(*data).item() for _ in range(8)], [plain(*data).item() for _ in range(8)], 2e-2)
    rivals = {"jit": lambda: jitted(*data), "plain": lambda: plain(*data)}
    compare(title, rivals, options.rounds, count)


def seeded(make):
    """Make networks from one seed."""

    def again():
        picograd.manual_seed(0)
        return make()

    return again


def plain(options):
    """Plain steps beside jitted ones: a CNN with batch norms, ResNet-18, GPT-2 124M."""
    import mnist_cnn
    import resnet18
    from gpt import GPT, Sizes

    draw = np.random.default_rng(0)

    def step_of(make, is_half=False):
        model = make().to("cuda")
        optimizer = nn.optim.AdamW(model.parameters(), lr=1e-4)

        def loss_of(found, y):
            return nn.functional.cross_entropy(found.flatten(0, -2), y.flatten())

        def half(x):
            with picograd.autocast("cuda", dtype=picograd.bfloat16):
                return model(x)

        return training(half if is_half else model, optimizer, loss_of)

    def images(count, channels, size, classes):
        x = draw.normal(size=(count, channels, size, size)).astype(np.float32)
        return [Tensor(x, device="cuda"), Tensor(draw.integers(0, classes, count), device="cuda")]

    for count in (128, 512):
        make = seeded(lambda: step_of(mnist_cnn.Network))
        title = f"MNIST CNN, {count} images, float32"
        plain_and_jitted(title, make, images(count, 1, 28, 10), options, 20)
    make = seeded(lambda: step_of(resnet18.ResNet18, True))
    data = images(64, 3, 224, 1000)
    plain_and_jitted("ResNet-18, 64 images, bfloat16", make, data, options, 20)
    make = seeded(lambda: step_of(lambda: GPT(Sizes(50304, 1024, 12, 12, 768)), True))
    tokens = draw.integers(0, 50304, (4, 1025))
    data = [Tensor(each.copy(), device="cuda") for each in (tokens[:, :-1], tokens[:, 1:])]
    plain_and_jitted("GPT-2 124M, 4 x 1024, bfloat16", make, data, options, 20)


CASES = {"small": small, "micrograd": micrograd, "mlp": perceptron, "plain": plain}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "|", machine(), flush=True)
    for name in options.only:
        CASES[name](options)


if __name__ == "__main__":
    main()
