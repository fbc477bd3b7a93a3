"""Networks of many different layers for `bench/first_step.py`, as wide as those they are named for.

A function gets the library and returns parameters and a function that computes the loss; those of
`bench/vision_networks.py`, at the sizes where their values are compared, come with the same.
"""

from functools import partial
from itertools import pairwise

from first_networks import ROWS
from plain_networks import Data
from vision_networks import NETWORKS as VISION
from vision_networks import inverted, norm_conv

# GhostNetV2: taps, wide, outside, squeezes, stride (Tang et al. 2022, after GhostNet's table 1).
GHOSTS = (
    (3, 16, 16, False, 1), (3, 48, 24, False, 2), (3, 72, 24, False, 1), (5, 72, 40, True, 2),
    (5, 120, 40, True, 1), (3, 240, 80, False, 2), (3, 200, 80, False, 1), (3, 184, 80, False, 1),
    (3, 184, 80, False, 1), (3, 480, 112, True, 1), (3, 672, 112, True, 1), (5, 672, 160, True, 2),
    (5, 960, 160, False, 1), (5, 960, 160, True, 1), (5, 960, 160, False, 1),
    (5, 960, 160, True, 1),
)  # fmt: skip
# RegNetY-400MF: width and blocks of each stage, all of groups of 8 (Radosavovic et al. 2020).
STAGES = (48, 1), (104, 3), (208, 6), (440, 6)


def parameters_of(modules):
    return [each for module in modules for each in module.parameters()]


def ssdlite(library, images=2, size=320):
    """SSDlite on MobileNetV3-Large: boxes at six scales, losses with the hardest negatives."""
    nn, data, kinds, places = library.nn, Data(library), 91, 6
    act = "Hardswish"

    def mobile(inside, row, width):
        taps, wide, _, is_gated, is_hard, stride = row
        squeezed = (wide // 4 + 4) // 8 * 8 if is_gated else 0
        name = act if is_hard else "ReLU"
        return inverted(nn, inside, wide, width, taps, stride, name, "Hardsigmoid", squeezed)

    def extra(inside, outside):
        half = outside // 2
        thin = norm_conv(nn, inside, half, 1, act="ReLU6")
        deep = norm_conv(nn, half, half, 3, 2, half, "ReLU6")
        return nn.Sequential(thin, deep, norm_conv(nn, half, outside, 1, act="ReLU6"))

    def head(inside, outside):
        deep = norm_conv(nn, inside, inside, 3, 1, inside, "ReLU6")
        return nn.Sequential(deep, nn.Conv2d(inside, outside, 1))

    first, last, inside = [norm_conv(nn, 3, 16, 3, 2, act=act)], [], 16
    for number, row in enumerate(ROWS):
        width = row[2] if number < 12 else row[2] // 2  # the reduced tail
        if number == 12:  # the wide layer of this block is the first scale
            first += [norm_conv(nn, inside, row[1], 1, act=act)]
            last += [norm_conv(nn, row[1], row[1], row[0], 2, row[1], act)]
            last += [norm_conv(nn, row[1], width, 1, act=None)]
        else:
            (first if number < 12 else last).append(mobile(inside, row, width))
        inside = width
    last += [norm_conv(nn, inside, 480, 1, act=act)]
    widths = 672, 480, 512, 256, 256, 128
    levels = nn.ModuleList([nn.Sequential(*first), nn.Sequential(*last)])
    levels.extend([extra(a, b) for a, b in pairwise(widths[1:])])
    classes = nn.ModuleList([head(width, places * kinds) for width in widths])
    boxes = nn.ModuleList([head(width, places * 4) for width in widths])
    x, counts, side = data.normal(images, 3, size, size), 0, -(-size // 16)
    for _ in widths:
        counts, side = counts + places * side * side, -(-side // 2)
    y = data.below(kinds, images, counts) * (data.below(30, images, counts) == 0).long()
    wanted = data.normal(images, counts, 4)

    def rows(seen, columns):
        return seen.permute(0, 2, 3, 1).reshape(images, -1, columns)

    def loss():
        seen, guesses, offsets = x, [], []
        for level, kind, box in zip(levels, classes, boxes):
            seen = level(seen)
            guesses.append(rows(kind(seen), kinds))
            offsets.append(rows(box(seen), 4))
        guess, here = library.cat(guesses, 1), y > 0
        wrong = nn.functional.cross_entropy(guess.view(-1, kinds), y.view(-1), reduction="none")
        wrong = wrong.view(images, counts)
        off = nn.functional.smooth_l1_loss(library.cat(offsets, 1), wanted, reduction="none")
        count = here.sum(1, keepdim=True)
        negative = library.where(here, -1.0, wrong.detach())
        order = negative.sort(1, descending=True)[1].sort(1)[1]  # the place of each among them
        used = (here | (order < 3 * count)).float()
        return ((wrong * used).sum() + (off * here.float().unsqueeze(2)).sum()) / count.sum()

    return parameters_of([levels, classes, boxes]), loss


def ghostnet(library, images=2, size=224):
    """GhostNetV2: half of every layer is a cheap depthwise convolution of the other half."""
    nn, data = library.nn, Data(library)

    class Ghost(nn.Module):
        def __init__(self, inside, outside, act="ReLU", is_attended=False):
            super().__init__()
            half = -(-outside // 2)
            self.outside, self.gate = outside, None
            self.main = norm_conv(nn, inside, half, 1, act=act)
            self.cheap = norm_conv(nn, half, half, 3, 1, half, act)
            if is_attended:  # along rows, then columns, on half the places
                wide = nn.Conv2d(outside, outside, (1, 5), 1, (0, 2), groups=outside, bias=False)
                high = nn.Conv2d(outside, outside, (5, 1), 1, (2, 0), groups=outside, bias=False)
                norms = [nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)]
                thin = norm_conv(nn, inside, outside, 1, act=None)
                self.gate = nn.Sequential(thin, wide, norms[0], high, norms[1])

        def forward(self, x):
            main = self.main(x)
            y = library.cat([main, self.cheap(main)], 1)[:, : self.outside]
            if self.gate is None:
                return y
            gate = self.gate(nn.functional.avg_pool2d(x, 2)).sigmoid()
            return y * nn.functional.interpolate(gate, size=y.shape[2:], mode="nearest")

    class Block(nn.Module):
        def __init__(self, inside, row, is_attended):
            super().__init__()
            taps, wide, outside, is_gated, stride = row
            self.grow = Ghost(inside, wide, is_attended=is_attended)
            self.deep = norm_conv(nn, wide, wide, taps, 2, wide, None) if stride > 1 else None
            self.gate, self.shrink = None, Ghost(wide, outside, None)
            if is_gated:
                inner = (wide // 4 + 2) // 4 * 4
                down, up = nn.Conv2d(wide, inner, 1), nn.Conv2d(inner, wide, 1)
                layers = nn.AdaptiveAvgPool2d(1), down, nn.ReLU(), up, nn.Hardsigmoid()
                self.gate = nn.Sequential(*layers)
            self.short = nn.Identity()
            if stride > 1 or inside != outside:
                deep = norm_conv(nn, inside, inside, taps, stride, inside, None)
                self.short = nn.Sequential(deep, norm_conv(nn, inside, outside, 1, act=None))

        def forward(self, x):
            y = self.grow(x)
            y = y if self.deep is None else self.deep(y)
            y = y if self.gate is None else y * self.gate(y)
            return self.shrink(y) + self.short(x)

    layers, inside = [norm_conv(nn, 3, 16, 3, 2)], 16
    for number, row in enumerate(GHOSTS):
        layers.append(Block(inside, row, number > 1))
        inside = row[2]
    layers += [norm_conv(nn, inside, 960, 1), nn.AdaptiveAvgPool2d(1), nn.Conv2d(960, 1280, 1)]
    model = nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(1280, 1000))
    x, y = data.normal(images, 3, size, size), data.below(1000, images)
    return list(model.parameters()), lambda: nn.functional.cross_entropy(model(x), y)


def regnet(library, images=2, size=96):
    """RegNetY-400MF: convolutions of groups of 8 channels, gates of a quarter of what comes in."""
    nn, data = library.nn, Data(library)

    class Block(nn.Module):
        def __init__(self, inside, outside, stride):
            super().__init__()
            inner = round(inside / 4)
            down, up = nn.Conv2d(outside, inner, 1), nn.Conv2d(inner, outside, 1)
            thin = norm_conv(nn, inside, outside, 1)
            self.deep = nn.Sequential(
                thin, norm_conv(nn, outside, outside, 3, stride, outside // 8)
            )
            layers = nn.AdaptiveAvgPool2d(1), down, nn.ReLU(), up, nn.Sigmoid()
            self.gate, self.last = (
                nn.Sequential(*layers),
                norm_conv(nn, outside, outside, 1, act=None),
            )
            self.short = nn.Identity()
            if stride > 1 or inside != outside:
                self.short = norm_conv(nn, inside, outside, 1, stride, act=None)

        def forward(self, x):
            y = self.deep(x)
            return (self.last(y * self.gate(y)) + self.short(x)).relu()

    layers, inside = [norm_conv(nn, 3, 32, 3, 2)], 32
    for width, count in STAGES:
        for place in range(count):
            layers.append(Block(inside, width, 1 if place else 2))
            inside = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))
    x, y = data.normal(images, 3, size, size), data.below(1000, images)
    return list(model.parameters()), lambda: nn.functional.cross_entropy(model(x), y)


def swin(library, images=2, size=112):
    """Swin-T, of half the blocks: attention in windows of 7 x 7 that shift, patches that merge."""
    nn, data, edge = library.nn, Data(library), 7
    table = [[a - b + edge - 1 for b in range(edge)] for a in range(edge)]
    spots = [(a, b) for a in range(edge) for b in range(edge)]
    flat = [[table[a][c] * (2 * edge - 1) + table[b][d] for c, d in spots] for a, b in spots]
    relative = library.tensor(flat).flatten()

    class Attention(nn.Module):
        def __init__(self, width, heads, shift):
            super().__init__()
            self.heads, self.shift, self.width = heads, shift, width
            self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.bias = nn.Parameter(data.normal((2 * edge - 1) ** 2, heads))

        def forward(self, x):
            n, side, heads, width = x.shape[0], x.shape[1], self.heads, self.width
            shift, count = (self.shift, side // edge) if side > edge else (0, side // edge)
            x = library.roll(x, (-shift, -shift), (1, 2)) if shift else x
            x = x.view(n, count, edge, count, edge, width).permute(0, 1, 3, 2, 4, 5)
            qkv = self.mix(x.reshape(-1, edge * edge, width))
            q, k, v = qkv.view(-1, edge * edge, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            bias = self.bias[relative].view(edge * edge, edge * edge, heads).permute(2, 0, 1)
            y = ((q * (width // heads) ** -0.5) @ k.transpose(2, 3) + bias).softmax(-1) @ v
            y = self.out(y.transpose(1, 2).reshape(-1, edge * edge, width))
            y = y.view(n, count, count, edge, edge, width).permute(0, 1, 3, 2, 4, 5)
            y = y.reshape(n, side, side, width)
            return library.roll(y, (shift, shift), (1, 2)) if shift else y

    class Block(nn.Module):
        def __init__(self, width, heads, shift):
            super().__init__()
            self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attend = Attention(width, heads, shift)
            wide = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            self.wide = nn.Sequential(*wide)

        def forward(self, x):
            x = x + self.attend(self.norm(x))
            return x + self.wide(self.norm2(x))

    class Merge(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.thin = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, False)

        def forward(self, x):
            parts = [x[:, a::2, b::2] for b in (0, 1) for a in (0, 1)]
            return self.thin(self.norm(library.cat(parts, -1)))

    patches, norm, head = nn.Conv2d(3, 96, 4, 4), nn.LayerNorm(384), nn.Linear(384, 1000)
    layers = []
    for number in range(3):
        width, heads = 96 << number, 3 << number
        layers += [Merge(width // 2)] if number else []
        layers += [Block(width, heads, 0), Block(width, heads, 3)]
    blocks = nn.Sequential(*layers)
    x, y = data.normal(images, 3, size, size), data.below(1000, images)

    def loss():
        seen = blocks(patches(x).permute(0, 2, 3, 1))
        return nn.functional.cross_entropy(head(norm(seen).mean((1, 2))), y)

    return parameters_of([patches, norm, head, blocks]), loss


def small_vision(name, library):
    build, _, sizes = VISION[name]
    modules, loss = build(library, Data(library), *sizes)
    return parameters_of(modules), loss


NETWORKS = {
    **{name: partial(small_vision, name) for name in VISION},
    "ssdlite": ssdlite,
    "ghostnet": ghostnet,
    "regnet": regnet,
    "swin": swin,
}
