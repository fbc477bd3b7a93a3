import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from picograd.errors import DataError
from picograd.nn import datasets

TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
LABELS = "t10k-labels-idx1-ubyte"


@pytest.fixture(scope="module")
def data():
    return datasets.mnist("cpu")


def test_shapes_and_class_counts(data):
    assert data.train_images.shape == (60000, 1, 28, 28)
    assert data.test_images.shape == (10000, 1, 28, 28)
    assert np.bincount(data.train_labels.numpy()).tolist() == TRAIN
    assert np.bincount(data.test_labels.numpy()).tolist() == TEST
    assert data.train_labels.dtype.name == "int64"


def test_images_are_normalised(data):
    pixels = data.test_images.numpy()
    raw = datasets.read_idx("images", datasets.find("t10k-images-idx3-ubyte"))
    wanted = (raw[:, None] / 255.0 - 0.1307) / 0.3081
    np.testing.assert_allclose(pixels, wanted, atol=1e-6)


def test_packaged_files_have_their_notice():
    notice = (datasets.PACKAGED / "README.md").read_text()
    assert "CC BY-SA 3.0" in notice
    assert len((datasets.PACKAGED / "SHA256SUMS").read_text().splitlines()) == 4


def test_damaged_file_is_named(tmp_path):
    path = tmp_path / f"{LABELS}.gz"
    path.write_bytes(gzip.compress(b"wrong"))
    with pytest.raises(DataError, match="is damaged: its SHA-256 is not MNIST's"):
        datasets.find(LABELS, tmp_path)
    path.write_bytes((datasets.PACKAGED / path.name).read_bytes()[:1000])
    with pytest.raises(DataError, match="cannot read .*Compressed file ended"):
        datasets.find(LABELS, tmp_path)


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match="mnist: cannot read .*No such file"):
        datasets.mnist(folder=tmp_path)


def test_download_fills_the_cache(tmp_path, monkeypatch):
    source = datasets.PACKAGED
    served = tmp_path / "mirror"
    shutil.copytree(source, served)
    monkeypatch.setattr(datasets, "PACKAGED", tmp_path / "absent")
    monkeypatch.setattr(datasets, "MIRRORS", ("file:///nowhere/", f"file://{served}/"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    content = datasets.find(LABELS)
    assert len(content) == 10008
    assert (datasets.cache_folder() / f"{LABELS}.gz").is_file()
    monkeypatch.setattr(datasets, "MIRRORS", ())
    assert datasets.find(LABELS) == content


def test_offline_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "PACKAGED", tmp_path)
    monkeypatch.setattr(datasets, "MIRRORS", ("file:///nowhere/",))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataError) as error:
        datasets.find(LABELS)
    assert str(error.value).startswith(f"mnist: cannot fetch {LABELS}.gz (file:///nowhere/")
    assert "Fix: connect to the internet, or put" in str(error.value)


def test_wrong_bytes_from_a_mirror_are_refused(tmp_path, monkeypatch):
    (tmp_path / f"{LABELS}.gz").write_bytes(gzip.compress(b"not the labels"))
    monkeypatch.setattr(datasets, "MIRRORS", (f"file://{tmp_path}/",))
    with pytest.raises(DataError, match="wrong SHA-256"):
        datasets.download(LABELS, Path(tmp_path) / "cached")
    assert not (tmp_path / "cached").exists()
