"""Seconds from the start of a process to the end of its first CNN training step.

"empty": nothing cached on disk. "second": another process with the cache the first one left.
Each run is a whole process: interpreter, imports, recording, scheduling, compilation, one step.
PyTorch eager is timed the same way where it is installed.

    python bench/cold_start.py [--device cpu] [--rounds 5]
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BENCH = Path(__file__).parent
STEP = """
import sys
sys.path[:0] = [{bench!r}, {examples!r}, {root!r}]
import numpy as np
images = np.random.default_rng(0).normal(size=(128, 1, 28, 28)).astype(np.float32)
labels = np.random.default_rng(0).integers(0, 10, 128)
if {rival!r} == "torch":
    import torch
    from mnist_cnn_step import torch_network
    network = torch_network().to({device!r})
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    x, y = torch.from_numpy(images).to({device!r}), torch.from_numpy(labels).to({device!r})
    loss = torch.nn.functional.cross_entropy(network(x), y)
    loss.backward()
    optimizer.step()
else:
    import picograd
    from mnist_cnn import Network, make_step
    from picograd import Tensor, nn
    model = Network().to({device!r})
    optimizer = nn.optim.Adam(model.parameters(), lr=1e-3)
    step = picograd.jit(make_step(model, optimizer))
    loss = step(Tensor(images, device={device!r}), Tensor(labels, device={device!r}))
print(loss.item())
"""


def seconds(rival: str, device: str, cache: str) -> float:
    """Run one process and time it from outside."""
    root = BENCH.parent
    places = {"bench": str(BENCH), "examples": str(root / "examples"), "root": str(root)}
    program = STEP.format(rival=rival, device=device, **places)
    environment = {**os.environ, "PICOGRAD_CACHE": cache}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, capture_output=True
    )
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    times: dict[str, list[float]] = {"picograd empty": [], "picograd second": [], "torch": []}
    for _ in range(options.rounds):
        cache = tempfile.mkdtemp()
        times["picograd empty"].append(seconds("picograd", options.device, cache))
        times["picograd second"].append(seconds("picograd", options.device, cache))
        times["torch"].append(seconds("torch", options.device, cache))
        shutil.rmtree(cache)
    for name, values in times.items():
        spread = f"{min(values):.2f}..{max(values):.2f}"
        print(f"{name:16} median {statistics.median(values):.2f} s ({spread}, n={len(values)})")


if __name__ == "__main__":
    main()
