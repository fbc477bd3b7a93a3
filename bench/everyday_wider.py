"""More everyday programs for `bench/everyday.py`: chains, tables, mixtures, small models."""

import numpy as np
from everyday_learning import drawn, network, weight


def pagerank(library, values):
    links = (values.random((50, 50)) < 0.1).astype(np.float32)
    links = library.tensor(links / np.maximum(links.sum(0), 1))
    start = library.ones(50) / 50

    def step():
        rank = start
        for _ in range(30):
            after = 0.85 * (links @ rank) + 0.15 / 50
            after = after / after.sum()
            change = (after - rank).abs().sum()
            rank = after
            if change.item() < 1e-4:
                break
        return rank.max().item()

    return step


def q_learning(library, values):
    q = library.zeros(16, 4)
    state = 0

    def step():
        nonlocal state
        gained = 0.0
        for _ in range(8):
            if values.random() < 0.3:
                action = int(values.integers(0, 4))
            else:
                action = int(q[state].argmax())
            after = max(0, min(15, state + (1, -1, 4, -4)[action]))
            reward = 1.0 if after == 15 else -0.01
            error = reward + 0.9 * q[after].max() - q[state, action]
            q[state, action] += 0.1 * error
            gained += reward
            state = 0 if after == 15 else after
        return gained + q.sum().item()

    return step


def glove(library, values):
    words, contexts = weight(library, values, 30, 8), weight(library, values, 30, 8)
    left, right = weight(library, values, 30), weight(library, values, 30)
    counts = library.tensor(values.integers(1, 50, (30, 30)).astype(np.float32))
    weights = (counts / 50) ** 0.75
    optimizer = library.optim.Adagrad([words, contexts, left, right], lr=0.05)

    def step():
        rows = library.tensor(values.integers(0, 30, 64))
        columns = library.tensor(values.integers(0, 30, 64))
        guess = (words[rows] * contexts[columns]).sum(1) + left[rows] + right[columns]
        error = (guess - library.log(counts[rows, columns])) ** 2
        loss = (weights[rows, columns] * error).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def vae(library, values):
    nn, functional = library.nn, library.nn.functional
    encoder, decoder = network(library, values, 16, 24, 8), network(library, values, 4, 24, 16)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = library.optim.Adam(parameters, lr=1e-3)
    data = drawn(library, values, 64, 16, scale=1.0)
    nn.utils.clip_grad_norm_(parameters, 1.0)

    def step():
        x = data[values.integers(0, 64, 32)]
        mean, spread = encoder(x).chunk(2, dim=-1)
        noise = library.tensor(values.standard_normal((32, 4)).astype(np.float32))
        restored = decoder(mean + noise * (0.5 * spread).exp())
        apart = functional.mse_loss(restored, x)
        divergence = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(1).mean()
        loss = apart + 0.1 * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def language_model(library, values):
    nn, functional = library.nn, library.nn.functional
    table, cell, head = nn.Embedding(20, 12), nn.GRUCell(12, 16), nn.Linear(16, 20)
    parameters = [*table.parameters(), *cell.parameters(), *head.parameters()]
    with library.no_grad():
        for parameter in parameters:
            parameter.copy_(drawn(library, values, *parameter.shape, scale=0.2))
    optimizer = library.optim.SGD(parameters, lr=0.1)
    text = library.tensor(values.integers(0, 20, (4, 400)))

    def step():
        begin = int(values.integers(0, 390))
        batch = text[:, begin : begin + 7]
        state, loss = library.zeros(4, 16), 0.0
        for t in range(6):
            state = cell(table(batch[:, t]), state)
            loss = loss + functional.cross_entropy(head(state), batch[:, t + 1])
        loss = loss / 6
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss.item() + norm.item()

    return step


def gauss_newton(library, values):
    times = library.linspace(0, 4, 30)

    def step():
        truth = values.random(3) + 0.5
        noise = library.tensor(0.01 * values.standard_normal(30).astype(np.float32))
        wanted = truth[0] * library.exp(-truth[1] * times) + truth[2] + noise
        guess = library.tensor([1.0, 1.0, 1.0])
        for _ in range(6):
            a, b, c = guess
            decay = library.exp(-b * times)
            residual = wanted - (a * decay + c)
            jacobian = library.stack([decay, -a * times * decay, library.ones_like(times)], 1)
            normal = jacobian.T @ jacobian + 1e-3 * library.eye(3)
            move = library.linalg.solve(normal, jacobian.T @ residual)
            guess = guess + move
            if move.norm().item() < 1e-3:
                break
        return guess.sum().item()

    return step


def metropolis(library, values):
    place = library.zeros(4)

    def energy(x):
        return 0.5 * (x**2).sum() + (x[:-1] * x[1:]).cos().sum()

    def step():
        nonlocal place
        accepted = 0
        for _ in range(10):
            tried = place + 0.5 * library.tensor(values.standard_normal(4).astype(np.float32))
            change = energy(tried) - energy(place)
            if float(values.random()) < min(1.0, library.exp(-change).item()):
                place, accepted = tried, accepted + 1
        return accepted + place.sum().item()

    return step


def mixture_of_gaussians(library, values):
    data = library.tensor(values.standard_normal((120, 2)).astype(np.float32))
    means, spreads = data[:3].clone(), library.ones(3, 2)
    shares = library.ones(3) / 3

    def step():
        nonlocal means, spreads, shares
        apart = (data[:, None] - means[None]) ** 2 / spreads[None]
        logs = library.log(shares) - 0.5 * (apart + library.log(spreads)[None]).sum(-1)
        total = library.logsumexp(logs, 1, keepdim=True)
        belongs = library.exp(logs - total)
        weight_of = belongs.sum(0)
        means = belongs.T @ data / weight_of[:, None]
        spreads = (belongs.T @ data**2) / weight_of[:, None] - means**2 + 1e-3
        shares = weight_of / 120
        return total.mean().item()

    return step


def hidden_markov(library, values):
    moves = library.softmax(library.tensor(values.standard_normal((5, 5)).astype(np.float32)), 1)
    shown = library.softmax(library.tensor(values.standard_normal((5, 7)).astype(np.float32)), 1)

    def step():
        seen = values.integers(0, 7, 15).tolist()
        alpha, likelihood = library.ones(5) / 5, 0.0
        for symbol in seen:
            alpha = (alpha @ moves) * shown[:, symbol]
            scale = alpha.sum()
            alpha = alpha / scale
            likelihood += library.log(scale).item()
        return likelihood

    return step


def experts(library, values):
    nn, functional = library.nn, library.nn.functional
    gate = nn.Linear(8, 4)
    several = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
    parameters = [*gate.parameters(), *several.parameters()]
    with library.no_grad():
        for parameter in parameters:
            parameter.copy_(drawn(library, values, *parameter.shape, scale=0.3))
    optimizer = library.optim.SGD(parameters, lr=0.05)

    def step():
        x = library.tensor(values.standard_normal((24, 8)).astype(np.float32))
        shares = functional.softmax(gate(x), -1)
        best, chosen = shares.topk(2, -1)
        out = library.zeros_like(x)
        for number, expert in enumerate(several):
            rows, place = library.where(chosen == number)
            if len(rows):
                out = out.index_add(0, rows, expert(x[rows]) * best[rows, place][:, None])
        loss = ((out - x.flip(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def detector(library, values):
    nn, functional = library.nn, library.nn.functional

    def block(inputs, outputs, stride):
        return nn.Sequential(
            nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs), nn.BatchNorm2d(inputs),
            nn.ReLU6(), nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs), nn.ReLU6(),
        )  # fmt: skip

    stages = nn.ModuleList([block(3, 8, 1), block(8, 8, 2), block(8, 12, 2), block(12, 12, 2)])
    heads = nn.ModuleList([nn.Conv2d(width, 6, 1) for width in (8, 12, 12)])
    parameters = [*stages.parameters(), *heads.parameters()]
    with library.no_grad():
        for parameter in parameters:
            if parameter.ndim > 1:
                parameter.copy_(drawn(library, values, *parameter.shape, scale=0.2))
            else:
                parameter.fill_(0.5)
    optimizer = library.optim.SGD(parameters, lr=0.01, momentum=0.9)
    images = library.tensor(values.random((2, 3, 16, 16)).astype(np.float32))
    wanted = library.tensor(values.random((2, 84, 6)).astype(np.float32))

    def step():
        x, found = images, []
        for number, stage in enumerate(stages):
            x = stage(x)
            if number:
                found.append(heads[number - 1](x).permute(0, 2, 3, 1).reshape(2, -1, 6))
        boxes = library.cat(found, 1)
        loss = functional.smooth_l1_loss(boxes[..., :4], wanted[..., :4])
        loss = loss + functional.binary_cross_entropy_with_logits(boxes[..., 4:], wanted[..., 4:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def ising(library, values):
    spins = library.tensor(values.choice([-1.0, 1.0], (16, 16)).astype(np.float32))
    board = np.indices((16, 16)).sum(0) % 2
    masks = [library.tensor(board == which) for which in (0, 1)]

    def step():
        nonlocal spins
        for mask in masks:
            around = sum(library.roll(spins, shift, axis) for shift in (1, -1) for axis in (0, 1))
            chance = library.sigmoid(2 * 0.4 * around)
            luck = library.tensor(values.random((16, 16)).astype(np.float32))
            flipped = library.where(luck < chance, 1.0, -1.0)
            spins = library.where(mask, flipped, spins)
        return abs(spins.mean().item())

    return step


def options_priced(library, values):
    def step():
        price, strike, rate, spread = 100.0 + float(values.random()), 105.0, 0.02, 0.2
        path = library.full((200,), price)
        lowest = path
        for _ in range(12):
            luck = library.tensor(values.standard_normal(200).astype(np.float32))
            path = path * library.exp((rate - 0.5 * spread**2) / 12 + spread * luck / 12**0.5)
            lowest = library.minimum(lowest, path)
        paid = library.clamp(path - strike, min=0) * (lowest > 90).float()
        return (paid.mean() * 2.718 ** (-rate)).item() + paid.std().item()

    return step


def ratings(library, values):
    scores = library.full((12,), 1000.0)

    def step():
        for _ in range(6):
            a, b = values.choice(12, 2, replace=False).tolist()
            expected = 1 / (1 + 10 ** ((scores[b] - scores[a]) / 400))
            won = float(values.random() < expected.item())
            scores[a] += 32 * (won - expected)
            scores[b] -= 32 * (won - expected)
        return scores.max().item() - scores.std().item()

    return step


def advantages(library, values):
    rewards, ends, worth = [library.tensor(values.random((32, 4)).astype("f")) for _ in range(3)]

    def step():
        made, last = library.zeros_like(rewards), 0.0
        for t in range(31, -1, -1):
            after = worth[t + 1] if t < 31 else worth[0]
            change = rewards[t] + 0.99 * after * ends[t] - worth[t]
            made[t] = last = change + 0.94 * ends[t] * last
        return (made + worth).sum().item()

    return step


WIDER = {
    function.__name__: function
    for function in (
        pagerank,
        q_learning,
        glove,
        vae,
        language_model,
        gauss_newton,
        metropolis,
        mixture_of_gaussians,
        hidden_markov,
        experts,
        detector,
        ising,
        options_priced,
        ratings,
        advantages,
    )
}
