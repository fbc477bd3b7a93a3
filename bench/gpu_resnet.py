"""One steady training step of ResNet-50 in mixed precision on an NVIDIA GPU, beside PyTorch.

Weights are float32, convolutions bfloat16 by autocast, SGD with momentum. PyTorch at its best:
channels-last, cuDNN's benchmark mode, compiled, and captured in a CUDA graph.

    python bench/gpu_resnet.py [--images 256] [--size 224] [--rounds 7] [--profile] [--plan]

`--profile` prints picograd's time by kernel; `--plan` prints how its products run, without a GPU.
"""

import argparse
import collections

import numpy as np

import picograd
from picograd import Tensor, nn

STEPS = 3


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3, 1 x 1, beside a shortcut that changes shape where they do."""

    def __init__(self, inside, width, stride):
        outside = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside)
        self.downsample = None
        if stride != 1 or inside != outside:
            resize = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.downsample = nn.Sequential(resize, nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        y = self.bn3(self.conv3(y))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet50(nn.Module):
    """torchvision's, with its names."""

    def __init__(self, classes=1000, width=64, counts=(3, 4, 6, 3)):
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inside = width
        for number, count in enumerate(counts):
            blocks = []
            for place in range(count):
                stride = 2 if number and not place else 1
                blocks.append(Bottleneck(inside, width << number, stride))
                inside = (width << number) * 4
            setattr(self, f"layer{number + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inside, classes)

    def forward(self, x):
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(x.mean((2, 3)))


def make_step(model, optimizer, device):
    """One step: zero, forward in mixed precision, backward, update."""

    def step(x, y):
        optimizer.zero_grad()
        with picograd.autocast(device, dtype=picograd.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def data_of(options):
    """Random images and labels."""
    generator = np.random.default_rng(0)
    shape = options.images, 3, options.size, options.size
    images = generator.normal(size=shape).astype(np.float32)
    return images, generator.integers(0, 1000, options.images)


def picograd_steps(options, state=None):
    """Make a function that runs STEPS steps of picograd."""
    picograd.manual_seed(0)
    model = ResNet50()
    if state is not None:
        model.load_state_dict({k: Tensor(v) for k, v in state.items()})
    model = model.to("cuda")
    optimizer = nn.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    step = picograd.jit(make_step(model, optimizer, "cuda"))
    images, labels = data_of(options)
    x, y = Tensor(images, device="cuda"), Tensor(labels, device="cuda")

    def run():
        for _ in range(STEPS):
            loss = step(x, y)
        return loss.item()

    return run


def torch_steps(options, network, is_captured):
    """Make a function that runs STEPS compiled steps of PyTorch, replayed if captured."""
    import torch
    from torch_capture import captured

    network = network.cuda().to(memory_format=torch.channels_last)
    images, labels = data_of(options)
    x = torch.from_numpy(images).cuda().contiguous(memory_format=torch.channels_last)
    y = torch.from_numpy(labels).cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, fused=True)

    def loss_of(x, y):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return torch.nn.functional.cross_entropy(network(x), y)

    forward = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss

    if not is_captured:
        return lambda: [step() for _ in range(STEPS)][-1].item()
    return captured(step, STEPS, warm_up=4)


def print_plan(options):
    """Print how many kernels a step takes and which products come in no boxes, without a GPU."""
    from picograd.codegen.pipeline import TEMPLATES
    from picograd.codegen.tile_pipeline import Persistent
    from picograd.schedule.schedule import schedule
    from picograd.target import cuda_target

    target = cuda_target("sm_90a")
    model = ResNet50()
    images, labels = data_of(options)
    with picograd.autocast("cpu", dtype=picograd.bfloat16):
        loss = nn.functional.cross_entropy(model(Tensor(images)), Tensor(labels))
    gradients = picograd.autograd.grad(loss, list(model.parameters()))
    plan = schedule([each.node for each in (loss, *gradients)], target)
    print(collections.Counter(kernel.hero for kernel in plan.kernels))
    for kernel in plan.kernels:
        if kernel.hero in ("conv", "contract"):
            first = TEMPLATES[kernel.hero](kernel, target).parts[0].steps[0]
            if not isinstance(first, Persistent):
                print(kernel)
    if options.kernels:
        for kernel in plan.kernels:
            print(kernel)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rivals", nargs="+", default=["compile", "captured"])
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--kernels", action="store_true", help="print the plan's kernels too")
    options = parser.parse_args()
    if options.plan:
        print_plan(options)
        return
    ours = picograd_steps(options)
    print("losses", [round(ours(), 3) for _ in range(3)], flush=True)
    print({k: f"{v / 2**30:.1f} GiB" for k, v in picograd.memory_stats("cuda").items()}, flush=True)
    if options.profile:
        with picograd.profile() as found:
            ours()
        print(found)
    compare(options, ours)


def compare(options, ours):
    """Time picograd beside PyTorch."""
    import torch
    import torchvision
    from timing import interleave, machine, report

    torch.backends.cudnn.benchmark = True
    rivals = {"picograd": ours}
    for name in options.rivals:
        network = torchvision.models.resnet50()
        rivals[f"torch {name}"] = torch_steps(options, network, name == "captured")
    print(machine(), torch.cuda.get_device_name())
    title = f"ResNet-50, {STEPS} training steps, {options.images} images, bfloat16 by autocast"
    report(title, interleave(rivals, options.rounds), "picograd")
    print(f"torch's peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB,", end=" ")
    print(f"picograd's {picograd.memory_stats('cuda')['peak'] / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
