"""Networks for `bench/first_step.py`: each written once, run by PyTorch and by picograd.

A function gets the library and makes a model, an optimizer's parameters and a batch.
"""

from plain_networks import Data

# MobileNetV3-Large: kernel, wide, out, squeezed, hard swish, stride (Howard et al. 2019, table 1).
ROWS = (
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
)


def cnn(library):
    """The network of examples/mnist_cnn.py, 128 images."""
    nn, data = library.nn, Data(library)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(1, 32, 3, padding="same"), nn.BatchNorm2d(32)
            self.conv2, self.norm2 = nn.Conv2d(32, 64, 3, padding="same"), nn.BatchNorm2d(64)
            self.conv3, self.norm3 = nn.Conv2d(64, 64, 3, padding="same"), nn.BatchNorm2d(64)
            self.pool = nn.MaxPool2d(2)
            self.fc1, self.fc2 = nn.Linear(64 * 7 * 7, 128), nn.Linear(128, 10)

        def forward(self, x):
            x = self.pool(self.norm1(self.conv1(x)).relu())
            x = self.pool(self.norm2(self.conv2(x)).relu())
            x = x + self.norm3(self.conv3(x)).relu()
            return self.fc2(self.fc1(x.flatten(1)).relu())

    model = Network()
    x, y = data.normal(128, 1, 28, 28), data.below(10, 128)
    return list(model.parameters()), lambda: nn.functional.cross_entropy(model(x), y)


def gpt(library):
    """The small GPT of `plain_networks.py`."""
    from plain_networks import gpt as build

    modules, loss = build(library, Data(library))
    return [each for module in modules for each in module.parameters()], loss


def mobile(library):
    """MobileNetV3-Large on 2 pictures of 96 x 96."""
    nn, data = library.nn, Data(library)

    def conv(inputs, outputs, size, stride, groups, act):
        pad = (size - 1) // 2
        layer = nn.Conv2d(inputs, outputs, size, stride, pad, groups=groups, bias=False)
        return [layer, nn.BatchNorm2d(outputs), *act]

    class Squeeze(nn.Module):
        def __init__(self, width):
            super().__init__()
            inner = (width // 4 + 4) // 8 * 8
            self.down, self.up = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1)

        def forward(self, x):
            scale = self.down(nn.functional.adaptive_avg_pool2d(x, 1)).relu()
            return x * nn.functional.hardsigmoid(self.up(scale))

    class Block(nn.Module):
        def __init__(self, inputs, size, wide, outputs, squeezed, is_hard, stride):
            super().__init__()
            act = [nn.Hardswish() if is_hard else nn.ReLU()]
            layers = conv(inputs, wide, 1, 1, 1, act) if wide != inputs else []
            layers += conv(wide, wide, size, stride, wide, act)
            layers += [Squeeze(wide)] if squeezed else []
            self.layers = nn.Sequential(*layers, *conv(wide, outputs, 1, 1, 1, []))
            self.is_residual = stride == 1 and inputs == outputs

        def forward(self, x):
            return x + self.layers(x) if self.is_residual else self.layers(x)

    layers, width = conv(3, 16, 3, 2, 1, [nn.Hardswish()]), 16
    for size, wide, outputs, squeezed, is_hard, stride in ROWS:
        layers.append(Block(width, size, wide, outputs, squeezed, is_hard, stride))
        width = outputs
    layers += conv(width, 960, 1, 1, 1, [nn.Hardswish()])
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(960, 1280), nn.Hardswish()]
    model = nn.Sequential(*layers, nn.Linear(1280, 1000))
    x, y = data.normal(2, 3, 96, 96), data.below(1000, 2)
    return list(model.parameters()), lambda: nn.functional.cross_entropy(model(x), y)


def small(library, count=1000):
    """A thousand parameters of four numbers each: nothing but the optimizer."""
    nn, data = library.nn, Data(library)
    parameters = [nn.Parameter(data.normal(4)) for _ in range(count)]
    return parameters, lambda: sum((each * each).sum() for each in parameters)


def gpt2(library):
    """GPT-2 124M on 4 pieces of 512 tokens, in mixed precision on a GPU."""
    nn, data, width = library.nn, Data(library), 768

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length = x.shape[:2]
            parts = self.attend(self.norm1(x)).reshape(batch, length, 3, 12, 64)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    blocks = nn.Sequential(*[Block() for _ in range(12)], nn.LayerNorm(width))
    words, places = nn.Embedding(50304, width), nn.Embedding(1024, width)
    tokens, length = data.below(50304, 4, 513), 512

    def loss():
        with library.autocast(tokens.device.type, dtype=library.bfloat16):
            x = words(tokens[:, :-1]) + places.weight[:length]
            scores = blocks(x) @ words.weight.T
            wanted = tokens[:, 1:].reshape(-1)
            return nn.functional.cross_entropy(scores.reshape(-1, 50304), wanted)

    modules = (blocks, words, places)
    return [each for module in modules for each in module.parameters()], loss


def resnet50(library):
    """ResNet-50 on 32 pictures of 224 x 224, in mixed precision on a GPU."""
    nn, data = library.nn, Data(library)

    def conv(inputs, outputs, size, stride=1):
        layer = nn.Conv2d(inputs, outputs, size, stride, (size - 1) // 2, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(outputs))

    class Bottleneck(nn.Module):
        def __init__(self, inside, width, stride):
            super().__init__()
            self.conv1, self.conv2 = conv(inside, width, 1), conv(width, width, 3, stride)
            self.conv3 = conv(width, 4 * width, 1)
            is_resized = stride != 1 or inside != 4 * width
            self.resize = conv(inside, 4 * width, 1, stride) if is_resized else nn.Identity()

        def forward(self, x):
            y = self.conv3(self.conv2(self.conv1(x).relu()).relu())
            return (y + self.resize(x)).relu()

    layers, inside = [conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for number, count in enumerate((3, 4, 6, 3)):
        for place in range(count):
            stride = 2 if number and not place else 1
            layers.append(Bottleneck(inside, 64 << number, stride))
            inside = 256 << number
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    x, y = data.normal(32, 3, 224, 224), data.below(1000, 32)

    def loss():
        with library.autocast(x.device.type, dtype=library.bfloat16):
            return nn.functional.cross_entropy(model(x), y)

    return list(model.parameters()), loss


NETWORKS = {
    "cnn": cnn,
    "gpt": gpt,
    "mobilenet": mobile,
    "adam1000": small,
    "gpt2": gpt2,
    "resnet50": resnet50,
}
