"""A user's program with the types that checkers find in it.

`mypy` reads it strictly (pyproject.toml) and compares the types;
test/tensor/core/test_annotations.py runs it, and reads it as a user's checker does, with picograd
installed.
"""

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import picograd
from picograd import Tensor, nn
from picograd.nn import functional as F

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value: Any, kind: Any) -> Any:
        return value


class Network(nn.Module):
    def __init__(self, width: int = 8) -> None:
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)
        self.head = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(assert_type(self.conv(x), Tensor))
        x = F.max_pool2d(x.relu(), 2)
        return self.head(x.flatten(1))


class Trainer:
    def __init__(self) -> None:
        self.model = Network()
        self.optimizer = nn.optim.Adam(self.model.parameters(), lr=1e-2)

    @picograd.jit
    def step(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        assert_type(loss, Tensor)
        loss.backward()
        self.optimizer.step()
        return loss


@picograd.jit
def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


@picograd.no_grad()
def predict(model: Network, x: Tensor) -> Tensor:
    return model(x).argmax(1)


def epochs(count: int) -> Iterator[float]:
    trainer = Trainer()
    images, labels = picograd.rand(8, 1, 8, 8), picograd.randint(0, 3, (8,))
    loader = nn.DataLoader(nn.TensorDataset(images, labels), batch_size=4, shuffle=True)
    for _ in range(count):
        for x, y in loader:
            loss = trainer.step(x, y)
            assert_type(loss, Tensor)
            assert_type(loss.item(), float | int | bool)
        yield float(loss)
    trainer.model.eval()
    with picograd.no_grad():
        assert_type(trainer.model(images), Tensor)
    assert_type(predict(trainer.model, images), Tensor)
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        assert_type(trainer.model.state_dict(), dict[str, Tensor])
        nn.save(trainer.model.state_dict(), file.name)
        trainer.model.load_state_dict(nn.load(file.name))


def operations() -> None:
    x = picograd.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert_type(x, Tensor)
    assert_type(scaled(x, factor=3.0), Tensor)
    assert_type(2 - x + x @ x / 3, Tensor)
    assert_type(x[0, 1:], Tensor)
    assert_type(x > 1, Tensor)
    assert_type(-(x**2), Tensor)
    assert_type(x.shape[0], int)
    assert_type(x.size(0), int)
    assert_type(x.max(), Tensor)
    assert_type(x.max(dim=1).indices, Tensor)
    assert_type(x.sum(dim=(0, 1), keepdim=True), Tensor)
    assert_type(picograd.exp(x), Tensor)
    assert_type(picograd.cat([x, x], dim=1), Tensor)
    assert_type(picograd.where(x > 2, x, 0.0), Tensor)
    assert_type(picograd.linalg.det(x), Tensor)
    assert_type(picograd.fft.rfft(x), Tensor)
    assert_type(picograd.normal(0.0, 1.0, (2,)), Tensor)
    assert_type(x.detach().clone().add_(1).exp_(), Tensor)
    assert_type(bool(x.any()), bool)
    assert_type(nn.LayerNorm(2)(x), Tensor)
    with picograd.no_grad():
        x[0] = 1.0
    x.mean().backward()
    assert_type(x.grad, Tensor | None)


if __name__ == "__main__":
    print(*epochs(2))
    operations()
