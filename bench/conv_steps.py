"""Training steps of networks of convolutions on a CPU, float32, beside PyTorch at its best.

PyTorch runs in its default layout and channels-last, each plain and compiled (which needs a C++
compiler); all start from the same weights, and losses of their first steps must agree. SGD with
momentum. On one thread what is timed is the processor's time, so that others on the machine do
not count.

    python bench/conv_steps.py [--threads 1] [--rounds 7] [--only CIFAR] [--plain] [--profile]
"""

import argparse
import copy
import os
import time

from timing import interleave, machine, refuse_pinned_blas, report


def networks():
    """Name the networks: functions of a library and data, which give modules and a loss."""
    from plain_networks import residual
    from vision_networks import efficientnet, mobilenet, resnet18

    return {
        "ResNet-18, CIFAR, 16 x 32 x 32": lambda *each: resnet18(*each, 16, 32, 10),
        "ResNet-18, 8 x 112 x 112": lambda *each: resnet18(*each, 8, 112),
        "ResNet of 16 to 64 channels, 16 x 32 x 32": residual,
        "MobileNetV3, 8 x 112 x 112": lambda *each: mobilenet(*each, 8, 112),
        "EfficientNet, 4 x 112 x 112": lambda *each: efficientnet(*each, 4, 112),
        "MNIST CNN, 128 x 28 x 28": mnist,
    }


def mnist(library, data):
    """The network of examples/mnist_cnn.py."""
    nn = library.nn

    def block(inside, outside):
        conv = nn.Conv2d(inside, outside, 3, padding=1)
        return nn.Sequential(conv, nn.BatchNorm2d(outside), nn.ReLU())

    first = nn.Sequential(block(1, 32), nn.MaxPool2d(2), block(32, 64), nn.MaxPool2d(2))
    again = block(64, 64)
    last = nn.Sequential(nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = data.normal(128, 1, 28, 28), data.below(10, 128)

    def loss():
        seen = first(x)
        return nn.functional.cross_entropy(last(seen + again(seen)), y)

    return [first, again, last], loss


class Training:
    """This class is a network with its optimizer in one library."""

    def __init__(self, library, network, weights=None, form=None):
        from gpu_vision import FORMS, LastChannels
        from plain_networks import Data

        data = LastChannels(library) if form else Data(library)
        modules, self.loss = network(library, data)
        self.modules = library.nn.ModuleList(modules)
        if weights is not None:
            self.modules.load_state_dict(weights)
        for parameter in self.modules.parameters() if form else ():
            if parameter.dim() in FORMS:
                parameter.data = parameter.data.contiguous(memory_format=FORMS[parameter.dim()])
        own = list(self.modules.parameters())
        self.optimizer = library.optim.SGD(own, lr=1e-2, momentum=0.9)

    def step(self):
        """Train once; gives the loss."""
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss


def rivals_of(network, is_plain):
    """Make the steps of all rivals, from the same weights."""
    import torch

    import picograd

    torch.manual_seed(0)
    theirs = Training(torch, network)
    state = copy.deepcopy(theirs.modules.state_dict())
    weights = {name: value.numpy().copy() for name, value in state.items()}
    own, plain = (Training(picograd, network, weights) for _ in range(2))
    last = Training(torch, network, state, "last")
    steps = {
        "picograd": picograd.jit(own.step),
        "picograd without jit": plain.step,
        "torch": theirs.step,
        "torch channels-last": last.step,
    }
    for form in () if is_plain else ("", "last"):
        compiled = Training(torch, network, state, form)
        compiled.loss = torch.compile(compiled.loss)
        steps["torch compiled" + (", channels-last" if form else "")] = compiled.step
    return {name: (lambda step=step: step().item()) for name, step in steps.items()}


def profile(step):
    """Print the time of picograd's kernels."""
    import picograd

    with picograd.profile(None) as seen:
        step()
    print(seen)


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--plain", action="store_true", help="leave compiled PyTorch out")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_DEVICE"] = "cpu"
    os.environ["PICOGRAD_THREADS"] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    print(machine(), f"threads {options.threads}")
    for name, network in networks().items():
        if options.only not in name:
            continue
        rivals = rivals_of(network, options.plain)
        for who, step in rivals.items():
            print(f"{who:32}", *(f"{step():.5f}" for _ in range(3)), flush=True)
        if options.profile:
            profile(rivals["picograd"])
        report(name, interleave(rivals, options.rounds, 1, clock), "picograd")


if __name__ == "__main__":
    main()
