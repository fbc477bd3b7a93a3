"""Pending work: what must run with a write, what is counted, what is freed."""

import copy
import gc
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from thread_support import run_in_threads

import picograd
from picograd import Tensor, nn
from picograd.buffer import Buffer, Overwritten
from picograd.engine import carried, pending, quick
from picograd.engine import realize as engine
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_key import GraphKey
from picograd.errors import GradientError
from picograd.graph import gradient as gradient_module
from picograd.graph.node import Node, toposort
from picograd.tensor.core.recording import apply


def test_readers_join_the_plan_of_a_write() -> None:
    gc.collect()  # a draft of a plan is a cycle: the writes of one that a test left would join
    x, other = Tensor([1.0, 2.0]), Tensor([5.0])
    reader, stranger = x * 2, other * 2
    x += 1
    roots = pending.with_readers([x.node])[0]
    assert reader.node in roots and x.node in roots and stranger.node not in roots
    assert pending.with_readers([stranger.node])[0] == [reader.node, stranger.node, x.node]
    after = x * 3
    assert after.node not in pending.with_readers([x.node])[0]
    assert reader.tolist() == [2, 4] and after.tolist() == [6, 9]


def test_dead_tensors_are_forgotten() -> None:
    x = Tensor([1.0])
    y = x * 2
    node = y.node
    assert pending.owner(node) is y
    del y
    gc.collect()
    assert pending.owner(node) is None


def test_flush_assigns_runs_all_writes() -> None:
    a, b = Tensor([1.0]), Tensor([2.0])
    a += 1
    b += a
    pending.flush_assigns()
    assert not pending.pending_writes()
    assert (a.tolist(), b.tolist()) == ([2], [4])


def test_reading_what_was_overwritten_is_an_error() -> None:
    w, x = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0])
    loss = (w * x).sum()
    x += 1
    x.realize()
    assert loss.item() == 11
    with pytest.raises(RuntimeError, match="at version 1; expected version 0"):
        loss.backward()
    assert w.grad is None
    old = Tensor([1.0, 2.0]).realize()
    stale, kept = old.node, old
    kept += 1
    kept.realize()
    with pytest.raises(RuntimeError, match="overwritten in place before it was computed: it is at"):
        Tensor.from_node(stale.unary("neg")).tolist()


def test_a_computed_write_is_the_leaf_of_its_storage() -> None:
    x = Tensor([1.0, 2.0]).realize()
    first = x.node
    x += 1
    x += 1
    second, inner = x.node, x.node.inputs[0]
    y = x + 0
    del x  # nobody but the graph holds the writes
    assert y.tolist() == [3, 4]
    assert [node.op for node in (first, inner, second)] == ["buffer"] * 3
    assert second.arg.version == 2 and second.arg.buffer is not None
    assert [first.arg.describe(), inner.arg.describe()] == [
        "is at version 2; expected version 0",
        "is at version 2; expected version 1",
    ]
    assert not pending.pending_writes()


def test_tracing_does_not_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "BUDGET", 5)

    @picograd.jit
    def many(x: Tensor) -> Tensor:
        for _ in range(20):
            x = x + 1
        return x

    assert many(Tensor([0.0])).tolist() == [20] and many(Tensor([1.0])).tolist() == [21]


def test_threads_compute_only_whole_writes_of_each_other() -> None:
    """Each thread owns its tensors; all share the tables of pending work."""
    wrong: list[tuple[int, float]] = []

    def work(number: int) -> None:
        for _ in range(30):
            b = Tensor([0.0])
            b += number
            reader = b * 10
            b *= 2
            c = b + number
            if (b.item(), reader.item(), c.item()) != (2 * number, 10 * number, 3 * number):
                wrong.append((number, b.item()))

    run_in_threads(work, 8)
    assert wrong == []


@pytest.mark.parametrize("is_kept", [False, True])
def test_threads_write_rows_of_their_own_of_one_tensor(is_kept: bool) -> None:
    """A write goes through to the whole tensor: nobody else's write may be lost in it."""
    shared = Tensor.zeros(4, 6)
    rows = list(shared) if is_kept else []

    def work(number: int) -> None:
        for _ in range(30):
            if is_kept:
                rows[number].add_(number + 1)
                rows[number][2:4] = 7
            else:
                shared[number] += number + 1
                shared[number, 2:4] = 7
            assert shared[number, 2].item() == 7

    run_in_threads(work, 4)
    expected = np.outer([30, 60, 90, 120], np.ones(6))
    expected[:, 2:4] = 7
    np.testing.assert_array_equal(shared.numpy(), expected)


def test_threads_read_and_copy_a_model_that_another_one_trains() -> None:
    layer = nn.Linear(3, 2)
    optimizer = nn.optim.SGD(layer.parameters(), lr=0.01)
    is_over: list[bool] = []

    def work(number: int) -> None:
        if number:
            while not is_over:
                assert np.isfinite(layer.weight.detach().numpy()).all()
                copied = copy.deepcopy(layer)
                assert np.isfinite(copied.weight.tolist()).all()
                first, second = layer.weight.detach()
                found = [*picograd.meshgrid(first, second), picograd.linalg.svdvals(layer.weight)]
                found += [layer.weight.unique(), layer.weight.nonzero()]
                assert all(np.isfinite(each.numpy()).all() for each in found)
            return
        try:
            for _ in range(40):
                optimizer.zero_grad()
                layer(Tensor.ones(4, 3)).square().mean().backward()
                optimizer.step()
        finally:
            is_over.append(True)

    run_in_threads(work, 3)


def test_result_that_is_its_operand_keeps_its_value_when_that_is_computed() -> None:
    """Another thread may compute the operand before the result is a tensor."""
    operand = Tensor([1.0, 2.0]) + Tensor([3.0, 4.0])

    def same(node: Node) -> Node:
        operand.realize()
        return node

    result = apply(same, operand)
    operand.mul_(2)
    np.testing.assert_array_equal(operand.numpy(), [8, 12])
    np.testing.assert_array_equal(result.numpy(), [4, 6])


def test_threads_train_models_of_their_own() -> None:
    def train(seed: int) -> list[float]:
        generator = np.random.default_rng(seed)
        weight = Tensor(generator.standard_normal((4, 3)).astype(np.float32), requires_grad=True)
        scale = Tensor(np.ones(3, np.float32))
        data = Tensor(generator.standard_normal((5, 4)).astype(np.float32))
        losses = []
        for _ in range(5):
            weight.grad = None
            out = data @ weight * scale
            loss = (out * out).mean()
            loss.backward()
            with picograd.no_grad():
                weight -= 0.1 * weight.grad
                scale *= 0.9
            losses.append(loss.item())
        return losses

    alone = [train(seed) for seed in range(4)]
    together: dict[int, list[float]] = {}
    run_in_threads(lambda seed: together.update({seed: train(seed)}), 4)
    # which values a plan stores beside its own depends on what other threads have pending
    np.testing.assert_allclose([together[seed] for seed in range(4)], alone, rtol=1e-6)


def test_threads_trace_and_replay_functions_of_their_own() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        state = Tensor([0.0])

        @picograd.jit
        def step(x: Tensor) -> Tensor:
            state.add_(x)
            return state * 2

        for turn in range(1, 6):
            before = Tensor([1.0]) + number  # pending while others trace
            if step(Tensor([float(number)])).item() != 2 * number * turn:
                wrong.append(number)
            if before.item() != number + 1:
                wrong.append(-number)

    run_in_threads(work, 4)
    assert wrong == []


def plan_keys(steps: int, step: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> list[list]:
    """List the keys of the plans that each step asks for."""
    asked: list[list] = []
    find, run = engine.find_plan, quick.run

    def noted(found: GraphKey, roots: Sequence[Node]) -> CompiledPlan:
        asked[-1].append(found.key.rows)
        return find(found, roots)

    def noted_update(updates: Any, roots: Sequence[Node], found: GraphKey) -> list[Buffer]:
        asked[-1].append(found.key.rows)
        return run(updates, roots, found)

    monkeypatch.setattr(engine, "find_plan", noted)
    monkeypatch.setattr(quick, "run", noted_update)
    for _ in range(steps):
        asked.append([])
        step()
    return asked


def test_the_first_step_computes_one_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics of a batch norm wait for the step, where parameters are stored before it."""
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 3))
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    x, y = Tensor.randn(4, 2, 2, 2).realize(), Tensor([0, 1, 2, 0])

    def step() -> None:
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    (asked,) = plan_keys(1, step, monkeypatch)
    # What parameters begin with, and the step: with its update as it stands, and stamped out.
    assert ["conv" in repr(rows) for rows in asked] == [False, True, True]
    statistics: Any = model[1]
    assert float(abs(statistics.running_mean).sum()) > 0


def test_training_with_batch_norms_asks_for_the_same_plan_at_every_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    picograd.manual_seed(0)
    layers = [
        layer for _ in range(3) for layer in (nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU())
    ]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(8, 3))
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    x, y = Tensor.randn(4, 2, 2, 2).realize(), Tensor([0, 1, 2, 0])

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()

    keys = plan_keys(5, step, monkeypatch)
    assert keys[2] == keys[3] == keys[4] and len(keys[4]) == 1


WAYS = ("in place", "data", "copy", "exponential average", "running sum")


@pytest.mark.parametrize("way", WAYS)
def test_state_that_is_carried_costs_the_same_at_every_step(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    picograd.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    average = [parameter.detach() * 1 for parameter in model.parameters()]
    x, total = Tensor.randn(4, 3), [Tensor([0.0]).sum()]

    def step() -> None:
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        with picograd.no_grad():
            for number, p in enumerate(model.parameters()):
                if way == "data":
                    p.data = p.data - 0.1 * p.grad
                elif way == "copy":
                    p.copy_(p - 0.1 * p.grad)
                else:
                    p -= 0.1 * p.grad
                if way == "exponential average":
                    average[number] = average[number] * 0.9 + p * 0.1
        if way == "running sum":
            total[0] = total[0] + loss.detach()
        loss.item()

    keys = plan_keys(8, step, monkeypatch)
    assert keys[4:6] == keys[6:]  # an average is stored by every second step, as a reader
    work = [sum(len(rows) for rows, _ in step_keys) for step_keys in keys]
    assert work[7] <= max(work[:3])


@pytest.mark.parametrize("operand", [1, "a new tensor"])
def test_a_write_costs_the_same_however_many_wait(operand: object) -> None:
    pending.realize_all()
    x = Tensor([0.0])

    def write(times: int) -> float:
        start = time.process_time()
        for _ in range(times):
            x.add_(Tensor([1.0]) if isinstance(operand, str) else operand)
        return time.process_time() - start

    first = write(500)
    write(2000)
    assert write(500) < 4 * first  # 10 to 20 times as long where each looks at those that wait
    assert x._version == 3000
    assert pending.is_overwritten(x.node.inputs[0]) and not pending.is_overwritten(x.node)


def by_hand_under_no_grad(x: Tensor, w: Tensor, state: Tensor) -> Tensor:
    with picograd.no_grad():
        state = (x + state @ w).tanh()
    state[0, 0].item()
    return state


def trained_and_detached(x: Tensor, w: Tensor, state: Tensor) -> Tensor:
    state = (x + state @ w).tanh()
    w.grad = None
    state.square().mean().backward()
    with picograd.no_grad():
        w -= 0.1 * w.grad
    w.realize()
    return state.detach()


@pytest.mark.parametrize("step", [by_hand_under_no_grad, trained_and_detached])
def test_the_past_of_carried_state_is_let_go(
    step: Callable[..., Tensor], count_nodes: Callable[[], int]
) -> None:
    xs = [Tensor(np.full((2, 3), i, np.float32)) for i in range(3)]
    w, state = Tensor(np.eye(3, dtype=np.float32), requires_grad=True), Tensor(np.zeros((2, 3)))
    counts = []
    for number in range(49):
        state = step(xs[number % 3], w, state.float())
        if number % 12 == 0:
            counts.append(count_nodes())
    assert max(counts[2:]) <= counts[1] + 60  # at most HOPS values keep their past


def test_backward_does_not_walk_what_made_a_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []

    def counted(*args: Any) -> list[Node]:
        found = toposort(*args)
        lengths.append(len(found))
        return found

    monkeypatch.setattr(gradient_module, "toposort", counted)
    x, w, v = Tensor([[1.0, 2.0]]), Tensor([[1.0], [2.0]]), Tensor([[1.0], [2.0]])
    w.requires_grad, v.requires_grad = True, True
    for _ in range(20):
        (x @ w).sum().backward()
        with picograd.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        (slope,) = picograd.grad((x @ v).sum(), [v])
        v = (v - 0.1 * slope).detach().requires_grad_()
    assert lengths and max(lengths) < 5  # as long as the first, or found without a walk


def test_small_scripts_still_get_gradients_of_what_was_carried() -> None:
    x = Tensor([1.0, 2.0])

    def shown(x: Tensor) -> Tensor:
        y = x * 2
        assert y.sum().item() == 6.0
        return (y * y).sum()

    loss = shown(x)
    assert loss.item() == 20.0
    loss.backward()
    assert x.grad.tolist() == [8.0, 16.0]


@pytest.mark.parametrize("is_in_place", [False, True])
def test_a_loop_that_nobody_reads_makes_few_plans(
    is_in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "BUDGET", 2000 if is_in_place else 70)
    monkeypatch.setattr(pending, "CHAIN", 8)
    monkeypatch.setattr(pending, "PLACES", [None, None])
    state, other = Tensor([1.0, 2.0]), Tensor([0.5, 0.5])
    keys: list[Any] = []
    run = pending.realize_roots

    def noted(roots: Sequence[Node], found: GraphKey) -> object:
        keys.append(found.key)
        return run(roots, found)

    monkeypatch.setattr(pending, "realize_roots", noted)
    for _ in range(200):
        if is_in_place:
            state.mul_(0.5).add_(1)
            other *= 0.25
        else:
            state = (state * 0.5 + other).tanh() + 1
            other = other.exp().log() * 0.25
    assert len(set(keys)) <= 3 and len(keys) > 12 and keys[-1] == keys[-2]
    assert other.tolist() == [0.0, 0.0]


def test_what_was_computed_is_computed_again_once_its_memory_was_written() -> None:
    """A graph reads the weight as it was drawn, not what was written over it meanwhile."""
    weight = picograd.full((2,), 3.0, requires_grad=True)
    loss = weight.square().sum()
    assert loss.item() == 18.0
    with picograd.no_grad():
        weight.add_(1.0)
    assert weight.tolist() == [4.0, 4.0]
    loss.backward()
    assert weight.grad is not None and weight.grad.tolist() == [6.0, 6.0]


def test_what_interrupts_a_computation_leaves_its_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, other = Tensor([1.0, 2.0]), Tensor([3.0])
    x += 1
    plain, found = carried.read_again, []

    def interrupted(order: Sequence[Node]) -> list[Node]:
        if not found:  # as the handler of a signal, between the decision to write and the write
            found.append(None)
            inner = Tensor([1.0])
            inner += 1
            found.extend([(other * 2).tolist(), inner.tolist()])
            pending.flush_assigns()
            pending.realize_all()
        return plain(order)

    monkeypatch.setattr(carried, "read_again", interrupted)
    assert (x + x).tolist() == [4, 6] and x.tolist() == [2, 3]
    assert found[1:] == [[6], [2]] and not pending.DEPTH[0]


def test_what_is_gone_harms_nobody_else() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([5.0])
    leaf, reader = x.node, x * 2
    x += 1
    written = x._node
    leaf.arg = Overwritten(leaf.arg, 0)  # as an interrupt behind the run of a plan leaves it
    leaf.arg.storage.count_writes()
    y += 1
    assert y.tolist() == [6.0]
    for lost in (x, reader):
        with pytest.raises(GradientError, match="overwritten in place"):
            lost.tolist()
    y += 1
    assert y.tolist() == [7.0]
    assert written not in pending.WRITES


def test_what_interrupts_a_computation_takes_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler of a signal computes between key and plan: checks wait for what it interrupts."""
    find, met = engine.find_plan, []

    def interrupted(found: GraphKey, roots: Sequence[Node], *rest: Any) -> Any:
        monkeypatch.setattr(engine, "find_plan", find)
        assert failed._node in found.order
        met.append((Tensor([1.0]) * 3.0).item())
        assert failed._node.realized is None
        return find(found, roots, *rest)

    x = Tensor([1.0, 2.0, 4.0]).realize()
    failed = (x > 5.0).any()
    pending.check_beside(failed._node, GradientError("x", "is large", "make it less"))
    monkeypatch.setattr(engine, "find_plan", interrupted)
    assert (x + 1.5).tolist() == [2.5, 3.5, 5.5]
    assert met == [3.0] and not pending.WAITING and failed.item() is False


def test_counting_begins_anew_with_no_way(monkeypatch):
    pending.realize_all()
    left = []
    monkeypatch.setattr(pending, "leave", lambda: left.append(1))
    pending.RECORDED[0] = pending.BUDGET  # a loop of views, of which nothing waits
    assert not pending.is_over_budget()
    assert left
    assert pending.RECORDED == [0]


@pytest.mark.parametrize("length", [0.0, 60.0])
def test_a_process_is_forked_when_no_other_thread_computes(length, monkeypatch) -> None:
    """A lock of LLVM's that a thread held would be held for ever; but who computes may wait."""
    monkeypatch.setattr(pending.rest, "__defaults__", (0.1 + length,))
    begun, done, forked = threading.Event(), [], threading.Event()

    def compute() -> None:
        with pending.LOCK:
            begun.set()
            forked.wait(0.3 if length else 20)
            done.append(1)

    thread = threading.Thread(target=compute)
    thread.start()
    begun.wait()
    process = os.fork()
    if not process:
        os._exit(len(done))
    forked.set()
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == bool(length)
    thread.join()
    assert (Tensor([1.0]) * 2).tolist() == [2]
