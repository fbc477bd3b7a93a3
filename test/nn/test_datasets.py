import dataclasses
import gzip
import hashlib
import io
import tarfile

import numpy as np
import pytest

from picograd.config import config
from picograd.errors import DataError, ValueRangeError
from picograd.nn import datasets
from picograd.nn.datasets import Published

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
    notice = (datasets.PACKAGED / "mnist" / "README.md").read_text()
    assert "CC BY-SA 3.0" in notice
    assert len((datasets.PACKAGED / "mnist" / "SHA256SUMS").read_text().splitlines()) == 4


def test_damaged_file_is_named(tmp_path):
    path = tmp_path / f"{LABELS}.gz"
    path.write_bytes(gzip.compress(b"wrong"))
    with pytest.raises(DataError, match="is damaged: its SHA-256 is not the published one"):
        datasets.find(LABELS, tmp_path)
    path.write_bytes((datasets.PACKAGED / "mnist" / path.name).read_bytes()[:1000])
    with pytest.raises(DataError, match="cannot read .*Compressed file ended"):
        datasets.find(LABELS, tmp_path)


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match="mnist: cannot read .*No such file"):
        datasets.mnist(folder=tmp_path)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """No package, no network, an empty data folder."""
    monkeypatch.setattr(datasets, "PACKAGED", tmp_path / "absent")
    mirrors = ("file:///nowhere/",)
    monkeypatch.setattr(datasets, "MNIST_MIRRORS", mirrors)
    monkeypatch.setattr(datasets, "FASHION_MIRRORS", mirrors)
    for name in ("CIFAR10", "CIFAR100"):
        offline = dataclasses.replace(getattr(datasets, name), mirrors=mirrors)
        monkeypatch.setattr(datasets, name, offline)
    with config.override(data=str(tmp_path / "data")):
        yield tmp_path / "data"


def served(tmp_path, content, name):
    """Put a file into a folder that serves as a mirror; its size and hash."""
    folder = tmp_path / "mirror"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return f"file://{folder}/", len(content), hashlib.sha256(content).hexdigest()


def test_download_fills_the_data_folder(tmp_path, monkeypatch, empty_cache):
    """Ancestor row M47: files are decompressed, whatever brought them."""
    unpacked = b"\0\0\x08\x01\0\0\0\x03abc"
    mirror, *facts = served(tmp_path, gzip.compress(unpacked), f"{LABELS}.gz")
    monkeypatch.setattr(datasets, "MNIST_MIRRORS", ("file:///nowhere/", mirror))
    monkeypatch.setitem(datasets.MNIST, LABELS, tuple(facts))
    monkeypatch.setitem(datasets.UNPACKED, LABELS, hashlib.sha256(unpacked).hexdigest())
    assert datasets.find(LABELS) == unpacked
    assert (empty_cache / "mnist" / f"{LABELS}.gz").is_file()
    monkeypatch.setattr(datasets, "MNIST_MIRRORS", ())
    assert datasets.find(LABELS) == unpacked


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "cifar100"])
def test_offline_is_one_clear_error(empty_cache, name):
    with pytest.raises(DataError) as error:
        getattr(datasets, name)("cpu")
    file = "train-images-idx3-ubyte.gz"
    file = f"{name.replace('r1', 'r-1')}-binary.tar.gz" if "cifar" in name else file
    size = {"mnist": 9.9, "fashion_mnist": 26.4, "cifar10": 170.1, "cifar100": 168.5}[name]
    text = str(error.value)
    assert text.startswith(f"{name}: cannot fetch {file}, {size} MB (file:///nowhere/{file}: ")
    assert text.endswith(f"connect to the internet, or put {file} into {empty_cache / name}.")


def test_wrong_bytes_from_a_mirror_are_refused(tmp_path, monkeypatch, empty_cache):
    mirror, *_ = served(tmp_path, b"x" * datasets.MNIST[LABELS][0], f"{LABELS}.gz")
    monkeypatch.setattr(datasets, "MNIST_MIRRORS", (mirror,))
    with pytest.raises(DataError, match="wrong SHA-256"):
        datasets.find(LABELS)
    assert not (empty_cache / "mnist" / f"{LABELS}.gz").exists()


def test_fashion_mnist(tmp_path, monkeypatch, empty_cache, device):
    pixels = bytes(range(2 * 28)) * 28
    images = b"\0\0\x08\x03\0\0\0\x02\0\0\0\x1c\0\0\0\x1c" + pixels
    labels = b"\0\0\x08\x01\0\0\0\x02\x09\x01"
    for name in datasets.IDX_FILES:
        content = gzip.compress(images if "images" in name else labels)
        mirror, *facts = served(tmp_path, content, f"{name}.gz")
        monkeypatch.setitem(datasets.FASHION, name, tuple(facts))
    monkeypatch.setattr(datasets, "FASHION_MIRRORS", ("file:///nowhere/", mirror))
    data = datasets.fashion_mnist(device)
    wanted = np.frombuffer(pixels, np.uint8).reshape(2, 1, 28, 28) / 255.0
    np.testing.assert_allclose(data.test_images.numpy(), (wanted - 0.2860) / 0.3530, atol=1e-6)
    named = [datasets.FASHION_CLASSES[label] for label in data.train_labels.tolist()]
    assert named == ["Ankle boot", "Trouser"]
    assert datasets.fashion_mnist(device, normalize=False).train_images.dtype.name == "uint8"


def pack(members):
    """Write a .tar.gz into memory."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def rows(count, labels, first=0):
    """Rows of CIFAR's binary format: label bytes, then 3072 pixels, all telling their row."""
    number = np.arange(first, first + count)[:, None]
    pixels = (number + np.arange(3072)) % 256
    columns = [number % 10 + 10 * column for column in range(labels)]
    return np.concatenate([*columns, pixels], 1).astype(np.uint8).tobytes()


def publish(monkeypatch, tmp_path, name, members):
    """Let a small archive be the published one."""
    file = getattr(datasets, name)
    mirror, size, sha256 = served(tmp_path, pack(members), file.name)
    small = Published(file.name, ("file:///nowhere/", mirror), size, sha256)
    monkeypatch.setattr(datasets, name, small)
    monkeypatch.setattr(datasets, "BATCH", 2)


def test_cifar10(tmp_path, monkeypatch, empty_cache):
    root = "cifar-10-batches-bin/"
    members = {f"{root}data_batch_{n}.bin": rows(2, 1, 2 * n - 2) for n in range(1, 6)}
    names = {f"{root}batches.meta.txt": b"airplane\nautomobile\n\n"}
    members = {f"{root}test_batch.bin": rows(2, 1, 20), **names, **members}
    publish(monkeypatch, tmp_path, "CIFAR10", members)
    data = datasets.cifar10("cpu")
    assert data.train_images.shape == (10, 3, 32, 32) and data.test_images.shape == (2, 3, 32, 32)
    assert data.train_images.dtype.name == "uint8" and data.train_labels.dtype.name == "int64"
    assert data.train_labels.tolist() == list(range(10)) and data.test_labels.tolist() == [0, 1]
    assert data.train_images[:, 0, 0, 0].tolist() == list(range(10))  # red, top left
    assert data.train_images[3, :, 0, 0].tolist() == [3, (3 + 1024) % 256, (3 + 2048) % 256]
    assert data.train_images[3, 0, 1, :2].tolist() == [35, 36]
    assert data.classes == ("airplane", "automobile")


def test_cifar100_has_two_kinds_of_labels(tmp_path, monkeypatch, empty_cache):
    root = "cifar-100-binary/"
    members = {f"{root}train.bin": rows(10, 2), f"{root}test.bin": rows(2, 2)}
    members[f"{root}fine_label_names.txt"] = b"apple\nbaby\n"
    members[f"{root}coarse_label_names.txt"] = b"fish\n"
    publish(monkeypatch, tmp_path, "CIFAR100", members)
    fine, coarse = datasets.cifar100("cpu"), datasets.cifar100("cpu", labels="coarse")
    assert fine.train_labels.tolist() == [10 + n for n in range(10)]  # the second byte
    assert coarse.train_labels.tolist() == list(range(10)) and coarse.classes == ("fish",)
    assert fine.train_images[1, 0, 0, :2].tolist() == [1, 2]
    with pytest.raises(ValueRangeError, match="labels='medium' is unknown"):
        datasets.cifar100(labels="medium")


def test_a_folder_of_ones_own_is_checked(tmp_path, monkeypatch):
    path = tmp_path / "cifar-10-binary.tar.gz"
    with pytest.raises(DataError, match="cannot read .*put cifar-10-binary.tar.gz there"):
        datasets.cifar10(folder=tmp_path)
    path.write_bytes(b"another archive")
    with pytest.raises(DataError, match="is damaged"):
        datasets.cifar10(folder=tmp_path)


def test_an_archive_without_the_files_is_refused(tmp_path, monkeypatch, empty_cache):
    publish(monkeypatch, tmp_path, "CIFAR10", {"cifar-10-batches-bin/test_batch.bin": b"short"})
    with pytest.raises(DataError, match="has no cifar-10-batches-bin/data_batch_1.bin of 6146"):
        datasets.cifar10()
