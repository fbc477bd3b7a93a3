"""Values that are carried: a loop that reads some of its state now and then stays flat."""

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import carried, pending, realize, waiting
from picograd.engine.carried import KNOWN, below, look_below, readers_among
from picograd.engine.plan_cache import PlanCache
from picograd.engine.plan_key import walk_pending
from picograd.errors import GradientError

RANDOM = np.random.default_rng(0)
W, U = (RANDOM.standard_normal((3, 12)).astype(np.float32) for _ in range(2))
X = RANDOM.standard_normal((400, 2, 3)).astype(np.float32)
IRREGULAR = frozenset(np.flatnonzero(RANDOM.random(400) < 0.3))
Reads = Callable[[int], bool]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """List the plans that are made."""
    plans: list[Any] = []
    put = PlanCache.put
    monkeypatch.setattr(
        PlanCache, "put", lambda self, key, plan: (plans.append(key), put(self, key, plan))
    )
    yield plans


def every(count: int) -> Reads:
    return lambda step: step % count == count - 1


def never(step: int) -> bool:
    return False


def irregular(step: int) -> bool:
    return step in IRREGULAR


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def wanted(steps: int) -> list[Any]:
    """Run the cell in NumPy, in float64."""
    h, c, found = np.zeros((2, 3)), np.zeros((2, 3)), []
    for x in X[:steps].astype(np.float64):
        i, f, g, o = np.split(x @ W + h @ U, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append((h, c))
    return found


def cell(x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (x @ w + h @ u).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@pytest.mark.parametrize(
    ("hidden", "state", "plans"),
    [
        (never, every(3), 3), (every(1), every(4), 3), (every(2), every(3), 5), (never, never, 0),
        (every(3), never, 3), (never, irregular, 24), (irregular, every(5), 24),
    ],
    ids=["state", "both", "in turn", "nothing", "hidden", "irregular", "irregular hidden"],
)  # fmt: skip
def test_a_cell_whose_state_is_read_now_and_then(
    hidden: Reads, state: Reads, plans: int, made: list[Any], count_nodes: Callable[[], int]
) -> None:
    """What the hidden state is computed from is read by nobody, and stored with the state."""
    carried.SPOTS.clear()
    steps, w, u = 90, picograd.tensor(W), picograd.tensor(U)
    reference, counts, sizes = wanted(steps), [], []
    with picograd.no_grad():
        h = c = picograd.zeros(2, 3)
        for step in range(steps):
            h, c = cell(picograd.tensor(X[step]), h, c, w, u)
            for asked, tensor, number in ((hidden, h, 0), (state, c, 1)):
                if asked(step):
                    values = reference[step][number]
                    np.testing.assert_allclose(tensor.numpy(), values, rtol=1e-4, atol=1e-5)
            counts.append(len(made))
            if step in (29, 89):
                sizes.append(count_nodes())
    assert len(made) <= plans
    if plans < 9:
        assert counts[29] == counts[-1]  # afterwards it is one plan, or two in turn
        assert hidden is state or sizes[1] < sizes[0] + 60


def test_long_gaps_between_reads(made: list[Any]) -> None:
    """Each plan computes what came since the last read, however long that is."""
    carried.SPOTS.clear()
    v = x = picograd.ones(3)
    with picograd.no_grad():
        for step in range(120):
            v = 0.9 * v + 0.1 * x.cos()
            x = x - 0.01 * v * step
            if step % 20 == 19:
                v.sum().item()
    assert len(made) <= 3


def test_what_is_not_made_of_a_computation_is_not_stored_with_it() -> None:
    """A value that only lived through it stays pending, and is fused where it is read."""
    x, other = picograd.ones(3), picograd.ones(3)
    apart = x.exp() * 3
    for _ in range(3):
        (other * 2).sum().item()
    node = apart.node
    assert (apart + 1).tolist() == pytest.approx([3 * np.e + 1] * 3)
    assert node.realized is None


def test_each_step_of_a_sequence_that_grows_computes_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The token that is read is stored, and the sequence with it, whose token it is, too."""
    told: list[Any] = []
    run = pending.realize_roots
    monkeypatch.setattr(
        pending,
        "realize_roots",
        lambda roots, found: (told.append(found.key.rows), run(roots, found))[1],
    )
    table, tokens = Tensor(X[0, :, :2].copy()), Tensor([[1]])
    for _ in range(7):
        token = table[tokens].sum(1).argmax(-1, keepdim=True)
        tokens = picograd.cat([tokens, token], 1)
        token.item()
    ops = [([row[0] for row in rows], roots) for rows, roots in told]
    assert ops[-1] == ops[-2] == ops[-3]


@pytest.mark.parametrize("verify", [0, 1])
def test_what_is_detached_and_let_go_is_not_stored(
    monkeypatch: pytest.MonkeyPatch, verify: int
) -> None:
    """Rows that grow by detached values: a step stores these, not what they were detached from.

    VERIFY looks whether steps that are followed take the plans of those that are recorded.
    """
    sizes: list[int] = []
    settle = realize.settle

    def noted(roots: Any, results: Any) -> None:
        sizes.append(len(roots))
        settle(roots, results)

    monkeypatch.setattr(realize, "settle", noted)
    w = Tensor(W[:, :3]).realize()

    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        y = (x @ w).tanh()
        loss = (y * y).mean()
        return loss.detach(), y.detach()

    with picograd.config.override(verify=verify):
        for _ in range(12):
            x, rows = Tensor(X[0, :1]), X[0, :1].astype(np.float64)
            for _ in range(7):
                loss, y = step(x)
                wanted = np.tanh(rows @ W[:, :3])
                np.testing.assert_allclose(loss.numpy(), (wanted**2).mean(), rtol=1e-5)
                x, rows = picograd.cat([x, y[-1:]], 0), np.concatenate([rows, wanted[-1:]])
    assert max(sizes[20:]) == 3  # the rows, what they grow by, and the loss


@pytest.mark.parametrize("verify", [0, 1])
def test_what_is_detached_and_let_go_is_not_stored_before_a_write(
    monkeypatch: pytest.MonkeyPatch, verify: int
) -> None:
    """As what reads the old contents, and lives on, is."""
    roots: list[int] = []
    settle = realize.settle

    def noted(nodes: Any, results: Any) -> None:
        roots.append(len(nodes))
        settle(nodes, results)

    monkeypatch.setattr(realize, "settle", noted)
    w = Tensor(W[:, :3]).requires_grad_()
    x = Tensor(X[0]).realize()

    def step() -> tuple[Tensor, Tensor]:
        y = (x @ w).tanh()
        loss = (y * y).mean()
        loss.backward()
        with picograd.no_grad():
            w.sub_(0.1 * w.grad)
        w.grad = None
        return loss.detach(), y.detach()

    with picograd.config.override(verify=verify):
        found = [step()[0].item() for _ in range(20)]
    assert found == sorted(found, reverse=True) and max(roots[2:]) == 2  # the loss, and the write


def test_values_that_track_gradients_are_computed_again() -> None:
    """They are stored where `backward` reads them, not by every look at a loss."""
    w = picograd.ones(3, requires_grad=True)
    for _ in range(3):
        y = (w * 2).exp()
        y.sum().item()
        assert y.node.realized is None
        y.sum().backward()


def test_what_parameters_start_from_is_stored_before_what_reads_it(made: list[Any]) -> None:
    """So a network that is only read has two plans, and its random numbers are drawn once."""
    weight = picograd.randn(7, 5, requires_grad=True)
    bias = picograd.nn.init.uniform_(picograd.zeros(5, requires_grad=True))
    with picograd.no_grad():
        first = (Tensor(X[0]).sum() + weight @ bias).numpy()
        count = len(made)
        for _ in range(3):
            assert ((Tensor(X[0]).sum() + weight @ bias).numpy() == first).all()
    assert len(made) == count


def test_a_leaf_made_of_data_is_part_of_what_reads_it(made: list[Any]) -> None:
    """A mix of pictures whose gradients are asked for, as at each step of a gradient penalty."""
    x, y = Tensor(X[0]).realize(), Tensor(X[1]).realize()
    made.clear()
    mixed = (x * 0.25 + y * 0.75).requires_grad_()
    mixed.square().sum().backward()
    assert mixed.grad is not None
    mixed.grad.realize()
    assert len(made) == 1


def test_a_gradient_that_was_added_to_is_not_looked_at_once_its_weight_moved() -> None:
    """Two batches a step, behind a mask: the first sum of gradients stays in a graph."""
    layer = picograd.nn.Linear(8, 8)
    optimizer = picograd.nn.optim.SGD(layer.parameters(), lr=0.1)
    mask, rows = picograd.tril(picograd.ones(5, 5)), np.ones((5, 8), np.float32)

    def attend(x: Tensor) -> Tensor:
        return (layer(x) @ x.mT).masked_fill(mask == 0, 0.0) @ x

    for _ in range(2):
        for _ in range(2):
            x = picograd.stack([picograd.from_numpy(rows) for _ in range(4)])
            loss = attend(x).square().mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert layer.weight.isfinite().all()


def steps_of_two_weights(count):
    """Differentiate one loss several times: from the second on gradients go by formula."""
    first, second = (Tensor(np.ones(3, np.float32), requires_grad=True) for _ in range(2))
    for _ in range(count):
        first.grad = second.grad = None
        loss = (first * second * second).exp().sum()
        loss.backward()
    return first, second, loss


def test_the_loss_is_read_with_its_gradients():
    first, second, loss = steps_of_two_weights(2)
    loss.item()
    assert first.grad._node.op == second.grad._node.op == "buffer"
    assert np.allclose(second.grad.numpy(), 2 * np.e)


def test_one_gradient_is_read_with_the_others_that_are_held():
    first, second, loss = steps_of_two_weights(2)
    first.grad.sum().item()
    assert second.grad._node.op == "buffer" and loss._node.realized is None
    first, second, loss = steps_of_two_weights(2)
    second.grad = None
    first.grad.sum().item()
    assert first.grad._node.op == "buffer" and not carried.GRADIENTS


def test_gradients_of_no_formula_are_read_at_once_too():
    class Doubled(picograd.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    first, second, third = (Tensor(np.ones(3, np.float32), requires_grad=True) for _ in range(3))
    for _ in range(3):
        first.grad = second.grad = third.grad = None
        ((Doubled.apply(first * second) * third).exp() * third).sum().backward()
        first.grad.sum().item()
        assert second.grad._node.op == third.grad._node.op == "buffer"
    assert np.allclose(first.grad.numpy(), 2 * np.exp(2))


def test_what_is_beside_gradients_is_read_alone():
    first, _, _ = steps_of_two_weights(2)
    (first * 3).sum().item()
    assert first.grad._node.realized is None and first.grad._node.op != "buffer"


@pytest.mark.parametrize("is_looked_at", [False, True])
def test_a_gradient_finds_the_masks_whose_sources_were_overwritten(is_looked_at: bool) -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    chosen, is_left = picograd.zeros(4), picograd.ones(4).bool()
    for number in range(3):
        if is_looked_at:
            assert is_left.any()
        now = x.detach() <= number + 1
        chosen[now & is_left] = x.sum() * 10**number
        is_left[now & is_left] = ~now[now & is_left]
    chosen.sum().backward()
    assert chosen.tolist() == [10, 100, 1000, 0] and x.grad.tolist() == [111] * 4


@pytest.mark.parametrize("way", ["clone", "row"])
def test_a_gradient_finds_values_whose_sources_were_overwritten(way: str) -> None:
    """A queue of keys or a codebook is read, overwritten, and the loss read before `backward`."""
    weight, queue = Tensor([1.0, 2.0], requires_grad=True), Tensor([[2.0, 3.0], [5.0, 7.0]])
    for _ in range(2):
        read = queue.clone()[0] if way == "clone" else queue[Tensor([0])] * 1.0
        loss = (weight * read.detach()).sum()
        del read
        with picograd.no_grad():
            queue.mul_(3)
        loss.item()
        loss.backward()
    assert weight.grad.tolist() == [2 + 6, 3 + 9] and queue[1].tolist() == [45, 63]


def test_masks_that_no_gradient_needs_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    kept_sources = carried.kept_sources
    monkeypatch.setattr(
        carried, "kept_sources", lambda *given: found.append(kept_sources(*given)) or found[-1]
    )
    x = Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    for weight in (x.detach(), x):
        is_left = picograd.ones(4).bool().realize()
        chosen = (weight * 2).where((weight > 1) & is_left, 0.0)
        is_left[:2] = False
        assert chosen.tolist() == [0, 4, 6, 8]
        assert [len(each) for each in found if each] == ([1] if weight is x else [])


def test_what_asks_for_gradients_is_not_kept() -> None:
    """A step that overwrites it comes after its gradients."""
    x, weight = (Tensor([value], requires_grad=True) for value in (1.0, 2.0))
    loss = (x * (weight.detach() * 3)).sum()
    with picograd.no_grad():
        weight.mul_(5)
    assert loss.item() == 6
    loss.backward()
    with pytest.raises(GradientError, match="backward"):
        x.grad.item()


def test_what_lies_between_takes_no_gradient_and_is_no_view() -> None:
    weight, made = Tensor([1.0], requires_grad=True), Tensor([2.0]).exp()
    with picograd.no_grad():
        inner = weight * made.exp()
    wide = made.reshape(1, 1).expand(3, 1)
    total = weight * wide * (inner + weight)
    order = walk_pending([total.node])
    assert carried.between(order) == {made.node, inner.node}


def test_tables_may_change_while_they_are_walked() -> None:
    class Recording:
        """A table of live tensors; a handler of signals runs while somebody asks it."""

        def get(self, key: int) -> None:
            carried.NEW[key + 100] = None

    carried.NEW.update(dict.fromkeys(range(3)))
    assert carried.waiting([], {}, Recording(), set()) == [] and not carried.NEW
    nodes = [Tensor([number]).exp().node for number in range(4)]
    table = weakref.WeakKeyDictionary(dict.fromkeys(nodes[:3]))
    for node in carried.nodes_of(table):
        table[nodes[3]] = table.pop(node)
    assert carried.nodes_of(table) == [nodes[3]]


def test_a_view_of_what_was_cut_off_is_not_free() -> None:
    made = Tensor([1.0, 2.0, 3.0]) * 2
    cut, plain = made.detach()[1:], made[1:]
    bases: dict[Any, Any] = {}
    for _ in range(2):  # found, then known
        assert carried.shown(cut.node, cut, bases) == (made.node, 0)
        assert carried.shown(plain.node, plain, bases) == (made.node, 1)


def test_what_a_node_is_made_of():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    z = (x + 1).exp() * y
    found = below(z._node)
    assert {node.op for node in found.inner} == {"add", "exp"}
    assert set(found.memory) == {x._node, y._node}
    assert below(z._node) is found
    assert readers_among([z._node], {x._node}, set()) == [z._node]
    assert readers_among([z._node], {z._node}, set()) == []
    assert readers_among([z._node], set(), {id(y._node.arg.buffer)}) == [z._node]


def test_what_was_computed_meanwhile_is_memory():
    x = Tensor([1.0, 2.0])
    y = x + 1
    z = y.exp() * 2
    before = below(z._node)
    inner = y._node
    y.realize()
    assert not before.is_present()
    found = below(z._node)
    assert inner in found.memory and x._node not in found.memory
    y += 1  # over the memory that z reads
    np.testing.assert_allclose(z.numpy(), 2 * np.exp([2.0, 3.0]), rtol=1e-6)


def test_a_reader_of_a_write_is_no_reader_of_what_is_written():
    x = Tensor([1.0, 2.0]).realize()
    old = x._node
    x += 1
    y = x * 2
    assert x._node in look_below(y._node).memory and old not in look_below(y._node).memory


def test_waiting_tensors_are_looked_at_once(monkeypatch, on_host):
    others = [nn.Linear(3, 3) for _ in range(30)]
    x, total = Tensor([1.0, 2.0]), Tensor([0.0, 0.0]).realize()

    def step():
        nonlocal total
        total += (x * 2).relu()
        total.realize()

    step()
    calls = []
    monkeypatch.setattr(pending, "walk_pending", lambda *args: calls.append(args) or [])
    known = len(KNOWN)
    for _ in range(3):
        step()
    assert not calls and len(KNOWN) <= known + 3
    assert total.tolist() == [8.0, 16.0] and len(others) == 30


def test_many_waiting_tensors_cost_little():
    x = Tensor([1.0, 2.0]).realize()

    def seconds():
        found = []
        for _ in range(20):
            start = time.thread_time()
            x.add_(1.0)
            x.realize()
            found.append(time.thread_time() - start)
        return min(found)

    seconds()
    few = seconds()
    others = [(Tensor([float(n)]) + 1).exp() * 2 for n in range(300)]
    seconds()
    assert seconds() < few + 2e-3 and len(others) == 300


def test_a_step_of_a_loop_does_not_look_at_all_that_waits_for_its_end(monkeypatch):
    """Nor at what that is made of: states of a loop that logs another number at each step."""
    looked = []
    real = carried.reads
    monkeypatch.setattr(carried, "reads", lambda *args: looked.append(args) or real(*args))
    weights, state, other = (Tensor(np.eye(n, dtype=np.float32)) for n in (3, 3, 2))
    kept = []
    for step in range(60):
        state = (state @ weights).tanh()
        kept.append(state * 2)
        assert (other * step).sum() >= 0
    assert len(looked) < 10
    np.testing.assert_allclose(kept[-1].numpy(), state.numpy() * 2)
    np.testing.assert_allclose(kept[0].numpy(), 2 * np.tanh(np.eye(3)), rtol=1e-6)


def test_what_has_no_tensor_any_more_is_not_looked_at_in_each_later_step(monkeypatch):
    monkeypatch.setattr(carried, "MANY", [0])
    y = Tensor([0.5, 0.1]).requires_grad_()
    before = len(carried.WAITING)
    for _ in range(40):
        other = y * 0.5
        assert (y * y).sum() < 9
        y = y * 0.4 + other.sin()
        del other
        assert y.sum() < 9
    assert len(carried.WAITING) <= 2 * before + carried.NEAR


def test_what_was_stored_in_past_steps_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """An iteration that asks for convergence, whose steps `backward` needs."""
    monkeypatch.setattr(carried, "MANY_PASSED", [0])
    gain = Tensor([[0.5, 0.2], [0.1, 0.4]]).requires_grad_()
    state = Tensor([1.0, 2.0])
    kept = len(carried.PASSED)
    for step in range(120):
        state = 1.0 / (gain @ state)
        if step % 3:  # no way that is followed
            state = state * 1.0
        assert not picograd.isnan(state).any()
    assert len(carried.PASSED) <= 2 * kept + 2 * carried.NEAR
    state.sum().backward()
    assert gain.grad is not None and gain.grad.isfinite().all()


def test_what_waited_in_steps_that_are_past_is_let_go(monkeypatch):
    """Steps that read a value of which others are made: nodes that are gone are in no group."""
    monkeypatch.setattr(carried.GROUPS, "limit", waiting.FEW)
    weight = Tensor(np.eye(4, dtype=np.float32), requires_grad=True)
    for step in range(120):
        state = (Tensor(np.full((4, 4), step, np.float32)) @ weight).tanh()
        gate = state * 2
        late = gate.exp() + gate
        for _ in range(20):
            late = (late + 1).sin()
        assert gate.sum() < 40
        late.sum().item()
        del late, gate, state
    assert carried.GROUPS.size() < 2 * waiting.FEW


def test_leaves_that_nobody_computes_are_let_go() -> None:
    for _ in range(2 * carried.CLEARED):
        picograd.ones(2).requires_grad_()
    assert len(carried.STARTS) < carried.CLEARED


def test_a_node_that_comes_again_is_the_last() -> None:
    """A node that is gone may have had its place."""
    one, other = (Tensor([number]) * 2.0 for number in (1.0, 2.0))
    assert [*carried.NEW][-1] == id(other._node)
    carried.add_new(one._node)
    assert [*carried.NEW][-2:] == [id(other._node), id(one._node)]


@pytest.mark.parametrize("many", [1, 80])
def test_what_a_loop_asks_for_before_its_next_value_is_let_go(many: int) -> None:
    """The next value reads it, and would keep all that it was made of."""
    x, nodes = Tensor(np.ones(3, np.float32)), []
    for _ in range(60):
        y = x
        for _ in range(many):
            y = y * 0.99 + 0.01
        x = y + 0.0
        nodes.append(weakref.ref(y._node))
        y.realize()
    del y
    gc.collect()
    assert sum(each() is not None for each in nodes) <= carried.HOPS + 3
    np.testing.assert_allclose(x.numpy(), 1.0, rtol=1e-4)
