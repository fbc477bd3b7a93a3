"""Data sets: MNIST, packaged with picograd; Fashion-MNIST, CIFAR-10 and CIFAR-100, downloaded.

Files are found in this order: the folder given, the package, the data folder
(`PICOGRAD_DATA`, else `~/.cache/picograd/datasets`), the mirrors. Whatever the source, the bytes
must have the published SHA-256. The formats are parsed as bytes: nothing in a file is executed.
"""

import gzip
import hashlib
import math
import os
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from picograd.dtype import float32, int64
from picograd.errors import DataError, check_known
from picograd.nn.download import Published, data_folder, download, read_tar, sha256_of
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.tensor import Tensor

__all__ = [
    "CIFAR10_MEAN", "CIFAR10_STD", "CIFAR100_MEAN", "CIFAR100_STD", "FASHION_CLASSES",
    "FASHION_MEAN", "FASHION_STD", "Cifar", "Mnist", "cifar10", "cifar100", "fashion_mnist",
    "mnist",
]  # fmt: skip

Array = np.ndarray
Folder = str | os.PathLike[str] | None

PACKAGED = Path(__file__).parent / "data"
TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
IDX_FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)

# Sizes and SHA-256 of the files as they are served.
MNIST_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
FASHION_MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)
CIFAR_MIRRORS = ("https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/")
MNIST = {
    TRAIN_IMAGES: (9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    TRAIN_LABELS: (28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    TEST_IMAGES: (1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    TEST_LABELS: (4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
}
FASHION = {
    TRAIN_IMAGES: (26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
    TRAIN_LABELS: (29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
    TEST_IMAGES: (4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
    TEST_LABELS: (5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
}
CIFAR10 = Published(
    "cifar-10-binary.tar.gz",
    CIFAR_MIRRORS,
    170052171,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
CIFAR100 = Published(
    "cifar-100-binary.tar.gz",
    CIFAR_MIRRORS,
    168513733,
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
)
# The packaged files are packed tighter than the published ones: what counts is what is in them.
UNPACKED = {
    TRAIN_IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    TRAIN_LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    TEST_LABELS: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}

# Mean and standard deviation of the training images, scaled to [0, 1].
MEAN, STD = 0.1307, 0.3081
FASHION_MEAN, FASHION_STD = 0.2860, 0.3530
CIFAR10_MEAN, CIFAR10_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
CIFAR100_MEAN, CIFAR100_STD = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)

FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
PIXELS = 3 * 32 * 32  # of a CIFAR image: red, then green, then blue, row by row
BATCH = 10000  # images in each of the six files of CIFAR-10


class Mnist(NamedTuple):
    """Images (N, 1, 28, 28) and labels (N,) for training (60,000) and test (10,000).

    >>> from picograd import nn
    >>> nn.datasets.Mnist._fields
    ('train_images', 'train_labels', 'test_images', 'test_labels')
    """

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


class Cifar(NamedTuple):
    """Images (N, 3, 32, 32) and labels (N,) for training (50,000) and test (10,000), and names.

    >>> from picograd import nn
    >>> nn.datasets.Cifar._fields
    ('train_images', 'train_labels', 'test_images', 'test_labels', 'classes')
    """

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    classes: tuple[str, ...]


def mnist(device: DeviceLike | None = None, normalize: bool = True, folder: Folder = None) -> Mnist:
    """Load MNIST: float32 images with mean 0 and deviation 1 (or uint8 as stored), int64 labels.

    Raises DataError when a file is damaged, or missing and no mirror can be reached.
    Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits".

    >>> from picograd import nn
    >>> data = nn.datasets.mnist("cpu", normalize=False)
    >>> data.train_images.shape, data.test_labels[:3].tolist()
    ((60000, 1, 28, 28), [7, 2, 1])
    """
    packed = [find(name, folder) for name in IDX_FILES]
    arrays = [read_idx(name, content) for name, content in zip(IDX_FILES, packed)]
    return _idx_set(arrays, device, (MEAN, STD) if normalize else None)


def fashion_mnist(
    device: DeviceLike | None = None, normalize: bool = True, folder: Folder = None
) -> Mnist:
    """Load Fashion-MNIST (31 MB to download): like `mnist`, with clothes for digits.

    `FASHION_CLASSES` names the labels. Raises DataError as `mnist` does.
    Source: Xiao, Rasul, Vollgraf, "Fashion-MNIST" (2017).

    >>> from picograd import nn
    >>> nn.datasets.fashion_mnist(folder="nowhere")
    Traceback (most recent call last):
    picograd.errors.DataError: fashion_mnist: cannot read nowhere/train-images-idx3-ubyte.gz
    (No such file or directory). Fix: put train-images-idx3-ubyte.gz there, or leave out folder=.
    """
    arrays = []
    for name, (size, sha256) in FASHION.items():
        file = Published(f"{name}.gz", FASHION_MIRRORS, size, sha256)
        path = locate("fashion_mnist", file, folder)
        arrays.append(read_idx(name, unzip("fashion_mnist", path), "fashion_mnist"))
    return _idx_set(arrays, device, (FASHION_MEAN, FASHION_STD) if normalize else None)


def cifar10(device: DeviceLike | None = None, folder: Folder = None) -> Cifar:
    """Load CIFAR-10 (170 MB to download): uint8 images as stored, int64 labels, 10 class names.

    Scale and normalise batches on the device: `nn.transforms.ToFloat`, then `Normalize` with
    `CIFAR10_MEAN`, `CIFAR10_STD`. Raises DataError as `mnist` does.
    Source: Krizhevsky, "Learning multiple layers of features from tiny images" (2009).

    >>> from picograd import nn
    >>> nn.datasets.cifar10(folder="nowhere")
    Traceback (most recent call last):
    picograd.errors.DataError: cifar10: cannot read nowhere/cifar-10-binary.tar.gz
    (No such file or directory). Fix: put cifar-10-binary.tar.gz there, or leave out folder=.
    """
    root = "cifar-10-batches-bin/"
    train = [f"{root}data_batch_{number}.bin" for number in range(1, 6)]
    test, names = f"{root}test_batch.bin", f"{root}batches.meta.txt"
    sizes = dict.fromkeys((*train, test), BATCH * (1 + PIXELS))
    content = read_tar("cifar10", locate("cifar10", CIFAR10, folder), {**sizes, names: 0})
    training = b"".join(content[name] for name in train)
    return _cifar_set(training, content[test], 1, 0, content[names], device)


def cifar100(
    device: DeviceLike | None = None, folder: Folder = None, labels: str = "fine"
) -> Cifar:
    """Load CIFAR-100 (169 MB to download): like `cifar10`, with 100 classes or 20 coarse ones.

    Each image has a fine label ("maple tree") and a coarse one ("trees"): `labels` picks.

    >>> from picograd import nn
    >>> nn.datasets.cifar100(folder="nowhere")
    Traceback (most recent call last):
    picograd.errors.DataError: cifar100: cannot read nowhere/cifar-100-binary.tar.gz
    (No such file or directory). Fix: put cifar-100-binary.tar.gz there, or leave out folder=.
    """
    check_known("cifar100", "labels", labels, ("fine", "coarse"))
    root = "cifar-100-binary/"
    train, test, names = f"{root}train.bin", f"{root}test.bin", f"{root}{labels}_label_names.txt"
    sizes = {train: 5 * BATCH * (2 + PIXELS), test: BATCH * (2 + PIXELS), names: 0}
    content = read_tar("cifar100", locate("cifar100", CIFAR100, folder), sizes)
    column = 0 if labels == "coarse" else 1
    return _cifar_set(content[train], content[test], 2, column, content[names], device)


def _idx_set(
    arrays: list[Array], device: DeviceLike | None, statistics: tuple[float, float] | None
) -> Mnist:
    train_images, train_labels, test_images, test_labels = arrays
    return Mnist(
        _images(train_images, device, statistics),
        _labels(train_labels, device),
        _images(test_images, device, statistics),
        _labels(test_labels, device),
    )


def _images(
    pixels: Array, device: DeviceLike | None, statistics: tuple[float, float] | None
) -> Tensor:
    images = pixels[:, None]
    if statistics is None:
        return Tensor.of(images, device=device)
    # One table look-up per pixel: 4 times faster than arithmetic on 47 million floats.
    mean, deviation = statistics
    table = ((np.arange(256) / 255.0 - mean) / deviation).astype(np.float32)
    return Tensor(table[images], device=device, dtype=float32)


def _labels(numbers: Array, device: DeviceLike | None) -> Tensor:
    return Tensor(numbers.astype(np.int64), device=device, dtype=int64)


def _cifar_set(
    train: bytes, test: bytes, labels: int, column: int, names: bytes, device: DeviceLike | None
) -> Cifar:
    """Read rows of `labels` label bytes and 3072 pixels; `column` is the label wanted."""
    rows = [np.frombuffer(content, np.uint8) for content in (train, test)]
    rows = [content.reshape(-1, labels + PIXELS) for content in rows]
    images = [Tensor.of(part[:, labels:].reshape(-1, 3, 32, 32), device=device) for part in rows]
    truth = [_labels(part[:, column], device) for part in rows]
    return Cifar(images[0], truth[0], images[1], truth[1], tuple(names.decode().split()))


def find(name: str, folder: Folder = None) -> bytes:
    """Return the unpacked bytes of one file of MNIST, from the first place that has it."""
    size, sha256 = MNIST[name]
    places = [folder] if folder is not None else [PACKAGED / "mnist", cache_folder()]
    paths = [Path(place) / f"{name}.gz" for place in places]
    path = next(filter(Path.is_file, paths), paths[-1])
    if folder is None and not path.is_file():
        download("mnist", Published(path.name, MNIST_MIRRORS, size, sha256), path)
    content = unzip("mnist", path)
    if hashlib.sha256(content).hexdigest() != UNPACKED[name]:
        raise damaged("mnist", path)
    return content


def cache_folder() -> Path:
    """Find the folder for downloaded files of MNIST (it may not exist yet)."""
    return data_folder("mnist")


def locate(op: str, file: Published, folder: Folder) -> Path:
    """Find a file, in the folder given or downloaded, that has its published SHA-256."""
    path = (data_folder(op) if folder is None else Path(folder)) / file.name
    if folder is None and not path.is_file():
        download(op, file, path)
        return path
    try:
        is_right = sha256_of(path) == file.sha256
    except OSError as error:
        raise unreadable(op, path, error) from error
    if not is_right:
        raise damaged(op, path)
    return path


def unzip(op: str, path: Path) -> bytes:
    """Decompress a .gz file; DataError when it is missing or damaged."""
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(op, path, error) from error


def unreadable(op: str, path: Path, error: Exception) -> DataError:
    """Word what keeps a file from being read."""
    fix = "restore the file, or delete it to have it downloaded"
    if isinstance(error, FileNotFoundError):
        fix = f"put {path.name} there, or leave out folder="
    problem = f"cannot read {path} ({getattr(error, 'strerror', None) or error})"
    return DataError(op, problem, fix)


def damaged(op: str, path: Path) -> DataError:
    """Word that a file is not the published one."""
    problem = f"{path} is damaged: its SHA-256 is not the published one"
    return DataError(op, problem, "delete the file to have it downloaded again")


def read_idx(name: str, content: bytes, op: str = "mnist") -> Array:
    """Parse the idx format: two zero bytes, type 8 (bytes), rank, big-endian sizes, data."""
    rank = content[3] if len(content) >= 4 else 0
    header = 4 + 4 * rank
    words = [content[start : start + 4] for start in range(4, header, 4)]
    sizes = [int.from_bytes(word, "big") for word in words]
    if content[:3] != b"\x00\x00\x08" or len(content) != header + math.prod(sizes):
        raise DataError(op, f"{name} is no idx file of bytes", "restore the file")
    return np.frombuffer(content, np.uint8, offset=header).reshape(sizes)
