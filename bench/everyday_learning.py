"""Everyday programs that learn, for `bench/everyday.py`."""

import copy
import itertools
import math

import numpy as np


def drawn(library, values, *shape, scale=None):
    scale = shape[0] ** -0.5 if scale is None else scale
    return library.tensor((scale * values.standard_normal(shape)).astype(np.float32))


def weight(library, values, *shape, scale=None):
    return drawn(library, values, *shape, scale=scale).requires_grad_()


def network(library, values, *widths):
    nn, layers = library.nn, []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    with library.no_grad():
        for parameter in model.parameters():
            parameter.copy_(drawn(library, values, *parameter.shape, scale=0.2))
    return model


def logistic_regression(library, values):
    x = drawn(library, values, 200, 5, scale=1.0)
    y = (x[:, 0] - x[:, 1] > 0).float()
    w, b = weight(library, values, 5), library.zeros(1, requires_grad=True)

    def step():
        order = library.tensor(values.permutation(200))
        total = 0.0
        for begin in range(0, 200, 50):
            rows = order[begin : begin + 50]
            p = library.sigmoid(x[rows] @ w + b)
            loss = -(y[rows] * library.log(p) + (1 - y[rows]) * library.log(1 - p)).mean()
            loss.backward()
            with library.no_grad():
                w.sub_(0.1 * w.grad)
                b.sub_(0.1 * b.grad)
            w.grad = b.grad = None
            total += loss.item()
        return total

    return step


def word2vec(library, values):
    nn, functional = library.nn, library.nn.functional
    inner, outer = nn.Embedding(100, 16), nn.Embedding(100, 16)
    with library.no_grad():
        inner.weight.copy_(drawn(library, values, 100, 16, scale=0.1))
        outer.weight.copy_(drawn(library, values, 100, 16, scale=0.1))
    optimizer = library.optim.SGD([*inner.parameters(), *outer.parameters()], lr=0.1)

    def step():
        center = library.tensor(values.integers(0, 100, 8))
        context = library.tensor(values.integers(0, 100, 8))
        negative = library.tensor(values.integers(0, 100, (8, 5)))
        optimizer.zero_grad()
        v = inner(center)
        good = functional.logsigmoid((v * outer(context)).sum(1))
        bad = functional.logsigmoid(-library.bmm(outer(negative), v.unsqueeze(2)).squeeze(2)).sum(1)
        loss = -(good + bad).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def early_stopping(library, values):
    model = network(library, values, 8, 16, 1)
    optimizer = library.optim.Adam(model.parameters(), lr=1e-2)
    x, held = drawn(library, values, 64, 8, scale=1.0), drawn(library, values, 32, 8, scale=1.0)
    y, held_y = x[:, :1] * x[:, 1:2], held[:, :1] * held[:, 1:2]
    best, patience, kept = math.inf, 0, None
    loss_of = library.nn.MSELoss()

    def step():
        nonlocal best, patience, kept
        model.train()
        for begin in range(0, 64, 16):
            optimizer.zero_grad()
            loss = loss_of(model(x[begin : begin + 16]), y[begin : begin + 16])
            loss.backward()
            optimizer.step()
        model.eval()
        with library.no_grad():
            reached = loss_of(model(held), held_y).item()
        if reached < best - 1e-4:
            best, patience = reached, 0
            kept = copy.deepcopy(model.state_dict())
        else:
            patience += 1
        if patience > 10:
            model.load_state_dict(kept)
            patience = 0
        return reached

    return step


def bag_of_words(library, values):
    nn, functional = library.nn, library.nn.functional
    bag, head = nn.Embedding(60, 8), nn.Linear(8, 3)
    with library.no_grad():
        for parameter in (*bag.parameters(), *head.parameters()):
            parameter.copy_(drawn(library, values, *parameter.shape, scale=0.3))
    optimizer = library.optim.Adam([*bag.parameters(), *head.parameters()], lr=1e-2)

    def step():
        lengths = values.integers(2, 9, 6)
        texts = [values.integers(0, 60, int(length)) for length in lengths]
        labels = library.tensor([int(text[0]) % 3 for text in texts])
        pooled = library.stack([bag(library.tensor(text)).mean(0) for text in texts])
        loss = functional.cross_entropy(head(pooled), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def cart_pole(state, push):
    x, v, angle, spin = state
    force = 10.0 if push else -10.0
    sine, cosine = math.sin(angle), math.cos(angle)
    pulled = (force + 0.05 * spin * spin * sine) / 1.1
    turned = (9.8 * sine - cosine * pulled) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
    moved = pulled - 0.05 * turned * cosine / 1.1
    return [x + 0.02 * v, v + 0.02 * moved, angle + 0.02 * spin, spin + 0.02 * turned]


def dqn(library, values):
    functional = library.nn.functional
    online = network(library, values, 4, 16, 2)
    target = copy.deepcopy(online)
    optimizer = library.optim.Adam(online.parameters(), lr=1e-3)
    memory, state, taken = [], [0.0, 0.0, 0.05, 0.0], 0

    def act():
        nonlocal state
        with library.no_grad():
            action = online(library.tensor(state)).argmax().item()
        if values.random() < 0.2:
            action = int(values.integers(0, 2))
        after = cart_pole(state, action)
        done = abs(after[2]) > 0.2
        memory.append((state, action, 1.0, after, float(done)))
        state = [0.0, 0.0, 0.05, 0.0] if done else after

    def step():
        nonlocal taken
        for _ in range(2 if memory else 20):
            act()
        picked = [memory[i] for i in values.integers(0, len(memory), 16)]
        states, actions, rewards, afters, ends = zip(*picked, strict=True)
        states, afters = library.tensor(states), library.tensor(afters)
        actions = library.tensor(actions)
        rewards, ends = library.tensor(rewards), library.tensor(ends)
        q = online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        with library.no_grad():
            goal = rewards + 0.99 * (1 - ends) * target(afters).max(1)[0]
        loss = functional.smooth_l1_loss(q, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        taken += 1
        if taken % 10 == 0:
            target.load_state_dict(online.state_dict())
        return loss.item()

    return step


def reinforce(library, values):
    policy = network(library, values, 4, 16, 2)
    optimizer = library.optim.Adam(policy.parameters(), lr=1e-3)

    def step():
        state, logs, rewards = [0.0, 0.0, 0.05, 0.0], [], []
        for _ in range(12):
            chances = library.softmax(policy(library.tensor(state)), -1)
            action = int(values.random() > chances[0].item())
            logs.append(library.log(chances[action]))
            state = cart_pole(state, action)
            rewards.append(1.0)
        returns, running = [], 0.0
        for reward in reversed(rewards):
            running = reward + 0.99 * running
            returns.insert(0, running)
        returns = library.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(library.stack(logs) * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def char_rnn(library, values):
    text = values.integers(0, 20, 400)
    wx, wh = weight(library, values, 20, 24), weight(library, values, 24, 24)
    wy, b = weight(library, values, 24, 20), library.zeros(24, requires_grad=True)
    weights = [wx, wh, wy, b]
    functional = library.nn.functional
    optimizer = library.optim.Adam(weights, lr=1e-3)

    def step():
        begin = int(values.integers(0, 390))
        h, loss = library.zeros(24), 0.0
        for t in range(8):
            h = library.tanh(wx[text[begin + t]] + h @ wh + b)
            target = library.tensor([int(text[begin + t + 1])])
            loss = loss + functional.cross_entropy((h @ wy).unsqueeze(0), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        h, token, written = library.zeros(24), 0, 0
        with library.no_grad():
            for _ in range(6):
                h = library.tanh(wx[token] + h @ wh + b)
                chances = library.softmax(h @ wy, -1).cumsum(0).tolist()
                token = min(int(np.searchsorted(chances, values.random())), 19)
                written += token
        return loss.item()

    return step


def matrix_factorisation(library, values):
    users, items = (
        weight(library, values, 30, 6, scale=0.3),
        weight(library, values, 40, 6, scale=0.3),
    )
    ratings = values.integers(1, 6, (30, 40)).astype(np.float32)

    def step():
        u, i = values.integers(0, 30, 20), values.integers(0, 40, 20)
        rating = library.tensor(ratings[u, i])
        guess = (users[u.tolist()] * items[i.tolist()]).sum(1)
        loss = ((guess - rating) ** 2).mean() + 0.01 * ((users**2).sum() + (items**2).sum())
        loss.backward()
        with library.no_grad():
            for table in (users, items):
                table -= 0.05 * table.grad
                table.grad.zero_()
        return loss.item()

    return step


def gram_style(library, values):
    functional = library.nn.functional
    filters = [
        drawn(library, values, 8, 3, 3, 3, scale=0.3),
        drawn(library, values, 8, 8, 3, 3, scale=0.2),
    ]
    image = library.tensor(values.random((1, 3, 16, 16)).astype(np.float32)).requires_grad_()
    style = library.tensor(values.random((1, 3, 16, 16)).astype(np.float32))

    def grams(picture):
        made = []
        for kernel in filters:
            picture = functional.relu(functional.conv2d(picture, kernel, padding=1))
            flat = picture.reshape(8, -1)
            made.append(flat @ flat.T / flat.numel())
        return made

    wanted = [gram.detach() for gram in grams(style)]
    optimizer = library.optim.Adam([image], lr=0.02)

    def step():
        optimizer.zero_grad()
        loss = sum(((a - b) ** 2).sum() for a, b in zip(grams(image), wanted, strict=True))
        loss.backward()
        optimizer.step()
        with library.no_grad():
            image.clamp_(0, 1)
        return loss.item()

    return step


def mixup(library, values):
    functional = library.nn.functional
    model = network(library, values, 12, 24, 4)
    optimizer = library.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, y = drawn(library, values, 128, 12, scale=1.0), library.tensor(values.integers(0, 4, 128))

    def step():
        rows = library.tensor(values.integers(0, 128, 32))
        other = library.tensor(values.permutation(32))
        lam = float(values.beta(0.4, 0.4))
        inputs, labels = x[rows], y[rows]
        mixed = lam * inputs + (1 - lam) * inputs[other]
        out = model(mixed)
        loss = lam * functional.cross_entropy(out, labels)
        loss = loss + (1 - lam) * functional.cross_entropy(out, labels[other])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def cutmix(library, values):
    nn, functional = library.nn, library.nn.functional
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))
    with library.no_grad():
        for parameter in model.parameters():
            parameter.copy_(drawn(library, values, *parameter.shape, scale=0.1))
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
    x, y = drawn(library, values, 16, 1, 8, 8, scale=1.0), library.tensor(values.integers(0, 3, 16))

    def step():
        other = library.tensor(values.permutation(16))
        top, left = (int(place) for place in values.integers(0, 5, 2))
        size = int(values.integers(2, 4))
        images = x.clone()
        box = (slice(None), slice(None), slice(top, top + size), slice(left, left + size))
        images[box] = x[other][box]
        share = 1 - size * size / 64
        out = model(images)
        loss = share * functional.cross_entropy(out, y)
        loss = loss + (1 - share) * functional.cross_entropy(out, y[other])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def mean_teacher(library, values):
    functional = library.nn.functional
    student = network(library, values, 10, 20, 4)
    teacher = copy.deepcopy(student)
    for parameter in teacher.parameters():
        parameter.requires_grad_(False)
    optimizer = library.optim.Adam(student.parameters(), lr=1e-2)
    taken = 0

    def step():
        nonlocal taken
        x = drawn(library, values, 16, 10, scale=1.0)
        with library.no_grad():
            goal = functional.softmax(teacher(x), -1)
        loss = functional.mse_loss(functional.softmax(student(x), -1), goal)
        loss = loss + functional.cross_entropy(student(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        taken += 1
        decay = min(0.99, 1 - 1 / (taken + 1))
        with library.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.mul_(decay).add_(fast, alpha=1 - decay)
        return loss.item()

    return step


def gradient_check(library, values):
    w = drawn(library, values, 4, 3).double().requires_grad_()
    x = drawn(library, values, 5, 4, scale=1.0).double()

    def function():
        return library.tanh(x @ w).pow(2).sum()

    def step():
        w.grad = None
        function().backward()
        worst = 0.0
        with library.no_grad():
            for i in range(2):
                for j in range(3):
                    kept = w[i, j].item()
                    w[i, j] = kept + 1e-5
                    above = function().item()
                    w[i, j] = kept - 1e-5
                    below = function().item()
                    w[i, j] = kept
                    found = (above - below) / 2e-5
                    worst = max(worst, abs(found - w.grad[i, j].item()))
            w.sub_(0.01 * w.grad)
        return float(worst < 1e-6) + w.sum().item()

    return step


def hessian_vector(library, values):
    w = weight(library, values, 6, 6)
    x, y = drawn(library, values, 20, 6, scale=1.0), drawn(library, values, 20, 6, scale=1.0)
    vector = drawn(library, values, 6, 6, scale=1.0)

    def step():
        nonlocal vector
        loss = ((library.tanh(x @ w) - y) ** 2).mean()
        (gradient,) = library.autograd.grad(loss, w, create_graph=True)
        (product,) = library.autograd.grad((gradient * vector).sum(), w)
        top = (product * vector).sum() / (vector * vector).sum()
        vector = product / product.norm()
        return top.item()

    return step


LEARNING = {
    function.__name__: function
    for function in (
        logistic_regression,
        word2vec,
        early_stopping,
        bag_of_words,
        dqn,
        reinforce,
        char_rnn,
        matrix_factorisation,
        gram_style,
        mixup,
        cutmix,
        mean_teacher,
        gradient_check,
        hessian_vector,
    )
}
