"""Training steps of sixteen networks of images, video and sound on an NVIDIA GPU, beside PyTorch.

Weights are float32, products bfloat16 by autocast, SGD with momentum; both libraries run the
same definitions (`bench/vision_networks.py`) from the same weights. PyTorch is at its best:
channels-last, cuDNN's benchmark mode, the whole step captured in a CUDA graph, plain and compiled
(`--modes` takes modes of torch.compile); the ratio is to the fastest of them.

    python bench/gpu_vision.py [--only U-Net ViT] [--rounds 7] [--profile] [--inference]
    python bench/gpu_vision.py --cpu      # losses of three steps beside PyTorch's, small, float32

`--profile` prints both libraries' time by kernel.
"""

import argparse
import copy
import statistics
import time

import torch
from plain_networks import Data
from timing import interleave, machine
from torch_capture import captured
from vision_networks import NETWORKS

import picograd

STEPS = 3
FORMS = {4: torch.channels_last, 5: torch.channels_last_3d}


class LastChannels(Data):
    """Data in which PyTorch's images have their channels last."""

    def normal(self, *shape):
        found = super().normal(*shape)
        if self.library is picograd or len(shape) not in FORMS:
            return found
        return found.contiguous(memory_format=FORMS[len(shape)])


class Training:
    """This class is one network with its optimizer in one library."""

    def __init__(self, library, name, options, weights=None):
        network, gpu, cpu = NETWORKS[name]
        self.library, self.device = library, "cpu" if options.cpu else "cuda"
        modules, self.loss = network(library, LastChannels(library), *(cpu if options.cpu else gpu))
        self.modules = library.nn.ModuleList(modules)
        if weights is not None:
            self.modules.load_state_dict(weights)
        more = {"fused": True} if library is torch else {}
        for parameter in self.modules.parameters() if library is torch else ():
            if parameter.dim() in FORMS:  # before the optimizer makes arrays like it
                parameter.data = parameter.data.contiguous(memory_format=FORMS[parameter.dim()])
        self.optimizer = library.optim.SGD(
            list(self.modules.parameters()), lr=1e-2, momentum=0.9, **more
        )
        self.is_inference = options.inference
        self.modules.train(not options.inference)

    def forward(self):
        is_enabled = self.device == "cuda"
        with self.library.autocast(self.device, dtype=self.library.bfloat16, enabled=is_enabled):
            return self.loss()

    def step(self):
        if self.is_inference:
            with self.library.no_grad():
                return self.forward()
        self.optimizer.zero_grad()
        loss = self.forward()
        loss.backward()
        self.optimizer.step()
        return loss


def repeated(step, count):
    """Make a function that runs some steps and reads the last loss."""
    return lambda: [step() for _ in range(count)][-1].item()


def rivals_of(name, options):
    """Make picograd's steps and PyTorch's, and compare losses of the first steps."""
    torch.manual_seed(0)
    torch.set_default_device("cpu" if options.cpu else "cuda")
    theirs = Training(torch, name, options)
    weights = {k: v.detach().cpu().numpy() for k, v in theirs.modules.state_dict().items()}
    ours = Training(picograd, name, options, weights)
    torch.set_default_device(None)
    step = picograd.jit(ours.step)
    losses = [[float(step().item()) for _ in range(3)], [theirs.step().item() for _ in range(3)]]
    rivals = {"picograd": repeated(step, STEPS)}
    if not options.cpu:
        rivals["captured"] = captured(theirs.step, STEPS)
        forward = theirs.forward
        for mode in options.modes:
            torch._dynamo.reset()
            theirs.forward = torch.compile(forward, mode=None if mode == "default" else mode)
            rivals[mode] = captured(copy.copy(theirs).step, STEPS)
    return rivals, losses


def measure(name, options):
    """Print one row, and both profiles if they are asked for."""
    start = time.perf_counter()
    rivals, (ours, theirs) = rivals_of(name, options)
    apart = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
    shown = " ".join(f"{a:.4f}/{b:.4f}" for a, b in zip(ours, theirs, strict=True))
    if options.cpu:
        print(f"{name:13} losses apart {apart:.1e}: {shown}", flush=True)
        return
    times = interleave(rivals, options.rounds)
    best = min((statistics.median(each), who) for who, each in times.items() if who != "picograd")
    ratio = statistics.median(b / a for a, b in zip(times["picograd"], times[best[1]], strict=True))
    rows = []
    for who, seconds in times.items():
        low, middle, high = (each * 1e3 / STEPS for each in statistics.quantiles(seconds, n=4))
        rows.append(f"{who} {middle:.3f} ({low:.3f}..{high:.3f})")
    print(
        f"| {name:13} | {'; '.join(rows)} | {best[1]} {ratio:.2f} | {shown} | "
        f"{time.perf_counter() - start:.0f} s",
        flush=True,
    )
    if options.profile:
        with picograd.profile(None):
            rivals["picograd"]()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            rivals[best[1]]()
        print(seen.key_averages().table(sort_by="cuda_time_total", row_limit=25))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--modes", nargs="*", default=["default"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    picograd.config.device = "cpu" if options.cpu else "cuda"
    if not options.cpu:
        print(machine(), torch.cuda.get_device_name())
    for name in options.only:
        measure(name, options)


if __name__ == "__main__":
    main()
