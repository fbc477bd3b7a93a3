"""More training loops for `bench/loop_variations.py`: batches, losses, evaluation, new networks,
loaders, layers that do not train.
"""

import math

import numpy as np
from training_loops import CLASSES, EXAMPLES, WIDTH, after_step, plain


def new_network(work):
    """A new network each time, as in a search or a cross-validation: three steps of it."""

    def step():
        work.values = np.random.default_rng(1)
        once = plain(work)
        return sum(once() for _ in range(3))

    return step


def fresh_weights(work):
    """A new network each time, with the weights it draws: three steps.

    Each library draws its own: whether the loss is a number is compared."""

    def step():
        work.library.manual_seed(0)
        model = work.layers()
        optimizer = work.adam(model)
        for _ in range(3):
            optimizer.zero_grad()
            loss = work.loss(model)
            loss.backward()
            optimizer.step()
        return float(loss.item() < 10.0)

    return step


def evaluation(work):
    """Accuracy after each step."""

    def then(model, loss):
        model.eval()
        with work.library.no_grad():
            right = (model(work.x).argmax(1) == work.y).float().mean().item()
        model.train()
        return loss.item() + right

    return after_step(work, then)


def epoch_and_evaluation(work):
    """Four batches of training, four of evaluation."""
    model, optimizer = work.pair()
    x, y = work.normal(4, 64, WIDTH), work.y

    def step():
        model.train()
        total, right = 0.0, 0
        for batch in x:
            optimizer.zero_grad()
            loss = work.F.cross_entropy(model(batch), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with work.library.no_grad():
            for batch in x:
                out = model(batch)
                total += work.F.cross_entropy(out, y, reduction="sum").item()
                right += out.argmax(dim=1, keepdim=True).eq(y.view(-1, 1)).sum().item()
        return total / 4 + right / 256

    return step


def running_loss(work):
    """Loss and hits are read at every step."""
    model, optimizer = work.pair()
    seen = [0.0, 0]

    def step():
        optimizer.zero_grad()
        out = model(work.x)
        loss = work.F.cross_entropy(out, work.y)
        loss.backward()
        optimizer.step()
        seen[0] += loss.item() * len(work.x)
        _, guess = out.max(1)
        seen[1] += (guess == work.y).sum().item()
        return loss.item()

    return step


def running_sum(work):
    """The sum of losses stays a tensor, read every tenth step."""
    model, optimizer = work.pair()
    seen = [work.library.zeros(()), 0]

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        seen[0], seen[1] = seen[0] + loss.detach(), seen[1] + 1
        if seen[1] % 10 == 0:
            value = seen[0].item()
            seen[0] = work.library.zeros(())
            return value
        return 0.0

    return step


def losses_kept(work):
    """Losses are collected, and stacked every tenth step."""
    model, optimizer = work.pair()
    losses = []

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if len(losses) == 10:
            value = work.library.stack(losses).mean().item()
            losses.clear()
            return value
        return 0.0

    return step


def metrics_in_python(work):
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        out = model(work.x)
        loss = work.F.cross_entropy(out, work.y)
        loss.backward()
        optimizer.step()
        guess = out.argmax(1).tolist()
        right = sum(a == b for a, b in zip(guess, work.labels.tolist(), strict=True))
        return loss.item() + right / EXAMPLES

    return step


def metrics_in_numpy(work):
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        out = model(work.x)
        loss = work.F.cross_entropy(out, work.y)
        loss.backward()
        optimizer.step()
        guess = out.detach().cpu().numpy().argmax(1)
        return loss.item() + float((guess == work.labels).mean())

    return step


def mixed_losses(work):
    """Several terms, each of which is read for a log."""
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        out = model(work.x)
        wrong = work.F.cross_entropy(out, work.y)
        size = 1e-4 * sum(p.pow(2).sum() for p in model.parameters())
        flat = 1e-3 * out.abs().mean()
        loss = wrong + size + flat
        loss.backward()
        optimizer.step()
        log = {"wrong": wrong.item(), "size": size.item(), "flat": flat.item()}
        return loss.item() + sum(log.values())

    return step


def weighted_losses(work):
    """A loss an example, masked."""
    model, optimizer = work.pair()
    weights = work.normal(EXAMPLES).abs()

    def step():
        optimizer.zero_grad()
        each = work.F.cross_entropy(model(work.x), work.y, reduction="none")
        zeros = work.library.zeros_like(each)
        loss = (work.library.where(each > 0.1, each, zeros) * weights).sum() / weights.sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def batches_accumulated(work):
    model, optimizer = work.pair()
    size = EXAMPLES // 4

    def step():
        total = 0.0
        optimizer.zero_grad()
        for start in range(0, EXAMPLES, size):
            out = model(work.x[start : start + size])
            loss = work.F.cross_entropy(out, work.y[start : start + size]) / 4
            loss.backward()
            total += loss.item()
        optimizer.step()
        return total

    return step


def batches_accumulated_quietly(work):
    """Four batches of which nothing is read before the step."""
    model, optimizer = work.pair()
    pieces = list(zip(work.x.chunk(4), work.y.chunk(4), strict=True))

    def step():
        for x, y in pieces:
            loss = work.F.cross_entropy(model(x), y) / 4
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def two_backwards(work):
    """Two losses of one graph, each with its own `backward`."""
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        out = model(work.x)
        first, second = work.F.cross_entropy(out, work.y), out.pow(2).mean()
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()
        return first.item() + second.item()

    return step


def data_loader(work):
    model, optimizer = work.pair()
    data = work.library.utils.data
    loader = data.DataLoader(data.TensorDataset(work.x, work.y), batch_size=16)

    def step():
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = work.F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    return step


def numpy_collate(work):
    """A data set of NumPy arrays, an example at a time."""
    model, optimizer = work.pair()
    data, inputs, labels = work.library.utils.data, work.inputs, work.labels

    class Examples(data.Dataset):
        def __len__(self):
            return EXAMPLES

        def __getitem__(self, index):
            return inputs[index], labels[index]

    loader = data.DataLoader(Examples(), batch_size=32)

    def step():
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = work.F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    return step


def from_numpy(work):
    model, optimizer = work.pair()
    convert = work.library.from_numpy

    def step():
        optimizer.zero_grad()
        loss = work.F.cross_entropy(model(convert(work.inputs)), convert(work.labels))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def shuffled(work):
    """Batches chosen by an index."""
    model, optimizer = work.pair()
    values, x = np.random.default_rng(1), work.normal(256, WIDTH)
    y = work.library.tensor(values.integers(0, CLASSES, 256))

    def step():
        chosen = work.library.tensor(values.permutation(256)[:EXAMPLES])
        optimizer.zero_grad()
        loss = work.F.cross_entropy(model(x[chosen]), y[chosen])
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def frozen(work):
    """The first layers are told not to train."""
    model = work.perceptron()
    for p in model[:3].parameters():
        p.requires_grad = False
    optimizer = work.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def checkpoint(work):
    """The middle is computed again for its gradients."""
    from importlib import import_module

    again = import_module(f"{work.library.__name__}.utils.checkpoint").checkpoint
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        hidden = again(model[:4], work.x, use_reentrant=False)
        loss = work.F.cross_entropy(model[4](hidden), work.y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def tied_weights(work):
    """An autoencoder that decodes with the transposed weights."""
    model = work.loaded(work.nn.Linear(WIDTH, 32))
    optimizer = work.adam(model)

    def step():
        optimizer.zero_grad()
        hidden = model(work.x).tanh()
        loss = work.F.mse_loss(work.F.linear(hidden, model.weight.t()), work.x)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def autocast(work):
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        with work.library.autocast("cpu", dtype=work.library.bfloat16):
            loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def batch_norm(work):
    nn = work.nn
    model = nn.Sequential(
        nn.Linear(WIDTH, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 128),
        nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, CLASSES),
    )  # fmt: skip
    return after_step(work, lambda model, loss: loss.item(), work.loaded(model))


def outputs_collected(work):
    """Predictions are collected in a list, and joined for one loss."""
    model, optimizer = work.pair()

    def step():
        outputs = [model(part) for part in work.x.split(16)]
        loss = work.F.cross_entropy(work.library.cat(outputs), work.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def generated(work):
    """A token a step, by attention written by hand over all tokens before; anew after 60."""
    library, state = work.library, {"tokens": None}
    table, wide = work.normal(40, WIDTH), work.normal(WIDTH, 3 * WIDTH) * 0.1

    def step():
        tokens = state["tokens"]
        if tokens is None or tokens.shape[1] > 60:
            tokens = library.tensor([[1]])
        rows = table[tokens]
        q, k, v = (rows @ wide).chunk(3, -1)
        scores = q @ k.transpose(1, 2) * WIDTH**-0.5
        seen = library.tril(library.ones(*scores.shape[1:], dtype=library.bool))
        shares = scores.masked_fill(~seen, -math.inf).softmax(-1)
        token = ((rows + shares @ v)[:, -1] @ table.T).argmax(-1, keepdim=True)
        state["tokens"] = library.cat([tokens, token], 1)
        return token.item()

    return step


def generated_with_cache(work):
    """The same for the last token alone, with keys and values that are kept."""
    library, state = work.library, {"token": None}
    table, wide = work.normal(40, WIDTH), work.normal(WIDTH, 3 * WIDTH) * 0.1

    def step():
        if state["token"] is None or state["keys"].shape[1] > 60:
            state["token"] = library.tensor([[1]])
            state["keys"] = state["values"] = library.zeros(1, 1, WIDTH)
        rows = table[state["token"]]
        q, k, v = (rows @ wide).chunk(3, -1)
        state["keys"] = library.cat([state["keys"], k], 1)
        state["values"] = library.cat([state["values"], v], 1)
        shares = (q @ state["keys"].transpose(1, 2) * WIDTH**-0.5).softmax(-1)
        out = rows + shares @ state["values"]
        state["token"] = (out[:, -1] @ table.T).argmax(-1, keepdim=True)
        return state["token"].item()

    return step


def counted(work):
    """Four counts in a table of what was right."""
    counts = work.library.zeros(CLASSES, CLASSES, dtype=work.library.int64)
    pairs = np.random.default_rng(0).integers(0, CLASSES, (4, 2)).tolist()

    def step():
        for true, found in pairs:
            counts[true, found] += 1
        return counts.sum().item()

    return step


LOOPS = (
    new_network, fresh_weights, evaluation, epoch_and_evaluation, running_loss, running_sum,
    losses_kept, metrics_in_python, metrics_in_numpy, mixed_losses, weighted_losses,
    batches_accumulated, batches_accumulated_quietly, two_backwards, data_loader, numpy_collate,
    from_numpy, shuffled, frozen, checkpoint, tied_weights, autocast, batch_norm,
    outputs_collected, generated, generated_with_cache, counted,
)  # fmt: skip
