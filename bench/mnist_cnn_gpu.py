"""One steady training step of the MNIST CNN on an NVIDIA GPU, beside PyTorch's three ways.

They are eager, `torch.compile`, and the whole step captured by hand in a CUDA graph.

Each timed call runs STEPS steps on one resident batch and reads the loss once at its end.

    python bench/mnist_cnn_gpu.py [--batch-size 128] [--rounds 15]
"""

import argparse
import copy

import numpy as np
import torch
from mnist_cnn_step import torch_network
from timing import interleave, machine, report
from torch_capture import captured

import picograd
from picograd import Tensor, nn

STEPS = 50


def torch_steps(network, images, labels, is_compiled):
    """Make a function that runs STEPS steps of PyTorch."""
    network = network.cuda().to(memory_format=torch.channels_last)
    x = torch.from_numpy(images).cuda().contiguous(memory_format=torch.channels_last)
    y = torch.from_numpy(labels).cuda()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(network(x), y)

    forward = torch.compile(loss_of) if is_compiled else loss_of

    def run():
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = forward(x, y)
            loss.backward()
            optimizer.step()
        return loss.item()

    return run


def torch_captured_steps(network, images, labels):
    """Make a function that replays a CUDA graph of a whole PyTorch step STEPS times."""
    network = network.cuda().to(memory_format=torch.channels_last)
    x = torch.from_numpy(images).cuda().contiguous(memory_format=torch.channels_last)
    y = torch.from_numpy(labels).cuda()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True, capturable=True)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return captured(step, STEPS)


def picograd_steps(network, images, labels):
    """Make a function that runs STEPS steps of picograd."""
    from mnist_cnn import Network, make_step

    ours = Network()
    ours.load_state_dict({k: Tensor(v.numpy().copy()) for k, v in network.state_dict().items()})
    ours = ours.to("cuda")
    optimizer = nn.optim.Adam(ours.parameters(), lr=1e-3)
    step = picograd.jit(make_step(ours, optimizer))
    x, y = Tensor(images, device="cuda"), Tensor(labels, device="cuda")

    def run():
        for _ in range(STEPS):
            loss = step(x, y)
        return loss.item()

    return run


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tf32", action="store_true", help="allow TF32 on both sides")
    parser.add_argument("--captured", action="store_true", help="PyTorch captured alone")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = True, options.tf32
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    picograd.set_float32_matmul_precision("high" if options.tf32 else "highest")
    generator = np.random.default_rng(0)
    images = generator.normal(size=(options.batch_size, 1, 28, 28)).astype(np.float32)
    labels = generator.integers(0, 10, options.batch_size)
    network = torch_network()
    rivals = {
        "picograd": picograd_steps(network, images, labels),
        "torch captured": torch_captured_steps(copy.deepcopy(network), images, labels),
    }
    if not options.captured:
        rivals["torch eager"] = torch_steps(copy.deepcopy(network), images, labels, False)
        rivals["torch.compile"] = torch_steps(copy.deepcopy(network), images, labels, True)
    print(machine(), torch.cuda.get_device_name())
    print(f"losses after {STEPS} steps:", [round(run(), 3) for run in rivals.values()])
    note = "with TF32" if options.tf32 else "without TF32"
    title = f"MNIST CNN, {STEPS} training steps, batch {options.batch_size}, float32 {note}"
    report(title, interleave(rivals, options.rounds), "picograd")


if __name__ == "__main__":
    main()
