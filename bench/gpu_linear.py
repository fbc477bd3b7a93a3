"""A linear layer with what follows it on an NVIDIA GPU, against PyTorch eager and torch.compile.

Each timed call runs REPEATS layers back to back and waits for the device at its end. Results are
checked against float64.

    python bench/gpu_linear.py [--rounds 15] [--without-compile]
"""

import argparse

import numpy as np
import torch
from timing import interleave, machine, report

import picograd
from picograd import Tensor

REPEATS = 20
SHAPES = [(8192, 3072, 768), (8192, 768, 3072), (4096, 4096, 4096)]
ENDS = {
    "bias + gelu": lambda F, x, w, b, r: F.gelu(F.linear(x, w, b)),
    "bias + gelu tanh": lambda F, x, w, b, r: F.gelu(F.linear(x, w, b), approximate="tanh"),
    "bias + residual": lambda F, x, w, b, r: F.linear(x, w, b) + r,
    "swiglu": lambda F, x, w, b, r: F.silu(x @ halves(w)[0].mT) * (x @ halves(w)[1].mT),
}
CASES = [(shape, name) for name in ENDS for shape in SHAPES]
CASES.append(((2048, 28672, 4096), "swiglu"))  # Llama-8B


def halves(w):
    """Cut a weight in two: of the gate, and of what passes it."""
    half = w.shape[0] // 2
    return w[:half], w[half:]


def compare(shape: tuple[int, int, int], name: str, options: argparse.Namespace) -> None:
    """Time one layer."""
    m, n, k = shape
    end = ENDS[name]
    generator = np.random.default_rng(0)
    sizes = ((m, k), (n, k), (n,), (m, n if "residual" in name else 1))
    arrays = [generator.standard_normal(size).astype(np.float32) for size in sizes]
    ours = [Tensor(x, device="cuda").cast("bfloat16").realize() for x in arrays]
    theirs = [torch.from_numpy(x).cuda().bfloat16() for x in arrays]
    F, torch_F = picograd.nn.functional, torch.nn.functional
    layer = picograd.jit(lambda *given: end(F, *given))
    expected = end(torch_F, *(x.double() for x in theirs))
    found = torch.from_numpy(layer(*ours).cast("float32").numpy()).cuda().double()
    error = ((found - expected).norm() / expected.norm()).item()
    eager = lambda: end(torch_F, *theirs)  # noqa: E731
    other = ((eager().double() - expected).norm() / expected.norm()).item()
    rivals = {"picograd": lambda: layer(*ours), "torch": eager}
    if not options.without_compile:
        torch.compiler.reset()
        compiled = torch.compile(lambda *given: end(torch_F, *given))
        rivals["torch.compile"] = lambda: compiled(*theirs)

    def repeated(run):
        def timed():
            for _ in range(REPEATS):
                run()
            picograd.synchronize("cuda")
            torch.cuda.synchronize()

        return timed

    times = interleave({key: repeated(run) for key, run in rivals.items()}, options.rounds)
    title = f"{m}x{n}x{k} {name}, {REPEATS} layers, error {error:.1e} (torch {other:.1e})"
    report(title, times, "picograd", 2 * m * n * k * REPEATS)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--without-compile", action="store_true")
    options = parser.parse_args()
    print(machine(), torch.cuda.get_device_name(), f"CUDA {torch.version.cuda}")
    for shape, name in CASES:
        compare(shape, name, options)


if __name__ == "__main__":
    main()
