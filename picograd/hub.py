"""PyTorch's `torch.hub`: weights from an address, kept in a folder, and models of a local folder.

Files lie in `$PICOGRAD_DATA/hub/checkpoints`, or `~/.cache/picograd/hub/checkpoints`.
"""

import hashlib
import importlib
import os
import re
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from picograd.config import config
from picograd.errors import DataError, StateError
from picograd.nn.files_of_objects import load as load_file

FOLDER: dict[str, str] = {}
TIMEOUT = 60  # seconds without an answer
PIECE = 1 << 20  # bytes read at a time
HASH_REGEX = re.compile(r"-([a-f0-9]{8,})\.")  # in names such as resnet18-5c106cde.pth


def get_dir() -> str:
    """Name the folder of what was downloaded (it may not exist yet).

    >>> import picograd
    >>> picograd.hub.get_dir().endswith("hub")
    True
    """
    if "dir" in FOLDER:
        return FOLDER["dir"]
    base = Path(config.data) if config.data else Path.home() / ".cache" / "picograd"
    return str(base / "hub")


def _get_torch_home() -> str:
    """Name the folder that programs of PyTorch keep what they download in."""
    return os.path.dirname(get_dir())


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose the folder."""
    FOLDER["dir"] = os.path.expanduser(d)


def load_state_dict_from_url(
    url: str,
    model_dir: str | os.PathLike[str] | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load a file of weights from an address; one that was downloaded before is not again.

    `check_hash`: the name ends in the first digits of the file's SHA-256, which must agree.
    """
    folder = Path(model_dir) if model_dir is not None else Path(get_dir()) / "checkpoints"
    name = file_name or os.path.basename(urlparse(url).path)
    path = folder / name
    if not path.exists():
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress)
    return load_file(path, map_location=map_location, weights_only=weights_only)


load_url = load_state_dict_from_url  # its name in torch.utils.model_zoo


def download_url_to_file(
    url: str, dst: str | os.PathLike[str], hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Write what an address gives to a file, which is moved into place whole.

    Raises DataError if nothing answers, or the file's SHA-256 begins otherwise.
    """
    # it takes as long to import as the rest of picograd
    from urllib.request import urlopen

    target = Path(dst)
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    handle, part = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file, urlopen(url, timeout=TIMEOUT) as answer:
            while piece := answer.read(PIECE):
                file.write(piece)
                digest.update(piece)
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            text = f"{url} has SHA-256 {digest.hexdigest()[:16]}..., not {hash_prefix}..."
            raise DataError("hub", text, "download it again, or from where it is published")
        os.replace(part, target)
    except (OSError, ValueError) as error:
        fix = f"put the file there by hand: {target}"
        raise DataError("hub", f"{url} cannot be read: {error}", fix) from error
    finally:
        Path(part).unlink(missing_ok=True)


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function of the `hubconf.py` in a folder, with `source="local"`.

    Raises StateError for another source: programs are not downloaded and run. Raises DataError if
    the file, the function or a package of its `dependencies` is not there.
    """
    if source != "local":
        fix = "build the model, and load its weights with load_state_dict_from_url"
        raise StateError("hub.load", "programs of others are not downloaded", fix)
    path = Path(repo_or_dir).expanduser() / "hubconf.py"
    if not path.is_file():
        raise DataError("hub.load", f"{path} is not there", "name the folder that has it")
    named = vars(run_program(path))
    missing = [each for each in named.get("dependencies", ()) if find_spec(each) is None]
    if missing:
        raise DataError("hub.load", f"{path} needs {', '.join(missing)}", "install these packages")
    if not callable(named.get(model)):
        known = ", ".join(name for name in named if callable(named[name]) and name[0] != "_")
        raise DataError("hub.load", f"{path} has no function {model!r}", f"use one of {known}")
    return named[model](*args, **kwargs)


def run_program(path: Path) -> ModuleType:
    """Import a file, which may import what lies beside it, under no name that others find."""
    loader = SourceFileLoader(path.stem, str(path))
    program = ModuleType(path.stem)
    program.__file__ = str(path)
    sys.path.insert(0, str(path.parent))
    try:
        loader.exec_module(program)
    finally:
        sys.path.remove(str(path.parent))
    return program


def __getattr__(name: str) -> Any:
    """Give the progress bar that programs import from here, where tqdm is installed."""
    if name == "tqdm":
        return importlib.import_module("tqdm").tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
