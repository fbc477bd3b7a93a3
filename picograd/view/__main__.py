"""The command line of `picograd.view`: run a program and show what it computed.

python -m picograd.view [flags] script.py [arguments of the script]
python -m picograd.view before.json after.json      compare saved runs
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from picograd.errors import PicogradError
from picograd.runtime.log import say
from picograd.view.gather import read_run, run_script, save_run
from picograd.view.report import Run
from picograd.view.show import show


def main(arguments: Sequence[str] | None = None) -> int:
    """Show what the command line names, until interrupted; returns the exit status."""
    flags = argparse.ArgumentParser(add_help=False)
    flags.add_argument("--save", metavar="RUN.json", help="also write the run to a file")
    flags.add_argument("--no-browser", action="store_true", help="print the address alone")
    flags.add_argument("--no-page", action="store_true", help="write the file alone")
    name = "python -m picograd.view"
    parser = argparse.ArgumentParser(prog=name, description=__doc__, parents=[flags])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("path", help="a Python program, or a saved run (.json)")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="its arguments, or more runs")
    options = parser.parse_args(arguments)
    if options.path.endswith(".json"):  # flags behind a program's name are the program's
        _, options.rest = flags.parse_known_args(options.rest, options)
    try:
        runs = find_runs(options.path, options.rest)
        if options.save:
            save_run(runs[-1], Path(options.save))
        if not options.no_page:
            for run in runs[:-1]:
                show(run, browser=False)
            show(runs[-1], browser=not options.no_browser).wait()
    except PicogradError as error:
        say(str(error))
        return 1
    return 0


def find_runs(path: str, rest: Sequence[str]) -> list[Run]:
    """Read saved runs, or run a program."""
    if path.endswith(".json"):
        return [read_run(Path(each)) for each in (path, *rest)]
    return [run_script(path, rest)]


if __name__ == "__main__":
    sys.exit(main())
