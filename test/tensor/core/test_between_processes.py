"""Memory that other processes see, forked and spawned ones."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import picograd
from picograd.errors import ExportError, TraceError

pytestmark = pytest.mark.usefixtures("cpu_by_default")  # others see memory of the host

PROGRAM = """
import multiprocessing, sys
import picograd
picograd.set_default_device("cpu")
from picograd import nn

def add_to_all(tensors):
    for tensor in tensors:
        tensor.add_(1)

def train(model, is_jitted):
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) - 3).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    run = picograd.jit(step) if is_jitted else step
    for _ in range(60):
        run(picograd.ones(4, 2)).item()

def run_in(function, *given):
    process = multiprocessing.get_context(sys.argv[1]).Process(target=function, args=given)
    process.start()
    process.join(120)
    assert process.exitcode == 0

def main():
    counts = picograd.zeros(3, dtype=picograd.int64).share_memory_()
    halves = picograd.zeros(2, dtype=picograd.bfloat16).share_memory_()
    whole = picograd.zeros(2, 3)
    column, before = whole[:, 1], whole * 1
    assert column.share_memory_() is column and whole.is_shared() and column.is_shared()
    weight = nn.Parameter(picograd.zeros(2)).share_memory_()
    tensors = [counts, halves, column, weight.detach()]
    run_in(add_to_all, tensors)
    whole.add_(column[0].item())  # and what this process writes
    run_in(add_to_all, tensors)
    assert counts.tolist() == [2, 2, 2] and halves.tolist() == [2, 2] == weight.tolist()
    assert whole.tolist() == [[1, 3, 1], [1, 3, 1]] and before.tolist() == [[0] * 3] * 2
    assert not before.is_shared()
    learnt = weight * 2
    assert learnt.share_memory_().is_shared() and learnt.requires_grad

    picograd.manual_seed(0)
    for is_jitted in (False, True):
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
        model(picograd.ones(4, 2)).sum().backward()
        assert model.share_memory() is model
        assert all(x.is_shared() for x in model.state_dict().values())
        run_in(train, model, is_jitted)
        assert (model(picograd.ones(4, 2)) - 3).abs().max() < 1e-2
        assert model[1].num_batches_tracked.item() >= 61

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_writes_of_other_processes_show(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"  # a process that is spawned imports it
    program.write_text(PROGRAM)
    subprocess.run([sys.executable, str(program), method], check=True, timeout=200)


def test_a_jitted_function_goes_on_with_memory_that_was_moved() -> None:
    weight = picograd.ones(2)
    grow = picograd.jit(lambda x: weight.add_(x) * 2)
    for turn in range(6):
        if turn == 3:
            weight.share_memory_()
        assert grow(picograd.ones(2)).tolist() == [4 + 2 * turn] * 2
        assert weight.tolist() == [2 + turn] * 2


@pytest.mark.parametrize("start", [0.0, 0.5])
@pytest.mark.parametrize("view", [lambda x: x[:, 1], lambda x: x.T, lambda x: x.view(-1)])
def test_views_of_constants_show_what_others_write(start, view) -> None:
    for shared in (np.from_dlpack, lambda x: np.asarray(x, copy=False)):
        x = picograd.zeros(2, 3) + start
        seen, before = view(x), view(x) * 2
        shared(x)[:] = [[1, 2, 3], [4, 5, 6]]
        assert seen.tolist() == view(picograd.Tensor([[1.0, 2, 3], [4, 5, 6]])).tolist()
        assert before.eq(2 * start).all()


def test_where_no_other_process_sees_memory() -> None:
    with pytest.raises(ExportError, match="cpu"):
        picograd.ones(2, device="meta").share_memory_()
    with pytest.raises(TraceError):
        picograd.jit(lambda x: x.share_memory_())(picograd.ones(2))
    assert picograd.zeros(0).share_memory_().tolist() == []
