"""Models in ONNX files beside ONNX Runtime: how far the outputs are apart, and the times.

python bench/onnx_models.py FOLDER [--only silero] [--rounds 15]

FOLDER has .onnx files. Open sizes are 1 and reals normal draws, unless `models.json` in it says
more: `{"net.onnx": {"kind": "speech", "inputs": [[[1, 576], 16000]]}}` is a list of calls, each a
list of inputs: a list is the shape of an array at random, `{"shape": [9], "below": 2}` of ints,
`{"texts": [["a"]]}` one of texts, a number itself. Printed for each call: `error`, the largest
difference between ONNX Runtime's outputs and ours, jitted, over the largest element of the output;
`spread`, the same for ONNX Runtime's own outputs without its rewriting of the graph, or of inputs
that differ in the last bits; medians in milliseconds of ONNX Runtime on 1 and 2 threads, of ours
without and with `jit`, on all cores. A model whose values Python has to know has no `jit`.
"""

import argparse
import json
import statistics
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime
from timing import interleave, machine, refuse_pinned_blas

import picograd
from picograd.onnx.values import dtype_of_onnx

NUDGE = np.float32(1 + 2**-23)
COLUMNS = "model", "kind", "nodes", "inputs", "error", "spread", "ORT 1", "ORT 2", "plain", "jit"


def session(path, threads, is_rewritten=True):
    """Open a file with ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if not is_rewritten:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])


def made(declared, given, generator):
    """Make an input of what `models.json` says, or of what the model declares."""
    kind = dtype_of_onnx(declared.type.tensor_type.elem_type)
    if given is None:
        given = [each.dim_value or 1 for each in declared.type.tensor_type.shape.dim]
    if isinstance(given, dict) and "texts" in given:
        return np.asarray(given["texts"], object)
    if isinstance(given, dict):
        return generator.integers(0, given["below"], given["shape"]).astype(kind.numpy)
    if isinstance(given, list):
        given = generator.normal(size=given)
    return np.asarray(given).astype(kind.numpy)


def nudge(array):
    """Change reals in their last bits."""
    return np.asarray(array * NUDGE) if array.dtype.kind == "f" else array


def distance(wanted, found):
    """Give the largest difference over the largest element, of all outputs; texts are equal."""
    worst = 0.0
    for a, b in zip(wanted, found, strict=True):
        if isinstance(a, list):  # a sequence of maps: probabilities by class
            a = np.asarray([list(each.values()) for each in a])
            b = np.asarray([list(each.values()) for each in b])
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return np.inf
        if a.dtype.kind not in "biuf":
            worst = max(worst, 0.0 if (a == b).all() else np.inf)
        elif a.size:
            largest = max(np.abs(a.astype(np.float64)).max(), 1e-30)
            worst = max(worst, np.abs(a.astype(np.float64) - b).max() / largest)
    return worst


def as_argument(array):
    """Give an input as picograd takes it: a number, such as a sampling rate, is one of Python's."""
    if array.dtype.kind not in "biuf":
        return array
    return array.item() if array.ndim == 0 else picograd.Tensor(array)


def arrays(outputs):
    """Read what a model gave."""
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [each.numpy() if isinstance(each, picograd.Tensor) else each for each in outputs]


def measure(path, model, kind, names, given, rounds):
    """Run one call everywhere; gives a row of the table."""
    inputs = dict(zip(names, given))
    one, two, plain = session(path, 1), session(path, 2), session(path, 1, False)
    wanted = one.run(None, inputs)
    nudged = {name: nudge(each) for name, each in inputs.items()}
    others = plain.run(None, inputs), one.run(None, nudged)
    spread = max(distance(wanted, each) for each in others)
    step = picograd.jit(model)
    ours = [as_argument(each) for each in given]
    found = [arrays(model(*ours))]
    is_jitted = True
    try:
        found += [arrays(step(*ours)), arrays(step(*ours))]
    except picograd.errors.TraceError:
        is_jitted = False
    error = max(distance(wanted, each) for each in found)
    rivals = {
        "ORT 1": lambda: one.run(None, inputs),
        "ORT 2": lambda: two.run(None, inputs),
        "plain": lambda: arrays(model(*ours)),
    }
    if is_jitted:
        rivals["jit"] = lambda: arrays(step(*ours))
    times = interleave(rivals, rounds)
    nodes = Counter(each.op_type for each in model.proto.graph.node)
    shapes = ", ".join(str(each.shape).replace(" ", "") for each in given)
    medians = [f"{statistics.median(each) * 1e3:.2f}" for each in times.values()]
    texts = [path.stem, kind, f"{nodes.total()} of {len(nodes)}", shapes, f"{error:.0e}"]
    return [*texts, f"{spread:.0e}", *medians, *["-"] * (not is_jitted)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="part of the names of files")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    refuse_pinned_blas()
    print(f"{machine()}, onnxruntime {onnxruntime.__version__}\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    said = options.folder / "models.json"
    known = json.loads(said.read_text()) if said.exists() else {}
    paths = [each for each in options.folder.glob("*.onnx") if options.only in each.name]
    for path in sorted(paths):
        about = known.get(path.name, {})
        generator = np.random.default_rng(0)
        try:
            model = picograd.onnx.load(path).eval()
            declared = [each for each in model.proto.graph.input if each.name in model.inputs]
            for call in about.get("inputs", [[None] * len(declared)]):
                given = [made(each, value, generator) for each, value in zip(declared, call)]
                with picograd.no_grad():
                    row = measure(
                        path, model, about.get("kind", ""), model.inputs, given, options.rounds
                    )
                print(f"| {' | '.join(row)} |", flush=True)
        except Exception as failure:
            reason = " ".join(str(failure).split())[:200]
            print(f"| {path.stem} | {type(failure).__name__}: {reason} |", flush=True)


if __name__ == "__main__":
    main()
