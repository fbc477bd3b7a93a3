"""Updates of parameters run together where another step follows."""

from plan_support import TARGET, check_plan, leaf

from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

CUDA = cuda_target("sm_90a")


def trained(steps: int, width: int = 5) -> list[Node]:
    """Weights and moments after some steps."""
    x, weights = leaf(8, 6), [leaf(6, width), leaf(width, 4), leaf(4, 3)]
    moments = [leaf(*weight.shape) for weight in weights]
    for _ in range(steps):
        y = x
        for weight in weights:
            y = build.matmul(y, weight).unary("tanh")
        loss = (y * y).reduce("sum", (0, 1))
        found = gradient([(loss, loss.const_like(1.0))], weights)
        for number, (weight, moment, grad) in enumerate(zip(weights, moments, found, strict=True)):
            assert grad is not None
            moments[number] = build.assign(moment, moment * 0.9 + grad.unary("tanh"))
            weights[number] = build.assign(weight, weight - moments[number] * 0.01)
    return [*weights, *moments]


def maps(steps: int, width: int = 5) -> list[int]:
    """Numbers of parts of the maps of a plan."""
    plan = schedule(trained(steps, width), CUDA)
    return [len(each.parts) for each in plan.kernels if each.hero == "map"]


def test_updates_wait_for_the_last_gradient() -> None:
    assert maps(1) == [3, 3]
    assert maps(3) == [3, 3] * 3
    plan = check_plan(trained(3), target=CUDA)
    assert len(plan.kernels) < len(schedule(trained(3), TARGET).kernels)


def test_large_maps_run_where_their_inputs_are() -> None:
    assert len(maps(2, 1 << 20)) > 4
