"""Convolutions on an NVIDIA GPU beside cuDNN, without the engine: forward and both gradients.

The plan of each is scheduled as inside of a network: operands and results lie channels-last,
weights (O, *K, C). All kernels of it are launched: sums of parts, sorted weights. cuDNN has its
benchmark mode and channels-last tensors; `--tf32` lets both sides read float32 as TF32. Values are
compared, on NaN-poisoned results; rivals take turns, each a CUDA graph of launches. A ratio is the
median over rounds.

    python bench/gpu_conv.py [--layers resnet depthwise] [--images 256] [--rounds 9] [--kinds data]
"""

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import torch
from gpu_contract import Rival, in_turns, plan_call, target_here

from picograd.buffer import Storage
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import TEMPLATES
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import contract_cuda
from picograd.codegen.templates.contract_tma import BoxSchedule
from picograd.codegen.tile_pipeline import Persistent
from picograd.dtype import to_dtype
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule.schedule import schedule

KINDS = ("forward", "data", "weight")
LAYERS = {  # channels in and out, size, kernel, stride, groups if several
    "resnet": [
        (64, 64, 56, 3, 1),
        (128, 128, 28, 3, 1),
        (256, 256, 14, 3, 1),
        (512, 512, 7, 3, 1),
        (64, 256, 56, 1, 1),
        (256, 64, 56, 1, 1),
        (256, 512, 56, 1, 2),
        (128, 128, 56, 3, 2),
        (512, 512, 14, 3, 2),
        (3, 64, 224, 7, 2),
    ],
    "depthwise": [  # of MobileNet, EfficientNet and ConvNeXt
        (32, 32, 112, 3, 1, 32),
        (96, 96, 112, 3, 2, 96),
        (144, 144, 56, 3, 1, 144),
        (144, 144, 56, 3, 2, 144),
        (192, 192, 28, 3, 1, 192),
        (576, 576, 14, 3, 1, 576),
        (960, 960, 7, 3, 1, 960),
        (240, 240, 28, 5, 1, 240),
        (144, 144, 56, 5, 2, 144),
        (672, 672, 14, 5, 1, 672),
        (1152, 1152, 7, 5, 1, 1152),
        (96, 96, 56, 7, 1, 96),
        (192, 192, 28, 7, 1, 192),
        (384, 384, 14, 7, 1, 384),
        (768, 768, 7, 7, 1, 768),
    ],
    "grouped": [  # of ResNeXt-50
        (128, 128, 56, 3, 1, 32),
        (256, 256, 56, 3, 2, 32),
        (256, 256, 28, 3, 1, 32),
        (512, 512, 28, 3, 2, 32),
        (512, 512, 14, 3, 1, 32),
        (1024, 1024, 14, 3, 2, 32),
        (1024, 1024, 7, 3, 1, 32),
    ],
    "others": [(32, 64, 28, 3, 1), (16, 32, 32, 5, 1), (96, 96, 30, 3, 1)],
}


def leaf(dtype, *shape):
    """An array that nobody has filled."""
    return Node("buffer", (), Storage(None), shape, dtype, "cuda:0")


def groups_of(layer):
    """Count the groups of a layer."""
    return layer[5] if len(layer) > 5 else 1


def plan_of(layer, kind, images, dtype, target):
    """Schedule one convolution: images (N, H, W, C), weights (O, K, K, C), results alike."""
    channels, outputs, size, kernel, stride = layer[:5]
    groups = groups_of(layer)
    pads = ((kernel // 2, kernel // 2),) * 2
    spec = ConvSpec((stride, stride), pads, (1, 1), (1, 1))
    count = (size - 1) // stride + 1
    x = leaf(dtype, images, size, size, channels)
    w = leaf(dtype, outputs, kernel, kernel, channels // groups)
    dy = leaf(dtype, images, count, count, outputs)
    image, filters = x.permute((0, 3, 1, 2)), w.permute((0, 3, 1, 2))
    image = image.reshape((images, groups, channels // groups, size, size))
    filters = filters.reshape((groups, outputs // groups, channels // groups, kernel, kernel))
    made = image.conv(filters, spec)
    seed = dy.permute((0, 3, 1, 2)).reshape(made.shape)
    found = {"forward": made}
    if kind != "forward":
        both = gradient([(made, seed)], [image, filters])
        found |= dict(zip(("data", "weight"), both))
    root = found[kind]
    sizes = {"forward": (images, outputs), "data": (images, channels)}
    first = sizes.get(kind, (outputs, channels // groups))
    root = root.reshape((*first, *root.shape[3:]))
    root = root.permute((0, 2, 3, 1))
    plan = schedule([root], target)
    roles = {id(x): "x", id(w): "w", id(dy): "dy"}
    return plan, [roles[id(node)] for node in plan.inputs]


def only(tile):
    """Accept schedules of boxes with a tile, and all without."""
    return lambda each: (
        not isinstance(each, BoxSchedule) or not tile or "x".join(map(str, each.block)) == tile
    )


def programs(plan, target, tile=""):
    """Write the kernels of a plan; say of products whether their operands come in boxes."""
    found, is_boxed = [], []
    for step in plan.steps:
        is_product = step.kernel.hero in ("conv", "contract")
        template = contract_cuda.build if is_product else TEMPLATES[step.kernel.hero]
        tiles = template(step.kernel, target, *([only(tile)] if is_product else []))
        if is_product:
            first = tiles.parts[0].steps[0]
            shape = "x".join(map(str, tiles.parts[0].tiles[0].shape))
            is_boxed.append(f"{len(step.kernel.slots)}:{shape}" if is_persistent(first) else "old")
        found.append((linearize(tiles, target), step.slots))
    return found, " ".join(is_boxed)


def is_persistent(step):
    """Tell whether blocks stay for many tiles."""
    return isinstance(step, Persistent)


def tensors_of(layer, images, dtype):
    """Random operands, channels-last in memory."""
    channels, outputs, size, kernel, stride = layer[:5]
    count = (size - 1) // stride + 1
    shapes = {
        "x": (images, size, size, channels),
        "w": (outputs, kernel, kernel, channels // groups_of(layer)),
        "dy": (images, count, count, outputs),
    }
    return {name: torch.randn(*shape, device="cuda").to(dtype) for name, shape in shapes.items()}


def torch_call(layer, kind, given):
    """Make what computes a convolution with torch."""
    kernel, stride = layer[3:5]
    groups = groups_of(layer)
    x, w, dy = (given[name].permute(0, 3, 1, 2) for name in ("x", "w", "dy"))
    pad = kernel // 2
    if kind == "forward":
        return lambda: torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)
    mask = [kind == "data", kind == "weight", False]
    options = None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups, mask
    place = KINDS.index(kind) - 1
    return lambda: torch.ops.aten.convolution_backward(dy, x, w, *options)[place]


def compare(layer, kind, images, plan, roles, built, note, options):
    """Check and time one convolution; its ratio."""
    dtype = getattr(torch, options.dtype)
    given = tensors_of(layer, images, dtype)
    theirs = torch_call(layer, kind, given)
    ours, (out,) = plan_call(plan, roles, built, given)
    expected = theirs().permute(0, 2, 3, 1).float()
    torch.cuda.synchronize()
    ours()
    torch.cuda.synchronize()
    found = out.float()
    error = ((found - expected).norm() / expected.norm()).item()
    first = out.clone()
    ours()
    torch.cuda.synchronize()
    is_same = torch.equal(first, out)
    del expected, found, first
    if options.check:
        print(layer, kind, f"error {error:.1e}, the same twice: {is_same}", note, flush=True)
        return 1.0
    channels, outputs, size, kernel, stride = layer[:5]
    depth = channels // groups_of(layer) * kernel**2
    work = 2 * images * ((size - 1) // stride + 1) ** 2 * outputs * depth
    rivals = [Rival("torch", [theirs]), Rival("ours", [ours])]
    times = in_turns(rivals, options.rounds, 4e-3, work / 400e12 + 5e-5)
    a, b = (sorted(each)[len(each) // 2] for each in times.values())
    ratio = statistics.median(t / o for t, o in zip(times["torch"], times["ours"]))
    wrong = "" if error < 5e-3 and is_same else f" WRONG error {error:.1e} same {is_same}"
    name = f"{channels}->{outputs} {size} k{kernel} s{stride} g{groups_of(layer)} {kind}"
    print(
        f"{name:34} torch {a * 1e6:7.1f} us {work / a / 1e12:4.0f} | ours {b * 1e6:7.1f} us "
        f"{work / b / 1e12:4.0f} TFLOP/s | {ratio:.2f}  {note}{wrong}",
        flush=True,
    )
    return ratio


def main():
    from gpu_contract import compile_cuda

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", nargs="+", default=["resnet"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--tf32", action="store_true", help="of float32, on both sides")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    parser.add_argument("--number", type=int, help="of the only layer to run")
    parser.add_argument("--tile", default="", help="the tile to use: 128x128")
    parser.add_argument("--check", action="store_true", help="compare values, time nothing")
    options = parser.parse_args()
    start = time.perf_counter()
    torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = True, options.tf32
    target = replace(target_here(), tf32=options.tf32)
    print(torch.cuda.get_device_name(), torch.__version__, options)
    dtype = to_dtype(options.dtype)
    cases = [
        (layer, kind)
        for name in options.layers
        for number, layer in enumerate(LAYERS[name])
        if options.number in (None, number)
        for kind in options.kinds
        if (kind, layer[0]) != ("data", 3)
    ]
    plans = [plan_of(*case, options.images, dtype, target) for case in cases]
    written = [programs(plan, target, options.tile) for plan, _ in plans]
    with ThreadPoolExecutor() as pool:
        jobs = [
            [pool.submit(compile_cuda, render(program), target.arch) for program, _ in each]
            for each, _ in written
        ]
        built = [
            [(*pair, job.result()[0]) for pair, job in zip(each, waiting, strict=True)]
            for (each, _), waiting in zip(written, jobs, strict=True)
        ]
    print(f"compiled in {time.perf_counter() - start:.1f} s")
    ratios = {kind: [] for kind in options.kinds}
    rows = zip(cases, plans, built, written, strict=True)
    for (layer, kind), (plan, roles), each, (_, note) in rows:
        if time.perf_counter() - start < options.seconds:
            ratio = compare(layer, kind, options.images, plan, roles, each, note, options)
            ratios[kind].append(ratio)
            torch.cuda.empty_cache()
    for kind, found in ratios.items():
        if found:
            mean = statistics.geometric_mean(found)
            print(f"{kind}: geomean {mean:.3f}, worst {min(found):.3f}")


if __name__ == "__main__":
    main()
