"""The command line of `picograd.onnx`: what is in a model, its kernels and its time.

python -m picograd.onnx model.onnx [--size batch=8] [--explain] [--runs 20]
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from picograd.errors import PicogradError, ValueRangeError
from picograd.onnx import load
from picograd.onnx.model import Model
from picograd.onnx.values import dtype_of_onnx
from picograd.runtime.memory import format_bytes
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.inspect import explain, plan
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit import jit


def shape_of(declared: Any) -> list[Any]:
    """List the sizes of an input or output: ints, or names of those that are open."""
    dims = declared.type.tensor_type.shape.dim
    return [each.dim_value or each.dim_param or "?" for each in dims]


def described(declared: Any) -> str:
    """Write an input or output: its name, dtype and sizes."""
    if not declared.type.HasField("tensor_type"):
        return f"{declared.name}: {declared.type.WhichOneof('value')}"
    dtype = dtype_of_onnx(declared.type.tensor_type.elem_type)
    sizes = ", ".join(map(str, shape_of(declared)))
    return f"{declared.name}: {dtype.name if dtype else 'text or a dtype of its own'} ({sizes})"


def summary(model: Model) -> Iterator[str]:
    """Write what is in a model, line by line."""
    graph = model.proto.graph
    opsets = ", ".join(f"{name or 'ai.onnx'} {number}" for name, number in model.opsets.items())
    yield f"opset       {opsets}; {model.proto.producer_name or 'producer unknown'}"
    given = [each for each in graph.input if each.name in model.inputs]
    for title, listed in (("input", given), ("output", graph.output)):
        yield from (f"{title:11} {described(each)}" for each in listed)
    counts = Counter(f"{each.domain}.{each.op_type}".lstrip(".") for each in graph.node)
    operators = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    yield f"nodes       {len(graph.node)}: {operators}"
    parameters = list(model.parameters())
    elements, size = (
        sum(each) for each in zip((0, 0), *[(p.numel(), p.nbytes) for p in parameters])
    )
    yield f"parameters  {len(parameters)}: {elements:,} numbers, {format_bytes(size)}"


def example(declared: Any, sizes: dict[str, int]) -> Tensor:
    """Make an input: reals at random, other numbers 0; open sizes are 1 if they are not given."""
    dtype = dtype_of_onnx(declared.type.tensor_type.elem_type)
    if dtype is None or not declared.type.HasField("tensor_type"):
        text = f"no example can be made of {described(declared)}"
        raise ValueRangeError("onnx", text, "call the model with your own: picograd.onnx.load")
    named = [(f"{declared.name}.{axis}", n) for axis, n in enumerate(shape_of(declared))]
    shape = [n if type(n) is int else sizes.get(n, sizes.get(at, 1)) for at, n in named]
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return Tensor(array if dtype.is_float else array * 0).to(dtype)


def read_sizes(given: Sequence[str]) -> dict[str, int]:
    """Read texts like batch=8."""
    try:
        return {name: int(size) for name, _, size in (each.partition("=") for each in given)}
    except ValueError:
        text = f"--size {' '.join(given)} is not understood"
        raise ValueRangeError("onnx", text, "write --size batch=8") from None


def show(path: str, sizes: dict[str, int], is_long: bool, runs: int) -> None:
    """Print a model, its kernels and its time."""
    model = load(path)
    model.eval()
    print("\n".join(summary(model)), flush=True)
    declared = {each.name: each for each in model.proto.graph.input}
    with no_grad():
        inputs = [example(declared[name], sizes).realize() for name in model.inputs]
        found = model(*inputs)
        outputs = [each for each in (found if isinstance(found, tuple) else (found,))
                   if isinstance(each, Tensor)]  # fmt: skip
        print()
        print(explain(outputs[0]) if is_long else plan(*outputs))
        step = jit(model)
        times = [timed(step, inputs) for _ in range(runs + 2)][2:]
    shapes = ", ".join(str(tuple(each.shape)) for each in inputs)
    print(
        f"\ntime        {statistics.median(times) * 1e3:.3f} ms at {shapes}: the median of {runs}"
    )


def timed(step: Any, inputs: Sequence[Tensor]) -> float:
    """Run once, and wait; gives the seconds."""
    start = time.perf_counter()
    found = step(*inputs)
    for each in found if isinstance(found, tuple) else (found,):
        each.numpy()
    return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is in a model; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m picograd.onnx", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("model", help="an .onnx file")
    parser.add_argument("--size", action="append", default=[], help="an open size: batch=8")
    parser.add_argument("--explain", action="store_true", help="every stage of the kernels")
    parser.add_argument("--runs", type=int, default=20, help="how often it is timed")
    options = parser.parse_args(arguments)
    try:
        show(options.model, read_sizes(options.size), options.explain, max(options.runs, 1))
    except PicogradError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
