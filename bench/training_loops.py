"""Training loops for `bench/loop_variations.py`: the ways people write them, for either library.

A function gets a `Work`, builds what its loop needs, and returns a function that takes one step and
gives a number. The networks are perceptrons of three layers with 64 examples: there is little to
compute, so that what a loop costs beside its arithmetic is seen.
"""

import copy

import numpy as np

EXAMPLES, WIDTH, CLASSES = 64, 64, 10


class Work:
    """This class is a library with the same weights and batches as the other has."""

    def __init__(self, library):
        self.library, self.nn, self.F = library, library.nn, library.nn.functional
        self.values = np.random.default_rng(0)
        self.optim = library.optim
        self.inputs = self.values.standard_normal((EXAMPLES, WIDTH)).astype(np.float32)
        self.labels = self.values.integers(0, CLASSES, EXAMPLES)
        self.x, self.y = library.tensor(self.inputs), library.tensor(self.labels)

    def normal(self, *shape):
        return self.library.tensor(self.values.standard_normal(shape).astype(np.float32))

    def loaded(self, model):
        """Give a model weights that are the same in both libraries."""
        state = model.state_dict()
        for name, value in state.items():
            if value.ndim > 1:
                drawn = self.values.standard_normal(tuple(value.shape)) / value.shape[1] ** 0.5
                state[name] = self.library.tensor(drawn.astype(np.float32))
            elif "bias" in name:
                state[name] = self.library.zeros(*value.shape)
        model.load_state_dict(state)
        return model

    def layers(self, outputs=CLASSES):
        nn = self.nn
        return nn.Sequential(
            nn.Linear(WIDTH, 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, outputs),
        )

    def perceptron(self, outputs=CLASSES):
        return self.loaded(self.layers(outputs))

    def adam(self, model):
        return self.optim.Adam(model.parameters(), lr=1e-3)

    def loss(self, model):
        return self.F.cross_entropy(model(self.x), self.y)

    def pair(self):
        model = self.perceptron()
        return model, self.adam(model)


def with_optimizer(work, make, model=None):
    """The plain step with some optimizer."""
    model = model or work.perceptron()
    optimizer = make(model.parameters())

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def after_backward(work, between):
    """The plain step with Adam, and something between `backward` and `step`."""
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        between(model)
        optimizer.step()
        return loss.item()

    return step


def after_step(work, then, model=None):
    """The plain step with Adam, and something after it that gives a number."""
    model = model or work.perceptron()
    optimizer = work.adam(model)

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return then(model, loss)

    return step


def plain(work):
    return with_optimizer(work, lambda p: work.optim.Adam(p, lr=1e-3))


def momentum(work):
    return with_optimizer(work, lambda p: work.optim.SGD(p, lr=0.01, momentum=0.9))


def rmsprop(work):
    return with_optimizer(work, lambda p: work.optim.RMSprop(p, lr=1e-3))


def decoupled(work):
    return with_optimizer(work, lambda p: work.optim.AdamW(p, lr=1e-3, weight_decay=0.01))


def groups(work):
    """Layers with learning rates of their own."""
    model = work.perceptron()
    listed = [{"params": model[n].parameters(), "lr": 1e-3 / (n + 1)} for n in (0, 2, 4)]
    optimizer = work.optim.Adam(listed)

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def two_optimizers(work):
    model = work.perceptron()
    first = work.optim.SGD(model[0].parameters(), lr=0.01)
    second = work.optim.Adam([*model[2].parameters(), *model[4].parameters()], lr=1e-3)

    def step():
        first.zero_grad()
        second.zero_grad()
        loss = work.loss(model)
        loss.backward()
        first.step()
        second.step()
        return loss.item()

    return step


def zeroed(work):
    """Gradients filled with zeros instead of forgotten."""
    model, optimizer = work.pair()

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def closure(work):
    """L-BFGS, whose closure computes the loss several times."""
    model = work.perceptron()
    optimizer = work.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)

    def again():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        return loss

    return lambda: float(optimizer.step(again))


def rate_schedule(work):
    model, optimizer = work.pair()
    schedule = work.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)

    def step():
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.item() + schedule.get_last_lr()[0]

    return step


def rate_by_hand(work):
    model, optimizer = work.pair()
    count = [0]

    def step():
        count[0] += 1
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1.0, count[0] / 100)
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def clipped_norm(work):
    clip = work.nn.utils.clip_grad_norm_
    return after_backward(work, lambda model: clip(model.parameters(), 1.0))


def clipped_value(work):
    clip = work.nn.utils.clip_grad_value_
    return after_backward(work, lambda model: clip(model.parameters(), 0.01))


def clipped_by_hand(work):
    def between(model):
        for p in model.parameters():
            p.grad.data.clamp_(-0.01, 0.01)

    return after_backward(work, between)


def norms_logged(work):
    """The norm of each gradient is read, as for a plot."""
    log = {}

    def between(model):
        for name, p in model.named_parameters():
            log[name] = p.grad.norm().item()

    return after_backward(work, between)


def norms_summed(work):
    """The norm of all gradients, summed in Python."""
    log = []

    def between(model):
        total = 0.0
        for p in model.parameters():
            if p.grad is not None:
                total += p.grad.detach().data.norm(2).item() ** 2
        log[:] = [total**0.5]

    return after_backward(work, between)


def noisy_gradients(work):
    noise = [work.normal(*p.shape) for p in work.layers().parameters()]

    def between(model):
        for p, each in zip(model.parameters(), noise, strict=True):
            p.grad += 0.01 * each

    return after_backward(work, between)


def descent_by_hand(work):
    model = work.perceptron()

    def step():
        loss = work.loss(model)
        model.zero_grad()
        loss.backward()
        with work.library.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
        return loss.item()

    return step


def descent_on_data(work):
    model = work.perceptron()

    def step():
        loss = work.loss(model)
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad.data, alpha=-0.01)
            p.grad.data.zero_()
        return loss.item()

    return step


def gradients_asked(work):
    """`autograd.grad`, and descent by hand."""
    model = work.perceptron()
    parameters = list(model.parameters())

    def step():
        loss = work.loss(model)
        gradients = work.library.autograd.grad(loss, parameters)
        with work.library.no_grad():
            for p, gradient in zip(parameters, gradients, strict=True):
                p -= 0.01 * gradient
        return loss.item()

    return step


def weights_clamped(work):
    def then(model, loss):
        with work.library.no_grad():
            for p in model.parameters():
                p.clamp_(-0.5, 0.5)
        return loss.item()

    return after_step(work, then)


def average_by_hand(work):
    model, slow = work.perceptron(), work.perceptron()

    def then(model, loss):
        with work.library.no_grad():
            for p, q in zip(slow.parameters(), model.parameters(), strict=True):
                p.mul_(0.99).add_(q, alpha=0.01)
        return loss.item()

    return after_step(work, then, model)


def average_of_data(work):
    """A target network that follows, as in reinforcement learning."""
    model, slow = work.perceptron(), work.perceptron()

    def then(model, loss):
        for p, q in zip(slow.parameters(), model.parameters(), strict=True):
            p.data.copy_(0.01 * q.data + 0.99 * p.data)
        return loss.item()

    return after_step(work, then, model)


def target_loaded(work):
    model, target = work.perceptron(), work.perceptron()

    def then(model, loss):
        target.load_state_dict(model.state_dict())
        return loss.item()

    return after_step(work, then, model)


def averaged_model(work):
    model = work.perceptron()
    averaged = work.optim.swa_utils.AveragedModel(model)

    def then(model, loss):
        averaged.update_parameters(model)
        return loss.item()

    return after_step(work, then, model)


def state_copied(work):
    best = {}

    def then(model, loss):
        best.update({name: value.clone() for name, value in model.state_dict().items()})
        return loss.item()

    return after_step(work, then)


def state_deep_copied(work):
    best = []

    def then(model, loss):
        best[:] = [copy.deepcopy(model.state_dict())]
        return loss.item()

    return after_step(work, then)


def model_copied(work):
    """Early stopping that keeps a copy of the best model."""
    best = []

    def then(model, loss):
        best[:] = [copy.deepcopy(model)]
        return loss.item()

    return after_step(work, then)


def on_the_host(work):
    """The state as NumPy arrays, as for a file."""
    saved = {}

    def then(model, loss):
        for name, value in model.state_dict().items():
            saved[name] = value.cpu().numpy().copy()
        return loss.item()

    return after_step(work, then)


def weights_logged(work):
    log = {}

    def then(model, loss):
        for name, p in model.named_parameters():
            log[name] = p.detach().abs().mean().item(), p.detach().std().item()
        return loss.item()

    return after_step(work, then)


LOOPS = (
    plain, momentum, rmsprop, decoupled, groups, two_optimizers, zeroed, closure, rate_schedule,
    rate_by_hand, clipped_norm, clipped_value, clipped_by_hand, norms_logged, norms_summed,
    noisy_gradients, descent_by_hand, descent_on_data, gradients_asked, weights_clamped,
    average_by_hand, average_of_data, target_loaded, averaged_model, state_copied,
    state_deep_copied, model_copied, on_the_host, weights_logged,
)  # fmt: skip
