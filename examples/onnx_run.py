"""A model in an ONNX file runs, as a jitted module; ONNX Runtime checks it where it is installed.

    python examples/onnx_run.py model.onnx --picture cat.jpg --labels classes.txt
    python examples/onnx_run.py model.onnx --inputs given.npz --outputs found.npz
    python examples/onnx_run.py model.onnx --size batch=8     # inputs at random
    python examples/onnx_run.py                               # a small network made here

A picture is scaled to the size of the first input, and its colours as ImageNet's usually are.
Arrays of `--inputs` have the names of the model's inputs. It takes the packages `onnx`, and Pillow
for pictures. `python -m picograd.onnx model.onnx` shows what is in the file, its kernels, its time.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import check_device, existing, need_package

import picograd
from picograd import Tensor, nn
from picograd.errors import DataError

MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's colours


def read_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=existing, nargs="?", help="an .onnx file")
    parser.add_argument("--picture", type=existing, help="to classify")
    parser.add_argument("--labels", type=existing, help="names of classes, one a line")
    parser.add_argument("--inputs", type=existing, help="arrays by name: .npz")
    parser.add_argument("--outputs", type=Path, help="where to write the results: .npz")
    parser.add_argument("--size", action="append", default=[], help="an open size: batch=8")
    parser.add_argument("--device", default=None, help="cpu, cuda; default: CUDA if usable")
    options = parser.parse_args(arguments)
    check_device(parser, options.device)
    return options


def small_network(folder):
    """Write a network to an ONNX file, as there is none."""
    picograd.manual_seed(0)
    maps = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    model = nn.Sequential(*maps, nn.Linear(8, 10))
    path = Path(folder) / "small.onnx"
    open_sizes = {"input": {0: "batch"}}
    picograd.onnx.export(model, Tensor.zeros(2, 3, 32, 32), path, dynamic=open_sizes)
    return path


def shape_of(declared, sizes):
    """List the sizes of an input; open ones are 1 unless they are given."""
    dims = declared.type.tensor_type.shape.dim
    return [each.dim_value or sizes.get(each.dim_param, 1) for each in dims]


def picture(path, shape):
    """Read a picture as 1 3 H W."""
    from PIL import Image

    height, width = (size if size > 1 else 224 for size in shape[-2:])
    image = Image.open(path).convert("RGB").resize((width, height))
    colours = (np.asarray(image, np.float32) / 255 - MEAN) / SPREAD  # H W 3
    return colours.transpose(2, 0, 1)[None].astype(np.float32)


def make_inputs(model, options):
    """Read or make an array for each input."""
    from picograd.onnx.values import dtype_of_onnx

    declared = {each.name: each for each in model.proto.graph.input}
    pairs = (each.partition("=") for each in options.size)
    sizes = {name: int(size) for name, _, size in pairs}
    given = dict(np.load(options.inputs)) if options.inputs else {}
    generator = np.random.default_rng(0)
    for number, name in enumerate(model.inputs):
        shape = shape_of(declared[name], sizes)
        if number == 0 and options.picture:
            given[name] = picture(options.picture, shape)
        dtype = dtype_of_onnx(declared[name].type.tensor_type.elem_type).numpy
        made = generator.normal(size=shape) if dtype.kind == "f" else np.zeros(shape)
        given.setdefault(name, made.astype(dtype))
    return given


def compare(path, given, found):
    """Print how far ONNX Runtime's results are."""
    try:
        import onnxruntime
    except ImportError:
        return
    wanted = onnxruntime.InferenceSession(str(path)).run(None, given)
    furthest = max(np.abs(a - b).max() for a, b in zip(found.values(), wanted))
    print(f"furthest from ONNX Runtime's results: {furthest:.1e}")


def main(arguments=None):
    """Run the model, print what it gives; returns the arrays by name."""
    options = read_options(arguments)
    need_package("onnx", "onnx")
    if options.picture:
        need_package("PIL", "pillow")
    with tempfile.TemporaryDirectory() as folder:
        path = options.model or small_network(folder)
        try:
            model = picograd.onnx.load(path).eval().to(options.device)
        except DataError as error:
            sys.exit(str(error))
        given = make_inputs(model, options)
        step = picograd.jit(model)
        with picograd.no_grad():
            for _ in range(2):  # the first call compiles
                start = time.perf_counter()
                outputs = step(*(Tensor(each, device=options.device) for each in given.values()))
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)
                found = {name: each.numpy() for name, each in zip(model.outputs, outputs)}
                seconds = time.perf_counter() - start
        print(f"{path.name}: {seconds * 1e3:.2f} ms")
        compare(path, given, found)
    for name, each in found.items():
        print(f"{name}: {each.dtype} {each.shape}")
    scores = next(iter(found.values()))
    if scores.ndim == 2 and scores.dtype.kind == "f":
        names = options.labels.read_text().splitlines() if options.labels else range(10**9)
        for place in scores[0].argsort()[::-1][:5]:
            print(f"  {scores[0, place]:8.3f}  {names[place]}")
    if options.outputs:
        np.savez(options.outputs, **found)
    return found


if __name__ == "__main__":
    main()
