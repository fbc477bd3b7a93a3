"""More loops for `bench/loop_variations.py`: batches whose sizes differ from step to step."""

import numpy as np


def trained(work, model, loss_of, kind="Adam", **options):
    """A step of an optimizer on what is drawn for it."""
    optimizer = getattr(work.library.optim, kind)(model.parameters(), lr=1e-3, **options)
    drawn = np.random.default_rng(0)

    def step():
        loss = loss_of(drawn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def alike(work, model):
    """Give a model the same weights in each library."""
    drawn = np.random.default_rng(1)
    for each in model.parameters():
        values = drawn.standard_normal(tuple(each.shape)).astype(np.float32) * 0.1
        each.data = work.library.tensor(values)
    return model


def graphs_of_sizes(work):
    """A network of graphs: sums over edges, means over the neighbours, sums over each graph."""
    library, nn = work.library, work.library.nn
    sizes = (16, 32), (32, 32), (32, 4)
    model = alike(work, nn.ModuleList([nn.Linear(*each) for each in sizes]))

    def loss_of(drawn):
        nodes = drawn.integers(5, 20, 8)
        count, edges = int(nodes.sum()), int(nodes.sum() * 3 + drawn.integers(0, 50))
        x = library.tensor(drawn.standard_normal((count, 16)).astype(np.float32))
        start, end = (library.tensor(drawn.integers(0, count, edges)) for _ in range(2))
        owners = library.tensor(np.repeat(np.arange(8), nodes))
        labels = library.tensor(drawn.integers(0, 4, 8))
        for layer in (model[0], model[1]):
            hidden = layer(x)
            total = library.zeros_like(hidden).index_add(0, end, hidden[start])
            degree = library.zeros(count).index_add(0, end, library.ones(edges)).clamp(min=1)
            x = library.relu(total / degree[:, None] + hidden)
        whole = library.zeros(8, 32).index_add(0, owners, x)
        return work.F.cross_entropy(model[2](whole), labels)

    return trained(work, model, loss_of)


def sentences_of_sizes(work):
    """A transformer over padded sentences, as long as the longest of a batch."""
    library, nn = work.library, work.library.nn
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    model = alike(work, nn.ModuleList([nn.Embedding(100, 32), layer, nn.Linear(32, 2)]))

    def loss_of(drawn):
        length = int(drawn.integers(5, 40))
        words = drawn.integers(1, 100, (8, length))
        for row in words[1:]:
            row[int(drawn.integers(length // 2, length)) + 1 :] = 0
        x = library.tensor(words)
        hidden = layer(model[0](x), src_key_padding_mask=x == 0)
        seen = (x != 0).float()[..., None]
        mean = (hidden * seen).sum(1) / seen.sum(1)
        return work.F.cross_entropy(model[2](mean), library.tensor(drawn.integers(0, 2, 8)))

    return trained(work, model, loss_of, "AdamW")


def recurrent_of_sizes(work):
    """An LSTM that predicts the next letter of texts of any length."""
    library, nn = work.library, work.library.nn
    parts = nn.Embedding(100, 16), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 100)
    model = alike(work, nn.ModuleList(parts))

    def loss_of(drawn):
        text = library.tensor(drawn.integers(1, 100, (8, int(drawn.integers(6, 41)))))
        found = model[2](model[1](model[0](text[:, :-1]))[0])
        return work.F.cross_entropy(found.reshape(-1, 100), text[:, 1:].reshape(-1))

    return trained(work, model, loss_of)


def names_of_sizes(work):
    """A cell by hand, letter by letter, over one name a step."""
    library, nn = work.library, work.library.nn
    model = alike(work, nn.ModuleList([nn.Linear(57 + 32, 32), nn.Linear(57 + 32, 18)]))

    def loss_of(drawn):
        letters = np.eye(57, dtype=np.float32)[drawn.integers(0, 57, int(drawn.integers(3, 12)))]
        name, hidden, both = library.tensor(letters[:, None]), library.zeros(1, 32), None
        for letter in name:
            both = library.cat((letter, hidden), 1)
            hidden = library.tanh(model[0](both))
        found = library.log_softmax(model[1](both), dim=1)
        return work.F.nll_loss(found, library.tensor(drawn.integers(0, 18, 1)))

    return trained(work, model, loss_of, "SGD")


def pictures_of_sizes(work):
    """Convolutions over pictures of any height and width."""
    library, nn = work.library, work.library.nn
    first = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
    then = nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    model = alike(work, nn.Sequential(*first, *then, nn.Linear(16, 10)))

    def loss_of(drawn):
        height, width = (int(each) * 2 for each in drawn.integers(8, 17, 2))
        x = library.tensor(drawn.standard_normal((4, 3, height, width)).astype(np.float32))
        return work.F.cross_entropy(model(x), library.tensor(drawn.integers(0, 10, 4)))

    return trained(work, model, loss_of, "SGD", momentum=0.9)


LOOPS = [graphs_of_sizes, sentences_of_sizes, recurrent_of_sizes, names_of_sizes, pictures_of_sizes]
