"""Steps that are followed give what recording gives, to the bit, whatever is between them."""

import copy
import gc
import signal
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import carried, followed, pending
from picograd.engine import sizes as engine_sizes
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CODED
from picograd.engine.plan_cache import PLANS
from picograd.errors import AxisError, GradientError, InternalError, PicogradError, ShapeError
from picograd.nn import functional as F
from picograd.runtime.cpu import CpuDevice
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core import aliasing, demands, following, known_values, native_ends, ways

STEPS = 14
Loop = Callable[["Program", int], Any]


class Network(nn.Module):
    """Two layers, a norm, and whatever a loop asks for."""

    def __init__(self) -> None:
        self.first, self.norm, self.last = nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)
        self.factor: Any = 1.0
        self.between: Callable[[Tensor], Any] = lambda x: None

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.first(x)).relu() * self.factor
        answer = self.between(x)
        return self.last(x if answer is None else answer)


class Program:
    """A network, an optimizer, and batches."""

    def __init__(self) -> None:
        self.model = Network()
        drawn = np.random.default_rng(3)
        for parameter in self.model.parameters():
            values = drawn.standard_normal(parameter.shape).astype(np.float32)
            parameter.data = Tensor(values).realize()
        self.optimizer = nn.optim.Adam(self.model.parameters(), lr=0.05)
        self.kept: Any = []

    def batch(self, number: int, size: int = 5) -> tuple[Tensor, Tensor]:
        drawn = np.random.default_rng(number)
        x = drawn.standard_normal((size, 4)).astype(np.float32)
        return Tensor(x).realize(), Tensor(drawn.integers(0, 3, size)).realize()

    def loss(self, number: int, size: int = 5) -> Tensor:
        x, y = self.batch(number, size)
        return F.cross_entropy(self.model(x), y)

    def learn(self, loss: Tensor) -> Any:
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


def plain(program: Program, number: int) -> Any:
    return program.learn(program.loss(number))


def decoded(program: Program, number: int) -> Any:
    """What begins with a constant that is an index, and gives what is read piece by piece."""
    x, _ = program.batch(number)
    program.model.eval()
    with picograd.no_grad():
        row, best = picograd.zeros(1, dtype=picograd.int64), picograd.zeros(1, 0)
        for _ in range(3):
            out = program.model(x[row])
            row = out.argmax(-1)
            best = picograd.cat([best, out.amax(-1, keepdim=True)], 1)
    return [best[0, 0].item(), *best[0, 1:].tolist(), best.T[1, 0].item()]


def detached(program: Program, number: int) -> Any:
    loss = program.loss(number)
    program.learn(loss)
    program.kept.append(loss.detach())
    return sum(each.item() for each in program.kept)


def kept_outputs(program: Program, number: int) -> Any:
    x, y = program.batch(number)
    out = program.model(x)
    value = program.learn(F.cross_entropy(out, y))
    program.kept = out
    return value + (out.argmax(1) == y).sum().item()


def rates(program: Program, number: int) -> Any:
    program.optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)
    return plain(program, number)


def branches(program: Program, number: int) -> Any:
    loss = program.loss(number)
    return program.learn(loss * 2.0 if number % 5 == 3 else loss)


def factors(program: Program, number: int) -> Any:
    program.model.factor = -0.0 if number == 9 else 0.0 if number == 8 else 1.0
    return plain(program, number)


def kinds_of_factors(program: Program, number: int) -> Any:
    program.model.factor = 1 if number == 8 else True if number == 9 else 1.0
    return plain(program, number)


def sizes(program: Program, number: int) -> Any:
    return program.learn(program.loss(number, 5 + (number in (8, 11))))


def read_inside(program: Program, number: int) -> Any:
    read: list[Any] = []
    program.model.between = lambda x: read.append(x.sum().item() if number % 6 == 5 else 0.0)
    return plain(program, number) + read[0]


def statistics_read(program: Program, number: int) -> Any:
    loss = program.loss(number)
    read = program.model.norm.running_mean.clone() if number % 6 == 5 else None
    value = program.learn(loss)
    value += program.model.norm.running_var.sum().item() if number % 4 == 3 else 0.0
    return value if read is None else value + read.sum().item()


def statistics_shown(program: Program, number: int) -> Any:
    shown = program.model.norm.running_mean[1:3] if number in (8, 11) else None
    value = plain(program, number)
    return value if shown is None else value + shown.sum().item()


def evaluated(program: Program, number: int) -> Any:
    value = plain(program, number)
    if number % 4 == 3:
        program.model.eval()
        with picograd.no_grad():
            value += program.loss(number + 100).item()
        program.model.train()
    return value


def without_gradients(program: Program, number: int) -> Any:
    def look(x: Tensor) -> Any:
        with picograd.no_grad():
            program.kept = x.mean()

    program.model.between = look
    return plain(program, number) + program.kept.item()


def hooked(program: Program, number: int) -> Any:
    if number == 8:
        program.kept = program.model.first.weight.register_hook(lambda grad: grad * 0.5)
    if number == 11:
        program.kept.remove()
    return plain(program, number)


def hooked_inside(program: Program, number: int) -> Any:
    def look(x: Tensor) -> Any:
        if number in (8, 9):
            x.register_hook(lambda grad: grad * 3.0)

    program.model.between = look
    return plain(program, number)


def hooks_of_modules(program: Program, number: int) -> Any:
    if number == 9:
        program.model.norm.register_forward_hook(lambda module, inputs, output: output + 1.0)
    return plain(program, number)


def replaced(program: Program, number: int) -> Any:
    if number == 9:
        program.model.last.weight = nn.Parameter(Tensor.ones(3, 6) * 0.1)
    return plain(program, number)


def moved_memory(program: Program, number: int) -> Any:
    if number == 9:
        program.model.last.weight.data = (Tensor.ones(3, 6) * 0.1).realize()
    return plain(program, number)


def frozen(program: Program, number: int) -> Any:
    weight = program.model.first.weight

    def look(x: Tensor) -> Any:
        if number in (8, 10):
            weight.requires_grad = not weight.requires_grad

    program.model.between = look
    return plain(program, number)


def frozen_between(program: Program, number: int) -> Any:
    program.model.first.weight.requires_grad = number not in (8, 9)
    return plain(program, number)


def written(program: Program, number: int) -> Any:
    def look(x: Tensor) -> Any:
        if number in (8, 11):
            with picograd.no_grad():
                program.model.last.weight.mul_(0.5)

    program.model.between = look
    return plain(program, number)


def written_inside(program: Program, number: int) -> Any:
    program.model.between = lambda x: x.add_(1.0) if number in (8, 11) else None
    return plain(program, number)


def views(program: Program, number: int) -> Any:
    def look(x: Tensor) -> Any:
        part = x[1:3]
        program.kept = part.T if number in (8, 9) else part
        if number == 10:
            part += 1.0
        return x

    program.model.between = look
    return plain(program, number) + program.kept.sum().item()


def in_autocast(program: Program, number: int) -> Any:
    with picograd.autocast("cpu", enabled=number not in (8, 9)):
        loss = program.loss(number)
    return program.learn(loss)


def fails_inside(program: Program, number: int) -> Any:
    def look(x: Tensor) -> Any:
        if number in (8, 9):
            raise KeyError("the user's own")

    program.model.between = look
    try:
        return plain(program, number)
    except KeyError:
        return 0.0


def wrong_labels(program: Program, number: int) -> Any:
    x, y = program.batch(number)
    y = Tensor([0, 1, 2, 3, 0]) if number in (8, 9) else y
    try:
        return program.learn(F.cross_entropy(program.model(x), y))
    except AxisError as error:
        return float(len(str(error)))


def ignored_labels(program: Program, number: int) -> Any:
    x, y = program.batch(number)
    y = Tensor([0, -100, 2, 1, 0]).realize() if number in (8, 9) else y
    return program.learn(F.cross_entropy(program.model(x), y))


def again(program: Program, number: int) -> Any:
    loss = program.loss(number)
    value = program.learn(loss)
    try:
        loss.backward()
    except GradientError as error:
        value += len(type(error).__name__)
    except Exception as error:
        value += len(str(error).split(":")[0])
    return value


def accumulated(program: Program, number: int) -> Any:
    program.loss(number).backward()
    return plain(program, number + 50) if number % 2 else plain(program, number)


def summed(program: Program, number: int) -> Any:
    """Three batches a step, with gradients that are held, shown, changed or gone in between."""
    weight, bias = program.model.last.weight, program.model.last.bias
    batches = [program.batch(3 * number + part) for part in range(3)]
    value = 0.0
    for part, (x, y) in enumerate(batches):
        F.cross_entropy(program.model(x), y).backward()
        if part == 1 and number in (8, 13):
            program.kept = weight.grad
        if part == 1 and number == 9:
            program.kept = weight.grad[1:]  # type: ignore[index]
        if part == 0 and number == 10:
            bias.grad = None
        if part == 0 and number == 11:
            weight.grad = weight.grad * 2.0  # type: ignore[operator]
        if part == 1 and number == 12:
            value = bias.grad.sum().item()  # type: ignore[union-attr]
    program.optimizer.step()
    value += program.kept.sum().item() if isinstance(program.kept, Tensor) else 0.0
    program.kept = None
    program.optimizer.zero_grad()
    return value


def normed_twice(program: Program, number: int) -> Any:
    """Statistics are written two times a step, and read in between now and then."""

    def look(x: Tensor) -> Any:
        if number == 9:
            program.kept = program.model.norm.running_mean.sum()
        return program.model.norm(x * 2.0)

    program.model.between = look
    value = plain(program, number) + (program.kept.item() if number == 9 else 0.0)
    return value + (program.model.norm.running_var.sum().item() if number == 11 else 0.0)


def gradients_read(program: Program, number: int) -> Any:
    loss = program.loss(number)
    loss.backward()
    gradient = program.model.last.weight.grad
    assert gradient is not None
    value = gradient.sum().item() if number % 4 == 3 else 0.0
    program.optimizer.step()
    value += gradient.sum().item() + loss.item()
    program.optimizer.zero_grad()
    return value


def gradients_changed(program: Program, number: int) -> Any:
    loss = program.loss(number)
    loss.backward()
    if number % 4 == 3:
        nn.utils.clip_grad_norm_(program.model.parameters(), 0.1)
    if number == 9:
        program.model.last.bias.grad = None
    program.optimizer.step()
    program.optimizer.zero_grad()
    return loss.item()


def copied(program: Program, number: int) -> Any:
    loss = program.loss(number)
    if number % 6 == 5:
        program.kept = copy.deepcopy(program.model)
    value = program.learn(loss)
    if number % 6 == 5:
        value += sum(each.sum().item() for each in program.kept.parameters())
        program.kept = program.model.state_dict()
        value += sum(each.sum().item() for each in program.kept.values())
    return value


def state_changed(program: Program, number: int) -> Any:
    if number == 8:
        state = program.optimizer.state[program.model.last.bias]
        state["exp_avg"] = Tensor.ones(3).realize()
    if number == 10:
        program.optimizer.load_state_dict(program.optimizer.state_dict())
    return plain(program, number)


def options_changed(program: Program, number: int) -> Any:
    if number == 9:
        program.optimizer.param_groups[0]["weight_decay"] = 0.1
    return plain(program, number)


def parameters_added(program: Program, number: int) -> Any:
    if number == 9:
        extra = nn.Parameter(Tensor([1.0, 2.0]).realize())
        program.optimizer.add_param_group({"params": [extra]})
    return plain(program, number)


def drawn(program: Program, number: int) -> Any:
    def look(x: Tensor) -> Any:
        return F.dropout(x, 0.5) if number % 5 == 4 else None

    program.model.between = look
    return plain(program, number)


def dropped(program: Program, number: int) -> Any:
    """Numbers are drawn in each step; at times elsewhere, after a seed, or by another stream."""

    def look(x: Tensor) -> Any:
        x = F.dropout(x, 0.5)
        if number == 9:
            picograd.manual_seed(4)
        other = picograd.Generator().manual_seed(2) if number == 10 else None
        x = x + picograd.rand(*x.shape, generator=other) * 0.1
        if number == 12:
            program.kept = picograd.rand(2)
        if number in (12, 13):
            x.register_hook(lambda grad: grad)  # it stops here
        return x + picograd.randn_like(x)

    program.model.between = look
    if number == 11:
        picograd.rand(3)
    return plain(program, number) + picograd.rand(2).sum().item()


def seen_elsewhere(program: Program, number: int) -> Any:
    """What a batch is made of was made before: views of memory, two of one, and constants."""
    if number == 0:
        x, y = program.batch(0, 24)
        program.kept = x.chunk(4), y.chunk(4), x[6:], x.T, Tensor.arange(3), Tensor.full((3,), 0.0)
    xs, ys, more, crossed, counted, zeros = program.kept
    if number == 8:
        zeros = Tensor.full((3,), -0.0)
    if number == 10:
        more = xs[0].reshape(6, 4)
    if number == 11:
        crossed = more.T[:, :6]
    if number == 13:
        xs = (*xs[:2], program.batch(1, 24)[0].chunk(4)[2])
    at = 1 + (number == 12)
    out = program.model(xs[at]) + more[:6, :3] * 0.1 + xs[2][:, 1:] * counted
    out = out * (1.0 / zeros).clamp(-1.0, 1.0)  # of 0.0, or -0.0
    x = program.model.first.weight @ crossed[:, :6]
    return program.learn(F.cross_entropy(out, ys[at]) + x.mean() * 0.1)


def one_tensor_twice(program: Program, number: int) -> Any:
    x, y = program.batch(number)
    other = x if number in (8, 10) else program.batch(number + 50)[0]
    first = program.model.first
    return program.learn(F.cross_entropy(program.model.last(first(x) + first(other)), y))


def same_memory(program: Program, number: int) -> Any:
    """Two tensors of one memory, where there were two memories."""
    x, y = program.batch(number)
    other = x.detach() if number in (8, 10) else program.batch(number + 50)[0]
    first = program.model.first
    return program.learn(F.cross_entropy(program.model.last(first(x) + first(other)), y))


def value_of_two(program: Program, number: int) -> Any:
    loss = program.loss(number)
    other = program.model.first.weight * 2.0  # reads what the step writes
    value = program.learn(loss)
    return value + other.sum().item()


def waits(program: Program, number: int) -> Any:
    """What was recorded after a step, and is read after the next."""
    value = plain(program, number)
    before, program.kept = program.kept, program.model.first.weight.sum()
    return value + (before.item() if number else 0.0)


def jitted_between(program: Program, number: int) -> Any:
    if number == 0:
        model = program.model
        program.kept = picograd.jit(lambda x: (x @ model.first.weight.T).sum())
    loss = program.loss(number)
    read = program.kept(program.batch(number)[0]) if number % 3 == 2 else None
    value = program.learn(loss)
    return value if read is None else value + read.item()


def traced(program: Program, number: int) -> Any:
    if number == 9:
        program.kept = picograd.jit(lambda x: program.model(x).sum())
    loss = program.loss(number)
    if number in (9, 10):
        program.kept(program.batch(number)[0])
    return program.learn(loss)


def traced_between(program: Program, number: int) -> Any:
    """What is traced behind a step begins as the way does."""
    value = plain(program, number)
    if number in (9, 11):
        traced: Any = picograd.jit(lambda x: program.model(x).sum())
        value += traced(program.batch(number)[0]).item() + traced(program.batch(number)[0]).item()
    return value


def in_a_thread(program: Program, number: int) -> Any:
    loss = program.loss(number)
    found: list[Any] = []
    if number % 5 == 4:
        work = threading.Thread(target=lambda: found.append((loss * 2.0).item()))
        work.start()
        work.join()
    return program.learn(loss) + sum(found)


def in_a_handler(program: Program, number: int) -> Any:
    found: list[Any] = []
    weight = program.model.first.weight

    def handle(*given: Any) -> None:
        found.append((weight.detach() * 2.0).sum())

    before = signal.signal(signal.SIGALRM, handle)
    program.model.between = lambda x: signal.raise_signal(signal.SIGALRM) if number > 7 else None
    try:
        return plain(program, number) + sum(each.item() for each in found)
    finally:
        signal.signal(signal.SIGALRM, before)


def explained(program: Program, number: int) -> Any:
    loss = program.loss(number)
    assert number % 5 != 4 or "Backward" in repr(loss.grad_fn.next_functions)
    return program.learn(loss)


def mapped(program: Program, number: int) -> Any:
    def look(x: Tensor) -> Any:
        if number in (8, 10):
            x = picograd.vmap(lambda row: row * 2.0)(x)
        if number in (9, 11):
            program.kept, _ = picograd.scan(lambda a, row: (a + row, row), x[0] * 0.0, x)
        return x

    program.model.between = look
    value = plain(program, number)
    return value + (program.kept.sum().item() if number in (9, 11) else 0.0)


def second_gradients(program: Program, number: int) -> Any:
    loss = program.loss(number)
    if number % 5 == 4:
        (slope,) = picograd.grad(loss, program.model.last.weight, create_graph=True)
        loss = loss + (slope * slope).sum()
    return program.learn(loss)


def two_optimizers(program: Program, number: int) -> Any:
    if number == 0:
        program.kept = nn.optim.SGD(program.model.last.parameters(), lr=0.1)
    value = plain(program, number)
    loss = program.loss(number + 20)
    loss.backward()
    program.kept.step()
    program.optimizer.zero_grad()
    return value + loss.item()


def exchanged(program: Program, number: int) -> Any:
    """Two batches a step, between which gradients of one shape change places once."""
    (x, y), (z, w) = program.batch(2 * number), program.batch(2 * number + 1)
    F.cross_entropy(program.model(x), y).backward()
    if number == 9:
        first, second = program.model.norm.weight, program.model.first.bias
        first.grad, second.grad = second.grad, first.grad
    return program.learn(F.cross_entropy(program.model(z), w))


def gradients_given(program: Program, number: int) -> Any:
    """What was found lives on; now and then another gradient is used in its place."""
    loss = program.loss(number)
    loss.backward()
    weight = program.model.last.weight
    program.kept = weight.grad
    if number % 4 == 3:
        weight.grad = Tensor.ones(*weight.shape).realize()
    program.optimizer.step()
    program.optimizer.zero_grad()
    return loss.item()


def shared_memory(program: Program, number: int) -> Any:
    """Arrays of NumPy are overwritten before a step computes with them."""
    array = np.random.default_rng(number).standard_normal((5, 4)).astype(np.float32)
    _, y = program.batch(number)
    loss = F.cross_entropy(program.model(picograd.from_numpy(array)), y)
    loss.backward()
    if number % 4 == 3:
        array[:] = 7
    program.optimizer.step()
    program.optimizer.zero_grad()
    return loss.item()


def shared_views(program: Program, number: int) -> Any:
    """Views of NumPy's memory, which is written once they were read, and a step with memory of
    ours.
    """
    x, y = program.batch(number)
    inputs = np.ascontiguousarray(x.numpy().T) if number != 9 else None
    labels = y.numpy().copy()
    shown = x if inputs is None else picograd.from_numpy(inputs).T
    loss = F.cross_entropy(program.model(shown), picograd.from_numpy(labels))
    if inputs is not None:
        inputs[:] = 7
    labels[:] = 1
    return program.learn(loss)


def data_of(program: Program, size: int = 40) -> tuple[Tensor, Tensor]:
    if program.kept == []:
        program.kept = program.batch(99, size)
    return program.kept  # type: ignore[no-any-return]


def moving_pieces(program: Program, number: int) -> Any:
    """Pieces that begin elsewhere each time; one is shorter, one has steps, one is of another."""
    (x, y), start = data_of(program), number * 3 % 35
    if number in (8, 10):
        taken = slice(start, start + 8 - number // 2) if number == 8 else slice(start, start + 9, 2)
    else:
        taken = slice(start, start + 5)
    if number == 12:
        x = x[1:]
        y = y[1:]
        taken = slice(3, 8)
    value = program.learn(F.cross_entropy(program.model(x[taken][:, :]), y[taken]))
    if number == 11:
        x[2] = 0.5
    return value


def pieces_of_pieces(program: Program, number: int) -> Any:
    """What is recorded inside takes a piece of what began elsewhere each time."""
    (x, y), start = data_of(program), number * 3 % 30
    piece = x[start : start + 7]
    loss = F.cross_entropy(program.model(piece[1:6]), y[start : start + 5])
    return program.learn(loss + piece[0].sum())


def rows_apart(program: Program, number: int) -> Any:
    """A row with an axis more is the node below it: kept, written, read and seen again at times."""
    (x, _), value = data_of(program), 0.0
    with picograd.no_grad():
        for at in range(3):
            row = x[(number + at) % 40]
            line = row.unsqueeze(0)
            out = program.model.first(line * 2.0 + line.T.sum())
            if number in (7, 10) and at == 1:
                line.add_(1.0)
            if number == 8:
                value += line.sum().item()
            if number == 9:
                row.mul_(0.5)
            value += (out.exp().sum() + row.mean() + line.squeeze(0).amax()).item()
            if number == 12 and at == 0:
                shown = line
        return value + (shown.sum().item() if number == 12 else 0.0)


def shuffled(program: Program, number: int) -> Any:
    """Rows by an index that lives on, of data that are written, or by a wrong one."""
    (x, y), start = data_of(program), number * 5 % 35
    order = np.random.default_rng(number // 7).permutation(40)
    if number == 10:
        order[:] += 5
    mine = Tensor(order).realize() if number < 10 else picograd.from_numpy(order)
    index = mine[start : start + 5]
    try:
        rows, labels = x[index], y[index]
        loss = F.cross_entropy(program.model(rows), labels)
        order[:] = 0
        value = program.learn(loss)
    except AxisError:  # a GPU tells where a value is read
        return -1.0
    if number in (5, 9):
        x[3] = 1.5
        y[3] = 2 - y[3]
    read = number in (11, 12)
    return value + ((rows.sum() + labels.sum() + index.sum()).item() if read else 0.0)


def drawn_rows(program: Program, number: int) -> Any:
    x, y = data_of(program)
    index = picograd.randint(0, 40, (5,))
    rows = x[index]
    value = program.learn(F.cross_entropy(program.model(rows), y[index]))
    if number in (6, 9):
        x *= 0.5
    return value + (rows.sum().item() + index.sum().item() if number > 10 else 0.0)


def many_labels(program: Program, number: int) -> Any:
    """Labels of many rows are known to lie among the classes until they are written."""
    x, y = data_of(program, 5000)
    if number in (8, 10):
        y[17] = 3 if number == 8 else 1
    index = picograd.arange(13, 18) if number % 2 else Tensor([17, 1, 2, 3, 4])
    try:
        return program.learn(F.cross_entropy(program.model(x[index]), y[index]))
    except AxisError:
        return -1.0


def by_hand(program: Program, number: int) -> Any:
    """No optimizer: what is asked for ends a way; and what comes between now and then."""
    loss = program.loss(number)
    loss.backward()
    parameters = list(program.model.parameters())
    if number == 8:
        program.kept = parameters[0].detach()
    if number == 9:
        parameters[0].register_hook(lambda grad: grad * 0.5)
    if number == 11:
        parameters[2].requires_grad_(False)
    with picograd.no_grad():
        for each in parameters:
            if each.grad is not None:
                each -= (0.1 if number != 12 else 0.2) * each.grad
            each.grad = None
    kept = program.kept.sum().item() if number == 10 else 0.0
    return loss.item() + kept


def zeroed(program: Program, number: int) -> Any:
    """Gradients that are held, read and zeroed in place."""
    loss = program.loss(number)
    loss.backward()
    weight = program.model.last.weight
    held = weight.grad if number in (8, 9) else None
    shown = weight.grad[0] if number == 10 else None
    with picograd.no_grad():
        for each in program.model.parameters():
            each.sub_(each.grad, alpha=0.1)
            if number != 12:
                each.grad.zero_()
    read = sum(each.sum().item() for each in (held, shown) if each is not None)
    return loss.item() + read + weight.grad._version


def averaged(program: Program, number: int) -> Any:
    """Averages of weights, which are read, written and seen by others now and then."""
    if program.kept == []:
        program.kept = [copy.deepcopy(program.model), None]
    average = program.kept[0]
    value = plain(program, number)
    with picograd.no_grad():
        for mine, each in zip(average.parameters(), program.model.parameters()):
            mine.mul_(0.9).add_(each.detach() if number == 7 else each, alpha=0.1)
    if number == 8:
        program.kept[1] = average.first.weight[0]
    if number == 10:
        average.first.weight.data.fill_(0.5)
    if number in (9, 12):
        value += average.first.weight.sum().item() + program.kept[1].sum().item()
    return value


def activated_in_place(program: Program, number: int) -> Any:
    def between(x: Tensor) -> Any:
        shown = x[0] if number == 9 else None
        x = x * 1.5
        if number in (5, 11):
            x.register_hook(lambda grad: grad * 2.0)
        x = x.relu_()
        x.mul_(2.0 if number != 10 else 3.0)
        return x if shown is None else x + shown

    program.model.between = between
    return plain(program, number)


def added_up(program: Program, number: int) -> Any:
    """Gradients of several batches, each of whose losses is read; one is changed between."""
    total = 0.0
    for part in range(3):
        loss = program.loss(number + 20 * part) / 3
        loss.backward()
        total += loss.item()
        weight = program.model.last.weight
        if part == 1 and number == 8:
            weight.grad *= 0.5
        if part == 1 and number in (9, 10):
            program.kept = weight.grad
        if part == 1 and number == 11:
            weight.grad = None
    program.optimizer.step()
    program.optimizer.zero_grad()
    return total + (program.kept.sum().item() if number == 10 else 0.0)


def read_before(program: Program, number: int) -> Any:
    """A loss is read before its gradients are taken, and what it was computed of is used later."""
    x, y = program.batch(number)
    out = program.model(x)
    loss = F.cross_entropy(out, y)
    value = loss.item()
    if number in (8, 11):
        (slope,) = picograd.grad(loss, out, retain_graph=True)
        value += slope.abs().sum().item()
    if number == 9:
        value += out.sum().item()
    program.learn(loss)
    return value + (out.sum().item() if number in (10, 13) else 0.0)


def read_on_the_way(program: Program, number: int) -> Any:
    """Nothing is written before loss and accuracy are read, so one way leads through both."""
    if number == 0:
        program.model.norm = nn.Dropout(0.3)  # type: ignore[assignment]
    x, y = program.batch(number)
    out = program.model(x)
    value = (out.argmax(1) == y).float().mean().item() if number != 9 else 0.0
    loss = F.cross_entropy(out, y)
    shown = loss.detach()
    value += loss.item() if number != 10 else out.sum().item()
    if number == 11:
        loss *= 0.5
    if number == 12:
        with picograd.no_grad():
            program.model.last.weight.mul_(0.5)
    value += program.learn(loss) + shown.item() if number != 13 else 0.0
    return value + (out.sum().item() if number in (8, 13) else 0.0)


def read_and_written_twice(program: Program, number: int) -> Any:
    """Statistics are written before each of two reads on the way; what comes behind breaks it."""
    first = program.loss(number)
    value = first.item()
    second = program.loss(number + 20)
    value += second.item()
    model = program.model
    if number in (8, 14):
        value += model.norm.running_mean.sum().item()
    hook = model.first.weight.register_hook(lambda grad: grad * 0.5) if number == 9 else None
    if number == 11:
        model.norm.running_var.mul_(0.5)
    before, program.kept = program.kept, first
    loss = first + second * (before.detach() if number else 1.0)
    value += program.learn(loss)
    if hook is not None:
        hook.remove()
    if number in (11, 12):
        value += model.norm.running_var.sum().item() + first.item()
    return value


def wrong_on_the_way(program: Program, number: int) -> Any:
    """Labels that are wrong where the loss is read before `backward`, which comes nevertheless."""
    x, y = program.batch(number)
    y = Tensor([0, 1, 2, 3, 0]).realize() if number in (7, 8, 12) else y
    loss, value = None, 0.0
    try:
        loss = F.cross_entropy(program.model(x), y)
        value = loss.item()
    except AxisError as error:
        value = float(len(str(error)))
    if loss is not None and number != 12:
        program.learn(loss)
    return value + program.model.norm.running_mean.sum().item()


def factors_by_name(program: Program, number: int) -> Any:
    """Rates by hand that are others each time, one of them a case of its own, or too large."""
    program.loss(number).backward()
    special = {8: 1.0, 9: -0.0, 10: -1.0, 12: float("inf"), 13: float("nan")}
    value = 0.0
    with picograd.no_grad():
        for each in program.model.parameters():
            rate = special.get(number, 0.001 * (number + 1))
            each.add_(each.grad, alpha=-0.01 * (number + 1))
            each.addcdiv_(each.grad, each.grad.abs().add_(1.0), value=rate)
            each.addcmul_(each.grad, each.grad, value=rate)
            each.sub_(each.grad * rate)
            value += each.grad.sum() * 0.0
            each.grad = None
    return value.item()


def looked_at(program: Program, number: int) -> Any:
    """Answers that are read, of weights that somebody writes now and then."""
    model = program.model
    x, _ = program.batch(number, 5 if number != 12 else 3)
    if number == 8:
        with picograd.no_grad():
            model.last.weight += 1.0
    if number == 9:
        model.last.weight.numpy()[0] = 2.0
    if number == 10:
        program.kept = model(x)
    with picograd.no_grad():
        value = model(x).softmax(1).sum(0).tolist()
    if number == 11:
        program.kept.sum().backward()
        value += model.last.weight.grad[0].tolist()
    return np.array(value)


def varied(program: Program, number: int) -> Any:
    """Numbers that are others each time, alone and in others; gradients are read in between."""
    factor = 2.5 if number in (8, 9, 12) else 2.0
    loss = (program.loss(number) / factor + factor) * factor - factor * 0.5
    loss.backward()
    read = program.model.first.weight.grad.sum().item() if number in (9, 12) else 0.0
    program.optimizer.step()
    program.optimizer.zero_grad()
    return loss.item() + read


def mixed(program: Program, number: int) -> Any:
    """Two batches and their losses, mixed by a number that is drawn each time.

    Some are cases of their own, and some give numbers that no plan takes.
    """
    special = {6: 1.0, 8: 0.0, 10: 0.5, 11: 1e-300, 13: 3e38}
    share = special.get(number, 0.05 + 0.06 * number)
    (x, y), (other, labels) = program.batch(number), program.batch(number + 50)
    answer = program.model(share * x + (1 - share) * other)
    loss = share * F.cross_entropy(answer, y)
    loss = loss + (1 - share) * F.cross_entropy(answer, labels) * (0.25 / (share + 0.5))
    return program.learn(loss)


def recurrent(program: Program, number: int, kind: str = "LSTM") -> Any:
    """Sequences by a network whose loop over time has no formula of gradients."""
    options = {"num_layers": 2, "batch_first": True} if kind == "GRU" else {"bidirectional": True}
    if number == 0:
        layer = getattr(nn, kind)(4, 3, **options)
        drawn = np.random.default_rng(2)
        for parameter in layer.parameters():
            values = drawn.standard_normal(parameter.shape).astype(np.float32)
            parameter.data = Tensor(values * 0.4).realize()
        program.kept = layer, nn.optim.Adam(layer.parameters(), lr=0.05), []
    layer, optimizer, read = program.kept
    x = program.batch(number, 6 if number != 8 else 9)[0].reshape(-1, 3, 4)
    if number == 9:
        read.append(layer.weight_hh_l0.register_hook(lambda grad: grad * 0.5))
    if number == 11:
        read.pop().remove()
        layer.bias_hh_l0.requires_grad_(False)
    if number == 13:
        with picograd.no_grad():
            read.append(layer(x)[0].sum().item())
            layer.weight_ih_l0.mul_(0.5)
    out, last = layer(x)
    state = last if isinstance(last, Tensor) else last[-1]
    loss = (out * out).sum() + state.sum() * 0.1
    value = loss.item() if kind == "GRU" else 0.0
    loss.backward()
    if number in (7, 10):
        value += layer.weight_hh_l0.grad.sum().item()
    optimizer.step()
    optimizer.zero_grad(set_to_none=number != 12)
    return value + loss.item() + sum(each for each in read if isinstance(each, float))


def pieces_of_made(program: Program, number: int) -> Any:
    """Pieces of constants that a step makes itself, elsewhere at times."""
    x, y = program.batch(number)
    at = 1 if number == 10 else 0
    out = program.model(x)
    zeros, ones = Tensor.zeros(2, 5, 3), Tensor.ones(2, 3)
    out = (out + zeros[at]) * ones[1 - at]
    return program.learn(F.cross_entropy(out, y)) + (zeros.sum().item() if number == 8 else 0.0)


def packed(program: Program, number: int) -> Any:
    """Sequences of several lengths, which are others at times, once in 16 bits."""
    if number == 0:
        layer = nn.LSTM(4, 3, batch_first=True)
        drawn = np.random.default_rng(2)
        for parameter in layer.parameters():
            values = drawn.standard_normal(parameter.shape).astype(np.float32)
            parameter.data = Tensor(values * 0.4).realize()
        program.kept = layer, nn.optim.Adam(layer.parameters(), lr=0.05)
    layer, optimizer = program.kept
    x = program.batch(number, 15)[0].reshape(3, 5, 4)
    lengths = [4, 4, 1] if number in (8, 11) else [5, 3, 2]
    with picograd.autocast("cpu", enabled=number in (9, 10)):
        given = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, sizes = nn.utils.rnn.pad_packed_sequence(layer(given)[0], batch_first=True)
        loss = out.float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item() + sizes.sum().item()


def zeroed_before(program: Program, number: int) -> Any:
    """Gradients that are zeroed through `data` before the next, held, shown, read or replaced."""
    loss = program.loss(number)
    value, kept, weight = 0.0, None, program.model.last.weight
    for each in program.model.parameters():
        if each.grad is not None and number != 11:
            each.grad.data.zero_()
    if number == 8:
        kept = weight.grad
    if number == 9:
        kept = weight.grad.data
    if number == 10:
        kept = weight.grad[1]
    if number == 12:
        program.model.last.bias.grad = Tensor.ones(3).realize()
    loss.backward()
    for each in program.model.parameters():
        each.data -= 0.1 * each.grad.data
    if number in (7, 13):
        value += weight.grad.sum().item()
    return value + loss.item() + (0.0 if kept is None else kept.sum().item())


def gated(program: Program, number: int) -> Any:
    return recurrent(program, number, "GRU")


def carried_on(program: Program, number: int) -> Any:
    """A state that each step hands to the next, which is started anew, read, or kept."""
    if number == 0:
        layer = nn.RNN(4, 6, nonlinearity="relu")
        drawn = np.random.default_rng(2)
        for parameter in layer.parameters():
            values = drawn.standard_normal(parameter.shape).astype(np.float32)
            parameter.data = Tensor(values * 0.3).realize()
        program.kept = [layer, nn.optim.SGD(layer.parameters(), lr=0.01), None, None]
    layer, optimizer, state, kept = program.kept
    x = program.batch(number, 6)[0].reshape(-1, 3, 4)
    state = None if number in (0, 9) else state
    out, last = layer(x, state)
    loss = (out - 1.0).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    program.kept[2] = last.detach()
    value = loss.item() + (0.0 if kept is None else kept.sum().item())
    program.kept[3] = out if number in (7, 10) else None
    return value + (last.sum().item() if number in (8, 11) else 0.0)


def read_between(program: Program, number: int) -> Any:
    """Gradients of two batches, added up by hand; losses, and norms after that, are read."""
    parameters = list(program.model.parameters())
    sums, total = [picograd.zeros_like(each) for each in parameters], 0.0
    for part in range(2):
        loss = program.loss(number + 20 * part)
        gradients = picograd.autograd.grad(loss, parameters)
        sums = [one + each for one, each in zip(sums, gradients)]
        total += loss.item()
        if part == 0 and number == 8:
            sums[0].mul_(2.0)
        if part == 0 and number in (9, 10):
            program.kept = gradients[1]
    norm = sum((each**2).sum().item() for each in sums)
    with picograd.no_grad():
        for each, one in zip(parameters, sums):
            each -= 0.1 * one * min(1.0, 1.0 / norm)
    return total + norm + (program.kept.sum().item() if number == 10 else 0.0)


def rates_asked(program: Program, number: int) -> Any:
    """Sizes of weights and of what moves them are asked for, one behind the other."""
    program.model.norm.eval()
    parameters = list(program.model.parameters())
    if program.kept == []:
        program.kept = [picograd.zeros_like(each) for each in parameters]
    loss = program.loss(number)
    loss.backward()
    total = 0.0
    for each, average in zip(parameters, program.kept):
        average.mul_(0.9).add_(each.grad, alpha=0.1)
        moved = average / (average.square().sqrt() + 1e-3)
        moved.add_(each.data, alpha=0.01 if number != 9 else 0.02)
        size, other = each.data.pow(2).sum().sqrt().clamp(0, 10), moved.pow(2).sum().sqrt()
        rate = 1 if size == 0 or other == 0 else size / other
        each.data.add_(-0.01 * rate * moved)
        total += moved.sum().item() if number in (10, 12) else 0.0
        each.grad = None
    return total + loss.item()


def written_by_index(program: Program, number: int) -> Any:
    """Gradients of which masks, rows and pieces are overwritten, other ones at times."""
    loss = program.loss(number)
    loss.backward()
    shown = program.model.first.weight.grad[0] if number == 9 else None
    for each in program.model.parameters():
        sign = each.grad.sign()
        sign[sign.gt(0)] = 1.25 if number != 8 else 0.5
        sign[0] = 0.75
        each.grad[-1:] = sign[-1:]
        if number in (11, 12):
            sign[[0, -1]] = 2.0
        each.data.addcmul_(each.grad, sign, value=-0.1)
    read = 0.0 if shown is None else shown.sum().item()
    program.optimizer.zero_grad()
    return loss.item() + read


def data_given(program: Program, number: int) -> Any:
    """Weights get other memory, which is held, read, written or given twice at times."""
    loss = program.loss(number)
    loss.backward()
    parameters = list(program.model.parameters())
    held = parameters[0].data if number == 7 else None
    for each in parameters:
        each.data = each.data - (0.1 if number != 5 else 0.2) * each.grad
        if number == 9:
            each.data = each.data * 0.5
        each.grad = None
    if number == 6:
        parameters[2].data.mul_(0.5)
    read = 0.0 if held is None else held.sum().item()
    return read + loss.item() + (parameters[-1].sum().item() if number == 11 else 0.0)


def data_shared(program: Program, number: int) -> Any:
    """What weights were given is written, later ones are given, old graphs are asked again."""
    loss = program.loss(number)
    loss.backward()
    parameters = list(program.model.parameters())
    for each in parameters:
        value = each.detach() - 0.1 * each.grad
        each.data = value
        each.grad = None
    if number == 6:
        value.add_(1.0)
    if number == 8:
        parameters[0].data = Tensor.ones(6, 4).realize()
    total = loss.item() + parameters[0]._version
    if number in (5, 10):
        loss.backward()
        total += parameters[0].grad.sum().item()
        program.model.zero_grad()
    return total


def renew(program: Program, number: int, is_quiet: bool) -> Any:
    """Each step makes new leaves; what they were made of, old ones and graphs are held at times."""
    if not program.kept:
        drawn = np.random.default_rng(4)
        sizes = (4, 6), (6,), (6, 6), (6,), (6, 3)
        program.kept = [Tensor(drawn.standard_normal(each).astype("f")) for each in sizes]
        program.kept = [each.requires_grad_() for each in program.kept]
    old, (x, y) = program.kept, program.batch(number)
    x = ((x @ old[0] + old[1]).relu() @ old[2] + old[3]).tanh()
    loss = F.cross_entropy(F.layer_norm(x, (6,)) @ old[4], y)
    gradients = picograd.autograd.grad(loss, old) if is_quiet else []
    if not is_quiet:
        loss.backward()
        gradients = [each.grad for each in old]
    with picograd.no_grad() if is_quiet else nullcontext():
        made = [w - (0.1 if number != 17 else 0.2) * g for w, g in zip(old, gradients, strict=True)]
    bases = made[:1] if number in (20, 24) else []
    program.kept = made if is_quiet else [each.detach() for each in made]
    del made
    for each in program.kept:
        each.requires_grad_()
    if number == 28:
        program.kept[0].register_hook(lambda gradient: gradient * 2)
    total = loss.item()
    if number == 20 and not is_quiet:
        bases[0].sum().backward()  # the graph that they were cut off from
        total += old[0].grad.sum().item()
    if number == 24:
        with picograd.no_grad():
            bases[0].add_(1.0)  # the leaf shows it
        total += program.kept[0].sum().item()
    return total + (0.0 if number != 32 else sum(each.sum().item() for each in gradients))


def renewed(program: Program, number: int) -> Any:
    return [renew(program, at, False) for at in range(3 * number, 3 * number + 3)]


def renewed_quietly(program: Program, number: int) -> Any:
    return [renew(program, at, True) for at in range(3 * number, 3 * number + 3)]


def searched(program: Program, number: int) -> Any:
    """Rates are tried; stored gradients are read, shown and held after writes at times."""
    parameters = list(program.model.parameters())
    loss = program.loss(number)
    gradients = picograd.autograd.grad(loss, parameters)
    old = [each.detach().clone() for each in parameters]
    before, slope = loss.item(), sum((each * each).sum() for each in gradients).item()
    total, after = 0.0, before
    for rate in (0.1, 0.05) if number != 12 else (0.1,):
        with picograd.no_grad():
            for each, value, gradient in zip(parameters, old, gradients, strict=True):
                each.copy_(value - rate * gradient)
                if number == 10:
                    total += gradients[0].sum().item()
                if number == 13:
                    old[0].mul_(0.5)
                    gradients[1].add_(1.0)
            after = program.loss(number).item()
        total += after - before + 0.5 * rate * slope
    if number in (8, 11):
        program.kept = [gradients[0], gradients[0].T]
    if number == 9:
        program.kept[0].mul_(2.0)
        total += program.kept[1].sum().item()
    return total + after + (program.kept[1].sum().item() if number == 12 else 0.0)


def norms_compared(program: Program, number: int) -> Any:
    """Two norms are compared by Python for each weight; means of gradients live on between."""
    program.loss(number).backward()
    total = 0.0
    for place, each in enumerate(program.model.parameters()):
        if len(program.kept) <= place:
            program.kept.append(picograd.zeros_like(each.data))
        mean = program.kept[place]
        mean.mul_(0.9).add_(each.grad.data, alpha=0.1)
        moved = mean / mean.abs().add(0.1)
        norm, other = each.data.pow(2).sum().sqrt(), moved.pow(2).sum().sqrt()
        if number == 8 and place == 1:
            moved.mul_(2.0)
        trust = 1 if norm == 0 or other == 0 else norm / other
        if number in (9, 11) and place == 2:
            total += moved.sum().item() + mean.sum().item()
        each.data.add_(-0.01 * trust * moved)
        each.grad = None
    if number == 10:
        program.kept[0] = program.kept[0].clone()
    return total + float(norm) + program.kept[-1].sum().item()


def cut_off(program: Program, number: int) -> Any:
    """What a step made is cut off by it and asks in the next; its bases and views live at times."""
    if not program.kept:
        program.kept = {name: p.detach() for name, p in program.model.named_parameters()}
    bases = [each * 1.0 for each in program.kept.values()] if number == 30 else []
    held = {name: each.requires_grad_() for name, each in program.kept.items()}
    x, y = program.batch(number)
    loss = F.cross_entropy(picograd.func.functional_call(program.model, held, (x,)), y)
    gradients = picograd.autograd.grad(loss, list(held.values()))
    made = [p - 0.05 * g for p, g in zip(held.values(), gradients, strict=True)]
    program.kept = {name: each.detach() for name, each in zip(held, made, strict=True)}
    shown = made if number in (20, 25) else []
    del made
    value = loss.item() + sum(each.sum().item() for each in bases)
    if number == 25:
        with picograd.no_grad():
            shown[0].mul_(0.5)  # the next weight shows it
    return value + (0.0 if number != 20 else sum(each.sum().item() for each in shown))


def detached_then_asked(program: Program, number: int) -> Any:
    return [cut_off(program, at) for at in range(3 * number, 3 * number + 3)]


def lives_on(program: Program, number: int) -> Any:
    """What nobody asks for is far from what is stored, and read at last."""
    rows, _ = program.batch(number, 12)
    mean, total = picograd.zeros(4), picograd.zeros(4)
    for count in range(24):
        away = rows[count % 12].sigmoid() - mean
        mean += away / (count + 1)
        total += away * (rows[count % 12].sigmoid() - mean)
    doubled = away * 2
    found = total.tolist()
    return (
        found if number < STEPS - 1 else [*found, *doubled.tolist(), *away.tolist(), *mean.tolist()]
    )


def chosen(program: Program, number: int) -> Any:
    """Rows drawn with weights, some of which are in memory, and draws written in place."""
    x, _ = program.batch(number)
    weights = Tensor([1.0, 2.0, 0.0] if number != 9 else [1.0, -2.0, 0.0]).realize()
    out = program.model(x).detach()
    row = out.softmax(-1).multinomial(1)
    noise = picograd.empty(3, 3).exponential_().log() + F.gumbel_softmax(out[:3])
    try:
        column = weights.multinomial(4, replacement=True)
    except PicogradError:
        column = picograd.zeros(4, dtype=picograd.int64)
    found = (noise.mean() + out.gather(1, row).sum()).item()
    return [found, *row[:, 0].tolist(), *column.tolist()]


def solved(program: Program, number: int) -> Any:
    """What the host computes, of several results too, and a piece beside all of its memory."""
    (x, _), at = data_of(program), number * 3 % 30
    square = x.T @ x + x[at].outer(x[at]) + picograd.eye(4)
    _, values, _ = picograd.linalg.svd(picograd.linalg.solve(square, x[at : at + 4]))
    rows, columns = picograd.meshgrid(x[at], values, indexing="ij")
    return (picograd.fft.rfft(rows * columns).abs().sum() + (x - x[at]).square().mean()).item()


def shown_weights(program: Program, number: int) -> Any:
    """Weights that show the memory they were made of, and are not written until late."""
    if not program.kept:
        program.kept = [nn.LayerNorm(4), nn.BatchNorm1d(4).eval()]
    x, _ = program.batch(number)
    first, second = program.kept
    with nullcontext() if number in (8, 10) else picograd.no_grad():
        loss = (second(first(x).tanh() * x) + x).square().mean()
    if number in (8, 10):
        loss.backward()
    if number == 11:
        with picograd.no_grad():
            first.weight -= first.weight.grad
    found = [] if first.bias.grad is None else first.bias.grad.tolist()
    return sum([loss.item(), *found, *first.weight.tolist()])


def unused_weights(program: Program, number: int) -> Any:
    """Layers that nothing reads wait for ever, or are read at last; rows by a list of numbers."""
    if not program.kept:
        program.kept = [nn.Linear(4, 4), nn.Linear(4, 4)]
    x, y = program.batch(number)
    x = program.kept[0](x) if number > 11 else x
    return program.learn(F.cross_entropy(program.model(x[[0, 2, 4]]), y[[0, 2, 4]]))


LOOPS: list[tuple[Loop, int]] = [
    (plain, 8), (decoded, 5), (detached, 7),
    (kept_outputs, 7), (rates, 6), (branches, 4), (factors, 3),
    (kinds_of_factors, 3), (sizes, 3), (read_inside, 0), (statistics_read, 1), (evaluated, 5),
    (without_gradients, 6), (hooked, 2), (hooked_inside, 3), (hooks_of_modules, 3), (replaced, 3),
    (moved_memory, 4), (frozen, 2), (frozen_between, 2), (written, 2), (written_inside, 3),
    (views, 0), (in_autocast, 3), (fails_inside, 3), (wrong_labels, 3), (ignored_labels, 3),
    (again, 0), (accumulated, 0), (gradients_read, 2), (gradients_changed, 1), (copied, 0),
    (state_changed, 2), (options_changed, 3), (parameters_added, 3), (drawn, 1),
    (one_tensor_twice, 3), (same_memory, 3), (value_of_two, 3), (waits, 0), (jitted_between, 0),
    (traced, 3), (in_a_thread, 1), (in_a_handler, 2), (explained, 1), (second_gradients, 1),
    (mapped, 2), (two_optimizers, 10), (statistics_shown, 2), (gradients_given, 2),
    (shared_memory, 8), (dropped, 3), (seen_elsewhere, 2), (traced_between, 4), (summed, 2),
    (normed_twice, 4), (exchanged, 2), (shared_views, 4), (moving_pieces, 3),
    (pieces_of_pieces, 0), (shuffled, 1), (drawn_rows, 4), (many_labels, 3), (by_hand, 2),
    (zeroed, 2), (averaged, 2), (activated_in_place, 2), (added_up, 8), (looked_at, 4),
    (varied, 4), (read_before, 4), (read_on_the_way, 4), (factors_by_name, 5),
    (read_and_written_twice, 2), (wrong_on_the_way, 3),
    (recurrent, 1), (gated, 1), (carried_on, 2), (pieces_of_made, 2),
    (zeroed_before, 2), (packed, 2), (read_between, 3), (rates_asked, 2),
    (written_by_index, 2), (data_given, 2), (data_shared, 3), (renewed, 8),
    (renewed_quietly, 8), (searched, 4), (norms_compared, 3),
    (detached_then_asked, 15), (lives_on, 8), (chosen, 2), (solved, 4), (shown_weights, 2),
    (unused_weights, 4), (rows_apart, 12), (mixed, 2),
]  # fmt: skip

EARLY = (
    factors_by_name,
    by_hand,
    zeroed,
    averaged,
    looked_at,
    zeroed_before,
    read_between,
    rates_asked,
    written_by_index,
    data_given,
    data_shared,
    renewed,
    renewed_quietly,
    searched,
    norms_compared,
    detached_then_asked,
    lives_on,
    chosen,
    solved,
    shown_weights,
)  # begin with their second run of a plan


NOTHING_RECORDED = (
    plain, read_on_the_way, read_before, norms_compared, detached_then_asked,
)  # fmt: skip


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each way was followed to its end."""
    found: list[bool] = []
    finish = following.Follower.finish

    def noted(follower: Any, *ended: Any) -> Any:
        found.append(finish(follower, *ended))
        return found[-1]

    inside = noted.__code__.replace(co_filename=following.__file__)  # no line of the program's
    monkeypatch.setattr(noted, "__code__", inside)
    monkeypatch.setattr(following.Follower, "finish", noted)
    monkeypatch.setattr(following.Known, "miss", lambda known, *_: setattr(known, "waits", 1))
    carried.SPOTS.clear()
    monkeypatch.setattr(engine_sizes, "FAMILIES", OrderedDict())  # other loops have other sizes
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    yield found
    followed.stop()
    EVENTS.after = None


@pytest.fixture
def checks_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let values be checked by the next computation, as off the CPU, and not looked at."""
    monkeypatch.setattr(demands, "is_host", lambda device: False)
    monkeypatch.setattr(known_values, "is_host", lambda device: False)


def run(loop: Loop) -> list[Any]:
    picograd.manual_seed(5)
    program = Program()
    found = [loop(program, number) for number in range(STEPS)]
    return [*found, *(each.numpy() for each in program.model.state_dict().values())]


@pytest.mark.parametrize(("loop", "few"), LOOPS, ids=lambda each: getattr(each, "__name__", ""))
def test_what_is_followed_is_what_is_recorded(
    loop: Loop, few: int, hits: list[bool], monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(followed, "FIRST", 2 if loop in EARLY else 4)
    monkeypatch.setattr(native_ends, "USES", 2)  # by Python once, then by machine code
    if loop is unused_weights:  # rows of other loops may have made a plan for many sizes
        monkeypatch.setattr(picograd.config, "dynamic", 0)
    mine = run(loop)
    assert hits.count(True) >= few, hits
    count = len(hits)
    monkeypatch.setattr(followed, "FIRST", 1 << 30)
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    followed.stop()  # the weights are read without leaving the way
    EVENTS.after = None
    wanted = run(loop)
    assert len(hits) == count
    rounding = 0.0 if device == "cpu" else 1e-6  # other kernels add in another order
    for one, other in zip(mine, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding)


@pytest.mark.parametrize(
    ("loop", "few"),
    [
        (plain, 8), (wrong_labels, 3), (ignored_labels, 3), (kept_outputs, 7), (statistics_read, 1),
        (read_before, 4), (read_on_the_way, 3), (read_and_written_twice, 2), (wrong_on_the_way, 4),
        (added_up, 8), (shuffled, 1), (drawn_rows, 4), (many_labels, 2), (two_optimizers, 10),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)  # fmt: skip
def test_what_is_checked_beside_is_followed_as_well(
    loop: Loop, few: int, hits: list[bool], checks_beside: None, monkeypatch: pytest.MonkeyPatch,
    device: str,
) -> None:  # fmt: skip
    test_what_is_followed_is_what_is_recorded(loop, few, hits, monkeypatch, device)


def test_steps_that_are_followed_are_recorded_too_and_compared(hits: list[bool]) -> None:
    program = Program()
    for number in range(9):
        plain(program, number)
    assert hits == [False] * 3  # it is recorded, and checked, where VERIFY is set
    ways = [way for each in following.KNOWN[program.optimizer] for way in each.ways]
    ways[0].last.buffers.reverse()
    with pytest.raises(InternalError, match="followed"):
        plain(program, 9)


@pytest.mark.parametrize("place", [None, "null"])
def test_reads_on_the_way_and_its_end_are_compared_in_turns(
    place: str | None, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "device", place or picograd.config.device)
    expected: list[int] = []
    expect = following.Follower.expect

    def noted(follower: Any, *given: Any) -> None:
        expected.append(follower.reads)
        expect(follower, *given)

    monkeypatch.setattr(following.Follower, "expect", noted)
    program = Program()
    for number in range(10):
        read_on_the_way(program, number % 8)
    assert expected == [1, 2, 0, 1]


@pytest.mark.parametrize("place", [None, "null"])
@pytest.mark.parametrize("loop", NOTHING_RECORDED)
def test_nothing_is_recorded_where_a_way_is_followed(
    loop: Loop, place: str | None, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "device", place or picograd.config.device)
    monkeypatch.setattr(picograd.config, "verify", 0)
    program = Program()
    for number in range(24):
        loop(program, number % 6)
    monkeypatch.setattr(followed.Template, "make", lambda *args: pytest.fail("nodes were made"))
    monkeypatch.setattr(pending, "compute_all", lambda *args: pytest.fail("nodes were computed"))
    for number in range(3):
        loop(program, number)
    monkeypatch.undo()


@pytest.mark.parametrize("loop", [plain, kept_outputs])
def test_a_way_keeps_nothing_of_steps_that_are_over(
    loop: Loop, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    program, batches = Program(), []
    batch = program.batch

    def noted(number: int, size: int = 5) -> Any:
        found = batch(number, size)
        batches.append([weakref.ref(each._node.arg) for each in found])
        return found

    monkeypatch.setattr(program, "batch", noted)
    gc.collect()
    gc.disable()  # so that nothing is part of a cycle
    try:
        for number in range(STEPS):
            loop(program, number)
        older = [each() for pair in batches[8:-2] for each in pair]
    finally:
        gc.enable()
    assert hits.count(True) >= 6
    assert older == [None] * len(older)


def test_what_an_optimizer_knows_ends_with_it(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    program: Any = Program()
    for number in range(8):
        plain(program, number)
    reference = weakref.ref(program.optimizer)
    followed.stop()
    del program
    gc.collect()
    assert reference() is None


def test_wherever_it_is_stopped_the_plan_is_the_same(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    program, take, due = Program(), following.Follower.take, [-1]

    def stopping(follower: Any, *call: Any) -> Any:
        if follower.at != due[0]:
            return take(follower, *call)
        followed.stop()
        return followed.MISS

    monkeypatch.setattr(following.Follower, "take", stopping)
    for number in range(8):
        plain(program, number)
    count = len(PLANS)
    for number in range(8, 32):
        due[0] = number // 3 if number % 3 == 2 else -1
        plain(program, number)
    assert len(PLANS) == count
    assert hits.count(True) >= 10


def test_what_comes_before_all_that_others_read_is_no_part_of_a_way(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    program = Program()
    for number in range(12):
        loss = program.loss(number)
        program.learn(loss)
        program.kept = loss.detach()
        if number > 7:  # it is learnt: nothing is followed here that would be made
            followed.leave()
    assert hits == [True] * 5


def test_what_another_thread_left_is_no_way_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EVENTS, "take", ways.Log(lambda way: pytest.fail("it was learnt")).take)
    assert (Tensor([1.0]) + 1.0).tolist() == [2.0]  # called it again and again


def test_a_way_that_another_thread_follows_is_not_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, take = [], following.Start.take
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(following.Start, "take", lambda *call: calls.append(call) or take(*call))
    program = Program()
    for number in range(8):
        plain(program, number)
    loss = program.loss(8)
    record = EVENTS.record
    assert record is not None and take(*calls[-1]) is followed.MISS
    assert EVENTS.record is record, "what stands in would never be made"
    program.learn(loss)


def test_a_way_begins_behind_a_write_of_few_nodes(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    x = picograd.zeros(2, 3).realize()
    for number in range(12):
        x.fill_(number % 2)
        assert x.tolist() == [[number % 2] * 3] * 2
    for _ in range(12):
        x.zero_().realize()
    assert hits.count(True) >= 8, hits


def test_a_program_that_never_repeats_has_one_way_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made, way = [], ways.Closing.way
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    monkeypatch.setattr(ways.Closing, "way", lambda closing: made.append(closing) or way(closing))
    weight = Tensor([1.0, 2.0], requires_grad=True)
    for number in range(60):
        x = picograd.zeros(80, 2)
        x[number] = 1.0
        loss = (x * weight).exp().sum()
        loss.backward()
        loss.item()
    assert len(made) == 1


def test_a_leaf_that_was_written_between_has_gradients_of_both_values() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True)
    x = Tensor([1.0, 3.0]).realize()
    for step in range(STEPS):
        weight.grad = None
        loss = (weight * weight * x).sum()
        with picograd.no_grad():
            weight.mul_(0.5)
        (loss + (weight * x).sum()).backward()
        value = 0.5**step
        assert weight.grad is not None
        assert weight.grad.tolist() == [2 * value + 1, 12 * value + 3]


def short_loop(hits: list[bool], count: int, lives: bool = False) -> int:
    """How many of the last ten runs of a short loop were followed; its values are compared."""
    rate, state, older = Tensor([0.5, 2.0]).realize(), Tensor([1.0, 1.0]).realize(), None
    for number in range(count):
        if number == count - 10:
            hits.clear()
        value = state * rate
        older = (value + 1.0).exp() if lives else None
        assert value.sum().item() == 2.5
    assert older is None or older.tolist() == np.exp(np.float32([1.5, 3.0])).tolist()
    return hits.count(True)


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_short_ways_are_left_to_machine_code(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(followed, "SHORTS", 8)
    monkeypatch.setattr(EVENTS, "shorts", 0)
    assert short_loop(hits, 80) == 0
    program = Program()  # steps are followed, and short ways among them
    monkeypatch.setattr(EVENTS, "shorts", 0)
    for number in range(12):
        plain(program, number)
        assert EVENTS.shorts < 8
    assert hits.count(True) >= 6


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_short_ways_that_look_at_labels_are_left_to_machine_code(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(followed, "SHORTS", 8)
    monkeypatch.setattr(EVENTS, "shorts", 0)
    scores, labels = Tensor([[0.0, 1.0], [2.0, 0.5]]).realize(), picograd.tensor([1, 0])
    for number in range(80):
        if number == 70:
            hits.clear()
        assert nn.functional.cross_entropy(scores, labels).item() == pytest.approx(0.257337475)
    assert hits.count(True) == 0
    with pytest.raises(picograd.errors.PicogradError, match="class"):
        nn.functional.cross_entropy(scores, picograd.tensor([1, 2])).item()


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_short_ways_are_left_to_machine_code_that_comes_late(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the kernels of a plan have all passes it has none, and its tries are kept."""
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(followed, "SHORTS", 8)
    monkeypatch.setattr(EVENTS, "shorts", 0)
    PLANS.clear()
    with monkeypatch.context() as early:
        early.setattr(CpuDevice, "is_settled", lambda device, tape: False)
        assert short_loop(hits, 80) == 10
    assert short_loop(hits, 80) == 0


@pytest.mark.usefixtures("cpu_by_default")
def test_short_ways_are_followed_where_machine_code_computes_none(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value waits that reads what is computed: Python would compute, and does for some tries."""
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(followed, "SHORTS", 8)
    monkeypatch.setattr(EVENTS, "shorts", 0)
    monkeypatch.setattr(CODED, "compute", lambda nodes, place: None)
    assert short_loop(hits, 80, lives=True) == 10


def test_what_is_met_later_was_not_passed_yet() -> None:
    """A way is left between a read, which computed a tensor, and the event that takes it."""
    follower: Any = object.__new__(following.Follower)
    node = (Tensor([1.0]) * 2.0)._node
    read = SimpleNamespace(passed=[(0, 1), (1, 2), (5, 1)])
    follower.known = SimpleNamespace(miss=lambda way: None)
    follower.way = SimpleNamespace(events=[], reads=[read])
    follower.record = SimpleNamespace(standing={}, found=[None, node])
    follower.computed, follower.made, follower.at = {}, [], 0
    follower.reads, follower.begun = 1, 0
    follower.settle([None, node])
    assert carried.PASSED[node] == 2


@pytest.mark.parametrize("name", ["move_on", "become_leaf", "Overwritten", "give_value"])
@pytest.mark.parametrize("call", [0, 1])
def test_a_signal_where_computed_values_are_given_leaves_no_tensor_without_memory(
    name: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in a followed step: parameters can be read and loaded, and training goes on."""
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(CODED, "finish", None)  # machine code handles no signals there
    monkeypatch.setattr(following, "ends_of", lambda way: None)
    program = Program()
    model, optimizer = program.model, program.optimizer

    def step(number: int) -> float:
        x, y = program.batch(number)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    start = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    expected = [step(number) for number in range(STEPS)]
    of = following if hasattr(following, name) else followed
    usual, calls = getattr(of, name), []

    def interrupted(*args: Any) -> Any:
        calls.append(args)
        made = usual(*args)
        if len(calls) == call + 1:
            raise KeyboardInterrupt
        return made

    with monkeypatch.context() as patch:
        patch.setattr(of, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            for number in range(STEPS):
                step(number)
    assert all(np.isfinite(each.numpy()).all() for each in model.state_dict().values())
    model.load_state_dict(start[0])
    optimizer.load_state_dict(copy.deepcopy(start[1]))
    assert np.allclose([step(number) for number in range(STEPS)], expected)


def attended(of: Any, x: Any, w: Any) -> tuple[Any, Any]:
    """What comes next of rows that grow, and a number, in this library or NumPy."""
    scores = of.exp(x @ w @ x.T * 0.1)
    scores = scores / scores.sum(1)[:, None]
    y = of.tanh(scores @ x)[-1:] + x.mean(0) * 0.25
    return y, (y * y).sum()


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.parametrize("patience", [4, 1 << 20])
@pytest.mark.parametrize("written", [(), (5,), (3, 4, 6)])
def test_sizes_that_come_again_are_followed(
    written: tuple[int, ...], patience: int, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that grow have a plan for many sizes, until one comes often: ways begin behind it."""
    monkeypatch.setattr(picograd.config, "verify", 0)
    for name in ("PATIENCE", "SHORT_PATIENCE", "KERNEL_PATIENCE", "ROW_PATIENCE"):
        monkeypatch.setattr(engine_sizes, name, patience)
    drawn = np.random.default_rng(3)
    start, weight = drawn.standard_normal((2, 4)), drawn.standard_normal((4, 4))
    w = Tensor(weight.astype(np.float32)).realize()
    with picograd.config.override(dynamic=1):
        for number in range(16):
            hits.clear()
            array = start * (1 + number / 16)
            x = Tensor(array.astype(np.float32)).realize()
            for size in range(2, 9):
                if size in written:
                    x[size - 2] += 0.5
                    array[size - 2] += 0.5
                y, found = attended(picograd, x, w)
                other, wanted = attended(np, array, weight)
                x, array = picograd.cat([x, y]), np.concatenate([array, other])
                assert found.item() == pytest.approx(wanted, rel=1e-4), (number, size)
            np.testing.assert_allclose(x.numpy(), array, rtol=1e-4, atol=1e-5)
    assert hits.count(True) >= (4 if len(written) < 2 else 2)


@pytest.mark.usefixtures("cpu_by_default")
def test_what_fails_at_a_size_that_is_followed_says_so_at_its_line(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    drawn = np.random.default_rng(3)
    start, weight = drawn.standard_normal((2, 4)), drawn.standard_normal((4, 4))
    w = Tensor(weight.astype(np.float32)).realize()
    with picograd.config.override(dynamic=1):
        for number in range(14):
            array, x = start, Tensor(start.astype(np.float32)).realize()
            for size in range(2, 9):
                other, wanted = attended(np, array, weight)
                if number == 13 and size == 6:
                    scores = picograd.exp(x @ w @ x.T * 0.1)
                    with pytest.raises(ShapeError, match=r"\(6, 6\)"):
                        scores / scores.sum(1)[:5, None]
                y, found = attended(picograd, x, w)
                x, array = picograd.cat([x, y]), np.concatenate([array, other])
                assert found.item() == pytest.approx(wanted, rel=1e-4)
    assert hits[-7:].count(True) >= 3


@pytest.mark.usefixtures("cpu_by_default")
def test_gradients_at_sizes_that_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    drawn = np.random.default_rng(3)
    rows, weight = drawn.standard_normal((9, 4)), drawn.standard_normal((4, 4))
    w = Tensor(weight.astype(np.float32)).realize().requires_grad_()
    whole = Tensor(rows.astype(np.float32)).realize()
    with picograd.config.override(dynamic=1):
        for _ in range(12):
            for size in range(2, 9):
                w.grad = None
                loss = ((whole[:size] @ w) ** 2).sum()
                loss.backward()
                wanted = 2 * rows[:size].T @ (rows[:size] @ weight)
                assert w.grad is not None
                assert loss.item() == pytest.approx(((rows[:size] @ weight) ** 2).sum(), rel=1e-4)
                np.testing.assert_allclose(w.grad.numpy(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("cpu_by_default")
def test_strides_of_a_piece_are_found_where_a_way_is_followed(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node reads that stands in for one is not looked at."""
    monkeypatch.setattr(picograd.config, "verify", 0)
    values = np.random.default_rng(3).standard_normal((4, 12)).astype(np.float32)
    w, x = Tensor(values).realize(), Tensor(values[:, :4].copy()).realize()
    wanted = np.split(values[:, :4] @ values, 3, 1)
    for _ in range(12):
        q, k, v = (each.view(4, 2, 2).transpose(0, 1) for each in (x @ w).chunk(3, -1))
        aliasing.STRIDES.clear()
        found = ((q * k).sum(-1) * v[..., 0]).sum().item()
        shown = [each.reshape(4, 2, 2).swapaxes(0, 1) for each in wanted]
        assert found == pytest.approx(
            ((shown[0] * shown[1]).sum(-1) * shown[2][..., 0]).sum(), rel=1e-4, abs=1e-4
        )
    assert hits[-3:] == [True] * 3
