"""More loops for `bench/loop_variations.py`: optimizers that users write by hand."""

import math

import numpy as np
from training_loops import with_optimizer


def by_hand(work, update, model=None):
    """Forward, `backward`, an update of the users' own, and the loss."""
    model = model or work.perceptron()
    parameters = list(model.parameters())

    def step():
        loss = work.loss(model)
        loss.backward()
        update(parameters)
        for p in parameters:
            p.grad = None
        return loss.item()

    return step


def data_replaced(work):
    def update(parameters):
        for p in parameters:
            p.data = p.data - 0.01 * p.grad

    return by_hand(work, update)


def data_replaced_no_grad(work):
    def update(parameters):
        with work.library.no_grad():
            for p in parameters:
                p.data = p - 0.01 * p.grad

    return by_hand(work, update)


def data_changed(work):
    def update(parameters):
        for p in parameters:
            p.data -= 0.01 * p.grad

    return by_hand(work, update)


def data_sub_(work):
    def update(parameters):
        for p in parameters:
            p.data.sub_(0.01 * p.grad)

    return by_hand(work, update)


def data_add_(work):
    def update(parameters):
        for p in parameters:
            p.data.add_(p.grad, alpha=-0.01)

    return by_hand(work, update)


def data_copy_(work):
    def update(parameters):
        for p in parameters:
            p.data.copy_(p.data - 0.01 * p.grad)

    return by_hand(work, update)


def in_place(work):
    def update(parameters):
        with work.library.no_grad():
            for p in parameters:
                p -= 0.01 * p.grad

    return by_hand(work, update)


def weights(work):
    """The weights of two layers, as users who write no modules have them."""
    drawn = [work.normal(64, 128) * 0.125, work.normal(128, 10) * 0.1]
    zeros = [work.library.zeros(128), work.library.zeros(10)]
    several = [drawn[0], zeros[0], drawn[1], zeros[1]]
    return [each.detach().requires_grad_() for each in several]


def two_layers(work, several):
    first, second, third, fourth = several
    return work.F.cross_entropy((work.x @ first + second).relu() @ third + fourth, work.y)


def fresh_leaves(work):
    several = weights(work)

    def step():
        nonlocal several
        loss = two_layers(work, several)
        loss.backward()
        several = [(w - 0.01 * w.grad).detach().requires_grad_() for w in several]
        return loss.item()

    return step


def fresh_leaves_no_grad(work):
    several = weights(work)

    def step():
        nonlocal several
        loss = two_layers(work, several)
        gradients = work.library.autograd.grad(loss, several)
        with work.library.no_grad():
            several = [w - 0.01 * g for w, g in zip(several, gradients, strict=True)]
        for w in several:
            w.requires_grad_()
        return loss.item()

    return step


def functional_dict(work):
    """Parameters in a dictionary that each step replaces, gradients of `func.grad`."""
    known = dict(zip("abcd", weights(work), strict=True))
    known = {name: value.detach() for name, value in known.items()}
    grad_and_value = work.library.func.grad_and_value
    gradient = grad_and_value(lambda named: two_layers(work, list(named.values())))

    def step():
        nonlocal known
        gradients, loss = gradient(known)
        known = {name: value - 0.01 * gradients[name] for name, value in known.items()}
        return loss.item()

    return step


def functional_call(work):
    model = work.perceptron()
    known = {name: p.detach() for name, p in model.named_parameters()}
    call = work.library.func.functional_call

    def step():
        nonlocal known
        held = {name: p.requires_grad_() for name, p in known.items()}
        loss = work.F.cross_entropy(call(model, held, (work.x,)), work.y)
        gradients = work.library.autograd.grad(loss, list(held.values()))
        pairs = zip(held.items(), gradients, strict=True)
        known = {name: (p - 0.01 * g).detach() for (name, p), g in pairs}
        return loss.item()

    return step


def momentum_list(work):
    model = work.perceptron()
    speeds = [work.library.zeros_like(p) for p in model.parameters()]

    def update(parameters):
        with work.library.no_grad():
            for at, p in enumerate(parameters):
                speeds[at] = 0.9 * speeds[at] + p.grad
                p -= 0.01 * speeds[at]

    return by_hand(work, update, model)


def adam_lists(work, is_replaced=False):
    """Adam with lists of moments, which are changed in place or replaced."""
    model = work.perceptron()
    first = [work.library.zeros_like(p) for p in model.parameters()]
    second = [work.library.zeros_like(p) for p in model.parameters()]
    count = 0

    def changed(at, g):
        first[at].mul_(0.9).add_(g, alpha=0.1)
        second[at].mul_(0.999).addcmul_(g, g, value=0.001)

    def replaced(at, g):
        first[at] = 0.9 * first[at] + 0.1 * g
        second[at] = 0.999 * second[at] + 0.001 * g * g

    moments = replaced if is_replaced else changed

    def update(parameters):
        nonlocal count
        count += 1
        with work.library.no_grad():
            for at, p in enumerate(parameters):
                moments(at, p.grad)
                m = first[at] / (1 - 0.9**count)
                v = second[at] / (1 - 0.999**count)
                p -= 1e-3 * m / (v.sqrt() + 1e-8)

    return by_hand(work, update, model)


def adam_changed(work):
    return adam_lists(work)


def adam_replaced(work):
    return adam_lists(work, is_replaced=True)


def adam_class(work):
    """An `Optimizer` of the user's own, as papers publish them."""

    class Own(work.optim.Optimizer):
        def __init__(self, params, lr=1e-3):
            super().__init__(params, dict(lr=lr, betas=(0.9, 0.999), eps=1e-8))

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    grad, state = p.grad.data, self.state[p]
                    if len(state) == 0:
                        state["step"] = 0
                        state["m"] = work.library.zeros_like(p.data)
                        state["v"] = work.library.zeros_like(p.data)
                    state["step"] += 1
                    b1, b2 = group["betas"]
                    state["m"].mul_(b1).add_(grad, alpha=1 - b1)
                    state["v"].mul_(b2).addcmul_(grad, grad, value=1 - b2)
                    denom = state["v"].sqrt().add_(group["eps"])
                    c1, c2 = 1 - b1 ** state["step"], 1 - b2 ** state["step"]
                    p.data.addcdiv_(state["m"], denom, value=-group["lr"] * math.sqrt(c2) / c1)

    return with_optimizer(work, Own)


def sgd_class(work):
    class Own(work.optim.Optimizer):
        def __init__(self, params, lr=1e-2):
            super().__init__(params, dict(lr=lr))

        def step(self, closure=None):
            with work.library.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.add_(p.grad, alpha=-group["lr"])

    model = work.perceptron()
    optimizer = Own(model.parameters())

    def step():
        loss = work.loss(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def four_numbers(work):
    """A line through points: an optimizer of four parameters of one number each."""
    several = [work.library.tensor([value]).requires_grad_() for value in (0.1, 0.2, 0.3, 0.4)]
    x = work.normal(64)

    def step():
        a, b, c, d = several
        loss = ((a * x**3 + b * x**2 + c * x + d - x.sin()) ** 2).mean()
        loss.backward()
        with work.library.no_grad():
            for each in several:
                each -= 0.01 * each.grad
                each.grad = None
        return loss.item()

    return step


def four_numbers_of_data(work):
    several = [work.library.tensor(value).requires_grad_() for value in (0.1, 0.2, 0.3, 0.4)]
    x = work.normal(64)

    def step():
        a, b, c, d = several
        loss = ((a * x**3 + b * x**2 + c * x + d - x.sin()) ** 2).mean()
        loss.backward()
        for each in several:
            each.data = each.data - 0.01 * each.grad
            each.grad.zero_()
        return loss.item()

    return step


def average_replaced(work):
    """An average of weights in a dictionary, replaced in each step."""
    model, optimizer = work.pair()
    slow = {name: p.detach().clone() for name, p in model.named_parameters()}

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        with work.library.no_grad():
            for name, p in model.named_parameters():
                slow[name] = 0.99 * slow[name] + 0.01 * p
        return loss.item()

    return step


def average_of_data_replaced(work):
    model, optimizer = work.pair()
    slow = work.perceptron()

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        for p, q in zip(slow.parameters(), model.parameters(), strict=True):
            p.data = 0.99 * p.data + 0.01 * q.data
        return loss.item()

    return step


def clipped_and_replaced(work):
    def update(parameters):
        total = sum((p.grad**2).sum() for p in parameters) ** 0.5
        scale = (1.0 / (total + 1e-6)).clamp(max=1.0)
        for p in parameters:
            p.data = p.data - 0.01 * scale * p.grad

    return by_hand(work, update)


def clipped_by_item(work):
    def update(parameters):
        total = sum((p.grad**2).sum().item() for p in parameters) ** 0.5
        scale = min(1.0, 1.0 / (total + 1e-6))
        for p in parameters:
            p.data.sub_(p.grad * (0.01 * scale))

    return by_hand(work, update)


def accumulated(work):
    """Gradients of four batches, added up by hand."""
    model = work.perceptron()
    parameters = list(model.parameters())
    batches = [(work.x[at : at + 16], work.y[at : at + 16]) for at in range(0, 64, 16)]

    def step():
        total = 0.0
        sums = [work.library.zeros_like(p) for p in parameters]
        for x, y in batches:
            loss = work.F.cross_entropy(model(x), y)
            gradients = work.library.autograd.grad(loss, parameters)
            sums = [s + g for s, g in zip(sums, gradients, strict=True)]
            total += loss.item()
        with work.library.no_grad():
            for p, s in zip(parameters, sums, strict=True):
                p -= 0.01 * s / 4
        return total

    return step


def target_network(work):
    """Q-learning by hand: a target that is copied every ten steps."""
    model, target = work.perceptron(), work.perceptron()
    parameters, count = list(model.parameters()), 0

    def step():
        nonlocal count
        with work.library.no_grad():
            wanted = 0.1 + 0.9 * target(work.x).max(1)[0]
        q = model(work.x).gather(1, work.y.reshape(-1, 1)).squeeze(1)
        loss = ((q - wanted) ** 2).mean()
        gradients = work.library.autograd.grad(loss, parameters)
        for p, g in zip(parameters, gradients, strict=True):
            p.data -= 0.01 * g
        count += 1
        if count % 10 == 0:
            target.load_state_dict(model.state_dict())
        return loss.item()

    return step


def rate_changes(work):
    count = 0

    def update(parameters):
        nonlocal count
        count += 1
        rate = 0.01 / (1 + 0.01 * count)
        for p in parameters:
            p.data = p.data - rate * p.grad

    return by_hand(work, update)


def last_batch(work):
    """Batches of which the last is smaller."""
    model = work.perceptron()
    parameters, count = list(model.parameters()), 0

    def step():
        nonlocal count
        first = count % 4 * 18
        count += 1
        x, y = work.x[first : first + 18], work.y[first : first + 18]
        loss = work.F.cross_entropy(model(x), y)
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data -= 0.01 * p.grad
        return loss.item()

    return step


def rolled(work):
    """Autoformer's way: delays are read on the host, and roll the series."""
    model = work.perceptron()
    numbers = np.random.default_rng(1)

    def update(parameters):
        with work.library.no_grad():
            for p in parameters:
                p -= 0.01 * p.grad

    def step():
        shifts = [int(each) for each in numbers.integers(1, 60, 3)]
        x = sum(work.library.roll(work.x, -each, -1) for each in shifts) / 3
        loss = work.F.cross_entropy(model(x), work.y)
        loss.backward()
        update(list(model.parameters()))
        model.zero_grad()
        return loss.item()

    return step


def rolled_by_values(work):
    """The delays come from what the step computed."""
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        hidden = model[1](model[0](work.x))
        weight, delay = hidden.mean(0).topk(3)
        delay, weight = delay.tolist(), weight.softmax(0)
        mixed = hidden * 0.0
        for at, each in enumerate(delay):
            mixed = mixed + work.library.roll(hidden, -each, -1) * weight[at]
        loss = work.F.cross_entropy(model[4](model[3](model[2](mixed))), work.y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def experts(work):
    """Each expert computes the rows that a router gave it: sizes are others in each step."""
    experts = [work.perceptron() for _ in range(4)]
    parameters = [p for each in experts for p in each.parameters()]
    optimizer = work.optim.SGD(parameters, lr=0.01)
    numbers = np.random.default_rng(1)

    def step():
        optimizer.zero_grad()
        chosen = work.library.tensor(numbers.integers(0, 4, 64))
        out = work.library.zeros(64, 10)
        for at, expert in enumerate(experts):
            rows = (chosen == at).nonzero().squeeze(1)
            out = out.index_add(0, rows, expert(work.x[rows]))
        loss = work.F.cross_entropy(out, work.y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def masked_loop(work):
    """A loss that loops over classes with masks (`x[mask]`)."""
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        out = model(work.x)
        loss = 0.0
        for at in range(4):
            mask = work.y == at
            if mask.any():
                loss = loss + ((out[mask] - out[mask].mean(0)) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def graph_loop(work):
    """A graph network that visits nodes and neighbours in Python."""
    layer = work.loaded(work.nn.Sequential(work.nn.Linear(128, 64), work.nn.Linear(64, 64)))
    optimizer = work.adam(layer)
    edges = [[(at * 3 + k) % 16 for k in range(3)] for at in range(16)]

    def step():
        optimizer.zero_grad()
        rows = []
        for at, near in enumerate(edges):
            message = work.library.stack([work.x[each] for each in near]).mean(0)
            rows.append(layer[0](work.library.cat([work.x[at], message])).relu())
        loss = work.F.cross_entropy(layer[1](work.library.stack(rows)), work.y[:16])
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def farthest_points(work):
    """PointNet++'s sampling: a loop over points, each found from the last."""
    model, optimizer = work.pair()
    points = work.normal(4, 48, 3)

    def sample(count):
        library = work.library
        found = library.zeros(4, count, dtype=library.long)
        distance = library.ones(4, 48) * 1e10
        farthest, rows = library.zeros(4, dtype=library.long), library.arange(4)
        for at in range(count):
            found[:, at] = farthest
            centroid = points[rows, farthest, :].view(4, 1, 3)
            dist = ((points - centroid) ** 2).sum(-1)
            mask = dist < distance
            distance[mask] = dist[mask]
            farthest = distance.max(-1)[1]
        return found

    def step():
        optimizer.zero_grad()
        found = sample(8)
        picked = points[work.library.arange(4).view(4, 1), found]
        loss = work.loss(model) + (picked**2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def small(work, update, **defaults):
    """An `Optimizer` of a user's class over four small parameters, that has `update` for one."""

    class Own(work.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, dict(lr=1e-2, eps=1e-8, weight_decay=1e-2, **defaults))

        def step(self, closure=None):
            loss = None if closure is None else closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        state = self.state[p]
                        state["step"] = state.get("step", 0) + 1
                        update(work.library, group, state, p)
            return loss

    nn = work.nn
    model = work.loaded(nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)))
    return with_optimizer(work, Own, model)


def lion(work):
    def update(library, group, state, p):
        if "m" not in state:
            state["m"] = library.zeros_like(p)
        p.data.mul_(1 - group["lr"] * group["weight_decay"])
        grad, m = p.grad, state["m"]
        p.data.add_((m * 0.9 + grad * 0.1).sign_(), alpha=-0.1 * group["lr"])
        m.mul_(0.99).add_(grad, alpha=0.01)

    return small(work, update)


def lamb(work):
    def update(library, group, state, p):
        if "m" not in state:
            state["m"], state["v"] = library.zeros_like(p.data), library.zeros_like(p.data)
        grad, m, v = p.grad.data, state["m"], state["v"]
        m.mul_(0.9).add_(grad, alpha=0.1)
        v.mul_(0.999).addcmul_(grad, grad, value=0.001)
        moved = m / v.sqrt().add(group["eps"])
        moved.add_(p.data, alpha=group["weight_decay"])
        norm, other = p.data.pow(2).sum().sqrt().clamp(0, 10), moved.pow(2).sum().sqrt()
        trust = 1 if norm == 0 or other == 0 else norm / other
        state["trust"] = trust
        p.data.add_(-group["lr"] * trust * moved)

    return small(work, update)


def lars(work):
    def update(library, group, state, p):
        norm, other = library.norm(p.data), library.norm(p.grad.data)
        rate = 0.1 * norm / (other + group["weight_decay"] * norm + 1e-6)
        if "m" not in state:
            state["m"] = library.zeros_like(p.data)
        state["m"].mul_(0.9).add_(p.grad.data + group["weight_decay"] * p.data)
        p.data.add_(-rate * group["lr"] * state["m"])

    return small(work, update)


def adabelief(work):
    def update(library, group, state, p):
        if "m" not in state:
            state["m"], state["s"] = library.zeros_like(p.data), library.zeros_like(p.data)
        grad, m, s, count = p.grad.data, state["m"], state["s"], state["step"]
        grad = grad.add(p.data, alpha=group["weight_decay"])
        m.mul_(0.9).add_(grad, alpha=0.1)
        residual = grad - m
        s.mul_(0.999).addcmul_(residual, residual, value=0.001)
        denominator = (s.add_(group["eps"]).sqrt() / math.sqrt(1 - 0.999**count)).add_(1e-8)
        p.data.addcdiv_(m, denominator, value=-group["lr"] / (1 - 0.9**count))

    return small(work, update)


def amsgrad(work):
    def update(library, group, state, p):
        if "m" not in state:
            state["m"], state["v"] = library.zeros_like(p.data), library.zeros_like(p.data)
            state["most"] = library.zeros_like(p.data)
        grad, m, v, count = p.grad.data, state["m"], state["v"], state["step"]
        m.mul_(0.9).add_(grad, alpha=0.1)
        v.mul_(0.999).addcmul_(grad, grad, value=0.001)
        library.max(state["most"], v, out=state["most"])
        denominator = state["most"].sqrt().add_(group["eps"])
        rate = group["lr"] * math.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        p.data.addcdiv_(m, denominator, value=-rate)

    return small(work, update)


def lookahead(work):
    def update(library, group, state, p):
        if "slow" not in state:
            state["slow"] = library.empty_like(p.data).copy_(p.data)
        p.data.add_(p.grad.data, alpha=-group["lr"])
        if state["step"] % 6 == 0:
            state["slow"].add_(p.data - state["slow"], alpha=0.5)
            p.data.copy_(state["slow"])

    return small(work, update)


def rprop(work):
    def update(library, group, state, p):
        grad = p.grad.data
        if "size" not in state:
            state["size"] = library.full_like(grad, group["lr"])
            state["last"] = library.zeros_like(grad)
        sign = grad.mul(state["last"]).sign()
        sign[sign.gt(0)] = 1.2
        sign[sign.lt(0)] = 0.5
        sign[sign.eq(0)] = 1
        state["size"].mul_(sign).clamp_(1e-6, 0.05)
        grad = grad.clone()
        grad[sign.eq(0.5)] = 0
        p.data.addcmul_(grad.sign(), state["size"], value=-1)
        state["last"].copy_(grad)

    return small(work, update)


def sharpness_aware(work):
    """SAM: two passes a step, weights moved up and back."""
    model = work.perceptron()
    parameters = list(model.parameters())

    def step():
        loss = work.loss(model)
        loss.backward()
        norm = work.library.stack([p.grad.norm() for p in parameters]).norm()
        moved = []
        with work.library.no_grad():
            for p in parameters:
                e = p.grad * (0.05 / (norm + 1e-12))
                p.add_(e)
                moved.append(e)
        model.zero_grad()
        work.loss(model).backward()
        with work.library.no_grad():
            for p, e in zip(parameters, moved, strict=True):
                p.sub_(e)
                p.sub_(p.grad, alpha=0.01)
        model.zero_grad()
        return loss.item()

    return step


def center_loss(work):
    """Centers of classes, which are few numbers, moved by hand."""
    model, optimizer = work.pair()
    centers = work.normal(10, 10)

    def step():
        nonlocal centers
        optimizer.zero_grad()
        out = model(work.x)
        apart = out - centers[work.y]
        loss = work.F.cross_entropy(out, work.y) + 0.01 * (apart**2).sum(1).mean()
        loss.backward()
        optimizer.step()
        with work.library.no_grad():
            hot = work.F.one_hot(work.y, 10).float()
            mean = hot.T @ out / (hot.sum(0)[:, None] + 1)
            centers = 0.9 * centers + 0.1 * mean
        return loss.item()

    return step


LOOPS = (
    lion,
    lamb,
    lars,
    adabelief,
    amsgrad,
    lookahead,
    rprop,
    sharpness_aware,
    center_loss,
    data_replaced,
    data_replaced_no_grad,
    data_changed,
    data_sub_,
    data_add_,
    data_copy_,
    in_place,
    fresh_leaves,
    fresh_leaves_no_grad,
    functional_dict,
    functional_call,
    momentum_list,
    adam_changed,
    adam_replaced,
    adam_class,
    sgd_class,
    four_numbers,
    four_numbers_of_data,
    average_replaced,
    average_of_data_replaced,
    clipped_and_replaced,
    clipped_by_item,
    accumulated,
    target_network,
    rate_changes,
    last_batch,
    rolled,
    rolled_by_values,
    experts,
    masked_loop,
    graph_loop,
    farthest_points,
)
