"""Convolution, bias, ReLU and max-pool 2 x 2 on an NVIDIA GPU, in float32: one kernel or two.

Windows are reduced by the threads that compute them (picograd/schedule/pooling.py), or read from
memory by a kernel of their own; torch has cuDNN without TF32 for the convolution. Inputs lie as
images do or channels-last, as a convolution leaves them; with `--image` the image is stored too,
which training reads. Each is a CUDA graph of launches, in turns; medians.

    python bench/gpu_pool.py [--rounds 9] [--image]
"""

import argparse
import statistics
from unittest.mock import patch

import torch
from gpu_contract import Rival, compile_cuda, in_turns, plan_call, target_here
from gpu_conv import leaf, programs

from picograd.codegen.render.cuda import render
from picograd.dtype import float32
from picograd.graph.shape import ConvSpec
from picograd.schedule import pooling
from picograd.schedule.schedule import schedule

LAYERS = [  # images, channels in and out, side
    (128, 1, 32, 28), (128, 32, 64, 14), (64, 32, 32, 28), (8, 128, 128, 28), (4, 256, 256, 28),
    (1, 64, 128, 112), (32, 3, 64, 224), (256, 64, 64, 56), (256, 256, 256, 14),
]  # fmt: skip
SAME = ConvSpec((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))
POOL = ((2, 2, 2, 1), (3, 2, 2, 1))


def plan_of(layer, is_last, has_image, target):
    """Schedule a layer; the order of its inputs."""
    images, channels, outputs, side = layer
    x = leaf(float32, *((images, side, side, channels) if is_last else layer_shape(layer)))
    w, b = leaf(float32, 1, outputs, channels, 3, 3), leaf(float32, outputs)
    image = x.permute((0, 3, 1, 2)) if is_last else x
    made = image.reshape((images, 1, channels, side, side)).conv(w, SAME)
    made = made.reshape((images, outputs, side, side))
    bias = b.reshape((1, outputs, 1, 1)).expand(made.shape)
    y = made.binary("add", bias).binary("maximum", 0)
    pooled = y.window(POOL).reduce("max", (4, 5))
    plan = schedule([pooled, y] if has_image else [pooled], target)
    roles = {id(x): "x", id(w): "w", id(b): "b"}
    return plan, [roles[id(node)] for node in plan.inputs]


def layer_shape(layer):
    """Shape of images."""
    images, channels, _, side = layer
    return images, channels, side, side


def call_of(layer, is_last, has_image, given, target):
    """Make what launches the kernels of a layer, its first result, and how many kernels."""
    plan, roles = plan_of(layer, is_last, has_image, target)
    written, _ = programs(plan, target)
    built = [(*each, compile_cuda(render(each[0]), target.arch)[0]) for each in written]
    run, results = plan_call(plan, roles, built, given)
    return run, results[0], len(built)


def compare(layer, is_last, options, target):
    """Check and time one layer."""
    images, channels, outputs, side = layer
    x = torch.randn(*layer_shape(layer), device="cuda")
    w = torch.randn(1, outputs, channels, 3, 3, device="cuda")
    b = torch.randn(outputs, device="cuda")
    stored = x.permute(0, 2, 3, 1).contiguous() if is_last else x
    given = {"x": stored, "w": w, "b": b}
    together, out, count = call_of(layer, is_last, options.image, given, target)
    with patch.object(pooling, "fits_patches", lambda *_: False):
        apart, other, many = call_of(layer, is_last, options.image, given, target)
    F = torch.nn.functional
    seen = stored.permute(0, 3, 1, 2) if is_last else x
    theirs = lambda: F.max_pool2d(F.relu(F.conv2d(seen, w[0], b, padding=1)), 2)  # noqa: E731
    expected = theirs()
    together(), apart()
    torch.cuda.synchronize()
    errors = [((y - expected).norm() / expected.norm()).item() for y in (out, other)]
    rivals = [Rival("one", [together]), Rival("two", [apart]), Rival("torch", [theirs])]
    work = 18 * images * side * side * outputs * channels
    times = in_turns(rivals, options.rounds, 4e-3, work / 30e12 + 1e-5)
    one, two, torchs = (statistics.median(each) * 1e6 for each in times.values())
    print(
        f"{layer!s:22} {'last' if is_last else 'first':6} kernels {count} {many}  one {one:8.1f} us"
        f"  two {two:8.1f} us  torch {torchs:8.1f} us  errors {errors[0]:.0e} {errors[1]:.0e}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--image", action="store_true")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    print(torch.cuda.get_device_name(), torch.__version__, options)
    for layer in LAYERS:
        for is_last in (False, True):
            compare(layer, is_last, options, target_here())


if __name__ == "__main__":
    main()
