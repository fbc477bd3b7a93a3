"""Random numbers: reproducible, independent of the order of realisation, well distributed."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Generator, Tensor
from picograd.config import config
from picograd.engine.compile import LOADED
from picograd.engine.realize import PLANS

torch = pytest.importorskip("torch")


def test_seed_and_order(device: str) -> None:
    picograd.manual_seed(3)
    a, b = Tensor.rand(4, device=device), Tensor.randn(4, device=device)
    second, first = b.tolist(), a.tolist()
    picograd.manual_seed(3)
    c, d = Tensor.rand(4, device=device), Tensor.randn(4, device=device)
    assert c.tolist() == first and d.tolist() == second
    assert first != Tensor.rand(4, device=device).tolist()


def test_reading_twice_gives_the_same(device: str) -> None:
    x = Tensor.rand(100, device=device)
    assert (x - x).abs().sum().item() == 0 and x.tolist() == x.tolist()


def test_distributions(device: str) -> None:
    picograd.manual_seed(0)
    u, n = Tensor.rand(20000, device=device).numpy(), Tensor.randn(20000, device=device).numpy()
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    assert abs(u.std() - 12**-0.5) < 0.01
    assert abs(n.mean()) < 0.03 and abs(n.std() - 1) < 0.03 and np.isfinite(n).all()
    dice = Tensor.randint(1, 7, (6000,), device=device).numpy()
    assert set(dice.tolist()) == {1, 2, 3, 4, 5, 6}
    assert np.bincount(dice)[1:].min() > 850
    scaled = Tensor.uniform(1000, low=-2.0, high=3.0, device=device).numpy()
    assert -2 <= scaled.min() < -1.9 and 2.9 < scaled.max() < 3


def test_dtypes(device: str) -> None:
    for dtype in ("float16", "bfloat16", "float64"):
        x = Tensor.rand(1000, dtype=dtype, device=device)
        assert x.dtype.name == dtype and x.numpy().max() < 1
    assert Tensor.randint(10, size=(2,)).dtype is picograd.int64
    for dtype in ("complex64", "complex128"):
        unit = Tensor.rand(4000, dtype=dtype, device=device).numpy()
        parts = np.stack([unit.real, unit.imag])
        assert unit.dtype.name == dtype and 0 <= parts.min() and 0.9 < parts.max() < 1
        normal = Tensor.randn(4000, dtype=dtype, device=device).numpy()
        spread = np.array([normal.real.var(), normal.imag.var()])
        np.testing.assert_allclose(spread, 0.5, atol=0.06)
        again = Tensor.empty(4000, dtype=dtype, device=device).normal_(2.0, 0.0)
        assert np.array_equal(again.numpy(), np.full(4000, 2, dtype))
    with pytest.raises(TypeError, match="needs a float dtype"):
        Tensor.rand(3, dtype="int32")
    with pytest.raises(ValueError, match="is empty"):
        Tensor.randint(3, 3, (2,))


def test_own_generator_and_permutation() -> None:
    first, second = Generator(5), Generator(5)
    assert Tensor.rand(3, generator=first).tolist() == Tensor.rand(3, generator=second).tolist()
    state = first.get_state()
    again = Tensor.rand(3, generator=first).tolist()
    assert first.set_state(state) is first
    assert Tensor.rand(3, generator=first).tolist() == again
    assert sorted(Tensor.randperm(50).tolist()) == list(range(50))
    big = Tensor.randint(0, 1 << 40, (100,)).numpy()
    assert big.max() > 1 << 38
    whole = Tensor.randint(-(1 << 63), (1 << 63) - 1, (100,)).numpy()
    assert whole.max() > 1 << 62 and whole.min() < -(1 << 62)
    assert set(Tensor.randint((1 << 64) - 2, 1 << 64, (9,), dtype="uint64").tolist()) == {
        (1 << 64) - 2,
        (1 << 64) - 1,
    }


def test_permutations(device: str) -> None:
    """On the device, with PyTorch's dtypes; short ones and long ones are fair."""
    for dtype in ("uint8", "int32", "int64", "float16", "float32", "bfloat16"):
        x = Tensor.randperm(50, dtype=dtype, device=device)
        assert x.dtype.name == dtype and x.device.startswith(device)
        assert sorted(x.tolist()) == torch.randperm(50, dtype=getattr(torch, dtype)).sort()[
            0].tolist()  # fmt: skip
    assert Tensor.randperm(0, device=device).shape == (0,)
    assert Tensor.randperm(1, device=device).tolist() == [0]
    assert Tensor.randperm(2049, dtype="float16", device=device).max().item() == 2048
    assert Tensor.randperm(3, device=device).dtype is picograd.int64
    assert Tensor.randperm(3, dtype="float32", device=device, requires_grad=True).requires_grad
    many = np.stack([Tensor.randperm(3, device=device).numpy() for _ in range(600)])
    counts = np.unique(many @ [9, 3, 1], return_counts=True)[1]
    assert len(counts) == 6 and counts.min() > 65 and counts.max() < 140
    long = Tensor.randperm(70000, device=device).numpy()
    assert (np.sort(long) == np.arange(70000)).all()
    assert abs(np.corrcoef(long, np.arange(70000))[0, 1]) < 0.02


@pytest.mark.parametrize(
    "count, dtype", [(257, "uint8"), (129, "int8"), (32769, "int16"), (2050, "float16")]
)
def test_permutations_that_do_not_fit(count: int, dtype: str) -> None:
    with pytest.raises(RuntimeError):
        torch.randperm(count, dtype=getattr(torch, dtype))
    with pytest.raises(RuntimeError, match="does not hold every number below"):
        Tensor.randperm(count, dtype=dtype)
    with pytest.raises(TypeError, match="is not defined for bool"):
        Tensor.randperm(2, dtype="bool")


def test_another_seed_compiles_nothing(device: str) -> None:
    def draw(seed: int) -> Any:
        picograd.manual_seed(seed)
        return Tensor.randn(3, 4, device=device).numpy()

    with config.override(dynamic=0):  # or a fifth draw of a size that others drew differently
        first = draw(0)
        kernels, plans = set(LOADED), len(PLANS)  # some of other tests may be let go meanwhile
        others = [draw(seed) for seed in (1, 2**63 + 5, -3, 0)]
        assert set(LOADED) <= kernels and len(PLANS) <= plans
    assert (others[3] == first).all() and not (others[0] == first).any()


def test_what_was_recorded_keeps_its_seed(device: str) -> None:
    picograd.manual_seed(3)
    wanted = Tensor.rand(5, device=device).tolist()
    picograd.manual_seed(3)
    recorded = Tensor.rand(5, device=device)
    picograd.manual_seed(4)
    assert recorded.tolist() == wanted != Tensor.rand(5, device=device).tolist()


def test_a_jitted_draw_follows_the_seed(device: str) -> None:
    @picograd.jit
    def draw() -> Tensor:
        return Tensor.rand(5, device=device)

    for seed in (1, 2, 1, 5):
        picograd.manual_seed(seed)
        found = draw().tolist()
        picograd.manual_seed(seed)
        assert found == Tensor.rand(5, device=device).tolist()


def test_device_of_a_generator_is_a_device():
    assert Generator().device.type == "cpu" and Generator("cuda:1").device.index == 1


@pytest.mark.parametrize("verify", (0, 1))
def test_draws_that_are_stamped_out_are_those_that_are_recorded(
    device: str, verify: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", verify)
    ones, own = Tensor.ones(37, device=device), Generator()
    draws = (
        lambda: Tensor.rand(3, 5, device=device),
        lambda: Tensor.rand(7, dtype="float64", device=device, generator=own),
        lambda: Tensor.randn(3, 5, dtype="complex64", device=device),
        lambda: Tensor.randint(-3, 9, (11,), device=device),
        lambda: Tensor.randint(-(1 << 62), 1 << 62, (11,), device=device),
        lambda: Tensor.randperm(50, device=device),
        lambda: Tensor.rand(37, device=device),
        lambda: picograd.nn.functional.dropout(ones, 0.5),
        lambda: picograd.nn.functional.dropout(ones, 0.001),  # one sampler draws by another
        lambda: Tensor.rand(0, device=device),
    )

    def values(is_long: bool) -> list[object]:
        picograd.manual_seed(5)
        own.manual_seed(6)
        found: list[object] = []
        for _ in range(5):
            if is_long:  # the settings that count are others each time
                picograd.config.outdate()
            found += [draw().tolist() for draw in draws]
        return [*found, own.get_state(), picograd.default_generator.get_state()]

    wanted = values(True)
    assert values(False) == wanted and values(False) == wanted


def test_checks_of_what_is_stamped_out_take_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = Tensor.ones(41)
    for verify in (1, 1, 1, 0):
        monkeypatch.setattr(picograd.config, "verify", verify)
        Tensor.rand(41).realize()
        before = picograd.default_generator.offset
        picograd.nn.functional.dropout(ones, 0.001).realize()
        assert picograd.default_generator.offset == before + 41


def test_a_generator_is_cloned_where_it_stands():
    generator = picograd.Generator().manual_seed(3)
    picograd.rand(3, generator=generator)
    other = generator.clone_state()
    drawn = picograd.rand(2, generator=generator)
    assert other.initial_seed() == 3 and other.device == generator.device
    assert picograd.equal(drawn, picograd.rand(2, generator=other))
    assert not picograd.equal(drawn, picograd.rand(2, generator=generator))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_generator_that_drew_is_copied_and_pickled(copied: Any) -> None:
    """A loader hands its generator to other processes; the copy's jitted draws are its own."""
    generator = picograd.Generator().manual_seed(3)
    picograd.rand(3, generator=generator)
    other = copied(generator)
    draw = picograd.jit(lambda: picograd.rand(2, generator=other))
    drawn = [draw().tolist() for _ in range(2)]
    assert drawn == [picograd.rand(2, generator=generator).tolist() for _ in range(2)]
    generator.manual_seed(5)
    other.manual_seed(3)
    again = picograd.Generator().manual_seed(3)
    assert draw().tolist() == picograd.rand(2, generator=again).tolist()
