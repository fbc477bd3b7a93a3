"""Training loops for `bench/loop_variations.py` in which networks run many times before a step:
derivatives of derivatives, steps in a world, sequences, sampling.
"""

import numpy as np
from training_loops import CLASSES, EXAMPLES, WIDTH


def gradient_penalty(work):
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        x = work.x.clone().requires_grad_(True)
        out = model(x)
        (slope,) = work.library.autograd.grad(out.sum(), x, create_graph=True)
        loss = work.F.cross_entropy(out, work.y) + (slope.norm(2, dim=1) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def adversarial(work):
    """A step on inputs that were moved along their gradient's sign."""
    model, optimizer = work.pair()

    def step():
        x = work.x.clone().detach().requires_grad_(True)
        work.F.cross_entropy(model(x), work.y).backward()
        moved = (x + 0.01 * x.grad.sign()).detach()
        optimizer.zero_grad()
        loss = work.F.cross_entropy(model(moved), work.y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def curvature(work):
    """The product of a Hessian and a vector."""
    model = work.perceptron()
    parameters = list(model.parameters())
    vector = [work.normal(*p.shape) for p in parameters]

    def step():
        loss = work.loss(model)
        gradients = work.library.autograd.grad(loss, parameters, create_graph=True)
        along = sum((g * v).sum() for g, v in zip(gradients, vector, strict=True))
        product = work.library.autograd.grad(along, parameters)
        return loss.item() + sum(each.pow(2).sum() for each in product).item()

    return step


def adapted(work):
    """Two tasks, a step of adaptation each, and the gradient through it."""
    model, optimizer = work.pair()
    names = [name for name, _ in model.named_parameters()]
    tasks = [work.normal(EXAMPLES, WIDTH) for _ in range(2)]
    call = work.library.func.functional_call

    def step():
        optimizer.zero_grad()
        total = 0.0
        for x in tasks:
            loss = work.F.cross_entropy(model(x), work.y)
            gradients = work.library.autograd.grad(
                loss, list(model.parameters()), create_graph=True
            )
            moved = [p - 0.01 * g for p, g in zip(model.parameters(), gradients, strict=True)]
            out = call(model, dict(zip(names, moved, strict=True)), (work.x,))
            total = total + work.F.cross_entropy(out, work.y)
        total.backward()
        optimizer.step()
        return total.item()

    return step


def hooks(work):
    """Activations are collected by hooks on layers."""
    model, optimizer = work.pair()
    seen = {}
    for number, layer in enumerate(model):
        layer.register_forward_hook(lambda m, i, out, n=number: seen.update({n: out.detach()}))

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return loss.item() + seen[1].mean().item()

    return step


def gradient_hooks(work):
    """Gradients are scaled by hooks on parameters."""
    model, optimizer = work.pair()
    for p in model.parameters():
        p.register_hook(lambda gradient: gradient * 0.5)

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def policy(work):
    """Eight steps in a world, the network asked at each, then one of learning."""
    model = work.perceptron(2)
    optimizer = work.adam(model)
    worlds = work.normal(8, 1, WIDTH)

    def step():
        chosen = []
        for state in worlds:
            with work.library.no_grad():
                chances = work.F.softmax(model(state), dim=-1)
            chosen.append(int(chances.argmax().item()))
        states, actions = worlds.squeeze(1), work.library.tensor(chosen)
        optimizer.zero_grad()
        logits = model(states).log_softmax(-1)
        loss = -logits.gather(1, actions.unsqueeze(1)).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def policy_with_gradients(work):
    """Eight steps whose log-probabilities are kept, and stacked for the loss."""
    model = work.perceptron(2)
    optimizer = work.adam(model)
    worlds = work.normal(8, 1, WIDTH)

    def step():
        kept, rewards = [], []
        for state in worlds:
            chances = model(state).log_softmax(-1)[0]
            action = int(chances.argmax().item())
            kept.append(chances[action])
            rewards.append(float(action) - 0.3)
        optimizer.zero_grad()
        loss = -(work.library.stack(kept) * work.library.tensor(rewards)).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def actor_critic(work):
    """Two networks, advantages of the one for the other."""
    actor, critic = work.perceptron(4), work.perceptron(1)
    first, second = work.adam(actor), work.adam(critic)
    actions, rewards = work.y % 4, work.normal(EXAMPLES)

    def step():
        value = critic(work.x).squeeze(-1)
        worth = (rewards - value).detach()
        chances = actor(work.x).log_softmax(-1).gather(1, actions[:, None]).squeeze(1)
        policy_loss, value_loss = -(chances * worth).mean(), work.F.mse_loss(value, rewards)
        first.zero_grad()
        policy_loss.backward()
        first.step()
        second.zero_grad()
        value_loss.backward()
        second.step()
        return policy_loss.item() + value_loss.item()

    return step


def sampling(work):
    """Tokens are chosen one by one of a small recurrent network, beside no training."""
    nn = work.nn
    table, cell = work.loaded(nn.Embedding(CLASSES, 32)), work.loaded(nn.GRUCell(32, 32))
    head = work.loaded(nn.Linear(32, CLASSES))

    def step():
        with work.library.no_grad():
            token, state = work.y[:1], work.library.zeros(1, 32)
            found = []
            for _ in range(8):
                state = cell(table(token), state)
                token = head(state).argmax(-1)
                found.append(token.item())
        return float(sum(found))

    return step


def beam_search(work):
    """The best four of what a small recurrent network may say, read in two pieces."""
    nn, library = work.nn, work.library
    table, cell = work.loaded(nn.Embedding(CLASSES, 32)), work.loaded(nn.GRUCell(32, 32))
    head = work.loaded(nn.Linear(32, CLASSES))

    def step():
        with library.no_grad():
            state, score = work.normal(1, 32), library.zeros(1)
            said = library.zeros(1, 1, dtype=library.int64)
            for _ in range(6):
                state = cell(table(said[:, -1]), state)
                known = score[:, None] + work.F.log_softmax(head(state), -1)
                score, place = known.view(-1).topk(4)
                before = place // CLASSES
                said = library.cat([said[before], (place % CLASSES)[:, None]], 1)
                state = state[before]
        return score[0].item() + sum(said[0].tolist())

    return step


def ragged(work, is_packed):
    """Sentences of other lengths in each batch."""
    nn, rnn = work.nn, work.nn.utils.rnn
    parts = nn.ModuleList([nn.Embedding(30, 16), nn.GRU(16, 16, batch_first=True)])
    table, network = work.loaded(parts)
    head = work.loaded(nn.Linear(16, CLASSES))
    optimizer = work.adam(nn.ModuleList([parts, head]))

    def step():
        lengths = sorted(work.values.integers(2, 12, 6).tolist(), reverse=True)
        words = [work.library.tensor(work.values.integers(1, 30, each)) for each in lengths]
        padded = rnn.pad_sequence(words, batch_first=True)
        out = table(padded)
        if is_packed:
            out = network(rnn.pack_padded_sequence(out, lengths, batch_first=True))[1][-1]
        else:
            mask = (padded != 0).float()[..., None]
            out = (out * mask).sum(1) / mask.sum(1)
        loss = work.F.cross_entropy(head(out), work.y[:6])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def packed(work):
    return ragged(work, True)


def padded(work):
    return ragged(work, False)


def teacher_forcing(work):
    """A decoder that reads what it should have said, or what it said."""
    nn = work.nn
    parts = nn.ModuleList([nn.Embedding(CLASSES, 32), nn.GRUCell(32, 32), nn.Linear(32, CLASSES)])
    table, cell, head = work.loaded(parts)
    optimizer = work.adam(parts)
    wanted = work.y.view(8, 8)

    def step():
        state, token, loss = work.library.zeros(8, 32), wanted[0], 0.0
        for place in range(1, 8):
            state = cell(table(token), state)
            out = head(state)
            loss = loss + work.F.cross_entropy(out, wanted[place])
            token = wanted[place] if place % 2 else out.argmax(-1).detach()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def truncated(work):
    """A recurrent network over pieces of a sequence, its state cut off between them."""
    nn = work.nn
    parts = nn.ModuleList([nn.RNN(16, 32, batch_first=True), nn.Linear(32, CLASSES)])
    network, head = work.loaded(parts)
    optimizer = work.adam(parts)
    pieces = work.x.view(16, 4, 4, 16)

    def step():
        state, total = None, 0.0
        for place in range(4):
            out, state = network(pieces[:, place], state)
            loss = work.F.cross_entropy(head(out[:, -1]), work.y[:16])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state = state.detach()
            total += loss.item()
        return total

    return step


def two_networks(work):
    """A generator and a critic in turns, the critic's weights clamped."""
    makes, judges = work.perceptron(WIDTH), work.perceptron(1)
    first = work.optim.RMSprop(makes.parameters(), lr=1e-4)
    second = work.optim.RMSprop(judges.parameters(), lr=1e-4)
    noise = work.normal(EXAMPLES, WIDTH)

    def step():
        second.zero_grad()
        wrong = judges(makes(noise).detach()).mean() - judges(work.x).mean()
        wrong.backward()
        second.step()
        for p in judges.parameters():
            p.data.clamp_(-0.1, 0.1)
        first.zero_grad()
        loss = -judges(makes(noise)).mean()
        loss.backward()
        first.step()
        return wrong.item() + loss.item()

    return step


def distilled(work):
    """A network learns from another, whose answers are computed without gradients."""
    teacher, student = work.perceptron(), work.perceptron()
    optimizer = work.adam(student)
    teacher.eval()

    def step():
        with work.library.no_grad():
            wanted = work.F.softmax(teacher(work.x) / 2.0, dim=1)
        optimizer.zero_grad()
        out = student(work.x)
        soft = work.F.kl_div(work.F.log_softmax(out / 2.0, dim=1), wanted, reduction="batchmean")
        loss = 0.5 * work.F.cross_entropy(out, work.y) + 2.0 * soft
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def inference(work):
    """One example at a time through a network that was trained."""
    model = work.perceptron().eval()
    rows = list(work.x[:8])

    def step():
        found = 0
        with work.library.no_grad():
            for row in rows:
                found += model(row[None]).argmax(1).item()
        return float(found)

    return step


def line_search(work):
    """Descent that tries rates until the loss falls enough; weights are put back by hand."""
    model, no_grad = work.perceptron(), work.library.no_grad
    parameters, rate = list(model.parameters()), 1.0

    def step():
        nonlocal rate
        loss = work.loss(model)
        gradients = work.library.autograd.grad(loss, parameters)
        old = [p.detach().clone() for p in parameters]
        before, slope = loss.item(), sum((g * g).sum() for g in gradients).item()
        rate = min(2.0 * rate, 1.0)
        while True:
            with no_grad():
                for p, value, g in zip(parameters, old, gradients, strict=True):
                    p.copy_(value - rate * g)
                after = work.loss(model).item()
            if after <= before - 0.5 * rate * slope or rate < 1e-3:
                return after
            rate *= 0.5

    return step


def gradient_surgery(work):
    """Two losses: where their gradients disagree, one is projected away from the other."""
    model, target = work.perceptron(CLASSES + 1), work.normal(EXAMPLES)
    optimizer, parameters = work.adam(model), list(model.parameters())

    def step():
        out, grad = model(work.x), work.library.autograd.grad
        first = work.F.cross_entropy(out[:, :CLASSES], work.y)
        second = work.F.mse_loss(out[:, CLASSES], target)
        ones, others = grad(first, parameters, retain_graph=True), grad(second, parameters)
        dot = sum((a * b).sum() for a, b in zip(ones, others, strict=True))
        share = 0.0
        if dot.item() < 0:
            share = dot / sum((b * b).sum() for b in others)
        for p, a, b in zip(parameters, ones, others, strict=True):
            p.grad = a + b - share * b
        optimizer.step()
        return first.item() + second.item()

    return step


def replay_buffer(work):
    """Q-learning from a list that grows; batches of it are made in NumPy."""
    model, target = work.perceptron(3), work.perceptron(3)
    optimizer, draw = work.adam(model), np.random.default_rng(5)
    state, buffer = work.inputs[0], []

    def step():
        nonlocal state
        with work.library.no_grad():
            action = int(model(work.library.from_numpy(state)[None]).argmax(1))
        following = (0.9 * state + 0.1 * (action - 1)).astype(np.float32)
        buffer.append((state, action, -float(np.square(following).mean()), following))
        state = following
        picked = [buffer[at] for at in draw.integers(0, len(buffer), min(len(buffer), 16))]
        before, actions, rewards, after = (np.array(each) for each in zip(*picked, strict=True))
        with work.library.no_grad():
            future = target(work.library.from_numpy(after)).max(1).values
            wanted = work.library.from_numpy(rewards.astype(np.float32)) + 0.9 * future
        found = model(work.library.from_numpy(before))
        found = found.gather(1, work.library.from_numpy(actions)[:, None]).squeeze(1)
        loss = work.F.smooth_l1_loss(found, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


LOOPS = (
    gradient_penalty, adversarial, curvature, adapted, hooks, gradient_hooks, policy,
    policy_with_gradients, actor_critic, sampling, teacher_forcing, truncated, two_networks,
    distilled, inference, line_search, gradient_surgery, replay_buffer, beam_search, packed, padded,
)  # fmt: skip
