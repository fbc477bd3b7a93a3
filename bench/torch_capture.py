"""A step of PyTorch captured by hand in a CUDA graph: the strongest rival of a jitted step."""

from collections.abc import Callable
from typing import Any

import torch


def capture(step: Callable[[], Any], warm_up: int) -> tuple[Any, Any]:
    """Capture a step: the graph, and what the step returned.

    Before the capture PyTorch wants some steps on a stream of their own.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm_up):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    return graph, result


def captured(step: Callable[[], Any], count: int, warm_up: int = 3) -> Callable[[], float]:
    """Make a function that replays a step `count` times and reads the loss it returns."""
    graph, loss = capture(step, warm_up)

    def run(_kept: Any = step) -> float:  # a replay reads and writes the memory of what it uses
        for _ in range(count):
            graph.replay()
        return float(loss.item())

    return run
