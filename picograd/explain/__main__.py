"""The command line of `picograd.explain`: every stage of an expression, without running it.

python -m picograd.explain "Tensor([-1., 2.]).relu()" [--target cuda] [--assembly] [--full]
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy

from picograd.errors import PicogradError, ValueRangeError
from picograd.tensor import public
from picograd.tensor.core.inspect import explain
from picograd.tensor.tensor import Tensor

TARGETS = "cpu, cuda (an H200), opencl, or such as sm_80; default: the tensor's device"


def evaluate(expression: str) -> Tensor:
    """Evaluate Python over `Tensor`, `nn`, picograd's functions and `np`: the user's command."""
    names = {name: getattr(public, name) for name in public.__all__}
    package: Any = sys.modules["picograd"]
    names |= {"Tensor": Tensor, "nn": package.nn, "picograd": package, "np": numpy}
    tensor = eval(expression, names)
    if not isinstance(tensor, Tensor):
        problem = f"the expression gives {type(tensor).__name__}, not Tensor"
        raise ValueRangeError("explain", problem, "try Tensor([-1.0, 2.0]).relu()")
    return tensor


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the stages of the expression on the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m picograd.explain", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("expression", help='Python, for example "Tensor([-1., 2.]).relu()"')
    parser.add_argument("--target", default="", help=TARGETS)
    parser.add_argument("--assembly", action="store_true", help="also machine code")
    parser.add_argument("--full", action="store_true", help="CUDA C with its helpers")
    options = parser.parse_args(arguments)
    try:
        tensor = evaluate(options.expression)
    except Exception as error:  # whatever the user's own Python raises is one line
        kind = "" if isinstance(error, PicogradError | SyntaxError) else f"{type(error).__name__}: "
        print(f"{kind}{error}", file=sys.stderr)
        return 1
    try:
        print(explain(tensor, options.target, options.assembly, options.full), end="")
    except PicogradError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
