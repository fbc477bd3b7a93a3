"""Fetch the JavaScript library of the viewer, with its licence: `python docs/vendor_assets.py`.

Needs `npm`, for this alone: what it writes is part of the repository and of the wheel.
"""

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "picograd/view/assets/vendor"
PACKAGE = "uplot@1.6.32"  # charts; MIT
FILES = {
    "package/dist/uPlot.esm.js": "uplot.mjs",
    "package/dist/uPlot.min.css": "uplot.css",
    "package/LICENSE": "uplot.LICENSE",
}


def main() -> None:
    """Write the files of the package that the page loads."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    npm = shutil.which("npm") or "npm"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([npm, "pack", "--silent", PACKAGE], cwd=folder, check=True)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as packed:
            for name, target in FILES.items():
                content = packed.extractfile(name)
                if content is None:
                    raise SystemExit(f"{PACKAGE} has no {name}")
                (FOLDER / target).write_bytes(content.read())
    print(f"{FOLDER}: {', '.join(FILES.values())} of {PACKAGE}")


if __name__ == "__main__":
    main()
