"""What no memory can hold is refused at once, in the class PyTorch raises (RuntimeError)."""

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import pending
from picograd.errors import OutOfMemoryError
from picograd.graph import room
from picograd.nn import functional as F

HUGE = 10**12
SECONDS = 10.0  # far more than any of these takes, far less than the work they ask for


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape or (4,), np.float32))


def wide() -> Tensor:
    return ones(1).expand(HUGE)


def leaf() -> Tensor:
    return Tensor([1.0], requires_grad=True)


PIECES: dict[str, Callable[[], Any]] = {
    "tensor_split": lambda: ones().tensor_split(HUGE),
    "split": lambda: wide().split(1),
    "split of nothing": lambda: picograd.zeros((HUGE, 0)).split(1),
    "unbind": lambda: wide().unbind(0),
    "iter()": lambda: list(wide()),
    "LSTM": lambda: nn.LSTM(2, 2, num_layers=HUGE),
    "Transformer": lambda: nn.Transformer(8, 2, num_encoder_layers=HUGE),
}
HOST: dict[str, Callable[[], Any]] = {
    "combinations": lambda: picograd.combinations(picograd.arange(40), 20),
    "getitem": lambda: ones()[range(HUGE)],
    "hann_window": lambda: picograd.hann_window(HUGE),
    "bartlett_window": lambda: picograd.bartlett_window(HUGE),
    "logspace": lambda: picograd.logspace(0, 1, HUGE),
    "fftfreq": lambda: picograd.fft.fftfreq(HUGE),
    "rfftfreq": lambda: picograd.fft.rfftfreq(HUGE),
    "tril_indices": lambda: picograd.tril_indices(10**7, 10**7),
    "triu_indices": lambda: picograd.triu_indices(HUGE, HUGE),
    "affine_grid": lambda: F.affine_grid(ones(1, 2, 3), (1, 1, 10**6, 10**6)),
    "repeat_interleave": lambda: ones(2).repeat_interleave(Tensor([HUGE, 1])),
    "adaptive_max_pool1d": lambda: F.adaptive_max_pool1d(ones(1, 1, 4), 10**11),
}
SIZES: dict[str, Callable[[], Any]] = {
    "zeros": lambda: picograd.zeros(HUGE),
    "ones": lambda: picograd.ones((10**6, 10**6)),
    "empty": lambda: picograd.empty(HUGE),
    "full": lambda: picograd.full((HUGE,), 2.0),
    "arange": lambda: picograd.arange(HUGE),
    "arange of floats": lambda: picograd.arange(0, 1, 1e-300),
    "linspace": lambda: picograd.linspace(0, 1, HUGE),
    "eye": lambda: picograd.eye(10**7),
    "rand": lambda: picograd.rand(HUGE),
    "randint": lambda: picograd.randint(0, 10, (HUGE,)),
    "randperm": lambda: picograd.randperm(HUGE),
    "zeros_like": lambda: picograd.zeros_like(wide()),
    "one_hot": lambda: F.one_hot(Tensor([1, 2]), HUGE),
    "repeat": lambda: ones().repeat(HUGE),
    "tile": lambda: ones().tile((HUGE,)),
    "repeat_interleave": lambda: ones().repeat_interleave(HUGE),
    "pad": lambda: F.pad(ones(), (HUGE, HUGE)),
    "add": lambda: wide() + 1,
    "outer": lambda: ones(10**6).outer(ones(10**6)),
    "matmul": lambda: ones(10**6, 1) @ ones(1, 10**6),
    "cat": lambda: picograd.cat([wide(), wide()]),
    "stack": lambda: picograd.stack([wide(), wide()]),
    "diag": lambda: picograd.diag(ones(10**6)),
    "block_diag": lambda: picograd.block_diag(*[ones(1).expand(10**6, 10**6)] * 2),
    "cartesian_prod": lambda: picograd.cartesian_prod(*[picograd.arange(10**4)] * 6),
    "vander": lambda: picograd.vander(ones(), HUGE),
    "cumsum": lambda: wide().cumsum(0),
    "interpolate": lambda: F.interpolate(ones(1, 1, 4, 4), size=(HUGE, HUGE)),
    "interpolate area": lambda: F.interpolate(ones(1, 1, 4, 4), size=(HUGE, 1), mode="area"),
    "interpolate bicubic": lambda: F.interpolate(ones(1, 1, 4, 4), size=(HUGE, 1), mode="bicubic"),
    "adaptive_avg_pool1d": lambda: F.adaptive_avg_pool1d(ones(1, 1, 4), HUGE),
    "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(ones(1, 1, 4, 4), HUGE),
    "adaptive_avg_pool3d": lambda: F.adaptive_avg_pool3d(ones(1, 1, 4, 4, 4), HUGE),
    "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(ones(1, 1, 4, 4), HUGE),
    "bincount": lambda: picograd.bincount(Tensor([1]), minlength=HUGE),
    "histc": lambda: picograd.histc(ones(), bins=HUGE),
    "scan": lambda: picograd.scan(lambda c, x: (c, c), ones(1), length=HUGE),
    "Embedding": lambda: nn.Embedding(10**7, 10**5),
    "BatchNorm2d": lambda: nn.BatchNorm2d(HUGE),
    "multigammaln": lambda: picograd.special.multigammaln(ones(), HUGE),
}
# Recorded as views, or inside a function: refused when they are computed, fused or not.
COMPUTED: dict[str, Callable[[], Any]] = {
    "conv_transpose1d": lambda: F.conv_transpose1d(
        ones(1, 1, 4), ones(1, 1, 3), stride=HUGE
    ).realize(),
    "a view": lambda: wide().realize(),
    "a view as a list": lambda: wide().tolist(),
    "as_strided": lambda: ones().as_strided((HUGE, 2), (0, 1)).realize(),
    "sum": lambda: wide().sum().item(),
    "mean": lambda: wide().mean().item(),
    "softmax": lambda: wide().softmax(0)[0].item(),
    "inner product": lambda: (ones(1).expand(1, HUGE) @ ones(1).expand(HUGE, 1)).item(),
    "gradient": lambda: (x := leaf(), (x.expand(HUGE).sum()).backward(), x.grad.item()),
    "max_pool2d": lambda: F.max_pool2d(ones(1, 1, 4, 4), 2 * HUGE, padding=HUGE).item(),
    "sort": lambda: wide().sort()[0].realize(),
    "nonzero": lambda: wide().nonzero(),
    "median": lambda: wide().median().item(),
}


@pytest.mark.parametrize("name", [*PIECES, *HOST, *SIZES])
def test_what_cannot_fit_is_refused_when_it_is_asked_for(name: str) -> None:
    function = {**PIECES, **HOST, **SIZES}[name]
    start = time.monotonic()
    with pytest.raises(OutOfMemoryError, match="Fix: ") as raised:
        function()
    assert time.monotonic() - start < SECONDS
    assert isinstance(raised.value, RuntimeError) and isinstance(raised.value, MemoryError)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("name", COMPUTED)
def test_what_cannot_fit_is_refused_when_it_is_computed(name: str) -> None:
    start = time.monotonic()
    with pytest.raises(OutOfMemoryError):
        COMPUTED[name]()
    assert time.monotonic() - start < SECONDS


def test_messages_name_the_operation_the_size_and_the_fix() -> None:
    text = "zeros: a tensor of shape (1000000000000,) takes 3725 GiB: no device has that."
    with pytest.raises(OutOfMemoryError, match=re.escape(text + " Fix: use smaller sizes.")):
        picograd.zeros(HUGE)
    text = "tensor_split: the call would make 1000000000000 tensors, at most 4194304 fit."
    with pytest.raises(OutOfMemoryError, match=re.escape(text)):
        ones().tensor_split(HUGE)
    text = "hann_window: a table of 1000000000000 numbers does not fit the memory of the host."
    with pytest.raises(OutOfMemoryError, match=re.escape(text)):
        picograd.hann_window(HUGE)


def test_views_may_be_as_large_as_they_like() -> None:
    x = wide()
    assert x.shape == (HUGE,) and x[7].item() == 1.0 and x[3:5].tolist() == [1.0, 1.0]
    assert len(x.chunk(3)) == 3
    assert ones().unfold(0, 1, HUGE).shape == (1, 1)


@pytest.mark.parametrize("sizes", [(10**30,), (10**30, 0), (1, 2**63)])
def test_sizes_beyond_64_bits_are_type_errors(sizes: tuple[int, ...]) -> None:
    for function in (picograd.zeros, picograd.rand, ones(1).expand, ones(1).repeat):
        with pytest.raises(TypeError, match="do not fit int64"):
            function(*sizes)  # type: ignore[operator]


def test_more_axes_than_numpy_has_are_refused_where_numpy_shows_them() -> None:
    x = ones(1).reshape((1,) * 100)
    assert x.sum().item() == 1.0
    with pytest.raises(ValueError, match="NumPy has at most 64 axes, the tensor has 100"):
        x.numpy()


def test_a_plain_memory_error_becomes_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "host_bytes", lambda: 1 << 80)
    with pytest.raises(OutOfMemoryError, match="hann_window: the arguments"):
        picograd.hann_window(10**15)


def test_a_host_that_does_not_tell_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert room.host_bytes() == 1 << 34


def test_a_split_into_many_pieces_is_no_shape() -> None:
    pieces = picograd.arange(10_000).split(100)  # the product of the sizes means nothing
    assert len(pieces) == 100 and pieces[99].tolist() == list(range(9900, 10_000))
    with pytest.raises(ValueError, match=r"sizes \(5, -1\) do not add up to 4"):
        ones().split([5, -1])


def test_a_huge_view_that_lives_on_does_not_fail_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view, x = wide(), ones()
    monkeypatch.setattr(pending, "BUDGET", 50)
    for _ in range(200):
        x = x + 1
    assert x.tolist() == [201.0] * 4
    x.add_(1)
    assert x.tolist() == [202.0] * 4 and view[3].item() == 1.0


def test_what_has_shapes_alone_may_be_of_any_size() -> None:
    layer = picograd.nn.Conv2d(3, 5, 2, device="meta")
    x = picograd.empty(2**10, 3, 2**16, 2**16, device="meta")
    assert layer(x).relu().shape == (2**10, 5, 2**16 - 1, 2**16 - 1)
    assert picograd.rand(2**45, device="meta").sum().shape == ()
    assert picograd.full((2**45,), 1.5, device="meta").shape == (2**45,)
    with picograd.device("meta"):
        assert picograd.nn.LayerNorm(2**42).weight.shape == (2**42,)
    with pytest.raises(MemoryError, match="131072 GiB"):
        picograd.empty(2**45)
