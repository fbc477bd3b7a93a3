"""A training step of a network of examples/, in picograd and in PyTorch, from the same weights."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


def torch_step(
    network: Any, images: Any, labels: Any, channels_last: bool = False, fused: bool | None = None
) -> Callable[[], Any]:
    """Make a function that runs one training step in PyTorch and returns the loss."""
    import torch

    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def picograd_step(ours: Any, network: Any, images: Any, labels: Any) -> Callable[[], Any]:
    """Make a function that runs one training step in picograd and returns the loss."""
    import picograd
    from picograd import Tensor, nn

    state = zip(ours.state_dict(), network.state_dict().values(), strict=True)
    ours.load_state_dict({name: Tensor(value.numpy().copy()) for name, value in state})
    optimizer = nn.optim.Adam(ours.parameters(), lr=1e-3)
    x, y = Tensor(images), Tensor(labels)

    @picograd.jit
    def train(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ours(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: train(x, y)


def repeated(step: Callable[[], Any], steps: int = 1) -> Callable[[], float]:
    """Make a function that runs steps and reads the last loss."""

    def run() -> float:
        for _ in range(steps):
            loss = step()
        return loss.item()

    return run
