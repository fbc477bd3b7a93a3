import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from debug_tools import fresh_engine, small_network

import picograd
from picograd import Tensor, nn
from picograd.engine import cache, compile, realize, stored_plan
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_key import graph_key
from picograd.errors import InternalError
from picograd.runtime import pieces
from picograd.runtime.cpu import CpuDevice


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path)


def stored(path):
    """What the folder holds of plans: (name, description)."""
    found = []
    for file in Path(path, "kernels").iterdir():
        payload = file.read_bytes()[cache.HEAD :]
        if payload.startswith(b'{"slots"'):
            found.append((file.name.removesuffix(cache.SUFFIX), json.loads(payload)))
    return found


def process(path, **settings):
    """Stand for a process: the memory of this one is emptied. Tests verify, which finds nothing."""
    return fresh_engine(cache=path, verify=0, **settings)


def never(*_, **__):
    raise InternalError("schedule", "a plan was made again", "find it on disk")


def train(steps=3):
    """Updates of parameters and of statistics, numbers that change, a value read later."""
    picograd.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = nn.optim.Adam(model.parameters(), lr=1e-2)
    x = Tensor(np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4), device="cpu")
    y = Tensor(np.arange(6) % 3, device="cpu")
    losses = []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.01 / (step + 1)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [value.tolist() for value in model.state_dict().values()]


@pytest.mark.usefixtures("cpu_by_default")
def test_a_second_process_schedules_and_generates_nothing(folder, monkeypatch):
    with process(folder):
        first = train()
    monkeypatch.setattr(realize, "make_plan", never)
    with process(folder):
        assert train() == first
    with process(folder), pytest.raises(InternalError, match="made again"):
        (Tensor(np.ones(7, np.float32), device="cpu") * 3).tolist()  # not seen before


def test_what_differs_has_another_plan(folder):
    x = np.arange(4, dtype=np.float32)
    with process(folder):
        a, b = Tensor(x, device="cpu"), Tensor(x + 1, device="cpu")
        assert (a - b).tolist() == [-1] * 4
    with process(folder):
        assert (a - a).tolist() == [0] * 4  # one buffer, not two
        assert (b - a).tolist() == [1] * 4
        assert (a.cast(picograd.float64) - b).tolist() == [-1] * 4
    count = len(stored(folder))
    with process(folder, threads=2 if picograd.config.threads == 1 else 1):
        assert (a - b).tolist() == [-1] * 4
    assert len(stored(folder)) == count + 1


def test_numbers_are_arguments_of_a_stored_plan_too(folder, monkeypatch):
    x = Tensor(np.ones(4, np.float32), device="cpu")
    with process(folder):
        assert (x * 3.0 + 1.0).tolist() == [4.0] * 4
    monkeypatch.setattr(realize, "make_plan", never)
    with process(folder):
        assert (x * 5.0 + 2.0).tolist() == [7.0] * 4


def test_who_watches_or_verifies_gets_a_plan_made(folder, capsys):
    with process(folder):
        small_network("cpu").realize()
    for settings in ({"debug": 3}, {"verify": 1}):
        with fresh_engine(cache=folder, **settings):
            small_network("cpu").realize()
            plan = next(iter(realize.PLANS.plans.values()))
            assert isinstance(plan, CompiledPlan) and len(plan.plan.kernels) == 2
    assert "--- graph" in capsys.readouterr().err


def test_a_plan_whose_kernel_is_gone_is_made_anew(folder):
    with process(folder):
        wanted = small_network("cpu").numpy()
    for file in Path(folder, "kernels").iterdir():
        if b'"binary"' in file.read_bytes():
            file.unlink()
    with process(folder):
        np.testing.assert_array_equal(small_network("cpu").numpy(), wanted)


def test_what_is_no_plan_is_a_miss(folder):
    """Whole for the cache, which checks the bytes, yet not what this version writes."""
    with process(folder):
        wanted = small_network("cpu").numpy()
        ((name, good),) = stored(folder)
        found = cache.disk_cache()
        wrong = [{}, [], 7, {**good, "outputs": [99]}, {**good, "inputs": [-1, 0]}]
        wrong += [{**good, "slots": good["slots"][1:]}, {**good, "kernels": {}}]
        wrong += [{**good, "kernels": {"cpu": ["0" * 40]}}, {**good, "actions": [[0, 99]]}]
        wrong += [{**good, "slots": [[0, "float99", 1, "cpu", [1], [1], -1]] * 4}]
        wrong += [{key: value for key, value in good.items() if key != each} for each in good]
        texts = [json.dumps(each).encode() for each in wrong]
        texts += [b"", b"{", b"[" * 100_000, b"\xff", b"null"]
    for text in texts:
        with process(folder):
            cache.disk_cache().put(name, text)
            x = small_network("cpu")
            assert stored_plan.find_stored(graph_key([x.node])) is None
    with process(folder):
        found = cache.disk_cache()
        found.put(name, texts[0])
        np.testing.assert_array_equal(small_network("cpu").numpy(), wanted)
    assert stored(folder) == [(name, good)]  # mended


def test_what_only_this_process_knows_is_not_stored(folder):
    with process(folder):
        x = Tensor(np.arange(6, dtype=np.float32).reshape(3, 2), device="cpu")
        _, found = picograd.scan(lambda carry, row: (carry + row, carry), x[0], x)
        assert found.tolist() == [[0, 1], [0, 2], [2, 5]]  # the body of a loop
        assert picograd.linalg.inv(x[:2] + x[:2].T).shape == (2, 2)  # a call of NumPy
        assert not any(plan["actions"] == [] for _, plan in stored(folder))
    assert not stored_plan.is_plain((1, (object(),))) and stored_plan.is_plain((1, ("a", None)))


def test_sizes_that_vary_share_a_stored_plan(folder, monkeypatch):
    def run():
        return [
            (Tensor(np.ones((n, 8), np.float32), device="cpu") * 2).sum(1).tolist()
            for n in (5, 6, 7, 9)
        ]

    with process(folder):
        wanted = run()
    monkeypatch.setattr(realize, "make_plan", never)
    with process(folder):
        assert run() == wanted


PROGRAM = """
from picograd import Tensor
from picograd.engine import realize
made = []
real = realize.make_plan
realize.make_plan = lambda roots: made.append(1) or real(roots)
x = Tensor([1.0, 2.0, 3.0])
print((x * 2 - x).tolist(), len(made))
"""


def test_processes_share_plans(folder):
    variables = dict(os.environ, PICOGRAD_CACHE=folder, PICOGRAD_DEVICE="cpu", VERIFY="0")
    shown = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**variables, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert shown == ["[1.0, 2.0, 3.0] 1\n", "[1.0, 2.0, 3.0] 0\n"]


def run(path):
    with fresh_engine(cache=str(path), verify=0):
        x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        return ((x @ x).softmax(1) @ x).sum(0).tolist()


@pytest.fixture
def first(tmp_path, monkeypatch):
    """What a process computed that left its plans, and the kernels of each in one file."""
    monkeypatch.setattr(stored_plan, "LEAST", 1)
    return run(tmp_path)


def files(path):
    """The entries of packed kernels, and those of kernels alone."""
    packs, others = [], []
    for file in Path(path, "kernels").iterdir():
        payload = file.read_bytes()[cache.HEAD :]
        if payload.startswith(b"[["):
            packs.append(file)
        elif not payload.startswith(b'{"slots"'):
            others.append(file)
    return packs, others


def packed_never(*_, **__):
    raise AssertionError("a kernel was compiled again")


def test_kernels_come_from_one_file(first, tmp_path, monkeypatch):
    packs, others = files(tmp_path)
    assert len(packs) == 1
    for file in others:
        file.unlink()
    monkeypatch.setattr(compile, "build", packed_never)
    assert run(tmp_path) == first
    packs[0].unlink()
    with pytest.raises(AssertionError):
        run(tmp_path)


def test_kernels_that_ran_often_are_in_one_file_again(first, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "OFTEN", 2)
    compile_again, names, found, counts = CpuDevice.compile_again, [], [], []

    def noted(device, executable):
        names.append(executable.code.source)
        return compile_again(device, executable)

    monkeypatch.setattr(CpuDevice, "compile_again", noted)
    for runs in (1, 2, 3):
        with fresh_engine(cache=str(tmp_path), verify=0):
            x = Tensor(np.linspace(0, 1, 900, dtype=np.float32).reshape(30, 30), device="cpu")
            found += [(x.exp() - x.sum(0)).tolist() for _ in range(runs)]
        counts.append((len(names), len(files(tmp_path)[0])))
    assert counts == [(0, 2), (1, 1), (1, 2)], "the second drops a file that the third one writes"
    assert names == [""], "it came from disk"
    assert all(each == found[0] for each in found) and run(tmp_path) == first


@pytest.mark.parametrize("payload", [b"", b"[]\n", b'[["a"]]\n', b'[["a", "b"]]\nc', b'[["a", 1]]'])
def test_a_damaged_file_is_done_without(payload, first, tmp_path):
    (file,), _ = files(tmp_path)
    name = file.name.removesuffix(cache.SUFFIX)
    file.write_bytes(cache.head(name, payload) + payload)
    assert run(tmp_path) == first


def test_few_kernels_stay_alone(tmp_path):
    run(tmp_path)
    assert files(tmp_path)[0] == []


def test_kernels_that_are_missing_are_packed_for_nobody(tmp_path, monkeypatch):
    """A cache that lost what a kernel's description names."""
    monkeypatch.setattr(stored_plan, "LEAST", 1)
    monkeypatch.setattr(cache.DiskCache, "get", lambda *_: None)
    run(tmp_path)
    assert files(tmp_path)[0] == []
