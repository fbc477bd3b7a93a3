"""Windows of signals, against PyTorch."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import windows

torch = pytest.importorskip("torch")

OPTIONS: dict[str, dict[str, Any]] = {
    "exponential": {"tau": 2.5},
    "gaussian": {"std": 1.7},
    "general_cosine": {"a": [0.4, 0.3, 0.2, 0.1]},
    "general_hamming": {"alpha": 0.6},
    "kaiser": {"beta": 5.0},
}


@pytest.mark.parametrize("name", windows.__all__)
def test_windows_are_theirs(name: str) -> None:
    ours, theirs = getattr(picograd.signal.windows, name), getattr(torch.signal.windows, name)
    options = OPTIONS.get(name, {})
    for count in (0, 1, 2, 7, 8):
        for sym in (True, False):
            found = ours(count, sym=sym, dtype=picograd.float64, **options)
            want = theirs(count, sym=sym, dtype=torch.float64, **options)
            assert np.allclose(found.numpy(), want.numpy(), atol=1e-12), (count, sym)
    found = ours(5, requires_grad=True, **options)
    assert found.dtype is picograd.float32 and found.requires_grad
    with pytest.raises(ValueError, match=f"{name}: -1 points are negative"):
        ours(-1, **options)


def test_paths_and_other_arguments() -> None:
    from picograd.signal.windows import exponential, gaussian, general_cosine, kaiser

    want = torch.signal.windows.exponential(6, center=1.0, sym=False)
    assert np.allclose(exponential(6, center=1.0, sym=False).numpy(), want.numpy())
    refused = (
        lambda: exponential(3, tau=0.0),
        lambda: exponential(3, center=1.0),
        lambda: gaussian(3, std=0.0),
        lambda: general_cosine(3, a=[]),
        lambda: kaiser(3, beta=-1.0),
        lambda: kaiser(3, dtype=picograd.int64),
        lambda: kaiser(3, layout=picograd.sparse_coo),
    )
    for call in refused:
        with pytest.raises(ValueError):
            call()
