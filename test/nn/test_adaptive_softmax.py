"""The softmax in clusters equals PyTorch's: losses, probabilities, gradients."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

torch = pytest.importorskip("torch")
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("has_bias", [False, True])
def test_equals_pytorch(has_bias: bool, device: str) -> None:
    settings: Any = (16, 40, [5, 10, 25], 2.0, has_bias)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*settings)
    ours = nn.AdaptiveLogSoftmaxWithLoss(*settings).to(device)
    state = {name: Tensor(each.numpy()) for name, each in theirs.state_dict().items()}
    ours.load_state_dict(state)
    assert repr(ours) == repr(theirs)
    x = RANDOM.normal(size=(12, 16)).astype(np.float32)
    target = np.arange(0, 36, 3)  # of every cluster
    found = ours(Tensor(x, device=device), Tensor(target, device=device))
    want = theirs(torch.tensor(x), torch.tensor(target))
    np.testing.assert_allclose(found.output.numpy(), want.output.detach().numpy(), 1e-5, 1e-6)
    found.loss.backward()
    want.loss.backward()
    for mine, other in zip(ours.parameters(), theirs.parameters()):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), 1e-4, 1e-6)
    given = Tensor(x, device=device)
    logs = theirs.log_prob(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(ours.log_prob(given).numpy(), logs, 1e-5, 1e-5)
    assert ours.predict(given).tolist() == theirs.predict(torch.tensor(x)).tolist()


def test_a_row_alone_and_jit() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], 2.0)
    x, target = Tensor.randn(3, 8), Tensor([0, 7, 19])
    both = layer(x, target).output.tolist()
    step = picograd.jit(lambda x, target: layer(x, target).loss)
    for _ in range(2):
        assert step(x, target).item() == pytest.approx(-sum(both) / 3, rel=1e-5)
    assert layer(x[1], target[1]).output.item() == pytest.approx(both[1], rel=1e-5)


def test_mistakes() -> None:
    for cutoffs in ([], [10, 5], [5, 5], [0, 5], [5, 20]):
        with pytest.raises(ValueRangeError, match="of 20 classes"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5], 2.0)
    with pytest.raises(ShapeError, match=r"input \(3, 8\) and target \(2,\)"):
        layer(Tensor.ones(3, 8), Tensor([1, 2]))
