import numpy as np
import pytest

import picograd
from picograd import Tensor, manual_seed
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.nn import transforms as T

ONES = np.ones((64, 2, 6, 6), np.float32)
NUMBERS = np.arange(4, dtype=np.float32)[:, None, None, None] * np.ones((1, 1, 6, 6), np.float32)
LABELS = np.array([0, 1, 2, 1])


def run(transform, device, *given):
    manual_seed(7)
    out = transform(*(Tensor(each, device=device) for each in given))
    return [each.numpy() for each in out] if isinstance(out, tuple) else out.numpy()


def is_rectangle(mask):
    rows, columns = mask.any(1), mask.any(0)
    return (mask == np.outer(rows, columns)).all() and all(
        np.diff(np.flatnonzero(line)).max(initial=1) == 1 for line in (rows, columns)
    )


def test_erased_rectangles(device):
    out = run(T.RandomErasing(0.5, scale=(0.1, 0.4), value=5), device, ONES)
    erased = out == 5
    assert ((out == 1) | erased).all() and (erased[:, 0] == erased[:, 1]).all()
    assert all(is_rectangle(mask) for mask in erased[:, 0])
    shares = erased[:, 0].mean((1, 2))
    assert 16 < (shares > 0).sum() < 48 and len({tuple(m.flatten()) for m in erased[:, 0]}) > 10
    assert shares.max() <= 0.5  # 0.4, with sides rounded
    assert (run(T.RandomErasing(0.0), device, ONES) == 1).all()
    assert (run(T.RandomErasing(1.0, (1.0, 1.0), (1.0, 1.0)), device, ONES) == 0).all()


def test_cutout_windows(device):
    out = run(T.Cutout((2, 3)), device, ONES)
    areas = (out[:, 0] == 0).sum((1, 2))
    assert all(is_rectangle(mask) for mask in out[:, 0] == 0)
    assert areas.max() == 6 and areas.min() < 6  # cut at the border
    assert run(T.Cutout(2), device, (ONES * 9).astype(np.uint8)).dtype == np.uint8


def test_mixed_images_and_labels(device):
    mixed, chances = run(T.MixUp(3), device, NUMBERS, LABELS)
    share = chances[0, 0]
    hot = np.eye(3, dtype=np.float32)[LABELS]
    assert 0 < share < 1
    np.testing.assert_allclose(
        mixed, share * NUMBERS + (1 - share) * np.roll(NUMBERS, 1, 0), atol=1e-5
    )
    np.testing.assert_allclose(chances, share * hot + (1 - share) * np.roll(hot, 1, 0), atol=1e-6)
    again, _ = run(T.MixUp(3), device, NUMBERS, hot)  # labels may be probabilities
    np.testing.assert_allclose(again, mixed, atol=1e-6)


def test_pasted_rectangles(device):
    shares = []
    transform, images = T.CutMix(3), Tensor(NUMBERS, device=device)
    labels = Tensor(LABELS, device=device)
    manual_seed(1)
    for _ in range(8):
        mixed, chances = (each.numpy() for each in transform(images, labels))
        pasted = mixed[1, 0] == 0
        assert is_rectangle(pasted) and (mixed[1, 0][~pasted] == 1).all()
        assert ((mixed[2, 0] == 1) == pasted).all()  # the same place in every image
        np.testing.assert_allclose(chances[1], [pasted.mean(), 1 - pasted.mean(), 0], atol=1e-6)
        shares.append(pasted.mean())
    assert len(set(shares)) > 4


def test_a_jitted_mix_draws_anew(device):
    mix = T.MixUp(3)
    jitted = picograd.jit(lambda images, labels: mix(images, labels)[1])
    given = Tensor(NUMBERS, device=device), Tensor(LABELS, device=device)
    manual_seed(2)
    plain = [mix(*given)[1].numpy() for _ in range(3)]
    manual_seed(2)
    np.testing.assert_allclose([jitted(*given).numpy() for _ in range(3)], plain, atol=1e-6)
    assert (plain[0] != plain[1]).any() and jitted.traces == 1


def test_the_share_is_beta_distributed(device):
    manual_seed(4)
    images = Tensor(NUMBERS, device=device)
    draws = [T.MixUp(3, alpha=4.0).draw_share(images).item() for _ in range(200)]
    assert abs(np.mean(draws) - 0.5) < 0.04 and abs(np.var(draws) - 1 / 36) < 0.01


def test_wrong_use_is_named():
    images, labels = Tensor(NUMBERS), Tensor(LABELS)
    with pytest.raises(ShapeError, match=r"MixUp: images \(4, 1, 6, 6\) and labels \(3,\)"):
        T.MixUp(3)(images, labels[:3])
    with pytest.raises(DTypeError, match="CutMix: images are uint8. Fix: put ToFloat"):
        T.CutMix(3)(images.cast("uint8"), labels)
    with pytest.raises(ValueRangeError, match="alpha=0 is not positive"):
        T.MixUp(3, alpha=0)
    with pytest.raises(ValueRangeError, match="is no range"):
        T.RandomErasing(scale=(0.5, 0.1))
