import numpy as np
import pytest

import picograd
from picograd import Tensor, manual_seed
from picograd.errors import ShapeError, ValueRangeError
from picograd.nn import transforms as T

IMAGES = np.random.default_rng(1).random((8, 2, 4, 6), np.float32)


def run(transform, device, given=IMAGES):
    manual_seed(7)
    return transform(Tensor(given, device=device)).numpy()


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "circular"])
def test_pad(mode, device):
    out = run(T.Pad((1, 2, 3, 0), padding_mode=mode), device)
    name = {"circular": "wrap"}.get(mode, mode)
    np.testing.assert_array_equal(out, np.pad(IMAGES, ((0, 0), (0, 0), (2, 0), (1, 3)), name))


def test_paddings_are_torchvisions(device):
    assert run(T.Pad(1), device).shape == (8, 2, 6, 8)
    assert run(T.Pad((0, 1), fill=9), device)[0, 0, 0, 0] == 9
    for wrong in (-1, (1, 2, 3)):
        with pytest.raises(ValueRangeError, match="is not 1, 2 or 4 numbers"):
            T.Pad(wrong)


def test_center_crop(device):
    np.testing.assert_array_equal(run(T.CenterCrop((2, 4)), device), IMAGES[:, :, 1:3, 1:5])
    wide = run(T.CenterCrop((2, 8)), device)
    np.testing.assert_array_equal(wide, np.pad(IMAGES[:, :, 1:3], ((0, 0), (0, 0), (0, 0), (1, 1))))


def test_resize(device):
    torch = pytest.importorskip("torch")
    for antialias in (True, False):
        theirs = torch.nn.functional.interpolate(
            torch.from_numpy(IMAGES), (2, 9), mode="bilinear", antialias=antialias
        )
        ours = run(T.Resize((2, 9), antialias=antialias), device)
        np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-6)
    assert run(T.Resize(2), device).shape == (8, 2, 2, 3)  # the shorter side
    whole = (IMAGES * 255).astype(np.uint8)
    out = run(T.Resize((2, 3), mode="area"), device, whole)
    wanted = whole.reshape(8, 2, 2, 2, 3, 2).mean((3, 5)).round()
    assert out.dtype == np.uint8
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("kind, axis", [(T.RandomHorizontalFlip, 3), (T.RandomVerticalFlip, 2)])
def test_flips_are_per_image(kind, axis, device):
    out, mirrored = run(kind(), device), np.flip(IMAGES, axis)
    flipped = [bool((a == b).all()) for a, b in zip(out, mirrored)]
    for is_flipped, image, before, after in zip(flipped, out, IMAGES, mirrored):
        np.testing.assert_array_equal(image, after if is_flipped else before)
    assert 0 < sum(flipped) < 8
    np.testing.assert_array_equal(run(kind(0.0), device), IMAGES)


def test_crops_are_windows_of_the_padded_image(device):
    padded = np.pad(IMAGES, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=9)
    out = run(T.RandomCrop((4, 6), padding=1, fill=9), device)
    places = set()
    for image, source in zip(out, padded):
        found = [
            (i, j)
            for i in range(3)
            for j in range(3)
            if (source[:, i : i + 4, j : j + 6] == image).all()
        ]
        assert len(found) == 1
        places.add(found[0])
    assert len(places) > 3
    assert run(T.RandomCrop(4), device).shape == (8, 2, 4, 4)
    with pytest.raises(ShapeError, match=r"a window of \(5, 5\) does not fit into .*\(4, 6\)"):
        run(T.RandomCrop(5), device)


def test_a_crop_of_pixels_keeps_their_dtype(device):
    whole = (IMAGES * 255).astype(np.uint8)
    out = run(T.RandomCrop((4, 6), padding=1), device, whole)
    assert out.dtype == np.uint8 and out.shape == whole.shape


def test_every_place_is_drawn(device):
    ramp = np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1).repeat(300, 0)
    out = run(T.RandomCrop((2, 1)), device, ramp)
    counts = np.bincount(out[:, 0, 0, 0].astype(int), minlength=3)
    assert counts.sum() == 300 and counts.min() > 60


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_rotation_is_counter_clockwise(turns, device):
    square = IMAGES[:, :, :, 1:5]
    out = run(T.RandomRotation((90 * turns, 90 * turns)), device, square)
    np.testing.assert_allclose(out, np.rot90(square, turns, (2, 3)), atol=1e-5)


def test_a_half_turn_of_a_wide_image(device):
    out = run(T.RandomRotation((180, 180)), device)
    np.testing.assert_allclose(out, IMAGES[:, :, ::-1, ::-1], atol=1e-5)


def test_affine_maps_against_numpy(device):
    """Output pixel p is read at centre + M^-1 (p - centre), M = rotation * shear * scale."""
    angle, shear, scale = np.deg2rad(30), np.deg2rad(20), 1.25
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])  # y down
    inverse = np.linalg.inv(turn @ np.array([[1, -np.tan(shear)], [0, 1]]) * scale)
    centre = np.array([2.5, 1.5])  # x, y
    wanted = np.zeros_like(IMAGES)
    for y, x in np.ndindex(4, 6):
        place = inverse @ (np.array([x, y]) - centre) + centre
        low = np.floor(place).astype(int)
        for dx, dy in np.ndindex(2, 2):
            i, j = low[1] + dy, low[0] + dx
            if 0 <= i < 4 and 0 <= j < 6:
                weight = (1 - abs(place[0] - j)) * (1 - abs(place[1] - i))
                wanted[:, :, y, x] += weight * IMAGES[:, :, i, j]
    transform = T.RandomAffine((30, 30), scale=(1.25, 1.25), shear=(20, 20))
    np.testing.assert_allclose(run(transform, device), wanted, atol=1e-5)


def test_shifts_are_drawn(device):
    ones = np.ones((64, 1, 4, 6), np.float32)
    out = run(T.RandomAffine(0, translate=(0.5, 0.0)), device, ones)
    kept = out.mean((1, 2, 3))
    assert 0.5 <= kept.min() < 0.6 and 0.95 < kept.max() <= 1.0 and len(np.unique(kept)) > 30
    with pytest.raises(ValueRangeError, match="is out of range"):
        T.RandomAffine(0, translate=(2.0, 0.0))


def test_a_jitted_pipeline_draws_anew(device):
    both = T.Compose([T.RandomCrop((4, 6), padding=1), T.RandomHorizontalFlip()])
    jitted = picograd.jit(both)
    images = Tensor(IMAGES, device=device)
    runs = []
    for _ in range(2):
        manual_seed(3)
        runs.append([jitted(images).numpy() for _ in range(3)])
    manual_seed(3)
    np.testing.assert_array_equal(runs[0][0], both(images).numpy())
    assert (runs[0][0] != runs[0][1]).any() and (runs[0][1] != runs[0][2]).any()
    assert jitted.traces == 1
