"""ResNet-18 (He et al., 2016) with torchvision's names, so that its weights load unchanged.

Trains on the first MNIST digits, three times as channels and padded to 32 x 32; `load` takes a
state dict file of torch.save or safetensors.

    python examples/resnet18.py [--device cuda] [--epochs 1] [--batch-size 32] [--steps 20]
"""

from common import Clock, plot_losses, read_options

import picograd
from picograd import nn


def convolution(inside, outside, size, stride=1):
    """A convolution that keeps the image's size at stride 1, without bias: a norm follows."""
    return nn.Conv2d(inside, outside, size, stride, padding=size // 2, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut, which changes shape where they do."""

    def __init__(self, inside, outside, stride):
        self.conv1, self.bn1 = convolution(inside, outside, 3, stride), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = convolution(outside, outside, 3), nn.BatchNorm2d(outside)
        self.downsample = None
        if stride != 1 or inside != outside:
            resize = convolution(inside, outside, 1, stride)
            self.downsample = nn.Sequential(resize, nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet18(nn.Module):
    """A stem, four stages of two blocks that double the channels and halve the image, a layer.

    11,689,512 numbers with 64 channels and 1000 classes.
    """

    def __init__(self, num_classes=1000, width=64):
        self.conv1, self.bn1 = convolution(3, width, 7, 2), nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self.stage(width, width, 1)
        self.layer2 = self.stage(width, 2 * width, 2)
        self.layer3 = self.stage(2 * width, 4 * width, 2)
        self.layer4 = self.stage(4 * width, 8 * width, 2)
        self.fc = nn.Linear(8 * width, num_classes)

    @staticmethod
    def stage(inside, outside, stride):
        return nn.Sequential(BasicBlock(inside, outside, stride), BasicBlock(outside, outside, 1))

    def forward(self, x):
        x = self.maxpool(self.bn1(self.conv1(x)).relu())  # B C H/4 W/4
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))  # B 8C H/32 W/32
        return self.fc(x.mean((2, 3)))  # B classes


def load(path, num_classes=1000):
    """Build the network with the weights of a file, such as torchvision's resnet18-*.pth."""
    model = ResNet18(num_classes)
    model.load_state_dict(nn.load(path))
    return model.eval()


def main(arguments=None):
    """Train for some steps; returns the losses."""
    options = read_options(__doc__, arguments, batch_size=32)
    clock = Clock()
    with clock("set-up"):
        picograd.manual_seed(options.seed)
        data = nn.datasets.mnist(options.device)
        model = ResNet18(10).to(options.device)
        optimizer = nn.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        x = x.reshape(-1, 1, 28, 28).pad([2, 2, 2, 2]).expand(-1, 3, -1, -1)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    train_step = step if options.no_jit else picograd.jit(step)
    losses, size = [], options.batch_size
    for number in range(options.epochs * (options.steps or 20)):
        chosen = slice(number * size, (number + 1) * size)
        with clock("training" if losses else "compilation"):
            losses.append(train_step(data.train_images[chosen], data.train_labels[chosen]).item())
        print(f"step {number + 1}: loss {losses[-1]:.3f}")
    if options.plot:
        plot_losses(losses, "resnet18")
    print(f"seconds: {clock}")
    return losses


if __name__ == "__main__":
    main()
