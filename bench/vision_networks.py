"""Networks for `bench/gpu_vision.py`: each written once, and run by PyTorch and by picograd.

A function gets the library, data, a number of images and their size; it returns its modules and
a function that computes the loss of a batch, as those of `bench/plain_networks.py` do. They are as
wide as the networks they are named after, and have about half of their blocks.
"""

from itertools import pairwise


def norm_conv(nn, inside, outside, taps=3, stride=1, groups=1, act="ReLU"):
    """A convolution without bias, its batch norm and an activation, or none."""
    conv = nn.Conv2d(inside, outside, taps, stride, taps // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outside), *([getattr(nn, act)()] if act else []))


def classified(library, data, body, width, images, size, classes=1000):
    """The loss of what a linear layer says of the means of images."""
    nn = library.nn
    head = nn.Linear(width, classes)
    x, y = data.normal(images, 3, size, size), data.below(classes, images)
    return [body, head], lambda: nn.functional.cross_entropy(head(body(x).mean((2, 3))), y)


def resnet18(library, data, images, size, classes=1000):
    """ResNet-18; pictures of 32 x 32 are not made smaller by its first layer."""
    nn = library.nn

    class Block(nn.Module):
        def __init__(self, inside, width, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, width, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
            resize = nn.Conv2d(inside, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            self.resize = nn.Sequential(*(resize if inside != width else ()))

        def forward(self, x):
            y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
            return (y + self.resize(x)).relu()

    if size <= 32:
        layers = [norm_conv(nn, 3, 64)]
    else:
        layers = [norm_conv(nn, 3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for width in (64, 128, 256, 512):
        layers += [Block(inside, width, 1 + (inside < width)), Block(width, width, 1)]
        inside = width
    last = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes)
    model = nn.Sequential(*layers, *last)
    x, y = data.normal(images, 3, size, size), data.below(classes, images)
    return [model], lambda: nn.functional.cross_entropy(model(x), y)


def inverted(nn, inside, wide, outside, taps, stride, act, gate, squeezed):
    """Expand, depthwise, gate channels by means of images, project: MobileNetV3, EfficientNet."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            grow = [norm_conv(nn, inside, wide, 1, act=act)] if wide != inside else []
            self.deep = nn.Sequential(*grow, norm_conv(nn, wide, wide, taps, stride, wide, act))
            self.gate = None
            if squeezed:
                down, up = nn.Conv2d(wide, squeezed, 1), nn.Conv2d(squeezed, wide, 1)
                inner = nn.ReLU() if gate == "Hardsigmoid" else nn.SiLU()
                self.gate = nn.Sequential(
                    nn.AdaptiveAvgPool2d(1), down, inner, up, getattr(nn, gate)()
                )
            self.project = norm_conv(nn, wide, outside, 1, act=None)

        def forward(self, x):
            y = self.deep(x)
            if self.gate is not None:
                y = y * self.gate(y)
            y = self.project(y)
            return x + y if stride == 1 and inside == outside else y

    return Block()


def mobilenet(library, data, images, size):
    """MobileNetV3-small: ReLU, then Hardswish; taps of 3 and 5."""
    nn, act = library.nn, "Hardswish"
    rows = (  # taps, wide, outside, is gated, activation, stride
        (3, 16, 16, True, "ReLU", 2), (3, 72, 24, False, "ReLU", 2), (3, 88, 24, False, "ReLU", 1),
        (5, 96, 40, True, act, 2), (5, 240, 40, True, act, 1), (5, 120, 48, True, act, 1),
        (5, 288, 96, True, act, 2), (5, 576, 96, True, act, 1),
    )  # fmt: skip
    blocks, inside = [norm_conv(nn, 3, 16, 3, 2, act=act)], 16
    for taps, wide, outside, is_gated, name, stride in rows:
        squeezed = (wide // 4 + 7) // 8 * 8 if is_gated else 0
        blocks += [inverted(nn, inside, wide, outside, taps, stride, name, "Hardsigmoid", squeezed)]
        inside = outside
    body = nn.Sequential(*blocks, norm_conv(nn, 96, 576, 1, act=act))
    return classified(library, data, body, 576, images, size)


def efficientnet(library, data, images, size):
    """EfficientNet-B0, one block a stage."""
    nn = library.nn
    rows = (
        (3, 1, 16, 1), (3, 6, 24, 2), (5, 6, 40, 2), (3, 6, 80, 2), (5, 6, 112, 1),
        (5, 6, 192, 2), (5, 6, 192, 1), (3, 6, 320, 1),
    )  # fmt: skip
    blocks, inside = [norm_conv(nn, 3, 32, 3, 2, act="SiLU")], 32
    for taps, times, outside, stride in rows:
        wide, squeezed = inside * times, max(1, inside // 4)
        blocks += [inverted(nn, inside, wide, outside, taps, stride, "SiLU", "Sigmoid", squeezed)]
        inside = outside
    body = nn.Sequential(*blocks, norm_conv(nn, inside, 1280, 1, act="SiLU"))
    return classified(library, data, body, 1280, images, size)


def convnext(library, data, images, size):
    """ConvNeXt-tiny: depthwise 7 x 7, a layer norm over channels, two linear layers, scales."""
    nn = library.nn

    class Norm(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm, self.wide = nn.LayerNorm(width), nn.Linear(width, 4 * width)
            self.narrow = nn.Linear(4 * width, width)
            self.scale = nn.Parameter(library.full((width,), 0.1))

        def forward(self, x):
            y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
            y = self.scale * self.narrow(nn.functional.gelu(self.wide(y)))
            return x + y.permute(0, 3, 1, 2)

    blocks = [nn.Conv2d(3, 96, 4, 4), Norm(96)]
    for width, count in ((96, 1), (192, 1), (384, 3), (768, 1)):
        if width > 96:
            blocks += [Norm(width // 2), nn.Conv2d(width // 2, width, 2, 2)]
        blocks += [Block(width) for _ in range(count)]
    return classified(library, data, nn.Sequential(*blocks), 768, images, size)


def unet(library, data, images, size):
    """Three levels, batch norms, transposed convolutions, what was skipped beside them."""
    nn = library.nn
    widths = 64, 128, 256, 512

    def pair(inside, outside):
        return nn.Sequential(norm_conv(nn, inside, outside), norm_conv(nn, outside, outside))

    down = nn.ModuleList([pair(a, b) for a, b in zip((3, *widths), widths)])
    grow = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[:3]])
    up = nn.ModuleList([pair(2 * w, w) for w in widths[:3]])
    out = nn.Conv2d(64, 2, 1)
    x, y = data.normal(images, 3, size, size), data.below(2, images, size, size)

    def loss():
        seen, skipped = down[0](x), []
        for level in list(down)[1:]:
            skipped.append(seen)
            seen = level(nn.functional.max_pool2d(seen, 2))
        for number in (2, 1, 0):
            seen = up[number](library.cat([skipped[number], grow[number](seen)], 1))
        return nn.functional.cross_entropy(out(seen), y)

    return [down, grow, up, out], loss


def densenet(library, data, images, size):
    """DenseNet-121: what every layer made is beside what the next one reads."""
    nn = library.nn

    class Layer(nn.Module):
        def __init__(self, inside):
            super().__init__()
            self.norm, self.narrow = nn.BatchNorm2d(inside), nn.Conv2d(inside, 128, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(128)
            self.conv = nn.Conv2d(128, 32, 3, padding=1, bias=False)

        def forward(self, x):
            y = self.narrow(nn.functional.relu(self.norm(x)))
            return library.cat([x, self.conv(nn.functional.relu(self.norm2(y)))], 1)

    blocks, inside = [norm_conv(nn, 3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for number, count in enumerate((3, 6, 8)):
        if number:
            resize = nn.Conv2d(inside, inside // 2, 1, bias=False)
            blocks += [nn.BatchNorm2d(inside), nn.ReLU(), resize, nn.AvgPool2d(2)]
            inside //= 2
        blocks += [Layer(inside + 32 * k) for k in range(count)]
        inside += 32 * count
    body = nn.Sequential(*blocks, nn.BatchNorm2d(inside), nn.ReLU())
    return classified(library, data, body, inside, images, size)


def vgg(library, data, images, size):
    """VGG-11 without dropout."""
    nn, layers, inside = library.nn, [], 3
    for width in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0):
        if not width:
            layers += [nn.MaxPool2d(2)]
            continue
        layers += [nn.Conv2d(inside, width, 3, padding=1), nn.ReLU()]
        inside = width
    last = 512 * (size // 32) ** 2
    head = [nn.Linear(last, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Flatten(), *head, nn.Linear(4096, 1000))
    x, y = data.normal(images, 3, size, size), data.below(1000, images)
    return [model], lambda: nn.functional.cross_entropy(model(x), y)


def dcgan(library, data, images, size):
    """A generator of 64 x 64 images and its judge, in one loss."""
    nn, width = library.nn, 64
    make = [nn.ConvTranspose2d(100, 8 * width, size // 16, 1, 0, bias=False)]
    judge, inside = [nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2)], width
    for times in (4, 2, 1):
        make += [nn.BatchNorm2d(2 * times * width), nn.ReLU()]
        make += [nn.ConvTranspose2d(2 * times * width, times * width, 4, 2, 1, bias=False)]
        judge += [nn.Conv2d(inside, 2 * inside, 4, 2, 1, bias=False)]
        judge += [nn.BatchNorm2d(2 * inside), nn.LeakyReLU(0.2)]
        inside *= 2
    make += [nn.BatchNorm2d(width), nn.ReLU(), nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh()]
    judge += [nn.Conv2d(inside, 1, size // 16)]
    maker, judged = nn.Sequential(*make), nn.Sequential(*judge)
    noise, true = data.normal(images, 100, 1, 1), data.normal(images, 3, size, size)

    def loss():
        wrong = nn.functional.binary_cross_entropy_with_logits
        fake = maker(noise)
        scores = judged(true).flatten(), judged(fake.detach()).flatten(), judged(fake).flatten()
        ones, zeros = library.ones_like(scores[0]), library.zeros_like(scores[0])
        return wrong(scores[0], ones) + wrong(scores[1], zeros) + wrong(scores[2], ones)

    return [maker, judged], loss


def diffusion(library, data, images, size):
    """Residual blocks with group norms and times, attention between places, down and up."""
    nn = library.nn

    class Residual(nn.Module):
        def __init__(self, inside, outside):
            super().__init__()
            self.norm, self.norm2 = nn.GroupNorm(32, inside), nn.GroupNorm(32, outside)
            self.conv = nn.Conv2d(inside, outside, 3, padding=1)
            self.conv2 = nn.Conv2d(outside, outside, 3, padding=1)
            self.time = nn.Linear(256, outside)
            self.short = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

        def forward(self, x, time):
            y = self.conv(nn.functional.silu(self.norm(x)))
            y = y + self.time(nn.functional.silu(time))[:, :, None, None]
            return self.short(x) + self.conv2(nn.functional.silu(self.norm2(y)))

    class Attention(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.mix = nn.GroupNorm(32, width), nn.Conv2d(width, 3 * width, 1)
            self.out = nn.Conv2d(width, width, 1)

        def forward(self, x):
            n, width, high, wide = x.shape
            q, k, v = self.mix(self.norm(x)).view(n, 3, 4, width // 4, high * wide).unbind(1)
            q, k, v = (each.transpose(-2, -1) for each in (q, k, v))
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            return x + self.out(y.transpose(-2, -1).reshape(n, width, high, wide))

    first, times = nn.Conv2d(3, 128, 3, padding=1), nn.Linear(128, 256)
    down = nn.ModuleList([Residual(128, 128), Residual(128, 256)])
    fewer, more = nn.Conv2d(128, 128, 3, 2, 1), nn.Conv2d(256, 256, 3, padding=1)
    middle, mixed = Residual(256, 256), Attention(256)
    up, out = nn.ModuleList([Residual(512, 256), Residual(384, 128)]), nn.Conv2d(128, 3, 3, 1, 1)
    x, noise = data.normal(images, 3, size, size), data.normal(images, 3, size, size)
    moment = data.normal(images, 64)

    def loss():
        time = times(library.cat([moment.sin(), moment.cos()], 1))
        top = down[0](first(x + noise), time)
        low = down[1](fewer(top), time)
        y = middle(mixed(low), time)
        y = up[0](library.cat([y, low], 1), time)
        y = more(nn.functional.interpolate(y, scale_factor=2, mode="nearest"))
        y = up[1](library.cat([y, top], 1), time)
        return nn.functional.mse_loss(out(nn.functional.silu(y)), noise)

    return [first, times, down, fewer, more, middle, mixed, up, out], loss


def resnext(library, data, images, size):
    """ResNeXt-50: 32 groups."""
    nn = library.nn

    class Block(nn.Module):
        def __init__(self, inside, width, stride):
            super().__init__()
            self.deep = nn.Sequential(
                norm_conv(nn, inside, width, 1),
                norm_conv(nn, width, width, 3, stride, 32),
                norm_conv(nn, width, 2 * width, 1, act=None),
            )
            same = stride == 1 and inside == 2 * width
            self.short = (
                nn.Identity() if same else norm_conv(nn, inside, 2 * width, 1, stride, act=None)
            )

        def forward(self, x):
            return nn.functional.relu(self.deep(x) + self.short(x))

    blocks, inside = [norm_conv(nn, 3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width, count in ((128, 2), (256, 2), (512, 2), (1024, 1)):
        for place in range(count):
            blocks += [Block(inside, width, 2 if width > 128 and not place else 1)]
            inside = 2 * width
    return classified(library, data, nn.Sequential(*blocks), inside, images, size)


def shufflenet(library, data, images, size):
    """ShuffleNetV2: half of the channels pass, the halves are shuffled."""
    nn = library.nn

    def branch(inside, outside, stride):
        return nn.Sequential(
            norm_conv(nn, inside, outside, 1),
            norm_conv(nn, outside, outside, 3, stride, outside, None),
            norm_conv(nn, outside, outside, 1),
        )

    class Block(nn.Module):
        def __init__(self, inside, outside, stride):
            super().__init__()
            half, self.short = outside // 2, None
            if stride == 2:
                deep = norm_conv(nn, inside, inside, 3, 2, inside, None)
                self.short = nn.Sequential(deep, norm_conv(nn, inside, half, 1))
            self.deep = branch(inside if stride == 2 else half, half, stride)

        def forward(self, x):
            kept, deep = x.chunk(2, 1) if self.short is None else (self.short(x), x)
            y = library.cat([kept, self.deep(deep)], 1)
            n, width, high, wide = y.shape
            return y.view(n, 2, width // 2, high, wide).transpose(1, 2).reshape(y.shape)

    blocks, inside = [norm_conv(nn, 3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)], 24
    for width, count in ((116, 2), (232, 4), (464, 2)):
        for place in range(count):
            blocks += [Block(inside, width, 1 if place else 2)]
            inside = width
    body = nn.Sequential(*blocks, norm_conv(nn, 464, 1024, 1))
    return classified(library, data, body, 1024, images, size)


def variational(library, data, images, size):
    """Convolutions down to a mean and a variance, transposed ones up."""
    nn, widths = library.nn, (3, 32, 64, 128, 256)
    down, up = [], []
    for a, b in pairwise(widths):
        down += [nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.LeakyReLU()]
        grow = nn.ConvTranspose2d(b, a, 3, 2, 1, output_padding=1)
        up = [grow, *([nn.BatchNorm2d(a), nn.LeakyReLU()] if a > 3 else [nn.Sigmoid()]), *up]
    last = 256 * (size // 16) ** 2
    encode = nn.Sequential(*down, nn.Flatten(), nn.Linear(last, 256))
    wide = nn.Linear(128, last)
    decode = nn.Sequential(*up)
    x, noise = data.normal(images, 3, size, size).sigmoid(), data.normal(images, 128)

    def loss():
        mean, spread = encode(x).chunk(2, 1)
        z = wide(mean + (0.5 * spread).exp() * noise)
        guess = decode(z.view(images, 256, size // 16, size // 16))
        divergence = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(1).mean()
        return nn.functional.mse_loss(guess, x) + 1e-3 * divergence

    return [encode, wide, decode], loss


def detector(library, data, images, size):
    """Boxes and classes at four places of three scales, as in SSD."""
    nn, classes = library.nn, 21
    stem = [norm_conv(nn, 3, 64), norm_conv(nn, 64, 64, stride=2), norm_conv(nn, 64, 128, stride=2)]
    levels = nn.ModuleList(
        [nn.Sequential(*stem, norm_conv(nn, 128, 256, stride=2)), norm_conv(nn, 256, 512, stride=2),
         nn.Sequential(norm_conv(nn, 512, 128, 1), norm_conv(nn, 128, 256, stride=2))]
    )  # fmt: skip
    widths = 256, 512, 256
    kinds = nn.ModuleList([nn.Conv2d(w, 4 * classes, 3, padding=1) for w in widths])
    boxes = nn.ModuleList([nn.Conv2d(w, 4 * 4, 3, padding=1) for w in widths])
    count = sum(4 * (size // scale) ** 2 for scale in (8, 16, 32))
    x, y = data.normal(images, 3, size, size), data.below(classes, images, count)
    wanted = data.normal(images, count, 4)

    def loss():
        seen, guessed, placed = x, [], []
        for level, kind, box in zip(levels, kinds, boxes):
            seen = level(seen)
            guessed += [kind(seen).permute(0, 2, 3, 1).reshape(images, -1, classes)]
            placed += [box(seen).permute(0, 2, 3, 1).reshape(images, -1, 4)]
        guess, place = library.cat(guessed, 1), library.cat(placed, 1)
        wrong = nn.functional.cross_entropy(guess.view(-1, classes), y.view(-1))
        here = (y > 0).float().unsqueeze(-1)
        off = nn.functional.smooth_l1_loss(place, wanted, reduction="none") * here
        return wrong + off.sum() / here.sum()

    return [levels, kinds, boxes], loss


def perceptron_block(nn, width, hidden):
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


def patched(library, data, images, size, width, make):
    """Patches of 16 x 16, blocks, the mean of places."""
    nn = library.nn
    patches, norm, head = nn.Conv2d(3, width, 16, 16), nn.LayerNorm(width), nn.Linear(width, 1000)
    blocks = nn.Sequential(*[make() for _ in range(4)])
    places = nn.Parameter(library.full((1, (size // 16) ** 2, width), 0.1))
    x, y = data.normal(images, 3, size, size), data.below(1000, images)

    def loss():
        seen = patches(x).flatten(2).transpose(1, 2) + places
        return nn.functional.cross_entropy(head(norm(blocks(seen)).mean(1)), y)

    return [patches, norm, head, blocks, nn.ParameterList([places])], loss


def mixer(library, data, images, size):
    """MLP-Mixer S/16."""
    nn, width, places = library.nn, 512, (size // 16) ** 2

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.tokens = perceptron_block(nn, places, 256)
            self.channels = perceptron_block(nn, width, 2048)

        def forward(self, x):
            x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norm2(x))

    return patched(library, data, images, size, width, Block)


def transformer(library, data, images, size):
    """ViT-S/16."""
    nn, width = library.nn, 384

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide = perceptron_block(nn, width, 4 * width)

        def forward(self, x):
            n, length, _ = x.shape
            q, k, v = self.mix(self.norm(x)).view(n, length, 3, 6, 64).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
            return x + self.wide(self.norm2(x))

    return patched(library, data, images, size, width, Block)


def video(library, data, images, size):
    """Convolutions over time and space: 3 x 3 x 3, and in two steps."""
    nn, layers = library.nn, []

    def block(inside, outside, taps, stride, pad):
        conv = nn.Conv3d(inside, outside, taps, stride, pad, bias=False)
        return [conv, nn.BatchNorm3d(outside), nn.ReLU()]

    layers += block(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3)) + block(64, 64, 3, 1, 1)
    layers += [nn.MaxPool3d(2)] + block(64, 128, 3, 1, 1) + block(128, 128, (1, 3, 3), 1, (0, 1, 1))
    layers += block(128, 128, (3, 1, 1), 1, (1, 0, 0)) + block(128, 256, 3, 2, 1)
    body, head = nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten()), nn.Linear(256, 400)
    x, y = data.normal(images, 3, 8, size, size), data.below(400, images)
    return [body, head], lambda: nn.functional.cross_entropy(head(body(x)), y)


def sound(library, data, images, size):
    """WaveNet: gated causal convolutions with gaps that double, sums of what they skip."""
    nn, width, kinds = library.nn, 128, 256

    class Layer(nn.Module):
        def __init__(self, gap):
            super().__init__()
            self.gap, self.both = gap, nn.Conv1d(width, 2 * width, 2, dilation=gap)
            self.kept, self.skip = nn.Conv1d(width, width, 1), nn.Conv1d(width, width, 1)

        def forward(self, x):
            value, gate = self.both(nn.functional.pad(x, (self.gap, 0))).chunk(2, 1)
            y = library.tanh(value) * library.sigmoid(gate)
            return x + self.kept(y), self.skip(y)

    words, layers = nn.Embedding(kinds, width), nn.ModuleList([Layer(2**k) for k in range(8)])
    out, head = nn.Conv1d(width, width, 1), nn.Conv1d(width, kinds, 1)
    x, y = data.below(kinds, images, size), data.below(kinds, images, size)

    def loss():
        seen, total = words(x).transpose(1, 2), 0.0
        for layer in layers:
            seen, skipped = layer(seen)
            total = total + skipped
        guess = head(nn.functional.relu(out(nn.functional.relu(total))))
        return nn.functional.cross_entropy(guess, y)

    return [words, layers, out, head], loss


NETWORKS = {  # images and size on a GPU, then where values are compared on a CPU
    "MobileNetV3": (mobilenet, (128, 224), (2, 64)),
    "EfficientNet": (efficientnet, (64, 224), (2, 64)),
    "ConvNeXt": (convnext, (64, 224), (2, 64)),
    "U-Net": (unet, (16, 256), (1, 32)),
    "DenseNet": (densenet, (64, 224), (2, 64)),
    "VGG": (vgg, (64, 224), (2, 32)),
    "DCGAN": (dcgan, (256, 64), (4, 32)),
    "diffusion": (diffusion, (64, 32), (2, 16)),
    "ResNeXt": (resnext, (64, 224), (2, 64)),
    "ShuffleNet": (shufflenet, (128, 224), (2, 64)),
    "VAE": (variational, (256, 64), (4, 32)),
    "SSD": (detector, (32, 256), (2, 64)),
    "Mixer": (mixer, (128, 224), (2, 64)),
    "ViT": (transformer, (128, 224), (2, 64)),
    "video": (video, (16, 112), (2, 16)),
    "WaveNet": (sound, (16, 4096), (2, 512)),
}
