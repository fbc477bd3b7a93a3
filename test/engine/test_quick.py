"""Steps with updates: what is told by formulas finds the plan that its nodes find."""

import gc
import weakref

import numpy as np
import pytest
from debug_tools import fresh_engine

import picograd
from picograd import Tensor
from picograd.config import config
from picograd.engine import pending, quick
from picograd.engine.backends import get_device
from picograd.engine.executable import CompiledPlan
from picograd.graph import gradient_formula


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor(values, requires_grad=True)


def steps(loss_of, weight, count, look=False):
    losses = []
    for number in range(count):
        weight.grad = None
        loss = loss_of(weight, number)
        loss.backward()
        if look:
            loss.item()
        with picograd.no_grad():
            weight -= weight.grad * 0.1
        losses.append(loss.item())
    return losses, weight.numpy()


def dense(weight, number):
    return (Tensor([[1.0, 2.0, number]]) @ weight).tanh().square().sum()


DATA = leaf(5, 3, seed=2).detach()


def sliced(weight, number):
    at = number % 3
    return ((DATA[at : at + 2] * DATA[at + 1]) @ weight).tanh().square().sum()


def detached(weight, number):
    hidden = weight.tanh()
    return (hidden * (hidden.detach() > 0).float() * hidden.exp().detach()).sum()


def masked(weight, number):
    return ((DATA @ weight).relu() * (DATA > 0).float()[:, :1]).square().sum()


@pytest.mark.parametrize("loss_of", [dense, sliced, detached, masked])
def test_steps_by_hand_compute_the_same_without_known_gradients(loss_of, monkeypatch):
    gradient_formula.KNOWN.clear()
    found = steps(loss_of, leaf(3, 4), 6)
    assert gradient_formula.KNOWN
    monkeypatch.setattr(gradient_formula, "find", lambda walked: None)
    wanted = steps(loss_of, leaf(3, 4), 6)
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])


def test_what_was_computed_meanwhile_changes_no_value():
    found = steps(dense, leaf(3, 4), 4, look=True)
    wanted = steps(dense, leaf(3, 4), 4)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6)


def test_a_gradient_that_is_left_over_reads_no_overwritten_memory():
    """That of a linear function: nothing of what was overwritten is in it."""
    for _ in range(3):
        weight, x = leaf(2, 3), Tensor([[1.0, 2.0]])
        (x @ weight).sum().backward()
        with picograd.no_grad():
            weight += 1
        weight.realize()
        np.testing.assert_array_equal(weight.grad.numpy(), [[1, 1, 1], [2, 2, 2]])


def test_batches_of_one_update_add_up():
    weight, alone = leaf(3, 4), leaf(3, 4)
    for _ in range(4):
        weight.grad = None
        for number in range(3):
            dense(weight, number).backward()
        (total,) = picograd.autograd.grad(sum(dense(alone, number) for number in range(3)), alone)
        with picograd.no_grad():
            weight -= weight.grad * 0.1
            alone -= total * 0.1
        weight.realize()
    np.testing.assert_allclose(weight.numpy(), alone.numpy(), rtol=1e-5)


def test_a_graph_over_gradients_that_wait_is_differentiated():
    weight = leaf(4, 3)
    for _ in range(4):
        x = leaf(2, 4, seed=1)
        (x * x.exp()).sum().backward()
        weight.grad = None
        moved = (x + x.grad.sign()).detach()
        (moved @ weight).relu().sum().backward()
        mask = (moved.numpy() @ weight.detach().numpy()) > 0
        np.testing.assert_allclose(weight.grad.numpy(), moved.numpy().T @ mask, rtol=1e-6)


def test_a_loss_after_an_update_may_read_another_leaf_of_the_memory():
    """The gradients were read before some steps: the loss that waits is met after the update."""
    assert config.verify
    x, weight = Tensor.ones(6, 4).realize(), picograd.nn.Parameter(Tensor.ones(4, 3).realize())
    optimizer = picograd.optim.SGD([weight], lr=0.1)
    for number in range(8):
        optimizer.zero_grad()
        loss = (x @ weight).relu().sum()
        loss.backward()
        if number % 3 != 1:
            weight.grad.tolist()
        optimizer.step()
    np.testing.assert_allclose(weight.numpy(), np.full((4, 3), -0.2), rtol=1e-5)


def test_a_walk_lists_what_is_under_nodes_once():
    x, y = leaf(2), leaf(2, seed=1)
    z = (x * y + x) * y
    walk = quick.Walk()
    walk.add([z._node])
    assert walk.order == pending.walk_pending([z._node])
    count = len(walk.order)
    walk.add([(z + x)._node])
    assert len(walk.order) == count + 1


@pytest.fixture
def anew(monkeypatch):
    """List the plans of steps that were found by all of their nodes; nothing is known before."""
    plans, noted = [], quick.note

    def note(key, found, full, plan):
        plans.append(plan)
        noted(key, found, full, plan)

    monkeypatch.setattr(quick, "note", note)
    with fresh_engine():
        yield plans


class Graphs:
    """A network of graphs, trained on ever other numbers of nodes and edges."""

    def __init__(self):
        picograd.manual_seed(0)
        self.model = picograd.nn.Sequential(picograd.nn.Linear(4, 6), picograd.nn.Linear(6, 3))
        self.optimizer = picograd.optim.Adam(self.model.parameters(), lr=0.01)

    def step(self, nodes, edges):
        drawn = np.random.default_rng([nodes, edges])
        x = Tensor(drawn.standard_normal((nodes, 4)).astype(np.float32))
        start, end = (Tensor(drawn.integers(0, nodes, edges)) for _ in range(2))
        hidden = self.model[0](x).tanh()
        total = picograd.zeros_like(hidden).index_add(0, end, hidden[start])
        loss = (self.model[1](total) - 1.0).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


SIZES = [(20 + n % 7, 40 + 3 * n % 17) for n in range(40)]
NEW = [(27, 50), (28, 57), (29, 43)]


def test_steps_of_other_sizes_are_bound_by_the_key_of_their_updates(anew, monkeypatch):
    mine = Graphs()
    losses = [mine.step(*sizes) for sizes in SIZES]
    assert len(anew) < 20
    before = len(anew)
    losses += [mine.step(*sizes) for sizes in NEW]
    assert len(anew) == before, "sizes that were never met"
    monkeypatch.setattr(quick, "known_sizes", lambda key, found: None)
    monkeypatch.setattr(config, "dynamic", False)
    other = Graphs()
    wanted = [other.step(*sizes) for sizes in (*SIZES, *NEW)]
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)


def test_what_is_no_size_is_compared(anew):
    """The same operations along another axis, once a plan was bound to sizes along the first."""

    def losses():
        weight, found = leaf(4, 4), []
        optimizer = picograd.optim.SGD([weight], lr=0.1)
        for number in range(24):
            x = Tensor(np.random.default_rng(number).random((20 + number, 4), np.float32))
            loss = ((x @ weight.softmax(int(number > 17))) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    mine = losses()
    with config.override(dynamic=0):
        np.testing.assert_allclose(mine, losses(), rtol=1e-5)


def test_sizes_that_stay_get_a_plan_of_their_own(anew):
    mine = Graphs()
    for sizes in SIZES:
        mine.step(*sizes)
    before, losses = len(anew), []
    for _ in range(130):
        losses.append(mine.step(30, 55))
    assert len(anew) == before + 1 and isinstance(anew[-1], CompiledPlan)
    assert losses[-1] < losses[0]


def test_what_is_computed_between_walk_and_plan_is_not_remembered():
    """A handler of a signal may compute there what the walk saw as a computation."""

    def found(meanwhile):
        x = leaf(2, 3)
        part = x * 2.0
        total = part + 1.0
        walk = quick.Walk()
        walk.add([total._node])
        key = walk.key([total._node])
        if meanwhile:
            part.realize()
        (buffer,) = quick.run([], [total._node], key)
        return get_device(buffer.device).copy_out(buffer).view(np.float32)

    wanted = leaf(2, 3).numpy().ravel() * 2 + 1
    for meanwhile in (True, True, False, False, True):
        np.testing.assert_allclose(found(meanwhile), wanted, rtol=1e-6)


def test_computations_leave_no_cycles():
    """What two optimizers read, gradients too, would wait in memory until the collector runs."""
    maker, judge = picograd.nn.Linear(3, 5), picograd.nn.Linear(5, 4)
    first = picograd.optim.Adam(maker.parameters())
    second = picograd.optim.SGD(judge.parameters(), lr=0.1)
    x = picograd.ones(4, 3).realize()

    def step():
        second.zero_grad()
        judge(maker(x).detach()).square().mean().backward()
        second.step()
        first.zero_grad()
        judge(maker(x)).mean().backward()
        first.step()

    for _ in range(4):
        step()
    gc.disable()
    try:
        step()
        found = [weakref.ref(each.grad) for each in judge.parameters()]
        second.zero_grad()
        assert [each() for each in found] == [None, None]
    finally:
        gc.enable()
