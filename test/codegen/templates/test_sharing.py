"""What several computes of a row need, and is dear, is computed once."""

import numpy as np
import plain_nodes
import pytest
from harness import TARGET, run

import picograd
from picograd.buffer import Buffer, Storage
from picograd.codegen.pipeline import tile
from picograd.codegen.templates.sharing import share_elements
from picograd.codegen.tile import format_tiles
from picograd.dtype import float32
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.schedule.loop import Kernel, walk
from picograd.schedule.schedule import schedule
from picograd.schedule.verify import verify


def softmax(*shape: int, axis: int = 1) -> Kernel:
    x = plain_nodes.buffer(Storage(Buffer("cpu", float32, int(np.prod(shape)), 0)), shape)
    (kernel,) = schedule([build.softmax(x, axis)], TARGET).kernels
    return kernel


def count(kernel: Kernel, op: str) -> int:
    """Count an operation in the bodies of a kernel."""
    bodies = (compute.body for part in kernel.parts for compute in part.computes)
    return sum(expr.op == op for body in bodies for expr in walk(body))


def test_an_exponential_is_computed_once() -> None:
    kernel = softmax(20, 30)
    shared = Kernel(kernel.name, kernel.hero, kernel.slots, (), (share_elements(kernel.parts[0]),))
    assert count(kernel, "exp") == 2 and count(verify(shared), "exp") == 1
    assert len(shared.parts[0].computes) == len(kernel.parts[0].computes) + 1


def test_what_is_left_in_common_is_computed_once_too() -> None:
    """Of the gradient of softmax: quotients, and exponentials of those and of their sum."""
    x, g = (plain_nodes.buffer(Storage(Buffer("cpu", float32, 600, 0)), (20, 30)) for _ in range(2))
    (kernel,) = schedule(gradient([(build.softmax(x, 1), g)], [x]), TARGET).kernels
    shared = Kernel(kernel.name, kernel.hero, kernel.slots, (), (share_elements(kernel.parts[0]),))
    assert count(kernel, "exp") == 3 and count(verify(shared), "exp") == 1
    assert count(kernel, "div") == 2 and count(shared, "div") == 1


@pytest.mark.parametrize("length", [9, 30, 1000])
def test_values_are_as_they_were(length: int) -> None:
    values = np.random.default_rng(0).standard_normal((20, length)).astype(np.float32)
    found = run(softmax(20, length), [values, np.zeros(values.size, np.float32)])[1]
    powers = np.exp(values - values.max(1, keepdims=True))
    wanted = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(found.reshape(20, length), wanted, rtol=1e-5)


def test_loads_of_4_bytes_are_held_where_that_is_said() -> None:
    """A compiler for GPUs reads them again, to have fewer registers."""
    (part,) = softmax(20, 30).parts
    held = share_elements(part, True)
    loads = [e for c in held.computes for e in walk(c.body) if e.op == "load"]
    assert len(loads) == 1 and len(held.computes) == len(part.computes) + 2
    assert len(share_elements(part).computes) == len(part.computes) + 1


def test_rows_that_no_cache_keeps_and_columns_compute_it_in_each_pass() -> None:
    assert format_tiles(tile(softmax(10, 30), TARGET)).count("exp(") == 1
    assert format_tiles(tile(softmax(2, 100_000), TARGET)).count("exp(") == 2
    assert format_tiles(tile(softmax(300, 400, axis=0), TARGET)).count("exp(") == 2


def test_what_rows_name_too_stays_theirs() -> None:
    """A contrastive loss: exp(scale) is in the scores of a row and in the one at its label."""
    generator = np.random.default_rng(0)
    scores, scale = generator.standard_normal((3, 3)).astype(np.float32), np.float32([0.5])
    labels = picograd.arange(3)
    logits = picograd.Tensor(scores) * picograd.Tensor(scale).exp()
    both = [picograd.nn.functional.cross_entropy(each, labels) for each in (logits, logits.T)]
    wide = scores.astype(np.float64) * np.exp(0.5)
    wanted = sum(np.log(np.exp(x).sum(1)) - x.diagonal() for x in (wide, wide.T)).mean() / 2
    np.testing.assert_allclose(((both[0] + both[1]) / 2).item(), wanted, rtol=1e-5)
