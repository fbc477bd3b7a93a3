"""Networks for `bench/plain_models.py`: each written once, and run by PyTorch and by picograd.

A function gets the library, builds modules in the same order in both, and returns them with a
function that computes the loss of a batch. Batches come from `Data`, the same numbers in both.
"""

import numpy as np


class Data:
    """This class draws the same arrays for both libraries."""

    def __init__(self, library):
        self.library, self.values = library, np.random.default_rng(0)

    def normal(self, *shape):
        return self.library.tensor(self.values.standard_normal(shape).astype(np.float32))

    def below(self, limit, *shape):
        return self.library.tensor(self.values.integers(0, limit, shape))


def perceptron(library, data):
    nn = library.nn
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    x, y = data.normal(64, 64), data.below(10, 64)
    return [model], lambda: nn.functional.cross_entropy(model(x), y)


def autoencoder(library, data):
    nn = library.nn
    model = nn.Sequential(
        nn.Linear(196, 64),
        nn.Tanh(),
        nn.Linear(64, 8),
        nn.Linear(8, 64),
        nn.Tanh(),
        nn.Linear(64, 196),
    )
    x = data.normal(64, 196)
    return [model], lambda: (model(x) - x).pow(2).mean()


def variational(library, data):
    nn = library.nn
    encode, decode = (
        nn.Linear(196, 32),
        nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 196)),
    )
    x, noise = data.normal(64, 196), data.normal(64, 16)

    def loss():
        mean, log_variance = encode(x).chunk(2, 1)
        guess = decode(mean + (0.5 * log_variance).exp() * noise)
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(1)
        wrong = nn.functional.binary_cross_entropy_with_logits(guess, x.sigmoid(), reduction="sum")
        return wrong / 64 + divergence.mean()

    return [encode, decode], loss


def lenet(library, data):
    nn = library.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 10),
    )
    x, y = data.normal(32, 1, 28, 28), data.below(10, 32)
    return [model], lambda: nn.functional.cross_entropy(model(x), y)


def residual(library, data):
    """Blocks with batch norms and shortcuts, as in ResNet."""
    nn = library.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.first_norm = nn.BatchNorm2d(outputs)
            self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.second_norm = nn.BatchNorm2d(outputs)
            self.shortcut = None
            if stride > 1:
                self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

        def forward(self, x):
            y = nn.functional.relu(self.first_norm(self.first(x)))
            y = self.second_norm(self.second(y))
            return (y + (x if self.shortcut is None else self.shortcut(x))).relu()

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        Block(16, 16, 1),
        Block(16, 32, 2),
        Block(32, 32, 1),
        Block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    x, y = data.normal(16, 3, 32, 32), data.below(10, 16)
    return [model], lambda: nn.functional.cross_entropy(model(x), y)


def mobile(library, data):
    """Depthwise and pointwise convolutions with 30 batch norms, as in MobileNet."""
    nn, layers, width = library.nn, [], 8
    for number in range(15):
        wider = min(2 * width, 64) if number % 5 == 4 else width
        stride = 2 if number % 5 == 4 else 1
        layers += [nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False)]
        layers += [nn.BatchNorm2d(width), nn.ReLU6()]
        layers += [nn.Conv2d(width, wider, 1, bias=False), nn.BatchNorm2d(wider), nn.ReLU6()]
        width = wider
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        *layers,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, 10),
    )
    x, y = data.normal(8, 3, 48, 48), data.below(10, 8)
    return [model], lambda: nn.functional.cross_entropy(model(x), y)


def unet(library, data):
    nn = library.nn

    def convolutions(inputs, outputs):
        first, second = (
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.Conv2d(outputs, outputs, 3, padding=1),
        )
        return nn.Sequential(first, nn.GroupNorm(4, outputs), nn.SiLU(), second, nn.SiLU())

    down, deep, up = convolutions(1, 8), convolutions(8, 16), convolutions(24, 8)
    out = nn.Conv2d(8, 1, 1)
    x, wanted = data.normal(4, 1, 32, 32), data.normal(4, 1, 32, 32)

    def loss():
        skipped = down(x)
        below = deep(nn.functional.max_pool2d(skipped, 2))
        above = nn.functional.interpolate(below, scale_factor=2, mode="nearest")
        guess = out(up(library.cat([skipped, above], 1)))
        return nn.functional.l1_loss(guess, wanted)

    return [down, deep, up, out], loss


def mixer(library, data):
    nn = library.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(32), nn.LayerNorm(32)])
            self.tokens = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            self.channels = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

        def forward(self, x):
            x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norms[1](x))

    model = nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.Flatten(2))
    blocks, head = nn.Sequential(Block(), Block(), Block()), nn.Linear(32, 10)
    x, y = data.normal(16, 3, 32, 32), data.below(10, 16)

    def loss():
        mixed = blocks(model(x).transpose(1, 2)).mean(1)
        return nn.functional.cross_entropy(head(mixed), y)

    return [model, blocks, head], loss


def attention_block(nn, width, heads, is_causal):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = self.mix(self.first_norm(x)).view(batch, length, 3, heads, -1).unbind(2)
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.wide(self.second_norm(x))

    return Block()


def vision_transformer(library, data):
    nn = library.nn
    patches, head = nn.Conv2d(3, 32, 8, 8), nn.Linear(32, 10)
    blocks = nn.Sequential(*[attention_block(nn, 32, 4, False) for _ in range(3)])
    x, y = data.normal(8, 3, 32, 32), data.below(10, 8)
    places = nn.Embedding(16, 32)
    numbers = library.arange(16)

    def loss():
        seen = patches(x).flatten(2).transpose(1, 2) + places(numbers)
        return nn.functional.cross_entropy(head(blocks(seen).mean(1)), y)

    return [patches, head, blocks, places], loss


def gpt(library, data):
    nn = library.nn
    tokens, places = nn.Embedding(65, 64), nn.Embedding(32, 64)
    blocks = nn.Sequential(*[attention_block(nn, 64, 4, True) for _ in range(2)])
    norm, head = nn.LayerNorm(64), nn.Linear(64, 65, bias=False)
    x, y, numbers = data.below(65, 8, 32), data.below(65, 8, 32), library.arange(32)

    def loss():
        guess = head(norm(blocks(tokens(x) + places(numbers))))
        return nn.functional.cross_entropy(guess.view(-1, 65), y.view(-1))

    return [tokens, places, blocks, norm, head], loss


def recurrent_by_hand(library, data):
    nn = library.nn
    cell, head = nn.Linear(8 + 32, 32), nn.Linear(32, 1)
    x, y = data.normal(16, 20, 8), data.normal(16, 1)

    def loss():
        state = library.zeros(16, 32)
        for t in range(x.shape[1]):
            state = library.tanh(cell(library.cat([x[:, t], state], 1)))
        return nn.functional.mse_loss(head(state), y)

    return [cell, head], loss


def recurrent_layers(kind):
    def build(library, data):
        nn = library.nn
        model, head = getattr(nn, kind)(16, 32, batch_first=True), nn.Linear(32, 5)
        x, y = data.normal(16, 24, 16), data.below(5, 16)
        return [model, head], lambda: nn.functional.cross_entropy(head(model(x)[0][:, -1]), y)

    return build


def graph_network(library, data):
    """Messages along edges, added up where they arrive."""
    nn = library.nn
    message, update, head = nn.Linear(32, 16), nn.Linear(32, 16), nn.Linear(16, 4)
    x, y = data.normal(100, 16), data.below(4, 100)
    source, target = data.below(100, 400), data.below(100, 400)

    def loss():
        state = x
        for _ in range(2):
            sent = message(library.cat([state[source], state[target]], 1)).relu()
            heard = library.zeros(100, 16).index_add(0, target, sent)
            state = update(library.cat([state, heard], 1)).relu()
        return nn.functional.cross_entropy(head(state), y)

    return [message, update, head], loss


def points(library, data):
    nn = library.nn
    each, all_of_them = (
        nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64)),
        nn.Linear(64, 5),
    )
    x, y = data.normal(16, 64, 3), data.below(5, 16)
    return [each, all_of_them], lambda: nn.functional.cross_entropy(all_of_them(each(x).amax(1)), y)


def contrastive(library, data):
    nn = library.nn
    model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
    a, b, same = data.normal(32, 32), data.normal(32, 32), library.arange(32)

    def loss():
        first = nn.functional.normalize(model(a), dim=1)
        second = nn.functional.normalize(model(b), dim=1)
        return nn.functional.cross_entropy(first @ second.T / 0.1, same)

    return [model], loss


def flow(library, data):
    """Affine couplings, as in RealNVP."""
    nn = library.nn
    nets = nn.ModuleList(
        [nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 8)) for _ in range(4)]
    )
    x = data.normal(64, 8)

    def loss():
        z, volume = x, 0.0
        for net in nets:
            kept, changed = z.chunk(2, 1)
            scale, shift = net(kept).chunk(2, 1)
            scale = scale.tanh()
            z = library.cat([changed * scale.exp() + shift, kept], 1)
            volume = volume + scale.sum(1)
        return (0.5 * z.pow(2).sum(1) - volume).mean()

    return [nets], loss


def values_of_actions(library, data):
    """Deep Q-learning: a target network that follows slowly."""
    nn = library.nn

    def network():
        return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))

    model, slow = network(), network()
    slow.load_state_dict(model.state_dict())
    x, later, reward = data.normal(32, 8), data.normal(32, 8), data.normal(32)
    action = data.below(4, 32)

    def loss():
        with library.no_grad():
            for p, q in zip(slow.parameters(), model.parameters(), strict=True):
                p.mul_(0.99).add_(q, alpha=0.01)
            wanted = reward + 0.9 * slow(later).max(1).values
        found = model(x).gather(1, action[:, None]).squeeze(1)
        return nn.functional.smooth_l1_loss(found, wanted)

    return [model, slow], loss


def bag_of_words(library, data):
    nn = library.nn
    words, head = nn.Embedding(500, 32), nn.Linear(32, 4)
    x, y = data.below(500, 64, 20), data.below(4, 64)
    return [words, head], lambda: nn.functional.cross_entropy(head(words(x).mean(1)), y)


def super_resolution(library, data):
    nn = library.nn
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.PReLU(),
        nn.Conv2d(16, 12, 3, padding=1),
        nn.PixelShuffle(2),
    )
    x, wanted = data.normal(4, 3, 24, 24), data.normal(4, 3, 48, 48)
    return [model], lambda: nn.functional.mse_loss(model(x), wanted)


def adversarial(library, data):
    """A generator and a discriminator, whose loss holds both (the second step follows)."""
    nn = library.nn
    make = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32))
    judge = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    noise, true = data.normal(64, 8), data.normal(64, 32)

    def loss():
        wrong = nn.functional.binary_cross_entropy_with_logits
        fake = make(noise)
        real_score, fake_score = judge(true), judge(fake.detach())
        judged = wrong(real_score, library.ones_like(real_score))
        judged = judged + wrong(fake_score, library.zeros_like(fake_score))
        return judged + wrong(judge(fake), library.ones_like(fake_score))

    return [make, judge], loss


NETWORKS = {
    "MLP": perceptron,
    "autoencoder": autoencoder,
    "VAE": variational,
    "LeNet": lenet,
    "ResNet": residual,
    "MobileNet": mobile,
    "U-Net": unet,
    "mixer": mixer,
    "ViT": vision_transformer,
    "GPT": gpt,
    "RNN by hand": recurrent_by_hand,
    "LSTM": recurrent_layers("LSTM"),
    "GRU": recurrent_layers("GRU"),
    "graph network": graph_network,
    "PointNet": points,
    "contrastive": contrastive,
    "RealNVP": flow,
    "DQN": values_of_actions,
    "bag of words": bag_of_words,
    "super resolution": super_resolution,
    "GAN": adversarial,
}
