"""Run the code of the documentation and refresh the output shown under it.

    python docs/regenerate.py [--check] [page ...]

Without pages it also writes the reference, docs/api, by `docs/api_reference.py`, the page of
settings, and what type checkers read of derived names by `docs/stubs.py`.

A `python` block runs after those before it on its page, in an empty folder; a `console` block runs
each line that starts with `$` in the repository. A `text` block right after a `python` block, and
the other lines of a `console` block, are the output. Times and rates may differ; a line `...`
stands for any lines, and such a block is only compared. `sh` blocks are for reading. Without page
names, and with PyTorch installed, docs/pytorch_names.md is written anew too.
"""

import argparse
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = {"flags.md", "pytorch_names.md"}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEASURED = re.compile(r" *[\d.]+ (us|ms|s|seconds|GFLOP/s|GB/s)\b")
MACHINE = re.compile(r"(compile +\d+ kernels for) [^\s,]+")
COLLECTED = re.compile(r" +(free|allocate) ")  # depends on when Python collects garbage
LAUNCH = re.compile(r" *(\d+ (cpu|cuda|null)|[\d.]+ %)")  # a line of DEBUG=1 or of its table
DECIMAL = re.compile(r" *\d+\.\d+")
MARK = "@@ end of block @@"
RUNNER = f"""
import sys
sys.stderr = sys.stdout
names = {{"__name__": "__main__"}}
for block in sys.stdin.read().split({MARK!r}):
    exec(compile(block, PAGE, "exec"), names)
    print({MARK!r})
"""


def format_flags() -> str:
    """Write docs/flags.md: one row per setting."""
    flags = importlib.import_module("picograd.config").FLAGS
    lines = [
        "# Settings",
        "",
        "Generated from `picograd/config.py`. Set the environment variable before the program",
        "starts, or the attribute while it runs: `from picograd.config import config;",
        "config.debug = 2`. An empty variable is the default; a wrong one is named on stderr, and",
        "the default is used; a wrong attribute raises `ValueRangeError`.",
        "",
        "| variable | attribute | type | default | affects | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for flag in flags:
        default = flag.shown_default or repr(flag.default)
        cells = (f"`{flag.variable}`", f"`config.{flag.name}`", flag.type.__name__, default)
        lines.append(f"| {' | '.join(cells)} | {flag.affects} | {flag.meaning} |")
    return "\n".join(lines) + "\n"


@dataclass
class Block:
    """One fenced block of a page: language, text, and where the text is."""

    language: str
    text: str
    start: int
    end: int


@dataclass
class Finding:
    """An output on a page: where it is, what is written there, what the code printed."""

    page: str
    block: Block
    found: str

    @property
    def is_right(self) -> bool:
        """Tell whether the page shows what the code prints."""
        return matches(self.block.text, self.found)


def pages() -> list[Path]:
    """List the pages whose code is run."""
    docs = sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs/design").glob("*.md"))
    return [ROOT / "README.md", *(page for page in docs if page.name not in GENERATED)]


def blocks_of(text: str) -> list[Block]:
    """Find the fenced blocks of a page."""
    return [Block(m[1], m[2], m.start(2), m.end(2)) for m in FENCE.finditer(text)]


def environment() -> dict[str, str]:
    """Make output independent of the machine: one thread, the CPU, no cache."""
    fixed = {"PICOGRAD_DEVICE": "cpu", "PICOGRAD_THREADS": "1", "PICOGRAD_CACHE": "0"}
    dropped = {"DEBUG", "VERIFY", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    folder = os.path.dirname(sys.executable)
    return {**kept, **fixed, "PYTHONPATH": str(ROOT), "PATH": f"{folder}:{kept['PATH']}"}


def run(command: list[str], folder: str | Path, given: str = "") -> str:
    """Run a command; what it printed, both streams in one."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[-1]!r} failed:\n{done.stdout}")
    return done.stdout


def run_python(page: Path, blocks: list[Block]) -> list[str]:
    """Run the Python blocks of a page in one process; the output of each."""
    runner = RUNNER.replace("PAGE", repr(page.name))
    with tempfile.TemporaryDirectory() as folder:
        text = run([sys.executable, "-c", runner], folder, MARK.join(b.text for b in blocks))
    return [output.lstrip("\n") for output in text.split(MARK)[: len(blocks)]]


def run_console(block: Block) -> str:
    """Run the commands of a console block; the block as it should be."""
    commands = [line for line in block.text.splitlines() if line.startswith("$ ")]
    return "".join(f"{c}\n{run(['bash', '-c', c[2:]], ROOT)}" for c in commands)


def findings(page: Path) -> list[Finding]:
    """Run a page and find every output on it."""
    text = page.read_text()
    blocks = blocks_of(text)
    name = str(page.relative_to(ROOT))
    python = [block for block in blocks if block.language == "python"]
    outputs = dict(zip(map(id, python), run_python(page, python) if python else []))
    found = [Finding(name, b, run_console(b)) for b in blocks if b.language == "console"]
    for code, shown in pairwise(blocks):
        is_output = code.language == "python" and shown.language == "text"
        if is_output and not text[code.end + 3 : shown.start].removesuffix("```text\n").strip():
            found.append(Finding(name, shown, outputs[id(code)]))
    return found


def normal(text: str) -> list[str]:
    """Lines of an output without what differs from run to run."""
    text = MACHINE.sub(r"\1 #", MEASURED.sub(r" # \1", text)).strip("\n")
    lines = [line.rstrip() for line in text.splitlines() if not COLLECTED.match(line)]
    return [DECIMAL.sub(" #", line) if LAUNCH.match(line) else line for line in lines]


def matches(shown: str, found: str) -> bool:
    """Compare outputs; a line `...` matches any lines."""
    lines = [re.escape(line) if line.strip() != "..." else None for line in normal(shown)]
    pattern = "".join(r"(?:.*\n)*?" if line is None else line + r"\n" for line in lines)
    return re.fullmatch(pattern, "\n".join([*normal(found), ""])) is not None


def update(page: Path, wrong: list[Finding]) -> list[str]:
    """Write what the code printed into the page; returns what must be done by hand."""
    text, by_hand = page.read_text(), []
    for finding in sorted(wrong, key=lambda f: -f.block.start):
        if "\n...\n" in f"\n{finding.block.text}":
            by_hand.append(f"{finding.page}: edit this by hand\n{finding.found}")
        else:
            lines = [line.rstrip() for line in finding.found.rstrip().splitlines()]
            start, end = finding.block.start, finding.block.end
            text = text[:start] + "\n".join([*lines, ""]) + text[end:]
    page.write_text(text)
    return by_hand


def main() -> int:
    """Check or refresh pages; the number of outputs that are out of date and stay so."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    stale = []
    if not options.pages and not options.check:
        print(run([sys.executable, str(ROOT / "docs/stubs.py")], ROOT), end="")
        print(run([sys.executable, str(ROOT / "docs/api_reference.py")], ROOT), end="")
        (ROOT / "docs/flags.md").write_text(format_flags())
    for page in map(Path.resolve, options.pages or pages()):
        wrong = [finding for finding in findings(page) if not finding.is_right]
        if options.check:
            stale += [f"{f.page}: shows\n{f.block.text}but prints\n{f.found}" for f in wrong]
        else:
            stale += update(page, wrong)
        print(f"{page.relative_to(ROOT)}: {len(wrong)} outputs out of date")
    if not options.check and not options.pages and importlib.util.find_spec("torch"):
        run([sys.executable, "docs/pytorch_names.py"], ROOT)
    print("\n".join(stale), end="\n" if stale else "")
    return len(stale)


if __name__ == "__main__":
    sys.exit(main())
