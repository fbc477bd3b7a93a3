"""Data sets: MNIST, packaged with picograd; Fashion-MNIST, CIFAR-10 and CIFAR-100, downloaded.

Files are found in this order: the folder given, the package, the data folder
(`PICOGRAD_DATA`, else `~/.cache/picograd/datasets`), the mirrors. Whatever the source, the bytes
must have the published SHA-256. The formats are parsed as bytes: nothing in a file is executed.

Download published files: from mirrors in turn, resumed after a break, checked, moved in whole.

A file grows as `NAME.part` beside its target, under a lock, so that a second process waits for the
first one's file instead of fetching it again. What arrived before a connection or a program broke
is kept: the next attempt asks for the rest (RFC 9110, section 14: Range). Only a complete file with
the published SHA-256 gets the target's name. What speaks to the net is imported when it must: it
takes as long as the rest of picograd.
"""

import fcntl
import gzip
import hashlib
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from picograd.config import config
from picograd.dtype import float32, int64
from picograd.errors import DataError, check_known, writing
from picograd.late_methods import dataclass
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.tensor import Tensor

TIMEOUT = 20  # seconds without an answer before the next mirror is tried
ATTEMPTS = 5  # connections to one mirror, as long as each brings some bytes
PIECE = 1 << 16  # bytes read at a time
PARTIAL_CONTENT = 206  # the status of an answer that begins where it was asked to


@dataclass(frozen=True)
class Published:
    """A file on the net: name, folders that hold it (URLs ending in /), bytes, SHA-256."""

    name: str
    mirrors: tuple[str, ...]
    size: int
    sha256: str


class Unusable(Exception):
    """What a mirror sent cannot be the published file."""


def data_folder(name: str) -> Path:
    """Find the folder of a downloaded data set (it may not exist yet)."""
    if config.data:
        return Path(config.data) / name
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "picograd" / "datasets" / name


def sha256_of(path: Path) -> str:
    """Hash a file without holding it in memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def megabytes(size: int) -> str:
    """Write a number of bytes for people."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


def download(op: str, file: Published, target: Path, timeout: float = TIMEOUT) -> None:
    """Fetch a file from the first mirror that gives the right bytes, with a progress bar.

    Raises DataError, naming the file, its size and every mirror's problem, if none does.
    """
    with open_partial(target) as part:
        if target.is_file():  # another process fetched it while this one waited for the lock
            return
        problems = []
        for mirror in file.mirrors:
            problem = fetch(mirror + file.name, file, part, timeout)
            if not problem:
                os.replace(part.name, target)
                return
            problems.append(f"{mirror}{file.name}: {problem}")
    what = f"{file.name}, {megabytes(file.size)}"
    fix = f"connect to the internet, or put {file.name} into {target.parent}"
    raise DataError(op, f"cannot fetch {what} ({'; '.join(problems)})", fix)


@contextmanager
def open_partial(target: Path) -> Iterator[BinaryIO]:
    """Open `NAME.part` for appending, once no other process has it."""
    path = target.with_name(f"{target.name}.part")
    with writing("download", path, "set PICOGRAD_DATA to a folder you own"):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = path.open("ab")
    with part:
        fcntl.flock(part, fcntl.LOCK_EX)
        yield part


def fetch(url: str, file: Published, part: BinaryIO, timeout: float) -> str:
    """Complete the part from one mirror; returns what went wrong, or nothing."""
    from http.client import HTTPException

    problem = ""
    for _ in range(ATTEMPTS):
        start = part.seek(0, os.SEEK_END)
        try:
            if start < file.size:
                receive(url, file, part, start, timeout)
        except Unusable as error:
            part.truncate(0)
            return str(error)
        except (OSError, HTTPException, ValueError) as error:
            problem = str(getattr(error, "reason", error) or type(error).__name__)
        size = part.seek(0, os.SEEK_END)
        if size == file.size and sha256_of(Path(part.name)) == file.sha256:
            return ""
        if size >= file.size:
            part.truncate(0)
            problem = "wrong SHA-256"
            if not start:
                return problem  # all of it came from here: the mirror has another file
        elif size == start:
            return problem or "no data"
        else:
            problem = problem or f"ended after {size} of {file.size} bytes"
    return problem


def receive(url: str, file: Published, part: BinaryIO, start: int, timeout: float) -> None:
    """Append what a mirror sends from byte `start` on; begin anew if it sends everything."""
    import urllib.request

    from tqdm import tqdm

    headers = {"User-Agent": "picograd"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        if start and not continues(answer, start):
            part.truncate(0)
            start = 0
        bar = tqdm(total=file.size, initial=start, unit="B", unit_scale=True, desc=file.name)
        with bar:
            while piece := answer.read1(PIECE):
                start += len(piece)
                if start > file.size:
                    raise Unusable(f"longer than the {file.size} bytes published")
                write(part, piece)
                bar.update(len(piece))


def continues(answer: Any, start: int) -> bool:
    """Tell whether an answer holds the bytes from `start` on and not the whole file."""
    given = str(answer.headers.get("Content-Range") or "")
    return answer.status == PARTIAL_CONTENT and given.startswith(f"bytes {start}-")


def write(part: BinaryIO, piece: bytes) -> None:
    """Append to the part; a full disk is no reason to ask the next mirror."""
    try:
        part.write(piece)
        part.flush()
    except OSError as error:
        raise Unusable(f"cannot write {part.name}: {error.strerror}") from error


def read_tar(op: str, path: Path, sizes: dict[str, int]) -> dict[str, bytes]:
    """Read named regular files of a .tar.gz into memory; a size of 0 stands for any.

    Nothing is written, so no name in an archive can lead anywhere. Raises DataError when the
    archive is damaged or a member is missing or has another size.
    """
    import tarfile

    found = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.isreg() and member.name in sizes:
                    file = archive.extractfile(member)
                    found[member.name] = file.read() if file else b""
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        problem = f"cannot read {path} ({error})"
        raise DataError(op, problem, "delete the file to have it downloaded again") from error
    for name, size in sizes.items():
        if name not in found or (size and len(found[name]) != size):
            problem = f"{path} has no {name}" + (f" of {size} bytes" if size else "")
            raise DataError(op, problem, "delete the file to have it downloaded again")
    return found


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
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
    "Ankle boot",
)  # fmt: skip
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
