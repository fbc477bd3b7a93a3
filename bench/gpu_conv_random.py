"""Random convolutions on an NVIDIA GPU beside PyTorch's: values and both gradients, no times.

Sizes, strides, padding, gaps, groups, what is before and after, bfloat16, float16 and float32 with
TF32. Relative errors are of PyTorch's float64 result on the same rounded inputs.

    python bench/gpu_conv_random.py [--count 60] [--seed 0]
"""

import argparse

import numpy as np
import torch

import picograd
from picograd import Tensor

LIMIT = {"bfloat16": 8e-3, "float16": 1.5e-3, "float32": 1.5e-3}


def draw(generator):
    """Choose one case."""
    one = generator.choice
    rank = int(one([1, 2, 2, 2, 2, 3]))
    channels = int(one([1, 3, 8, 16, 24, 32, 64, 72, 128]))
    groups = 2 if channels % 16 == 0 and generator.random() < 0.1 else 1
    groups = channels if generator.random() < 0.15 else groups
    kernel = tuple(int(one([1, 2, 3, 3, 5])) for _ in range(rank))
    gap = int(one([1, 1, 1, 2]))
    most = {1: 300, 2: 40, 3: 12}[rank]
    size = tuple(int(generator.integers((k - 1) * gap + 1, most)) for k in kernel)
    return dict(
        images=int(one([1, 2, 7, 16, 64])),
        channels=channels,
        outputs=groups * (1 if groups > 2 else int(one([8, 16, 40, 64, 128, 200]))),
        size=size,
        kernel=kernel,
        groups=groups,
        stride=tuple(int(one([1, 1, 2, 3])) for _ in range(rank)),
        padding=tuple(int(generator.integers(0, k)) for k in kernel),
        dilation=gap,
        dtype=str(one(["bfloat16", "bfloat16", "float16", "float32"])),
        is_after=bool(generator.random() < 0.5),
    )


def has_relu(case):
    """Tell whether a relu follows: not TF32, which flips the signs of elements near 0."""
    return case["is_after"] and case["dtype"] != "float32"


def ours(case, arrays):
    """Forward and both gradients with picograd, in float64 NumPy."""
    dtype = getattr(picograd, case["dtype"])
    x, w, seed = (Tensor(a, device="cuda").to(dtype).realize() for a in arrays)
    x.requires_grad = w.requires_grad = True
    rank = len(case["size"])
    options = {k: case[k] for k in ("stride", "padding", "dilation", "groups")}
    inner = x * 1.5 if case["is_after"] else x
    made = getattr(inner, f"conv{rank}d")(w, **options)
    if has_relu(case):
        made = made.relu()
    made.backward(seed)
    return [t.float().numpy().astype(np.float64) for t in (made.detach(), x.grad, w.grad)]


def theirs(case, arrays):
    """The same with torch in float64, of inputs rounded as ours."""
    dtype = getattr(torch, case["dtype"])
    x, w, seed = (torch.from_numpy(a).to(dtype).double().cuda() for a in arrays)
    x.requires_grad = w.requires_grad = True
    rank = len(case["size"])
    options = {k: case[k] for k in ("stride", "padding", "dilation", "groups")}
    inner = (x * 1.5).to(dtype).double() if case["is_after"] else x
    made = getattr(torch.nn.functional, f"conv{rank}d")(inner, w, **options)
    if has_relu(case):
        made = made.relu()
    made.backward(seed)
    return [t.detach().cpu().numpy() for t in (made, x.grad, w.grad)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    picograd.set_float32_matmul_precision("high")
    generator = np.random.default_rng(options.seed)
    worst, wrong = {}, 0
    for number in range(options.count):
        case = draw(generator)
        rank = len(case["size"])
        x = generator.standard_normal((case["images"], case["channels"], *case["size"]))
        shape = case["outputs"], case["channels"] // case["groups"], *case["kernel"]
        w = generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        probe = getattr(torch.nn.functional, f"conv{rank}d")
        given = {k: case[k] for k in ("stride", "padding", "dilation", "groups")}
        out = probe(torch.from_numpy(x[:1]), torch.from_numpy(w), **given).shape
        seed = generator.standard_normal((case["images"], *out[1:]))
        arrays = [a.astype(np.float32) for a in (x, w, seed)]
        errors = []
        for a, b in zip(ours(case, arrays), theirs(case, arrays), strict=True):
            errors.append(float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)))
        worst[case["dtype"]] = max(worst.get(case["dtype"], 0.0), *errors)
        if not max(errors) < LIMIT[case["dtype"]]:
            wrong += 1
            print("WRONG", number, case, errors, flush=True)
    print(f"{options.count} cases, {wrong} wrong, worst errors", worst)


if __name__ == "__main__":
    main()
